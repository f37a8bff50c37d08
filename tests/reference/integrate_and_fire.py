"""The neuron models of `fascicle simulate` written a second time: exact in integers, and the same in double precision.

README.md beside this file is the specification that this program and the C code both follow. A network here is arrays
of edges and one dictionary of parameters per class of neurons, with the keys of a configuration's `neuron` object.

    net = Network("psc_exp", 0.1, 0.1, [neuron], numpy.zeros(n, int), pre, post, weight, delay)
    spikes = Integers(net).run(1000, {3: [0, 1]})     # [(step, neuron)], ascending; neurons 0 and 1 are made to fire
    floats = Doubles(net).run(1000, {3: [0, 1]})
"""
import dataclasses
import math

import numpy as np

ONE = 1 << 32        # a state of ONE is one unit: one count of weight, or 2^e mV
STATE_BOUND = 1 << 60
ARRIVAL_BOUND = 1 << 28
SMALLEST_EXPONENT = -16

MODELS = ("lif_delta", "lif_exp", "psc_exp", "psc_alpha")


# ---- arithmetic ----


def nearest(x):
    """The integer nearest to a double, halves away from zero (llround)."""
    whole = int(abs(x))
    whole += abs(x) - whole >= 0.5
    return -whole if x < 0 else whole


@dataclasses.dataclass(frozen=True)
class Factor:
    """p = sign * f * 2^-(32 + s), with 0 <= f < 2^32 and 0 <= s <= 31."""
    f: int
    s: int = 0
    sign: int = 1


def factor(p, bits=32):
    """p, |p| <= 1, rounded to 2^-(32 + s) with the smallest s that leaves it so many bits."""
    s = 0
    while s < 31 and nearest(math.ldexp(abs(p), 32 + s)) < 1 << (bits - 1):
        s += 1
    return Factor(min(nearest(math.ldexp(abs(p), 32 + s)), ONE - 1), s, -1 if p < 0 else 1)


def times(x, by):
    """x times a factor, to the nearest integer, halves away from zero; any integer x."""
    size = (abs(x) * by.f + (1 << (31 + by.s))) >> (32 + by.s)
    return size if (x < 0) == (by.sign < 0) else -size


def times_array(x, f, s, sign):
    """times() for arrays: x int64 above -2^63; f, s uint64 and sign int64, one value or one per element."""
    size = np.abs(x).view(np.uint64)
    high, low = size >> np.uint64(32), size & np.uint64(0xffffffff)
    none, half, one = np.uint64(0), np.uint64(1 << 31), np.uint64(1)
    carry = (low * f + np.where(s == 0, half, none)) >> np.uint64(32)
    product = (high * f + carry + np.where(s == 0, none, one << (np.maximum(s, one) - one))) >> s
    return np.where(x < 0, -sign, sign) * product.view(np.int64)


# ---- a model: closed forms in double, in mV, pA and ms ----


def phi1(x):
    return math.expm1(x) / x if x else 1.0


def phi2(x):
    if abs(x) >= 0.125:
        return (math.expm1(x) - x) / (x * x)
    sum_ = 1.0
    for n in range(10, 2, -1):
        sum_ = 1.0 + sum_ * x / n
    return sum_ / 2.0


@dataclasses.dataclass
class Model:
    """One class of neurons. Components are numbered; v is 0, an adaptation is the last."""
    components: list            # names
    decays: list                # of each component: h / tau
    couplings: list             # (to, from, p): the rest of the propagator of one step
    coarse: list                # components that follow the published integers of the fly model: p itself to 2^-32
    drive: float                # mV that one pA of constant current adds to v in a step; None without c_m_pf
    excite: int                 # component that takes positive arrivals
    inhibit: int                # and negative ones
    early: bool                 # arrivals join the update of this step, before the test
    strict: bool                # fires when v > threshold; else when v >= threshold
    frozen: list                # components that stand still at rest and lose what arrives
    cleared: list               # components set to 0 by a spike, besides v, which goes to reset
    rest_steps: int             # steps after the spike's in which the neuron rests
    threshold: float            # mV above rest
    reset: float                # mV above rest
    current: float              # pA, at every step
    jump: float = 0.0           # mV per spike onto the adaptation
    raises_threshold: bool = False


def steps_of(ms, dt_ms, what):
    steps = nearest(ms / dt_ms)
    if abs(ms / dt_ms - steps) > 1e-6:
        raise ValueError(f"{what} {ms} ms is no multiple of dt_ms {dt_ms}; the nearest is {steps * dt_ms} ms")
    return steps


def synapse_names(model):
    return {"lif_delta": [], "lif_exp": ["g"], "psc_exp": ["i_ex", "i_in"],
            "psc_alpha": ["a_ex", "i_ex", "a_in", "i_in"]}[model]


def build(model, neuron, h):
    """The Model of one class from its `neuron` keys; h is dt_ms."""
    tau_m = neuron["tau_m_ms"]
    refractory = steps_of(neuron.get("refractory_ms", 0.0), h, "refractory_ms")
    names, decays, couplings = ["v"] + synapse_names(model), [h / tau_m], []
    capacity = neuron.get("c_m_pf")
    if model == "lif_exp":
        tau = neuron["tau_syn_ms"]
        decays.append(h / tau)
        couplings.append((0, 1, h / tau_m * math.exp(-h / tau) * phi1(h / tau - h / tau_m)))
    for sign, tau in enumerate((neuron.get("tau_syn_ex_ms"), neuron.get("tau_syn_in_ms"))):
        if not model.startswith("psc_"):
            break
        x, decay = h / tau - h / tau_m, math.exp(-h / tau)
        to_v = h / capacity * decay * phi1(x)
        if model == "psc_exp":
            decays.append(h / tau)
            couplings.append((0, 1 + sign, to_v))
        else:
            a, i = 1 + 2 * sign, 2 + 2 * sign
            rise = math.e / tau
            decays += [h / tau, h / tau]
            couplings += [(0, a, h * h / capacity * rise * decay * phi2(x)), (0, i, to_v), (i, a, h * rise * decay)]
    return Model(
        components=names, decays=decays, couplings=couplings, coarse=[0, 1] if model == "lif_exp" else [],
        drive=-tau_m / capacity * math.expm1(-h / tau_m) if capacity else None,
        excite={"lif_delta": 0}.get(model, 1), inhibit={"lif_delta": 0, "lif_exp": 1, "psc_exp": 2, "psc_alpha": 3}[model],
        early=model == "lif_delta", strict=model == "lif_exp",
        frozen=[0, 1] if model == "lif_exp" else [0], cleared=[1] if model == "lif_exp" else [],
        rest_steps=max(refractory, 1) - 1 if model == "lif_exp" else refractory,
        threshold=neuron["v_threshold_mv"] - neuron["v_rest_mv"], reset=neuron["v_reset_mv"] - neuron["v_rest_mv"],
        current=neuron.get("i_e_pa", 0.0), **adapt(neuron.get("adaptation"), names, decays, couplings, tau_m, h))


def adapt(adaptation, names, decays, couplings, tau_m, h):
    """Adds the component of an adaptation; returns what Model needs to know of it."""
    if not adaptation:
        return {}
    w, tau = len(names), adaptation["tau_ms"]
    raises = adaptation.get("into", "drive") == "threshold"
    names.append("w")
    decays.append(h / tau)
    if not raises:
        couplings.append((0, w, -(h / tau_m * math.exp(-h / tau) * phi1(h / tau - h / tau_m))))
    return {"jump": adaptation["jump_mv"], "raises_threshold": raises}


# ---- networks ----


@dataclasses.dataclass
class Network:
    """Edges as arrays; class_of[i] is the row of `neurons` that neuron i takes its parameters from."""
    model: str
    dt_ms: float
    weight_unit: float           # of one count: mV (lif_*) or pA (psc_*)
    neurons: list                # dictionaries, one per class
    class_of: np.ndarray
    pre: np.ndarray
    post: np.ndarray
    weight: np.ndarray           # counts
    delay: np.ndarray            # steps
    silenced: tuple = ()         # neurons whose spikes go nowhere

    def __post_init__(self):
        self.n = len(self.class_of)
        self.classes = [build(self.model, neuron, self.dt_ms) for neuron in self.neurons]

    def from_current(self, model, to, from_):
        """Whether a coupling is one of a current to v, which has a unit."""
        return self.model.startswith("psc_") and to == 0 and model.components[from_] != "w"

    def voltage_unit(self):
        """mV of one unit of v: a count (lif_*), or the power of two that leaves the largest coupling just below 1."""
        if not self.model.startswith("psc_"):
            return self.weight_unit
        largest = max(p * self.weight_unit for c in self.classes for to, from_, p in c.couplings
                      if self.from_current(c, to, from_))
        return math.ldexp(1.0, max(math.frexp(largest)[1], SMALLEST_EXPONENT))

    def integer_factors(self, model):
        """Of one class: {(to, from): Factor}; a decay of negative sign is a part that is taken away from the component."""
        factors = {}
        for c, decay in enumerate(model.decays):
            factors[c, c] = factor(math.exp(-decay), 25) if c in model.coarse else factor(math.expm1(-decay))
        for to, from_, p in model.couplings:
            if self.from_current(model, to, from_):
                p = p * self.weight_unit / self.voltage_unit()
            factors[to, from_] = factor(p, 25 if from_ in model.coarse else 32)
        return factors


class Simulation:
    """What both kinds of arithmetic share: the order of a step, the ring of arrivals, who rests."""

    def __init__(self, net):
        self.net, n = net, net.n
        self.classes = net.classes
        per_neuron = lambda get, kind: np.array([get(c) for c in self.classes], kind)[net.class_of]
        self.rest_steps = per_neuron(lambda c: c.rest_steps, np.int64)
        self.adapts = per_neuron(lambda c: c.components[-1] == "w", bool)
        self.raises = per_neuron(lambda c: c.raises_threshold, bool)
        self.strict, self.early = self.classes[0].strict, self.classes[0].early
        self.frozen, self.cleared = self.classes[0].frozen, self.classes[0].cleared
        self.excite, self.inhibit = self.classes[0].excite, self.classes[0].inhibit
        self.counter = np.zeros(n, np.int64)
        order = np.argsort(net.pre, kind="stable")
        self.out = [a[order] for a in (net.post, net.weight.astype(np.int64), net.delay)]
        self.start = np.searchsorted(net.pre[order], np.arange(n + 1))
        slots = int(net.delay.max()) + 1 if len(net.delay) else 1
        self.ring = np.zeros((slots, 2, n), np.int64)          # counts: positive, negative
        self.w = 1 + len(synapse_names(net.model))
        self.x = [np.zeros(n, self.kind) for _ in range(self.w + 1)]   # w stays 0 where a class has none
        self.load(per_neuron)

    def place(self, model, *components):
        """Where components stand in self.x."""
        return tuple(self.w if model.components[c] == "w" else c for c in components)

    def set_v(self, neurons, v_mv):
        for i in np.atleast_1d(neurons):
            rest = self.net.neurons[self.net.class_of[i]]["v_rest_mv"]
            self.x[0][i] = self.voltage(v_mv - rest)

    def step(self, k, fires=(), currents=(), events=(), synaptic=()):
        """One step; fires: neurons that fire now; currents: (neurons, pA) or, for noise, (neurons, pA, quantiles in 2^-32); events: (neurons, mV) onto v; synaptic: (neurons, mV or
        pA) into the synapse; a neuron may be named more than once in these. Returns the spikers."""
        x, resting = self.x, self.counter > 0
        slot = self.ring[k % len(self.ring)]
        arrivals = slot.copy()
        slot[:] = 0
        new = self.advance()
        new[0] = new[0] + self.constant
        for neurons, pa, *quantiles in currents:
            new[0][neurons] += self.current_of(neurons, pa, *quantiles)
        arriving = [self.counts(sum_) for sum_ in arrivals]
        for neurons, weight in synaptic:
            np.add.at(arriving[weight < 0], neurons, self.synapse(weight))
        if self.early:
            new[0] = new[0] + arriving[0] + arriving[1]
        for c in self.frozen:
            new[c] = np.where(resting, x[c], new[c])
        self.counter[resting] -= 1
        x[:] = new
        limit = self.threshold + np.where(self.raises, x[self.w], self.kind(0))
        fired = (x[0] > limit if self.strict else x[0] >= limit) & ~resting
        fired[list(fires)] = True
        if not self.early:
            for c, sum_ in ((self.excite, arriving[0]), (self.inhibit, arriving[1])):
                lost = (resting | fired) if c in self.frozen else np.zeros(self.net.n, bool)
                x[c] = x[c] + np.where(lost, self.kind(0), sum_)
        for neurons, mv in events:
            neurons = np.asarray(neurons)
            neurons = neurons[~(resting | fired)[neurons]]
            np.add.at(x[0], neurons, self.voltage(mv))
        self.after_spike(fired)
        self.check(k, arrivals)
        spikers = np.flatnonzero(fired)
        self.send(k, spikers)
        return spikers

    def after_spike(self, fired):
        self.x[0] = np.where(fired, self.reset, self.x[0])
        for c in self.cleared:
            self.x[c] = np.where(fired, self.kind(0), self.x[c])
        self.x[self.w] = self.x[self.w] + np.where(fired, self.jump, self.kind(0))
        self.counter = np.where(fired, self.rest_steps, self.counter)

    def send(self, k, spikers):
        post, weight, delay = self.out
        for i in spikers:
            if i in self.net.silenced:
                continue
            row = slice(self.start[i], self.start[i + 1])
            sign = (weight[row] < 0).astype(int)
            np.add.at(self.ring, ((k + delay[row]) % len(self.ring), sign, post[row]), weight[row])

    def run(self, steps, *inputs):
        """Steps 0 .. steps - 1, with dictionaries by step of what step() takes, or None; [(step, neuron)] ascending."""
        spikes = []
        for k in range(steps):
            spikes += [(k, int(i)) for i in self.step(k, *((table or {}).get(k, ()) for table in inputs))]
        return spikes


class Integers(Simulation):
    """The specification: int64 states in units of 2^-32."""
    kind = np.int64

    def load(self, per_neuron):
        net, unit = self.net, self.net.voltage_unit()
        self.scale_v = unit
        tables = [{self.place(m, *key): by for key, by in net.integer_factors(m).items()} for m in self.classes]
        self.entries = []
        for key in sorted({key for table in tables for key in table}):
            column = lambda name, kind: np.array([getattr(t.get(key, Factor(0)), name) for t in tables], kind)[net.class_of]
            self.entries.append((*key, column("f", np.uint64), column("s", np.uint64), column("sign", np.int64)))
        round_up = math.floor if self.strict else math.ceil
        self.threshold = per_neuron(lambda c: round_up(c.threshold / unit * ONE), np.int64)
        self.reset = per_neuron(lambda c: self.voltage(c.reset), np.int64)
        self.jump = per_neuron(lambda c: self.voltage(c.jump), np.int64)
        self.constant = per_neuron(lambda c: self.voltage(c.drive * c.current) if c.current else 0, np.int64)

    def voltage(self, mv):
        return nearest(mv / self.scale_v * ONE)

    def synapse(self, weight):
        return nearest(weight / self.net.weight_unit * ONE)

    def counts(self, sum_):
        return sum_ << 32

    def current_of(self, neurons, pa, quantiles=None):
        by_class = [self.voltage(c.drive * pa) for c in self.classes]
        drives = [by_class[c] for c in self.net.class_of[neurons]]
        if quantiles is not None:
            drives = [q * drive >> 32 for q, drive in zip(quantiles, drives)]
        return np.array(drives, np.int64)

    def advance(self):
        new = [np.zeros_like(x) if c in self.classes[0].coarse else x.copy() for c, x in enumerate(self.x)]
        for to, from_, f, s, sign in self.entries:
            new[to] = new[to] + times_array(self.x[from_], f, s, sign)
        return new

    def check(self, k, arrivals):
        sums = arrivals if self.excite != self.inhibit else arrivals.sum(axis=0)
        if np.abs(sums).max() >= ARRIVAL_BOUND or max(np.abs(x).max() for x in self.x) >= STATE_BOUND:
            raise OverflowError(f"a sum or a state leaves its bound at step {k}")


class Doubles(Simulation):
    """The same in double precision, in mV and pA, as Brian2 and NEST compute."""
    kind = np.float64

    def load(self, per_neuron):
        tables = [{self.place(m, *key): p for *key, p in m.couplings + [(c, c, math.exp(-d)) for c, d in enumerate(m.decays)]}
                  for m in self.classes]
        self.entries = [(*key, np.array([t.get(key, 0.0) for t in tables])[self.net.class_of])
                        for key in sorted({key for table in tables for key in table})]
        self.threshold = per_neuron(lambda c: c.threshold, np.float64)
        self.reset = per_neuron(lambda c: c.reset, np.float64)
        self.jump = per_neuron(lambda c: c.jump, np.float64)
        self.constant = per_neuron(lambda c: c.drive * c.current if c.current else 0.0, np.float64)

    def voltage(self, mv):
        return mv

    def synapse(self, weight):
        return weight

    def counts(self, sum_):
        return sum_ * self.net.weight_unit

    def current_of(self, neurons, pa, quantiles=None):
        drives = np.array([c.drive * pa for c in self.classes])[self.net.class_of[neurons]]
        return drives if quantiles is None else drives * np.array(quantiles) / ONE

    def advance(self):
        new = [np.zeros_like(x) for x in self.x]
        for to, from_, p in self.entries:
            new[to] = new[to] + self.x[from_] * p
        return new

    def check(self, k, arrivals):
        pass
