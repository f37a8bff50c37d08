"""Writes tests/data/models: a small network, configurations of every model with and without adaptation, and their spikes as
Brian2 or NEST give them, which the integers must equal before anything is written.

    python make_vectors.py FOLDER     needs brian2 and nest-simulator
"""
import csv
import json
import math
import os
import sys

import numpy as np

import compare_brian2
import compare_nest
import configuration
from integrate_and_fire import Doubles, Integers, Network

N, SOURCES, EDGES, STEPS = 80, 10, 2400, 2000
UNITS = {"lif_delta": 2e-4, "lif_exp": 2e-3, "psc_exp": 0.05, "psc_alpha": 0.03}
ADAPTATIONS = {"": None, "_drive": {"tau_ms": 100.0, "jump_mv": 1.0}, "_threshold": {"tau_ms": 50.0, "jump_mv": 0.75, "into": "threshold"}}


def write_edges(path):
    """Weights over 16 bits, delays of 1 to 20 steps, some edges parallel or from a neuron to itself; the sources have no in-edges."""
    draw = np.random.default_rng(7)
    pre, post = draw.integers(0, N, EDGES), draw.integers(0, N - SOURCES, EDGES)
    size = np.where(draw.random(N)[pre] < 0.25, -3.5, 1.0) * draw.lognormal(math.log(4500), 0.5, EDGES)
    weight = np.clip(np.round(size), -32768, 32767).astype(int)
    rows = sorted(zip(pre.tolist(), post.tolist(), weight.tolist(), draw.integers(1, 21, EDGES).tolist()))
    with open(path, "w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([("pre", "post", "weight", "delay"), *rows])


def configuration_of(model, adaptation, peer):
    """NEST has neurons that differ in everything; with Brian2 they differ in currents and refractory times."""
    draw = np.random.default_rng(8)
    neuron = {"v_rest_mv": -65.0, "v_threshold_mv": -50.0, "v_reset_mv": -66.0, "tau_m_ms": 10.0, "c_m_pf": 250.0, "refractory_ms": 2.0,
              "i_e_pa": 350.0}
    if model == "lif_exp":
        neuron["tau_syn_ms"] = 5.0
    if model.startswith("psc_"):
        neuron.update(tau_syn_ex_ms=0.5, tau_syn_in_ms=2.0)
    if adaptation:
        neuron["adaptation"] = adaptation
    more = {"tau_m_ms": 12.0, "c_m_pf": 220.0, "v_threshold_mv": -51.5} if peer == "nest" else {}
    thirds = [{"indices": list(range(first, N - SOURCES, 3))} for first in range(3)]
    stimuli = [{"kind": "spikes", "neurons": {"indices": [i]}, "steps": sorted(draw.choice(STEPS, 12, replace=False).tolist())}
               for i in range(N - SOURCES, N)]
    stimuli += [{"kind": "current", "neurons": {"indices": list(range(20))}, "value_pa": 150.5, "first_step": 300, "last_step": 699},
                {"kind": "current", "neurons": {"indices": list(range(40, 60))}, "value_pa": -200.0, "first_step": 1000}]
    return {"about": "", "model": model, "dt_ms": 0.1, "weight_mv" if model.startswith("lif_") else "weight_pa": UNITS[model],
            "neuron": neuron,
            "classes": [{"neurons": thirds[0], "i_e_pa": 400.0, "refractory_ms": 1.0},
                        {"neurons": thirds[1], "i_e_pa": 300.0, **more},
                        {"neurons": {"indices": list(range(N - SOURCES, N))}, "i_e_pa": 0.0}],
            "initial": [{"neurons": {"indices": list(range(first, N - SOURCES, 7))}, "v_mv": -64.0 + 2 * first} for first in range(7)],
            "stimulus": stimuli, "silence": [{"neurons": {"indices": [2, 5]}, "mode": "output"}]}


def write_vector(folder, model, suffix):
    name, adaptation = model + suffix, ADAPTATIONS[suffix]
    peer = "brian2" if adaptation or model == "lif_exp" else "nest"
    config = configuration_of(model, adaptation, peer)
    edges = os.path.join(folder, "edges.csv")
    case = configuration.load(config, edges, N, STEPS, name)
    theirs = compare_brian2.brian2_spikes(case) if peer == "brian2" else compare_nest.nest_spikes(case)
    ours = case.start(Integers)
    spikes = ours.run(STEPS, case.fires, case.currents)
    if spikes != theirs or case.run(Doubles) != theirs:
        raise SystemExit(f"{name}: not the spikes of {peer}")
    version = {"brian2": "Brian2 " + compare_brian2.b.__version__, "nest": "NEST " + compare_nest.nest.__version__}[peer]
    config["about"] = f"{STEPS} steps on edges.csv; the spikes are those of {version}."
    with open(os.path.join(folder, name + ".json"), "w") as file:
        rows = (f' {json.dumps(key)}: {json.dumps(value)}' for key, value in config.items())
        file.write("{\n" + ",\n".join(rows).replace('}, {"', '},\n  {"') + "\n}\n")
    with open(os.path.join(folder, name + ".spikes.csv"), "w") as file:
        file.write("step,node\n" + "".join(f"{k},{i}\n" for k, i in theirs))
    with open(os.path.join(folder, name + ".states.csv"), "w") as file:
        components = case.net.classes[0].components
        file.write("node," + ",".join(components) + ",counter\n")
        states = ours.x[:len(components)]
        for i in range(N):
            file.write(",".join(map(str, [i, *(int(x[i]) for x in states), int(ours.counter[i])])) + "\n")
    print(name, len(theirs), "spikes of", len({i for _, i in theirs}), "neurons,", peer)


def write_factors(path):
    """Factors of classes alone in their network: to, from, sign, f, s."""
    lines = []
    for model in UNITS:
        for h, tau_m, tau_ex, tau_in, capacity, tau_a in ((0.1, 10.0, 0.5, 0.5, 250.0, 200.0), (0.1, 20.0, 5.0, 3.0, 200.0, 100.0),
                                                          (0.1, 10.0, 10.0, 10.0, 250.0, 10.0), (1.0, 10.0, 1.0, 0.5, 30.0, 50.0),
                                                          (0.01, 15.0, 15.1, 14.9, 1000.0, 1500.0), (0.5, 10.0, 0.5, 2.0, 250.0, 30.0)):
            neuron = {"v_rest_mv": -65.0, "v_threshold_mv": -50.0, "v_reset_mv": -65.0, "tau_m_ms": tau_m, "c_m_pf": capacity,
                      "adaptation": {"tau_ms": tau_a, "jump_mv": 1.5}, "tau_syn_ms": tau_ex, "tau_syn_ex_ms": tau_ex,
                      "tau_syn_in_ms": tau_in, "i_e_pa": 123.4, "refractory_ms": 20 * h}
            none = np.zeros(0, int)
            net = Network(model, h, UNITS[model], [neuron], np.zeros(1, int), none, none, none, none)
            run = Integers(net)
            factors = {f"{to},{from_}": [by.sign, by.f, by.s] for (to, from_), by in net.integer_factors(net.classes[0]).items()}
            lines.append({"model": model, "dt_ms": h, "weight": UNITS[model], "neuron": neuron, "unit_mv": net.voltage_unit(),
                          "threshold": int(run.threshold[0]), "drive": int(run.constant[0]), "jump": int(run.jump[0]),
                          "factors": factors})
    with open(path, "w") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)


if __name__ == "__main__":
    os.makedirs(sys.argv[1], exist_ok=True)
    write_edges(os.path.join(sys.argv[1], "edges.csv"))
    write_factors(os.path.join(sys.argv[1], "factors.jsonl"))
    for model in UNITS:
        for suffix in ADAPTATIONS:
            write_vector(sys.argv[1], model, suffix)
