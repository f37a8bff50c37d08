#!/usr/bin/env python3
"""The cortical microcircuit: the same graph on any ranks and threads, its published numbers of synapses between populations, weights and
delays as they should be distributed, its configuration, and runs with both kinds of background; random initial potentials."""
# seconds: 120
import json
import math
import os
import subprocess
import sys
import tempfile

import h5py
import numpy as np

import graph_tools
from graph_tools import contents, edges_at

sys.path.insert(0, os.path.join(os.environ["SOURCE"], "tests", "reference"))
from philox import philox, quantiles  # noqa: E402

NAMES = ["L23E", "L23I", "L4E", "L4I", "L5E", "L5I", "L6E", "L6I"]
FULL = np.array([20683, 5834, 21915, 5479, 4850, 1065, 14395, 2948])
CHANCE = np.array(
    [[0.1009, 0.1689, 0.0437, 0.0818, 0.0323, 0, 0.0076, 0], [0.1346, 0.1371, 0.0316, 0.0515, 0.0755, 0, 0.0042, 0],
     [0.0077, 0.0059, 0.0497, 0.135, 0.0067, 0.0003, 0.0453, 0], [0.0691, 0.0029, 0.0794, 0.1597, 0.0033, 0, 0.1057, 0],
     [0.1004, 0.0622, 0.0505, 0.0057, 0.0831, 0.3726, 0.0204, 0], [0.0548, 0.0269, 0.0257, 0.0022, 0.06, 0.3158, 0.0086, 0],
     [0.0156, 0.0066, 0.0211, 0.0166, 0.0572, 0.0197, 0.0396, 0.2252], [0.0364, 0.001, 0.0034, 0.0005, 0.0277, 0.008, 0.0658, 0.1443]])
EXTERNAL = np.array([1600, 1500, 2100, 1900, 2000, 1900, 2900, 2100])
WEIGHT_PA = 87.8081  # of 0.15 mV
conf = os.path.join(os.environ["SOURCE"], "jobs", "conf")


def generate(*words, **more):
    return graph_tools.run("generate", "--kind", "microcircuit", *words, **more)


def simulate(graph, config, steps, output, n=1):
    return graph_tools.run("simulate", graph, "--config", config, "--steps", steps, "--output", output, n=n)


def check_counts(source, target, scale, sizes):
    """Exactly so many synapses between each two populations, spread evenly over their neurons."""
    first = np.concatenate(([0], np.cumsum(sizes)))
    place = np.searchsorted(first, source, "right") - 1, np.searchsorted(first, target, "right") - 1
    counts = np.zeros((8, 8), int)
    np.add.at(counts, (place[1], place[0]), 1)
    wanted = np.log1p(-CHANCE) / np.log1p(-1 / np.outer(FULL, FULL)) * scale * scale
    assert np.array_equal(counts, np.rint(wanted)), (counts, wanted)
    for end, k, table in ((source, 0, counts.sum(0)), (target, 1, counts.sum(1))):
        for p in range(8):  # chi squared against equal shares, in units of its standard deviation
            degree = np.bincount(end[place[k] == p] - first[p], minlength=sizes[p])
            mean = table[p] / sizes[p]
            chi = ((degree - mean) ** 2 / mean).sum()
            assert abs(chi - (sizes[p] - 1)) < 5 * math.sqrt(2 * sizes[p]), (NAMES[p], chi, sizes[p])
    return place


def check_weights(impulse, place, unit):
    """Mean and spread of each kind, nobody of the wrong sign."""
    for source in range(8):
        for target in (0, 1, 2):
            w = impulse[(place[0] == source) & (place[1] == target)] * unit
            if len(w) < 200:
                continue
            mean = WEIGHT_PA * (-4 if source % 2 else 2 if (target, source) == (0, 2) else 1)
            assert (w * mean > 0).all()
            assert abs(w.mean() - mean) < 5 * 0.1 * abs(mean) / math.sqrt(len(w)), (source, target, w.mean(), mean)
            assert 0.85 < w.std() / (0.1 * abs(mean)) < 1.15


def truncated(mean):
    """Mean and spread in steps of a normal of this mean and half of it as spread, redrawn below half a step, then rounded."""
    below = [0.5 * math.erfc((mean - x) / (mean / 2) / math.sqrt(2)) for x in np.arange(0.5, 10 * mean)]
    chance = np.diff(below) / (1 - below[0])
    steps = np.arange(1, len(chance) + 1)
    middle = (chance * steps).sum()
    return middle, math.sqrt((chance * (steps - middle) ** 2).sum()), chance


def check_delays(delay, inhibitory):
    for kind, mean in ((False, 15), (True, 7.5)):
        d = delay[inhibitory == kind]
        middle, spread, chance = truncated(mean)
        assert d.min() == 1 and abs(d.mean() - middle) < 5 * spread / math.sqrt(len(d)), (d.mean(), middle)
        assert abs(d.std() - spread) < 0.05 * spread
        for steps in (1, int(mean)):
            share = (d == steps).mean()
            assert abs(share - chance[steps - 1]) < 6 * math.sqrt(chance[steps - 1] / len(d)), (steps, share)


def check_graph(path, scale):
    with h5py.File(path) as file:
        source, target = (file[edges_at + name][:].astype(int) for name in ("source_node_id", "target_node_id"))
        impulse, delay = file[edges_at + "0/impulse"][:].astype(int), file[edges_at + "0/delay_steps"][:]
        labels = np.array([t.decode() for t in file["/nodes/neurons/0/@library/type"][:]])[file["/nodes/neurons/0/type"][:]]
        layer = np.array([t.decode() for t in file["/nodes/neurons/0/@library/layer"][:]])[file["/nodes/neurons/0/layer"][:]]
        rules = json.loads(file.attrs["source_json"])["generate"]
    sizes = np.rint(FULL * scale).astype(int)
    assert np.array_equal(labels, np.repeat(NAMES, sizes)) and all(a[:-1] == b for a, b in zip(labels, layer))
    place = check_counts(source, target, scale, sizes)
    assert math.isclose(rules["weight_pa"], 0.02 / math.sqrt(scale), rel_tol=1e-12)
    check_weights(impulse, place, rules["weight_pa"] * math.sqrt(scale))
    check_delays(delay, place[0] % 2 == 1)


def check_config(path, scale):
    """Poisson rates and weights; the current makes up for what the smaller numbers of synapses take from the mean input."""
    with open(path) as file:
        config = json.load(file)
    root, rates = math.sqrt(scale), np.array([0.971, 2.868, 4.746, 5.396, 8.142, 9.078, 0.991, 7.523])
    weights = WEIGHT_PA * np.where(np.arange(8) % 2, -4.0, 1.0) * np.ones((8, 1))
    weights[0, 2] *= 2
    degrees = np.log1p(-CHANCE) / np.log1p(-1 / np.outer(FULL, FULL)) / FULL[:, None]
    lost = 0.0005 * (1 - root) * ((weights * degrees) @ rates + WEIGHT_PA * EXTERNAL * 8)
    for p, name in enumerate(NAMES):
        stimulus = config["stimulus"][p]
        assert stimulus["neurons"] == {"types": [name]} and stimulus["rate_hz"] == 8 * round(EXTERNAL[p] * scale)
        assert math.isclose(stimulus["weight_pa"], WEIGHT_PA / root, rel_tol=1e-5)
        assert math.isclose(config["classes"][p]["i_e_pa"], lost[p], rel_tol=1e-4), (name, config["classes"][p], lost[p])


def rates_of(run):
    graph_tools.run("trace", "rates", run)
    with open(os.path.join(run, "type_rates.csv")) as file:
        rows = [line.split(",") for line in file.read().split()[1:]]
    return {row[0]: float(row[4]) for row in rows}


def potentials(graph, config, output, trials=1):
    """v in mV of all neurons after the first step, by trial; nothing drives them."""
    graph_tools.run("simulate", graph, "--config", config, "--steps", 1, "--output", output, "--trials", trials)
    at = [os.path.join(output, f"trial_{k}") for k in range(trials)] if trials > 1 else [output]
    found = []
    for folder in at:
        with h5py.File(os.path.join(folder, "reports", "v.h5")) as file:
            found.append(file["/report/neurons/data"][0].astype(float))
    return found


def check_initial(graph, work):
    """The potentials are drawn: their mean and spread, anew in each trial, the same for a seed."""
    config = os.path.join(work, "initial.json")
    neuron = {"v_rest_mv": -65, "v_threshold_mv": 0, "v_reset_mv": -65, "tau_m_ms": 1e5, "c_m_pf": 250, "tau_syn_ex_ms": 0.5,
              "tau_syn_in_ms": 0.5}
    with open(config, "w") as file:
        json.dump({"model": "psc_exp", "weight_pa": 0.1, "neuron": neuron,
                   "initial": [{"neurons": "all", "v_mv": -58, "v_sd_mv": 10}, {"neurons": {"types": ["L5I"]}, "v_mv": -70}],
                   "record": {"variables": {"neurons": "all"}}}, file)
    first, second = potentials(graph, config, os.path.join(work, "initial"), 2)
    again = potentials(graph, config, os.path.join(work, "again"))[0]
    fixed = np.isclose(first, -70, atol=1e-3)
    assert fixed.sum() == np.rint(1065 * 0.02), fixed.sum()
    assert np.array_equal(first, again) and not np.array_equal(first[~fixed], second[~fixed])
    for trial, v in enumerate((first, second)):  # the very numbers: seed 1, entry 0 of the list
        word = philox(1, (np.arange(len(v)), 0, 0, 2**32 - 1 - trial))[0]
        mv = 7 + 10 * np.array([quantiles()[i] for i in word >> np.uint64(20)], float) / 2**32  # above rest
        assert np.allclose(v[~fixed], (-65 + mv * math.exp(-0.1 / 1e5))[~fixed], atol=1e-4)
    drawn = np.concatenate((first[~fixed], second[~fixed]))
    assert abs(drawn.mean() + 58) < 5 * 10 / math.sqrt(len(drawn)) and 0.93 < drawn.std() / 10 < 1.07, (drawn.mean(), drawn.std())
    assert abs(np.corrcoef(first[~fixed], second[~fixed])[0, 1]) < 0.15


def check_measures():
    """Against cases that can be done by hand."""
    sys.path.insert(0, os.path.join(os.environ["SOURCE"], "jobs", "analysis"))
    from populations import mean_cv, synchrony

    regular, uneven = [0, 10, 20, 30, 40], [5, 10, 25, 30, 45]  # intervals of 10; of 5, 15, 5, 15: sd 5, mean 10
    step, node = np.array(regular + uneven + [7, 9]), np.array([3] * 5 + [8] * 5 + [4] * 2)
    shuffled = np.random.default_rng(1).permutation(len(step))
    assert math.isclose(mean_cv(step[shuffled], node[shuffled], 5), 0.25) and math.isnan(mean_cv(step, node, 6))
    # bins of 30 steps hold 2, 0, 4; the rest of a bin is left out: variance 8/3, mean 2
    assert math.isclose(synchrony(np.array([0, 29, 60, 61, 62, 89, 90, 91]), 92, 30), 8 / 3 / 2)


check_measures()
with tempfile.TemporaryDirectory() as work:
    at = lambda name: os.path.join(work, name)
    generate("--scale", 0.02, "--seed", 5, "--output", at("graph.h5"), "--config-output", at("conf.json"))
    same = contents(at("graph.h5"))
    for n, threads in ((2, 1), (4, 2), (1, 3)):
        generate("--scale", 0.02, "--seed", 5, "--output", at("again.h5"), "--force", n=n, threads=threads)
        assert same == contents(at("again.h5")), f"{n} ranks of {threads} threads give another graph"
    generate("--scale", 0.02, "--seed", 6, "--output", at("again.h5"), "--force")
    assert same["/@graph_digest"] != contents(at("again.h5"))["/@graph_digest"]
    check_graph(at("graph.h5"), 0.02)
    check_config(at("conf.json"), 0.02)
    check_initial(at("graph.h5"), work)

    # full in-degrees, as many as the neurons allow: multapses
    generate("--scale", 0.02, "--degree-scale", 1, "--output", at("dense.h5"), "--config-output", at("dense.json"))
    with h5py.File(at("dense.h5")) as file:
        assert file.attrs["n_edges"] > 40 * h5py.File(at("graph.h5")).attrs["n_edges"] and file.attrs["parallel_edges"]
    with open(at("dense.json")) as file:
        assert json.load(file)["classes"] == []

    # the files that are shipped are those of the full network
    for name, background in (("microcircuit", "poisson"), ("microcircuit_dc", "dc")):
        generate("--scale", 0.002, "--degree-scale", 1, "--background", background, "--output", at("tiny.h5"), "--config-output",
                 at("full.json"), "--force")
        with open(at("full.json")) as made, open(os.path.join(conf, name + ".json")) as shipped:
            made, shipped = json.load(made), json.load(shipped)
        assert {**made, "about": 0} == {**shipped, "about": 0}, name
        assert "--scale 1 " in shipped["about"][1]

    # the same spikes on 1 and 2 ranks with either background (as small as this, a constant one lets the network fall silent)
    for background in ("poisson", "dc"):
        generate("--scale", 0.02, "--seed", 5, "--background", background, "--output", at("again.h5"), "--config-output",
                 at("conf.json"), "--force")
        for n in (1, 2):
            simulate(at("again.h5"), at("conf.json"), 3000, at(f"{background}{n}"), n)
        spikes = [h5py.File(at(f"{background}{n}/spikes.h5"))["spikes/neurons"] for n in (1, 2)]
        assert all(np.array_equal(spikes[0][key][:], spikes[1][key][:]) for key in ("step", "node_ids"))
        rates = rates_of(at(f"{background}1"))
        print(background, rates)
        assert all(0 < rates[name] < 40 for name in NAMES), rates
        assert background == "dc" or rates["L4E"] > 2 * rates["L23E"], rates
    words = [os.environ["PYTHON"], os.path.join(os.environ["SOURCE"], "jobs", "analysis", "populations.py"), at("poisson1"),
             "--beside", at("dc1"), "--from-ms", "50", "--output", at("table.csv")]
    table = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    print(table)
    assert all(name in table for name in NAMES)

    # all of it with one command
    printed = subprocess.run([os.path.join(os.environ["SOURCE"], "jobs", "microcircuit.sh"), "0.02"], check=True, capture_output=True,
                             text=True, env={**os.environ, "OUTPUT": at("one"), "MS": "300", "FROM_MS": "50", "SEED": "5", "N_RANKS": "2"})
    lines = [line.split() for line in printed.stdout.splitlines()[-9:]]
    assert [line[0] for line in lines] == ["type", *sorted(NAMES)] and lines[1][1:] == lines[1][1:4] + ["0.9"], printed.stdout
    assert [line[1] for line in lines[1:]] == [line.split()[1] for line in table.splitlines()[1:]], "rates of the same run"

    out = ["--output", at("no.h5")]
    assert "--scale 1e-05" in generate("--scale", "0.00001", *out, code=2, n=2)
    assert "--degree-scale" in generate("--degree-scale", -1, *out, code=2)
    assert "also the --output" in generate("--scale", 0.02, "--config-output", at("no.h5"), *out, code=2)
    assert "--nodes" in generate("--nodes", 5, *out, code=2)
    assert "--kind microcircuit" in graph_tools.run("generate", "--scale", 0.1, "--nodes", 5, "--edges", 4, *out, code=2)
    assert not os.path.exists(at("no.h5"))
