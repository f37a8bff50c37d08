"""Random networks with fixed seeds and inputs, and how two simulations of one are compared."""
import json
import sys
import tempfile

import numpy as np

import configuration
import philox
from case import Case
from integrate_and_fire import Doubles, Integers, Network

FLY = {"v_rest_mv": -52.0, "v_threshold_mv": -45.0, "v_reset_mv": -52.0, "tau_m_ms": 20.0, "tau_syn_ms": 5.0, "refractory_ms": 2.2}
CORTEX = {"v_rest_mv": -65.0, "v_threshold_mv": -50.0, "v_reset_mv": -65.0, "tau_m_ms": 10.0, "c_m_pf": 250.0, "refractory_ms": 2.0}


def by_step(trains):
    """{step: neurons} of a list of (neuron, steps)."""
    table = {}
    for neuron, steps in trains:
        for k in steps:
            table.setdefault(int(k), []).append(int(neuron))
    return table


def poisson_steps(draw, probability, steps):
    return np.flatnonzero(draw.random(steps) < probability)


def fly(name, n, mean_degree, seed, steps=10000, driven=0, rate_hz=100.0, silenced=0, currents=False, kicked=0.0, strength=8.0,
        adaptation=None, driven_rest=False):
    """lif_exp with the fly's parameters, signed synapse counts of a heavy tail, one delay of 18 steps. driven: so many neurons
    without refractory time (driven_rest: with) get events of 68.75 mV; kicked: this part of the neurons starts above threshold; currents: each
    neuron has one of 16 constant drives, some of them above threshold."""
    draw = np.random.default_rng(seed)
    n_edges = n * mean_degree
    neuron = dict(FLY, **({"adaptation": adaptation} if adaptation else {}))
    neurons, class_of = [neuron, {**neuron, "refractory_ms": 0.0}], np.zeros(n, int)
    class_of[:driven] = not driven_rest
    if currents:
        neurons = [{**neuron, "c_m_pf": 200.0, "i_e_pa": float(pa)} for pa in np.linspace(40, 100, 16)]
        class_of = draw.integers(0, 16, n)
    sign = np.where(draw.random(n) < 0.7, 1, -1)
    pre, post = draw.integers(0, n, n_edges), draw.integers(0, n, n_edges)
    weight = sign[pre] * np.minimum(np.ceil(draw.lognormal(np.log(strength), 0.9, n_edges)), 2000).astype(int)
    net = Network("lif_exp", 0.1, 0.275, neurons, class_of, pre, post, weight, np.full(n_edges, 18),
                  silenced=tuple(int(i) for i in draw.choice(np.arange(driven, n), silenced, replace=False)))
    stimulus = {"kind": "poisson", "neurons": {"indices": list(range(driven))}, "rate_hz": rate_hz, "weight_mv": 68.75, "into": "v",
                "no_refractory": not driven_rest}
    table = philox.poisson(1, 0, range(driven), range(steps), rate_hz * 1e-4) if driven else {}
    events = {k: [(who, 68.75)] for k, who in table.items()}
    v = np.where(draw.random(n) < kicked, -44.0, draw.uniform(-52, -46, n)) if kicked else None
    return Case(name, net, steps, events=events, poisson=[stimulus] if driven else [], v_mv=v)


def cortex(name, model, n, mean_degree, seed, steps=10000, sources=100, rate_hz=20.0, taus=(0.5, 0.5), drive_pa=(300, 420),
           psp=1.0, pulses=False, adaptation=None, h=0.1, delays=(1, 31), differing=False, poisson=None):
    """A NEST model with excitation and inhibition: weights over 16 bits, mixed delays, one of 20 constant currents for each neuron.
    The last `sources` neurons have no in-edges and fire at given steps. psp: scale of the weights; differing: classes differ in all parameters;
    poisson: (rate in Hz, weight in pA) of events into the synapse of the inner neurons, several in a step where they are frequent."""
    draw = np.random.default_rng(seed)
    n_edges, inner = n * mean_degree, n - sources
    neuron = dict(CORTEX, **({"adaptation": adaptation} if adaptation else {}))
    if model.startswith("psc_"):
        neuron.update(tau_syn_ex_ms=taus[0], tau_syn_in_ms=taus[1])
    neurons = [{**neuron, "i_e_pa": float(pa)} for pa in np.linspace(*drive_pa, 20)] + [neuron]
    if differing:
        for i, one in enumerate(neurons):
            one.update(tau_m_ms=8.0 + i % 7, c_m_pf=200.0 + 13 * i, v_threshold_mv=-50.0 + 0.25 * (i % 5),
                       v_reset_mv=-65.0 - i % 4, v_rest_mv=-65.0 - 0.5 * (i % 3), refractory_ms=1.0 + 0.5 * (i % 4))
    class_of = np.where(np.arange(n) < inner, draw.integers(0, 20, n), 20)
    pre, post = draw.integers(0, n, n_edges), draw.integers(0, inner, n_edges)
    inhibits = draw.random(n) < 0.2
    size = np.where(inhibits[pre], -4.0, 1.0) * draw.normal(1.0, 0.3, n_edges)
    unit, mean = {"lif_delta": (1e-4, 1500), "psc_exp": (0.02, 4390), "psc_alpha": (0.02, 1800)}[model]
    weight = np.clip(np.round(psp * mean * size), -32768, 32767).astype(int)
    net = Network(model, h, unit, neurons, class_of, pre, post, weight, draw.integers(*delays, n_edges))
    fires = by_step((i, poisson_steps(draw, rate_hz * h * 1e-3, steps)) for i in range(inner, n))
    currents = {}
    if pulses:
        for first in range(500, steps - 300, 1000):
            who = draw.choice(inner, inner // 10, replace=False)
            for k in range(first, first + 200):
                currents[k] = [(who, float(50 + first % 7 * 25))]
    stimuli, synaptic = [], {}
    if poisson:
        rate, weight = poisson
        stimuli.append({"kind": "poisson", "neurons": {"indices": list(range(inner))}, "rate_hz": rate, "weight_pa": weight, "first_step": 1})
        table = philox.poisson(1, 0, range(inner), range(1, steps), rate * h / 1000.0)
        synaptic = {k: [(who, weight)] for k, who in table.items()}
    return Case(name, net, steps, fires, currents, synaptic=synaptic, poisson=stimuli, v_mv=np.where(class_of < 20, draw.uniform(-65, -51, n), -65.0))


def first_difference(one, other):
    """The earliest (step, neuron) that is in one list only; None when both are equal."""
    only = set(one) ^ set(other)
    return min(only) if only else None


def report(case, theirs, peer, fascicle=None):
    """Compares the peer's spikes with the integers' or, given the program, with the program's; one line of JSON. Where they part,
    the line says at which spike, and whether integers and our double precision part from the peer there too. Whether all are equal."""
    ours = {}
    if fascicle:
        with tempfile.TemporaryDirectory() as folder:
            ours["fascicle"] = configuration.fascicle_spikes(case, fascicle, folder)
    if not fascicle or ours["fascicle"] != theirs:
        ours["integers"] = case.run(Integers)
    line = {"net": case.name, "model": case.net.model, "neurons": case.net.n, "edges": len(case.net.pre), "steps": case.steps,
            "peer": peer, "spikes": len(theirs), "neurons_firing": len({i for _, i in theirs})}
    for who, spikes in ours.items():
        parts = first_difference(spikes, theirs)
        line[who] = "equal"
        if parts:
            line[who] = {"spikes": len(spikes), "first_difference": [int(a) for a in parts],
                         "equal_before": sum(spike < parts for spike in spikes)}
    equal = all(spikes == theirs for spikes in ours.values())
    if not equal:
        parts = first_difference(case.run(Doubles), theirs)
        line["doubles"] = [int(a) for a in parts] if parts else "equal"
    print(json.dumps(line), flush=True)
    return equal


def compare_all(cases, spikes_of, peer, words):
    """The main program of a comparison: words are [--fascicle PROGRAM] [NET]...; exit code 1 if a net differs."""
    fascicle = None
    if words[:1] == ["--fascicle"]:
        fascicle, words = words[1], words[2:]
    known, equal = [], True
    for make in cases:
        case = make()
        known.append(case.name)
        if not words or case.name in words:
            equal &= report(case, spikes_of(case), peer, fascicle)
    if set(words) - set(known):
        sys.exit(f"no net {sorted(set(words) - set(known))}; known are {known}")
    sys.exit(not equal)
