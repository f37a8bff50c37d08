"""Every kind of input of the neuron models, together and to neurons of several classes: the program's spikes on one and three
ranks are those of the reference in tests/reference.
seconds: 600"""
import json
import os
import random
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.environ["SOURCE"], "tests", "reference"))
import configuration  # noqa: E402
from integrate_and_fire import MODELS, Integers  # noqa: E402
from side_by_side import path, run_tests  # noqa: E402
from sim_tools import check, run as launch, write_json  # noqa: E402

N, EDGES, STEPS = 70, 1500, 1200
ADAPTATIONS = [None, {"tau_ms": 30.0, "jump_mv": 1.0}, {"tau_ms": 30.0, "jump_mv": 0.5, "into": "threshold"}]


def some(draw, most=N):
    return {"indices": sorted(draw.sample(range(N), draw.randint(1, most)))}


def neuron_of(draw, model):
    neuron = {"v_rest_mv": -65.0, "v_threshold_mv": -50.0, "v_reset_mv": -66.5, "tau_m_ms": 10.0, "c_m_pf": 250.0, "refractory_ms": 2.0,
              "i_e_pa": draw.uniform(420.0, 550.0)}
    if model == "lif_exp":
        neuron["tau_syn_ms"] = draw.choice([5.0, 10.0])
    if model.startswith("psc_"):
        neuron.update(tau_syn_ex_ms=draw.choice([0.5, 10.0, 2.0]), tau_syn_in_ms=draw.choice([0.1, 2.0, 9.99]))
    return neuron


def stimuli_of(draw, model, replayed):
    psc = model.startswith("psc_")
    synapse = {"weight_pa": draw.uniform(5.0, 40.0)} if psc else {"weight_mv": draw.uniform(0.05, 0.4)}
    stimuli = [
        {"kind": "poisson", "neurons": some(draw), "rate_hz": 100.0, "weight_mv": 6.3, "into": "v", "no_refractory": True},
        {"kind": "poisson", "neurons": some(draw), "rate_hz": 12000.0, **synapse, "first_step": 10, "last_step": 900},
        {"kind": "poisson", "neurons": some(draw), "rate_hz": 300.0, "weight": draw.randint(-3000, 9000)},
        {"kind": "poisson", "neurons": some(draw), "rate_hz": 800.0, "weight_mv": -0.7, "into": "v"},
        {"kind": "noise", "neurons": some(draw), "sd_pa": 900.0},
        {"kind": "current", "neurons": some(draw), "value_pa": draw.uniform(-300.0, 300.0), "first_step": 100, "last_step": 800},
        {"kind": "current", "neurons": some(draw), "value_pa": 77.7},
        {"kind": "spikes", "neurons": some(draw, 5), "steps": [0, 1, 2, 50, 51, 600, STEPS - 1]},
        {"kind": "replay", "neurons": some(draw), "file": replayed}]
    draw.shuffle(stimuli)
    return stimuli


def config_of(draw, model, adaptation, replayed):
    unit = {"lif_delta": 1e-4, "lif_exp": 2e-3, "psc_exp": 0.01, "psc_alpha": 0.005}[model]
    neuron = neuron_of(draw, model)
    if adaptation:
        neuron["adaptation"] = adaptation
    classes = [{"neurons": some(draw), "tau_m_ms": 7.5, "v_threshold_mv": -52.0, "refractory_ms": 0.0},
               {"neurons": some(draw), "c_m_pf": 400.0, "v_rest_mv": -63.0, "refractory_ms": 0.1},
               {"neurons": some(draw), "adaptation": None if adaptation else ADAPTATIONS[1]}]
    return {"model": model, "dt_ms": 0.1, "seed": draw.randrange(2**40), "weight_mv" if model.startswith("lif_") else "weight_pa": unit,
            "neuron": neuron, "classes": classes, "stimulus": stimuli_of(draw, model, replayed),
            "initial": [{"neurons": "all", "v_mv": -60.0}, {"neurons": some(draw), "v_mv": -55.5, "refractory": 30}],
            "silence": [{"neurons": some(draw, 6), "mode": "output"}],
            **({"delay_ms": 1.8} if draw.random() < 0.3 else {})}


def write_graph(draw, file):
    edges = [(draw.randrange(N), draw.randrange(N), draw.randint(-12000, 16000), draw.randint(1, 25)) for _ in range(EDGES)]
    edges += [(i, (i + 1) % N, 32767 - 65535 * (i % 2), 1) for i in range(N)]
    np.savetxt(file + ".csv", np.array(edges), "%d", ",", header="pre,post,weight,delay", comments="")
    code, _, err = launch("convert", "--edges", file + ".csv", "--columns", "pre=pre,post=post,weight=weight,delay=delay",
                          "--duplicates", "keep", "--output", file + ".h5")
    check(code == 0, "convert:", err)


def fascicle(config, ranks, name):
    code, _, err = launch("simulate", path("g.h5"), "--config", write_json(name + ".json", config), "--steps", STEPS, "--output",
                          path(name), n=ranks, timeout=500)
    check(code == 0, name, "on", ranks, "ranks ended with", code, err)
    return configuration.spikes_of(os.path.join(path(name), "spikes.h5"))


def one(model, number):
    draw = random.Random(100 * MODELS.index(model) + number)
    write_graph(draw, path("g"))
    earlier = {"model": "lif_exp", "dt_ms": 0.1, "weight_mv": 0.002, "neuron": neuron_of(draw, "lif_exp"),
               "stimulus": [{"kind": "current", "neurons": some(draw), "value_pa": 300.0}]}
    fascicle(earlier, 1, "earlier")
    config = config_of(draw, model, ADAPTATIONS[number], os.path.join(path("earlier"), "spikes.h5"))
    case = configuration.load(json.loads(json.dumps(config)), path("g.csv"), N, STEPS)
    expected = case.run(Integers)
    check(len(expected) > 100 and len({i for _, i in expected}) > N // 2, model, number, "is quiet:", len(expected))
    for ranks in (1, 3):
        got = fascicle(config, ranks, f"on_{ranks}")
        only = set(got) ^ set(expected)
        check(got == expected, model, number, "on", ranks, "ranks:", len(got), "spikes,", len(expected), "expected; first other",
              min(only) if only else "order")


if __name__ == "__main__":
    run_tests({f"test_{model}_{k}": lambda model=model, k=k: one(model, k) for model in MODELS for k in range(len(ADAPTATIONS))}, 2)
