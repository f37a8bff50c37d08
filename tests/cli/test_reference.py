"""The reference of the neuron models: its arrays equal plain Python integers, and both the published form of the fly model.
seconds: 120"""
import csv
import json
import os
import random
import sys
import tempfile

import numpy as np

sys.path.insert(0, os.path.join(os.environ["SOURCE"], "tests", "reference"))
import configuration  # noqa: E402
import nets  # noqa: E402
import philox  # noqa: E402
from integrate_and_fire import MODELS, Doubles, Factor, Integers, Network, factor, nearest, times, times_array  # noqa: E402
from plain import Plain  # noqa: E402

checks = 0


def check(condition, *what):
    global checks
    checks += 1
    if not condition:
        raise AssertionError(" ".join(map(str, what)))


def neuron_of(model, **more):
    neuron = {"v_rest_mv": -65.0, "v_threshold_mv": -50.0, "v_reset_mv": -67.0, "tau_m_ms": 10.0, "refractory_ms": 2.0}
    if model == "lif_exp":
        neuron["tau_syn_ms"] = 5.0
    if model.startswith("psc_"):
        neuron.update(tau_syn_ex_ms=0.5, tau_syn_in_ms=2.0)
    return {**neuron, "c_m_pf": 250.0, "i_e_pa": 380.0, **more}


def random_network(model, neurons, n=40, n_edges=600, seed=1, h=0.1):
    draw = np.random.default_rng(seed)
    most = {"lif_delta": 20, "lif_exp": 200, "psc_exp": 12000, "psc_alpha": 3000}[model]
    weight = draw.integers(-most, most + 1, n_edges)
    unit = 0.1 if model.startswith("psc_") else 0.275
    return Network(model, h, unit, neurons, draw.integers(0, len(neurons), n), draw.integers(0, n, n_edges),
                   draw.integers(0, n, n_edges), weight, draw.integers(1, 31, n_edges), silenced=(3, 4))


def test_times():
    draw = random.Random(1)
    values = [0, 1, -1, 2**31, -2**31, 2**63 - 1, -(2**63 - 1)] + [draw.randint(-2**b, 2**b) for b in range(63) for _ in range(4)]
    for _ in range(200):
        by = Factor(draw.choice([draw.randrange(2**32), 2**32 - 1, 2**31, 1, 0]), draw.choice([0, 0, 1, 7, 31]), draw.choice([1, -1]))
        got = times_array(np.array(values), np.uint64(by.f), np.uint64(by.s), np.int64(by.sign))
        check(got.tolist() == [times(x, by) for x in values], by)
    check([times(x, Factor(2**31)) for x in (1, -1, 3, -3)] == [1, -1, 2, -2], "halves away from zero")
    check([nearest(x) for x in (0.5, -0.5, 1.4999, 2.5, 0.49999999999999994)] == [1, -1, 1, 3, 0], "llround")
    check(factor(0.004937935295309, 25) == Factor(21208271) and factor(2.0**-9, 25) == Factor(2**24, 1), "factor of 25 bits")
    check([factor(p) for p in (0.5, -0.25, 1.0, 2.0**-40)] == [Factor(2**31), Factor(2**31, 1, -1), Factor(2**32 - 1), Factor(2**23, 31)],
          "factor of 32 bits")


def test_arrays_are_integers():
    """Every model, with and without adaptation, of two classes, with all inputs: the arrays equal plain integers."""
    for model in MODELS:
        for adaptation in (None, {"tau_ms": 50.0, "jump_mv": 0.5}, {"tau_ms": 50.0, "jump_mv": 1.5, "into": "threshold"}):
            other = neuron_of(model, tau_m_ms=5.0, tau_syn_ms=5.0, tau_syn_ex_ms=5.0, tau_syn_in_ms=4.9, c_m_pf=4000.0,
                              refractory_ms=0.1, i_e_pa=7000.0)
            net = random_network(model, [neuron_of(model, adaptation=adaptation), other])
            fires = {k: [k % 40, 7] for k in range(5, 300, 3)}
            currents = {k: [([1, 2, 30], 900.0), ([2, 5], -55.5)] for k in range(100, 200)}
            for k, drawn in philox.noise(1, 3, [20, 21, 22], range(150, 250)).items():
                currents.setdefault(k, []).append(([20, 21, 22], 400.0, drawn))
            events = {k: [([8, 9, 10, 11], 5.01), ([9], -0.3)] for k in range(0, 300, 2)}
            unit = net.weight_unit
            synaptic = {k: [([12, 13, 12], 150 * unit), ([14], 3.7), ([15, 3], -50.5 * unit)] for k in range(0, 300, 5)}
            arrays, plain = Integers(net), Plain(net)
            arrays.set_v(6, -55.5)
            plain.x[6][0] = plain.voltage(9.5)
            spikes = plain.run(300, fires, currents, events, synaptic)
            check(len(spikes) > 200, model, "is quiet:", len(spikes))
            check(arrays.run(300, fires, currents, events, synaptic) == spikes, model, adaptation)
            for i in range(net.n):
                check([int(c[i]) for c in arrays.x[:len(plain.x[i])]][:-1] == plain.x[i][:-1], model, "state of", i)
                check(plain.classes[i].components[-1] != "w" or arrays.x[-1][i] == plain.x[i][-1], model, "adaptation of", i)


def test_published_fly_model():
    """The fly model's loop over neurons, with its constants of 2^-32."""
    def shift(x, f):
        p = x * f
        return (p + 2**31) >> 32 if p >= 0 else -((-p + 2**31) >> 32)

    fly = {"v_rest_mv": -52.0, "v_threshold_mv": -45.0, "v_reset_mv": -52.0, "tau_m_ms": 20.0, "tau_syn_ms": 5.0}
    draw = np.random.default_rng(4)
    n, edges = 60, 1200
    class_of = (np.arange(n) < 6).astype(int)
    net = Network("lif_exp", 0.1, 0.275, [{**fly, "refractory_ms": 2.2}, {**fly, "refractory_ms": 0.0}], class_of,
                  draw.integers(0, n, edges), draw.integers(0, n, edges), draw.integers(-60, 120, edges), np.full(edges, 18))
    driven = {k: [(np.flatnonzero(draw.random(6) < 0.02), 68.75)] for k in range(3000)}
    v, g, last, fired_at, spikes = [0] * n, [0] * n, [-10**9] * n, [], []
    rest = [0 if c else 22 for c in class_of]
    rows = [[(int(net.post[e]), int(net.weight[e])) for e in np.flatnonzero(net.pre == i)] for i in range(n)]
    for k in range(3000):
        fired = []
        for i in range(n):
            if k - last[i] >= rest[i]:
                v[i], g[i] = shift(v[i], 4273546057) + shift(g[i], 21208271), shift(g[i], 4209921245)
                if v[i] > (7000 << 32) // 275:
                    fired.append(i)
                    last[i] = k
        fired_at.append(fired)
        for j in fired_at[k - 18] if k >= 18 else []:
            for i, count in rows[j]:
                if k - last[i] >= max(rest[i], 1):
                    g[i] += count << 32
        for i in driven[k][0][0]:
            if k != last[i]:
                v[i] += 250 << 32
        for i in fired:
            v[i] = g[i] = 0
        spikes += [(k, i) for i in fired]
    check(len({i for _, i in spikes}) > 30 and len(spikes) > 1000, "too quiet:", len(spikes))
    check(Integers(net).run(3000, {}, {}, driven) == spikes, "the reference is not the published loop")
    check(Doubles(net).run(3000, {}, {}, driven) == spikes, "double precision is not the published loop")


def test_random_numbers():
    known = [([0] * 4, 0, [0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8]),
             ([2**32 - 1] * 4, 2**64 - 1, [0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd])]
    for counter, key, words in known:
        check([int(word) for word in philox.philox(key, counter)] == words, "Philox of", counter)
    for mean in (0.02, 0.7, 12.0):
        drawn = philox.poisson(5, 0, range(50), range(2500), mean)
        count = np.zeros((2500, 50), int)
        for k, who in drawn.items():
            np.add.at(count[k], who, 1)
        check(abs(count.mean() - mean) < 4 * (mean / count.size) ** 0.5, "mean", count.mean(), mean)
        check(abs(count.var() - mean) < 0.05 * mean, "variance", count.var(), mean)
    drawn = np.array(list(philox.noise(5, 1, range(50), range(2000)).values())) / 2.0**32
    check(abs(drawn.mean()) < 0.013 and abs(drawn.std() - 1) < 0.01, "noise", drawn.mean(), drawn.std())
    check(abs((np.abs(drawn) > 1.959964).mean() - 0.05) < 0.003, "tails of the noise")


def test_written_and_read():
    """A network written as a configuration and read again is the same network with the same inputs."""
    cases = [nets.fly("fly", 60, 20, 3, steps=300, driven=5, silenced=4),
             nets.cortex("cortex", "psc_alpha", 60, 20, 4, steps=1500, sources=8, pulses=True, differing=True)]
    for case in cases:
        net = case.net
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "edges.csv")
            edges = np.stack([net.pre, net.post, net.weight, net.delay], axis=1)
            np.savetxt(path, edges, "%d", ",", header="pre,post,weight,delay", comments="")
            read = configuration.load(json.loads(json.dumps(configuration.dump(case))), path, net.n, case.steps)
        spikes = case.run(Integers)
        check(len(spikes) > 10 and read.run(Integers) == spikes, case.name, len(spikes))


def rows_of(path):
    with open(path) as file:
        return [[int(cell) for cell in row] for row in list(csv.reader(file))[1:]]


def test_vectors():
    """The spikes of Brian2 and NEST that are kept, and the integers' states after the last step."""
    folder = os.path.join(os.environ["SOURCE"], "tests", "data", "models")
    names = sorted(name[:-5] for name in os.listdir(folder) if name.endswith(".json"))
    check(len(names) == 12, "vectors:", names)
    for name in names:
        case = configuration.load(f"{folder}/{name}.json", f"{folder}/edges.csv", 80, 2000)
        run = case.start(Integers)
        spikes = run.run(case.steps, case.fires, case.currents)
        check([list(spike) for spike in spikes] == rows_of(f"{folder}/{name}.spikes.csv"), name)
        states = run.x[:len(case.net.classes[0].components)] + [run.counter]
        check([[i, *(int(x[i]) for x in states)] for i in range(80)] == rows_of(f"{folder}/{name}.states.csv"), "states of", name)
    with open(f"{folder}/factors.jsonl") as file:
        for line in map(json.loads, file):
            none = np.zeros(0, int)
            net = Network(line["model"], line["dt_ms"], line["weight"], [line["neuron"]], np.zeros(1, int), *[none] * 4)
            factors = {f"{to},{from_}": [by.sign, by.f, by.s] for (to, from_), by in net.integer_factors(net.classes[0]).items()}
            check(factors == line["factors"], line)


def test_bounds():
    for weight, count in ((32767, 8192), (-32768, 8192)):
        net = Network("psc_exp", 0.1, 0.1, [neuron_of("psc_exp")], np.zeros(2, int), np.zeros(count, int), np.ones(count, int),
                      np.full(count, weight), np.full(count, 1))
        for kind in (Integers, Plain):
            try:
                kind(net).run(3, {0: [0]})
                check(weight > 0, "2^28 counts passed", kind)
            except OverflowError:
                check(weight < 0, "less than 2^28 counts did not pass", kind)
    try:
        Network("lif_exp", 0.1, 0.1, [neuron_of("lif_exp", refractory_ms=2.25)], np.zeros(2, int), *[np.zeros(1, int)] * 4)
        check(False, "2.25 ms of rest in steps of 0.1 ms")
    except ValueError:
        check(True)


for name, function in list(globals().items()):
    if name.startswith("test_"):
        function()
        print(name, "passed")
print(checks, "checks")
