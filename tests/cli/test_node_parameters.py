# seconds: 300
"""Parameters that columns of the node table give each neuron: the same spikes and states as a class for each neuron, on any ranks,
resumed, and one line for what is wrong."""
import csv
import glob
import random

import h5py
import numpy as np

from side_by_side import path, run_tests
from sim_tools import Spikes, check, run, simulate

N, STEPS = 60, 800
NEURON = {"v_rest_mv": -65.0, "v_threshold_mv": -50.0, "v_reset_mv": -65.0, "tau_m_ms": 10.0, "c_m_pf": 250.0, "refractory_ms": 2.0,
          "i_e_pa": 450.0, "tau_syn_ex_ms": 0.5, "tau_syn_in_ms": 2.0}
COLUMNS = {"v_threshold_mv": "theta", "tau_m_ms": "tau", "refractory_ms": "rest", "i_e_pa": "drive"}
ADAPTATION = {"tau_ms": 30.0, "jump_mv": {"column": "jump"}}


def table(draw, **other):
    """Columns of the nodes; other: NAME=values in place of drawn ones."""
    columns = {"theta": [draw.choice([-50.0, -51.25, -49.9]) for _ in range(N)], "tau": [draw.uniform(8.0, 12.0) for _ in range(N)],
               "rest": [draw.choice([2.0, 0.0, 1.5]) for _ in range(N)], "drive": [draw.randint(430, 560) for _ in range(N)],
               "jump": [draw.choice([0.5, 1.0]) for _ in range(N)], "cell": [draw.choice("AB") for _ in range(N)]}
    return {**columns, **other}


def write_graph(draw, columns, name="g", *words):
    with open(path(name + "_nodes.csv"), "w") as file:
        rows = csv.writer(file)
        rows.writerow(["bodyId", *columns])
        rows.writerows([100 + i, *(value[i] for value in columns.values())] for i in range(N))
    with open(path(name + "_edges.csv"), "w") as file:
        file.write("pre,post,weight,delay\n")
        file.writelines(f"{100 + draw.randrange(N)},{100 + draw.randrange(N)},{draw.randint(-9000, 12000)},{draw.randint(1, 20)}\n"
                        for _ in range(900))
    code, _, err = run("convert", "--edges", path(name + "_edges.csv"), "--columns", "pre=pre,post=post,weight=weight,delay=delay",
                       "--duplicates", "keep", "--nodes", path(name + "_nodes.csv"), "--output", path(name + ".h5"), "--force", *words)
    check(code == 0, "convert:", err)
    return path(name + ".h5")


def config_of(neuron, classes=(), **other):
    return {"model": "psc_exp", "dt_ms": 0.1, "weight_pa": 0.02, "neuron": neuron, "classes": list(classes), "stimulus": [
        {"kind": "poisson", "neurons": {"cell": ["A"]}, "rate_hz": 300.0, "weight_pa": 60.0, "no_refractory": True},
        {"kind": "current", "neurons": "all", "value_pa": 30.0, "first_step": 100, "last_step": 500},
        {"kind": "noise", "neurons": {"indices": [1, 2, 3]}, "sd_pa": 500.0}], **other}


def by_column(**more):
    return {**NEURON, **{key: {"column": name} for key, name in COLUMNS.items()}, "adaptation": ADAPTATION, **more}


def one_by_one(columns):
    """The same as a class for each neuron."""
    def of(i):
        return {**{key: columns[name][i] for key, name in COLUMNS.items()}, "adaptation": {**ADAPTATION, "jump_mv": columns["jump"][i]}}
    return [{"neurons": {"body_ids": [100 + i]}, **of(i)} for i in range(N)]


def states(folder):
    with h5py.File(sorted(glob.glob(path(folder) + "/checkpoints/step_*.h5"))[-1]) as file:
        order = np.argsort(file["lif/node_id"][:].ravel())
        return {name: file["lif/" + name][:][order].tolist() for name in file["lif"]}


def same(a, b, what):
    Spikes(a).same(Spikes(b), what)
    check(states(a) == states(b), what, "the states differ")


def test_as_classes():
    draw = random.Random(1)
    columns = table(draw)
    write_graph(draw, columns)
    write_graph(draw, columns, "plain", "--no-order")
    for name in ("g", "plain"):
        graph = path(name + ".h5")
        simulate(graph, config_of(NEURON, one_by_one(columns)), STEPS, name + "_classes")
        check(len(Spikes(name + "_classes").step) > 200, "few spikes")
        for n in (1, 2, 5):
            simulate(graph, config_of(by_column()), STEPS, f"{name}_{n}", n=n)
            same(f"{name}_{n}", name + "_classes", f"{name} on {n} ranks")
    simulate(path("g.h5"), config_of(by_column()), STEPS // 3, "cut", n=3)
    simulate(path("g.h5"), config_of(by_column()), STEPS, "cut", "--resume", "auto", n=2)
    Spikes("cut").same(Spikes("g_1"), "resumed")


def test_overridden():
    """Entries of `classes` override columns, and may name some."""
    draw = random.Random(2)
    columns = table(draw, gap=[7.5 if i < 20 else "" for i in range(N)])
    graph = write_graph(draw, columns)
    inside, rest = {"indices": list(range(20))}, {"indices": list(range(20, N))}
    simulate(graph, config_of({**NEURON, "tau_m_ms": 7.5}, [{"neurons": rest, "tau_m_ms": 11.0}]), STEPS, "explicit")
    for k, (neuron, classes) in enumerate([({"tau_m_ms": {"column": "gap"}}, [{"neurons": rest, "tau_m_ms": 11.0}]),
                                           ({"tau_m_ms": 11.0}, [{"neurons": inside, "tau_m_ms": {"column": "gap"}}]),
                                           ({"tau_m_ms": {"column": "gap"}}, [{"neurons": "all", "tau_m_ms": 11.0},
                                                                              {"neurons": inside, "tau_m_ms": 7.5}])]):
        simulate(graph, config_of({**NEURON, **neuron}, classes), STEPS, f"run{k}", n=2)
        same(f"run{k}", "explicit", k)


def test_chosen_labels():
    """A column that --node-columns names holds labels; where they say numbers, they serve as well."""
    draw = random.Random(3)
    columns = table(draw)
    graph = write_graph(draw, columns, "g", "--labels", "named", "--node-columns", "id=bodyId,tau_label=tau")
    simulate(graph, config_of({**NEURON, "tau_m_ms": {"column": "tau_label"}}, stimulus=[]), STEPS, "labels")
    classes = [{"neurons": {"body_ids": [100 + i]}, "tau_m_ms": columns["tau"][i]} for i in range(N)]
    simulate(graph, config_of(NEURON, classes, stimulus=[]), STEPS, "classes")
    same("labels", "classes", "labels")


def test_refusals():
    draw = random.Random(4)
    columns = table(draw, gap=[1.0 if i != 7 else "" for i in range(N)], bad=[10.0 if i != 9 else -3.0 for i in range(N)],
                    odd=[2.0 if i != 11 else 2.03 for i in range(N)], low=[-50.0 if i != 5 else -70.0 for i in range(N)],
                    huge=[-50.0 if i != 6 else 1e6 for i in range(N)])
    graph = write_graph(draw, columns)
    for key, name, parts in (("tau_m_ms", "nothing", ['no column "nothing"', "theta", "cell"]),
                             ("tau_m_ms", "cell", ['column "cell" holds labels', "numbers are wanted"]),
                             ("tau_m_ms", "gap", ['"tau_m_ms" by column "gap"', "neuron 107 has no value in " + path("g.h5")]),
                             ("tau_m_ms", "bad", ['neuron 109 by column "bad"', '"tau_m_ms" is -3']),
                             ("refractory_ms", "odd", ['neuron 111 by column "odd"', "2.03", "nearest"]),
                             ("v_threshold_mv", "low", ['neuron 105 by column "low"', "v_reset_mv"])):
        for n in (1, 3):
            err = simulate(graph, config_of({**NEURON, key: {"column": name}}), 10, "never", n=n, code=2)
            lines = [line for line in err.splitlines() if line.startswith("fascicle: ")]
            check(len(lines) == 1 and all(part in lines[0] for part in parts), key, name, err)
    config = dict(config_of({**NEURON, "v_threshold_mv": {"column": "huge"}}), weight_pa=1e-9)
    err = simulate(graph, config, 10, "never", code=2)
    check('neuron 106 by column "huge"' in err and "too large" in err, err)
    err = simulate(graph, config_of({**NEURON, "tau_m_ms": {"columns": "tau"}}), 10, "never", code=2)
    check('"tau_m_ms"' in err and "number" in err, err)


def test_too_many():
    """More sets of values than classes can be: one line."""
    n = 70000
    with open(path("nodes.csv"), "w") as file:
        file.write("bodyId,tau\n" + "".join(f"{i},{8 + i / n}\n" for i in range(n)))
    with open(path("edges.csv"), "w") as file:
        file.write("pre,post,weight\n0,1,5\n")
    code, _, err = run("convert", "--edges", path("edges.csv"), "--nodes", path("nodes.csv"), "--output", path("many.h5"), "--no-order")
    check(code == 0, err)
    err = simulate(path("many.h5"), config_of({**NEURON, "tau_m_ms": {"column": "tau"}}, stimulus=[]), 1, "never", code=2)
    check("more than 65536 classes" in err, err)


def test_changed_column():
    """A run goes on only with the values that it began with."""
    draw = random.Random(5)
    columns = table(draw)
    graph = write_graph(random.Random(6), columns)
    config = config_of(by_column())
    simulate(graph, config, 100, "run")
    write_graph(random.Random(6), {**columns, "tau": [x + (i == 3) for i, x in enumerate(columns["tau"])]})
    err = simulate(graph, config, 200, "run", "--resume", "auto", n=2, code=2)
    check('"column tau" held something else' in err, err)
    write_graph(random.Random(6), columns)
    simulate(graph, config, 200, "run", "--resume", "auto", n=2)


run_tests(globals(), workers=2)
