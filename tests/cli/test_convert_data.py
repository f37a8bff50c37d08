#!/usr/bin/env python3
# seconds: 300
# data: yes
"""convert on the real tables: counts as measured by others, and every edge against plain Python."""
import collections
import csv
import os
import subprocess
import sys

from convert_tools import check, dropped, good, refused, write
from real_data import FOLDER, need
from side_by_side import path, run_tests

need("larva_edges.txt", "larva_meta.csv", "larval_MB_left_adjacency.csv", "larval_MB_left_cell_labels.csv",
     "celegans_herm_full_edgelist.csv", "celegans_white_1986_whole.csv", "malecns_dng13_edges.csv",
     "shiu_Completeness_783.csv", "malecns_dnan_cluster_function.csv")


def table(name):
    return str(FOLDER / name)


def plain(name, columns, delimiter=",", where=None, skip=1):
    """{(pre, post): sum} with outer blanks off, by the csv module."""
    sums = collections.Counter()
    with open(table(name), newline="") as file:
        rows = csv.reader(file, delimiter=delimiter)
        for _ in range(skip):
            next(rows)
        for row in rows:
            if where is None or row[where[0]] == where[1]:
                pre, post, weight = (row[c].strip() for c in columns)
                sums[pre, post] += int(float(weight))
    return sums


def same(graph, sums):
    ids = graph.names or [str(i) for i in graph.body_id]
    mine = {(ids[s], ids[t]): int(w) for s, t, w in zip(graph.source, graph.target, graph.count)}
    check("edges", len(mine), len(sums))
    check("every edge", mine, dict(sums))
    check("no transmitter: impulse = count", graph.impulse.tolist(), graph.count.tolist())


def numbers(facts):
    r = facts["result"]
    return r["nodes"], r["edges"], r["self_loops"], r["weight_sum"]


def test_larva():
    facts, graph, _ = good("--edges", table("larva_edges.txt"))
    check("larva", numbers(facts), (3554, 119010, 577, 376091))
    check("weights", (int(graph.count.min()), int(graph.count.max())), (1, 121))
    import numpy as np
    check("degrees", (int(np.bincount(graph.target).max()), int(np.bincount(graph.source).max())), (210, 162))
    check("ids", (int(graph.body_id[0]), int(graph.body_id[-1])), (29, 21664445))
    same(graph, plain("larva_edges.txt", (0, 1, 2), " ", skip=0))


def test_larva_with_annotations():
    facts, graph, _ = good("--edges", table("larva_edges.txt"), "--nodes", table("larva_meta.csv"), "--node-columns",
                           "id=,type=merge_class,side=hemisphere,celltype=simple_group")
    check("larva", numbers(facts), (3591, 119010, 577, 376091))
    check("isolated", facts["result"]["isolated_nodes"], 37)
    import pandas
    meta = pandas.read_csv(table("larva_meta.csv"), index_col=0, keep_default_na=False, dtype=str)
    meta = meta.set_index(meta.index.astype("int64")).sort_index()
    check("ids", graph.body_id.tolist(), meta.index.tolist())
    for mine, theirs in (("type", "merge_class"), ("side", "hemisphere"), ("celltype", "simple_group")):
        check(theirs, graph.columns[mine], meta[theirs].str.strip(" \t").tolist())
    facts, _, _ = good("--edges", table("larva_edges.txt"), "--nodes", table("larva_meta.csv"), "--node-columns", "id=1",
                       "--isolated", "drop", output="less.h5")
    check("isolated left out", numbers(facts), (3554, 119010, 577, 376091))


def test_mushroom_body():
    """The dense matrix through the one-liner of the help text."""
    text = subprocess.run(["awk", "{for(j=1;j<=NF;j++) if($j) print NR, j, $j}", table("larval_MB_left_adjacency.csv")],
                          capture_output=True, text=True, check=True).stdout
    labels = write("labels.txt", "".join(f"{i + 1} {line}" for i, line in enumerate(open(table("larval_MB_left_cell_labels.csv")))))
    facts, graph, _ = good("--edges", write("mb.txt", text), "--nodes", labels, "--node-header", "no", "--node-columns",
                           "type=2")
    check("mushroom body", numbers(facts), (209, 7425, 0, 25322))
    check("classes", collections.Counter(graph.columns["type"]), {"K": 101, "P": 58, "O": 29, "I": 21})
    matrix = table("larval_MB_left_adjacency.csv")
    refused(65, ["209 rows of 209 numbers look like a dense matrix"], "--edges", matrix)
    facts, _, _ = good("--edges", matrix, "--columns", "pre=1,post=2,weight=3", output="asked.h5")
    check("its first columns, when asked for", facts["inputs"][0]["kept"], 209)


def test_celegans_cook():
    name, columns = "celegans_herm_full_edgelist.csv", ["--columns", "pre=Source,post=Target,weight=Weight"]
    refused(65, ["chemical", "electrical"], "--edges", table(name), *columns)
    for kind, rows in (("chemical", 4681), ("electrical", 2698)):
        facts, graph, error = good("--edges", table(name), *columns, "--where", f"Type={kind}")
        check(kind, (facts["result"]["edges"], facts["inputs"][0]["rows"]), (rows, 7379))
        check("others", list(dropped(facts).values()), [7379 - rows])
        same(graph, plain(name, (0, 1, 2), where=(3, kind)))
        check("warned", "outer blanks" in error, True)
    facts, graph, _ = good("--edges", table(name), *columns, "--merge-kinds")
    check("both", (facts["result"]["nodes"], facts["result"]["merged_pairs"]), (448, 754))
    same(graph, plain(name, (0, 1, 2)))
    facts, graph, _ = good("--edges", table(name), *columns, "--merge-kinds", "--duplicates", "keep")
    check("kept apart", numbers(facts)[:3], (448, 7379, 48))


def test_celegans_white():
    name, columns = "celegans_white_1986_whole.csv", ["--columns", "pre=pre,post=post,weight=synapses"]
    facts, graph, _ = good("--edges", table(name), *columns, "--merge-kinds")
    check("white", (facts["result"]["nodes"], facts["result"]["merged_pairs"], facts["result"]["self_loops"]), (309, 143, 6))
    same(graph, plain(name, (0, 1, 3), "\t"))
    for kind, rows in (("chemical", 2386), ("electrical", 575)):
        facts, graph, _ = good("--edges", table(name), *columns, "--where", f"type={kind}")
        check(kind, facts["result"]["edges"], rows)
        same(graph, plain(name, (0, 1, 3), "\t", (2, kind)))
    refused(65, ["only one column", "--delimiter"], "--edges", table(name), *columns, "--delimiter", "comma")


def test_malecns():
    facts, graph, error = good("--edges", table("malecns_dng13_edges.csv"))
    check("dng13", numbers(facts), (11, 32, 0, 149))
    check("fewer neurons than parts: nothing to warn of", "warning" in error, False)
    same(graph, plain("malecns_dng13_edges.csv", (0, 1, 2)))


def test_ids_above_2_53():
    """138,639 ids, all above 2^53."""
    with open(table("shiu_Completeness_783.csv")) as file:
        ids = [int(line.split(",")[0]) for line in list(file)[1:]]
    pairs = [(ids[i], ids[-1 - i], i % 9 + 1) for i in range(0, len(ids), 7)]
    edges = write("edges.csv", "body_pre,body_post,weight\n" + "".join(f"{a},{b},{w}\n" for a, b, w in pairs))
    facts, graph, _ = good("--edges", edges, "--nodes", table("shiu_Completeness_783.csv"), "--node-columns", "id=1",
                           "--no-order")
    check("ids", [int(i) for i in graph.body_id], ids)
    check("edges", graph.edges(), sorted(pairs))


def test_repeated_ids():
    """3,202 rows for 3,161 ids; all repeats are identical."""
    name = "malecns_dnan_cluster_function.csv"
    if not os.path.exists(table(name)):
        print(f"passed over: {name} is not there")
        return
    edges = write("edges.csv", "body_pre,body_post,weight\n10001,10010,3\n10010,1055278121,4\n")
    facts, graph, _ = good("--edges", edges, "--nodes", table(name), "--node-columns", "function=function,cluster=cluster")
    check("rows", (facts["result"]["nodes"], facts["result"]["edges"]), (3161, 2))
    check("repeats", dropped(facts, "nodes"), {"identical repeat of an id": 41})
    check("quoted comma", graph.columns["function"][0], "escape takeoff, electrical")
    check("empty", graph.columns["function"].count("") > 2800, True)


run_tests(globals(), workers=8)
