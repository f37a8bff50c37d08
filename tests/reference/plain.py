"""The specification of README.md as it reads, one neuron after the other in Python's unbounded integers: slow, and the check of
the arrays in integrate_and_fire.py."""
import collections
import math

from integrate_and_fire import ARRIVAL_BOUND, ONE, STATE_BOUND, nearest, times


class Plain:
    def __init__(self, net):
        self.net, self.classes = net, [net.classes[c] for c in net.class_of]
        self.unit = net.voltage_unit()
        self.x = [[0] * len(c.components) for c in self.classes]
        self.counter = [0] * net.n
        self.factors = [net.integer_factors(c) for c in self.classes]
        self.arrivals = collections.defaultdict(int)      # (step, neuron, negative) -> counts
        self.edges = collections.defaultdict(list)
        for edge in zip(net.pre.tolist(), net.post.tolist(), net.weight.tolist(), net.delay.tolist()):
            self.edges[edge[0]].append(edge[1:])

    def voltage(self, mv):
        return nearest(mv / self.unit * 4294967296.0)

    def neuron_step(self, i, k, forced, pa, mv, weights):
        """Steps 1 to 6 of one neuron; whether it fired. pa, mv, weights: rows of currents (with a quantile, if it is noise), of
        events on v and into the synapse in this step."""
        model, x = self.classes[i], self.x[i]
        plus, minus = self.arrivals.pop((k, i, 0), 0), self.arrivals.pop((k, i, 1), 0)
        together = model.excite == model.inhibit
        in_bounds = (abs(plus + minus) if together else max(plus, -minus)) < ARRIVAL_BOUND
        amounts = [nearest(weight / self.net.weight_unit * 4294967296.0) for weight, in weights]
        plus = (plus << 32) + sum(amount for amount in amounts if amount > 0)
        minus = (minus << 32) + sum(amount for amount in amounts if amount < 0)
        resting = self.counter[i] > 0
        self.counter[i] -= resting
        new = [0 if c in model.coarse else value for c, value in enumerate(x)]
        for (to, from_), by in self.factors[i].items():
            new[to] += times(x[from_], by)
        for amount, *quantile in [(model.current,), *pa]:
            drive = self.voltage(model.drive * amount) if amount else 0
            new[0] += quantile[0] * drive >> 32 if quantile else drive
        if self.net.model == "lif_delta":
            new[0] += plus + minus
        still = {"lif_exp": (0, 1)}.get(self.net.model, (0,)) if resting else ()
        x[:] = [old if c in still else value for c, (old, value) in enumerate(zip(x, new))]
        theta = model.threshold / self.unit * 4294967296.0
        raised = x[-1] if model.raises_threshold else 0
        if self.net.model == "lif_exp":
            fired = x[0] > math.floor(theta) + raised
        else:
            fired = x[0] >= math.ceil(theta) + raised
        fired = fired and not resting or forced
        if self.net.model == "lif_exp" and not (resting or fired):
            x[1] += plus + minus
        elif self.net.model.startswith("psc_"):
            x[1] += plus
            x[2 if self.net.model == "psc_exp" else 3] += minus
        if not (resting or fired):
            x[0] += sum(self.voltage(amount) for amount, in mv)
        if fired:
            x[0] = self.voltage(model.reset)
            if self.net.model == "lif_exp":
                x[1] = 0
            if model.components[-1] == "w":
                x[-1] += self.voltage(model.jump)
            self.counter[i] = model.rest_steps
        if not in_bounds or max(map(abs, x)) >= STATE_BOUND:
            raise OverflowError(f"step {k} neuron {i}")
        return fired

    def run(self, steps, fires, *inputs):
        spikes = []
        for k in range(steps):
            of = lambda table, i: [(row[1], *(part[at] for part in row[2:])) for row in table.get(k, ())
                                   for at, one in enumerate(row[0]) if one == i]
            fired = [i for i in range(self.net.n) if self.neuron_step(
                i, k, i in fires.get(k, ()), *(of(inputs[t] if t < len(inputs) else {}, i) for t in range(3)))]
            for i in fired:
                for post, weight, delay in self.edges[i] if i not in self.net.silenced else []:
                    self.arrivals[k + delay, post, int(weight < 0)] += weight
            spikes += [(k, i) for i in fired]
        return spikes
