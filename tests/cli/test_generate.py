#!/usr/bin/env python3
"""generate: the same file for any number of ranks and threads, exactly the edges asked for, the reference graphs'
degrees, signs by transmitter, delays, modules; what cannot be made is refused in one line."""
import json
import os
import tempfile

import h5py
import numpy as np

import graph_tools
from graph_tools import contents, edges_at


def run(*words, **more):
    return graph_tools.run("generate", *words, **more)


def labels(file, name):
    codes = file[f"/nodes/neurons/0/{name}"][:]
    return np.array([text.decode() for text in file[f"/nodes/neurons/0/@library/{name}"][:]])[codes]


with tempfile.TemporaryDirectory() as work:
    path = [os.path.join(work, f"{i}.h5") for i in range(4)]
    words = ["--nodes", 1200, "--edges", 40000, "--delays", "1:8", "--seed", 3, "--streamable", "--parts", 16]
    run(*words, "--output", path[0])
    run(*words, "--output", path[1], n=3)
    run(*words, "--output", path[2], threads=3)
    same = contents(path[0])
    assert same == contents(path[1]), "3 ranks give another file"
    assert same == contents(path[2]), "3 threads give another file"
    words[words.index("--seed") + 1] = 4
    run(*words, "--output", path[3], "--no-order")
    assert same["/@graph_digest"] != contents(path[3])["/@graph_digest"]

    facts = json.loads(run("--nodes", 5000, "--edges", 524324, "--delays", "1:8", "--no-order", "--output", path[0],
                           "--force", "--json"))
    assert facts["nodes"] == 5000 and facts["edges"] == 524324
    with h5py.File(path[0]) as file:
        source, target = file[edges_at + "source_node_id"][:], file[edges_at + "target_node_id"][:]
        impulse, count = file[edges_at + "0/impulse"][:], file[edges_at + "0/nsyns"][:]
        delay = file[edges_at + "0/delay_steps"][:]
        transmitter, sign = labels(file, "transmitter"), file["/nodes/neurons/0/sign"][:]
        kind, superclass = labels(file, "type"), labels(file, "superclass")
        body = file["/nodes/neurons/0/body_id"][:].astype(np.int64)
    assert len(source) == 524324 and (source != target).all()
    assert len(np.unique(source.astype(np.int64) * 5000 + target)) == 524324
    degree = np.bincount(target, minlength=5000)
    for measured, wanted in ((np.median(degree), 86), (degree.mean(), 105), (degree.max(), 778)):
        assert abs(measured - wanted) < 0.1 * wanted, (measured, wanted)
    assert facts["in_degree"] == {"least": degree.min(), "median": np.sort(degree)[2500], "mean": degree.mean(),
                                  "most": degree.max()}
    assert count.min() == 1 and count.max() <= 2591 and 4.4 < count.mean() < 5.3
    assert np.array_equal(impulse, sign[source] * count.astype(np.int64))
    assert np.array_equal(sign, np.where(transmitter == "acetylcholine", 1, -1))
    assert 0.22 < (impulse < 0).mean() < 0.34 and facts["inhibitory_edges"] == (impulse < 0).sum()
    assert set(delay) == set(range(1, 9)) and np.bincount(delay)[1:].min() > 0.95 * 524324 / 8
    assert len(set(kind)) == 32 and set(superclass) == {"sensory", "descending", "intrinsic"}
    assert all(len(set(transmitter[kind == k])) == 1 for k in set(kind)), "a type has one transmitter"
    assert (np.diff(body) > 0).all() and body[0] >= 10001

    run("--nodes", 5000, "--edges", 300000, "--model", "modular", "--population", "fly", "--output", path[0], "--force",
        "--no-order")
    with h5py.File(path[0]) as file:
        module = file["/nodes/fly/0/module"][:]
        at = file["/edges/fly__fly__chemical"]
        inside = (module[at["source_node_id"][:]] == module[at["target_node_id"][:]]).mean()
        assert (at["0/delay_steps"][:] == 1).all()
    assert 0.74 < inside < 0.82, inside

    for nodes, edges in ((1, 0), (2, 2), (7, 42), (50, 0)):
        run("--nodes", nodes, "--edges", edges, "--output", path[1], "--force")
        with h5py.File(path[1]) as file:
            assert len(file[edges_at + "source_node_id"]) == edges

    out = ["--output", os.path.join(work, "no.h5")]
    assert "0..6 edges" in run("--nodes", 3, "--edges", 7, *out, code=2, n=2)
    assert "--nodes" in run("--edges", 7, *out, code=2)
    assert "--output" in run("--nodes", 3, "--edges", 2, code=2)
    for bad in ("0", "5:2", "1:", "x", "1:70000", "1:2:3"):
        assert "--delays" in run("--nodes", 3, "--edges", 2, "--delays", bad, *out, code=2)
    assert "--model" in run("--nodes", 3, "--edges", 2, "--model", "cubic", *out, code=2)
    assert "exists" in run("--nodes", 3, "--edges", 2, "--output", path[1], code=73, n=2)
    assert not os.path.exists(out[1])
    print("generate: ok")
