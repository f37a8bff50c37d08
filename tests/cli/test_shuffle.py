#!/usr/bin/env python3
"""generate --shuffle-of: degrees, outputs into classes, self-loops and signs stay, partners do not; the same control
for any number of threads and any ordering of the input; swaps are fair."""
import json
import os
import tempfile

import h5py
import numpy as np

import graph_tools
from graph_tools import run


def read(path):
    graph = graph_tools.read(path)
    with h5py.File(path) as file:
        graph["module"] = file["/nodes/neurons/0/module"][:].astype(np.int64)
    return graph


def pairs(graph, n):
    return graph["source_node_id"].astype(np.int64) * n + graph["target_node_id"]


def check_control(old, new, n):
    for end in ("source_node_id", "target_node_id"):
        assert np.array_equal(np.bincount(old[end], minlength=n), np.bincount(new[end], minlength=n)), end
    assert len(np.unique(pairs(new, n))) == len(pairs(old, n))
    assert (new["source_node_id"] != new["target_node_id"]).all()
    old_rows = np.stack([old["0/nsyns"], np.abs(old["0/impulse"]), old["0/delay_steps"]]).astype(int)
    new_rows = np.stack([new["0/nsyns"], np.abs(new["0/impulse"]), new["0/delay_steps"]]).astype(int)
    assert np.array_equal(old_rows[:, np.lexsort(old_rows)], new_rows[:, np.lexsort(new_rows)]), "counts with delays"
    sign = np.zeros(n, int)
    sign[old["source_node_id"]] = np.sign(old["0/impulse"])
    assert np.array_equal(np.sign(new["0/impulse"]), sign[new["source_node_id"]]), "signs follow the source"


with tempfile.TemporaryDirectory() as work:
    def name(text):
        return os.path.join(work, text + ".h5")

    n, edges = 3000, 150000
    run("generate", "--nodes", n, "--edges", edges, "--model", "modular", "--delays", "1:3", "--no-order", "--output",
        name("old"))
    run("order", name("old"), "--output", name("ordered"), "--parts", 8)
    facts = json.loads(run("generate", "--shuffle-of", name("old"), "--output", name("a"), "--json"))["shuffle"]
    run("generate", "--shuffle-of", name("ordered"), "--output", name("b"), "--no-order", threads=3, n=2)
    run("generate", "--shuffle-of", name("old"), "--output", name("c"), "--seed", 2, "--no-order")
    old, a, b, c = (read(name(k)) for k in ("old", "a", "b", "c"))
    check_control(old, a, n)
    assert a["digest"] == b["digest"] != c["digest"], "threads or ordering change the control"
    assert facts["swaps_per_edge"] >= 10 and facts["rounds"] >= 10
    kept = np.isin(pairs(a, n), pairs(old, n)).sum()
    assert kept == facts["kept"]
    two = np.isin(pairs(a, n), pairs(c, n)).sum()
    assert abs(kept - two) < 5 * np.sqrt(two) + 0.1 * two, f"{kept} pairs of the old graph remain, {two} by chance"
    assert a["provenance"]["shuffle"]["seed"] == 1 and a["provenance"]["inputs"][0]["graph_digest"] == old["digest"]

    def inside(graph):
        return (graph["module"][graph["source_node_id"]] == graph["module"][graph["target_node_id"]]).mean()

    assert inside(old) > 0.7 and inside(a) < 0.3

    facts = json.loads(run("generate", "--shuffle-of", name("old"), "--shuffle-within", "module", "--output", name("w"),
                           "--json"))["shuffle"]
    within = read(name("w"))
    check_control(old, within, n)

    def outputs(graph):
        classes = graph["module"].max() + 1
        at = graph["source_node_id"].astype(np.int64) * classes + graph["module"][graph["target_node_id"]]
        return np.bincount(at, minlength=n * classes)

    assert np.array_equal(outputs(old), outputs(within)) and not np.array_equal(outputs(old), outputs(a))
    assert 0 < facts["kept"] < 0.7 * edges
    modules = len(np.unique(old["module"]))
    for m in range(modules):  # synapses stay within a class of targets
        total = [graph["0/nsyns"][graph["module"][graph["target_node_id"]] == m].sum() for graph in (old, within)]
        assert total[0] == total[1]

    # nothing can move in a complete graph: said, not looped over for ever
    run("generate", "--nodes", 30, "--edges", 870, "--model", "modular", "--output", name("full"))
    run("generate", "--shuffle-of", name("full"), "--output", name("full2"))
    assert read(name("full2"))["digest"] != "" and np.array_equal(np.sort(pairs(read(name("full2")), 30)),
                                                                  np.sort(pairs(read(name("full")), 30)))
    run("generate", "--nodes", 5, "--edges", 0, "--model", "modular", "--output", name("none"))
    run("generate", "--shuffle-of", name("none"), "--output", name("none2"))

    assert "module" in run("generate", "--shuffle-of", name("old"), "--shuffle-within", "colour", "--output", name("x"),
                           code=2, n=2)
    assert "--shuffle-of" in run("generate", "--shuffle-within", "module", "--output", name("x"), code=2)
    assert "--nodes" in run("generate", "--shuffle-of", name("old"), "--nodes", 5, "--output", name("x"), code=2)
    assert "gone" in run("generate", "--shuffle-of", name("gone"), "--output", name("x"), code=65, n=2)
    print("shuffle: ok")
