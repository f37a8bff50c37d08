#!/usr/bin/env python3
"""order: the file for 1 and 3 ranks is the same, rows are a permutation in nested blocks, edges are the old ones, and
every figure of the table is what counting with numpy gives. Bad words and files end in one line."""
import json
import os
import tempfile

import h5py
import numpy as np

from graph_tools import EDGE_SETS, read, run


def edge_set(graph):
    table = np.stack([graph[k].astype(np.int64) for k in EDGE_SETS])
    return table[:, np.lexsort(table[::-1])]


def check_level(graph, level, n):
    parts, order = level["parts"], graph["order"]
    first = order["block"][:: (len(order["block"]) - 1) // parts]
    assert len(first) == parts + 1
    part_of_row = np.searchsorted(first, np.arange(n), side="right") - 1
    part = part_of_row[order["row_of_node"]]
    source, target = graph["source_node_id"], graph["target_node_id"]
    away = part[source] != part[target]
    needed = {(int(p), int(s)) for p, s in zip(part[target[away]], source[away])}
    per_part = np.bincount([p for p, _ in needed], minlength=parts)
    assert level["cut"] == away.sum()
    assert level["halo_rows"] == len(needed)
    assert level["halo_rows_max"] == per_part.max()
    assert level["gather_rows"] == (parts - 1) * n
    in_part = np.bincount(part[target], minlength=parts)
    assert abs(level["edge_balance"] - in_part.max() / in_part.mean()) < 1e-9
    assert abs(level["node_balance"] - np.diff(first).max() * parts / n) < 1e-9


with tempfile.TemporaryDirectory() as work:
    plain, one, three, again = (os.path.join(work, f"{name}.h5") for name in ("plain", "one", "three", "again"))
    n = 2000
    run("generate", "--nodes", n, "--edges", 40000, "--model", "modular", "--delays", "1:5", "--no-order", "--output",
        plain)
    facts = json.loads(run("order", plain, "--output", one, "--parts", 32, "--json"))
    table = run("order", plain, "--output", three, "--parts", 32, n=3)
    assert "32" in table and "edge balance" in table
    a, b, c = read(plain), read(one), read(three)
    assert "row_of_node" not in a["order"] or not len(a["order"]["row_of_node"])
    assert a["digest"] == b["digest"] == c["digest"] and b["order_digest"] == c["order_digest"] != a["order_digest"]
    for key in ("source_node_id", "target_node_id", "0/impulse", "0/nsyns", "0/delay_steps"):
        assert np.array_equal(b[key], c[key]), key
    order = b["order"]
    assert np.array_equal(np.sort(order["node_of_row"]), np.arange(n))
    assert np.array_equal(order["row_of_node"][order["node_of_row"]], np.arange(n))
    assert np.array_equal(edge_set(a), edge_set(b))
    row = order["row_of_node"][b["target_node_id"]].astype(np.int64)
    key = row * n + b["source_node_id"]
    assert (np.diff(key) > 0).all(), "edges are not in row order"
    assert np.array_equal(order["row_ptr"], np.searchsorted(row, np.arange(n + 1)))
    assert [level["parts"] for level in facts["levels"]] == [2, 4, 8, 16, 32]
    for level in facts["levels"]:
        check_level(b, level, n)
    assert facts["levels"][1]["cut"] < 0.4 * 40000, "a modular graph should split well in 4"
    assert all(level["edge_balance"] < 1.1 for level in facts["levels"][:4]), facts["levels"]

    # ordering anew, from the ordered file, gives the same order; more parts than neurons do no harm
    run("order", one, "--output", again, "--parts", 32)
    assert read(again)["order_digest"] == b["order_digest"]
    tiny = os.path.join(work, "tiny.h5")
    run("generate", "--nodes", 2, "--edges", 1, "--output", tiny)
    run("order", tiny, "--output", tiny, "--parts", 64, "--force")
    assert len(read(tiny)["order"]["block"]) == 65

    # a source-major copy stays
    run("generate", "--nodes", 50, "--edges", 600, "--streamable", "--no-order", "--output", tiny, "--force")
    run("order", tiny, "--output", again, "--force")
    with h5py.File(again) as file:
        assert file["/out/ptr"][-1] == 600 and "row_of_node" in file["/order"]

    assert "exists" in run("order", plain, "--output", one, code=73)
    assert "power of two" in run("order", plain, "--output", again, "--parts", 3, "--force", code=2, n=2)
    assert "--output" in run("order", plain, code=2)
    assert "none.h5" in run("order", os.path.join(work, "none.h5"), "--output", again, code=65, n=2)
    print("order: ok")
