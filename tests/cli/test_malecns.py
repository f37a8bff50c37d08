#!/usr/bin/env python3
# seconds: 300
"""convert on tables as the MaleCNS release has them, a four-hundredth of their size (jobs/make_malecns.py), under
each node rule: every count of the account and every edge of the artifact against NumPy on what pyarrow reads."""
import json
import os
import subprocess
import sys
import tempfile

try:
    import numpy as np
    import pyarrow.feather as feather
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(1 if os.environ.get("CI") == "true" else 77)

from convert_tools import Graph, check, dropped, run
from side_by_side import here, path, run_tests

folder = tempfile.TemporaryDirectory()
subprocess.run([sys.executable, os.path.join(os.environ["SOURCE"], "jobs", "make_malecns.py"), folder.name, "--scale",
                "0.0025"], check=True, stdout=subprocess.DEVNULL)
files = [os.path.join(folder.name, name + ".feather")
         for name in ("connectome-weights", "body-annotations", "body-neurotransmitters")]
weights, annotations, transmitters = [feather.read_table(name) for name in files]
pre, post, weight = [weights[c].to_numpy() for c in ("body_pre", "body_post", "weight")]
annotations = annotations.select(["bodyId", "type", "somaSide", "superclass", "status"]).to_pandas()
label_of = dict(zip(transmitters["body"].to_pylist(), transmitters["consensus_nt"].to_pylist()))
with open(os.path.join(folder.name, "facts.json"), encoding="utf-8") as file:
    facts_said = json.load(file)
SIGNS = {"acetylcholine": 1, "glutamate": 1, "gaba": -1}


def convert(*words, output="graph.h5"):
    code, facts, error = run("--edges", files[0], *words, output=output)
    check(" ".join(words) + "\n" + error, code, 0)
    return facts


def nodes_by(rule):
    table = annotations
    if rule == "superclass":
        table = table[table.superclass.notna()]
    if rule == "traced":
        table = table[table.status == "Traced"]
    return table.sort_values("bodyId")


def same_edges(graph, keep, sign=None):
    """Source, target, count and impulse of all edges; both sides in the order of (pre, post)."""
    order = np.lexsort((post[keep], pre[keep]))
    check("sources", (graph.body_id[graph.source] == pre[keep][order]).all(), True)
    check("targets", (graph.body_id[graph.target] == post[keep][order]).all(), True)
    check("counts", (graph.count == weight[keep][order]).all(), True)
    signs = 1 if sign is None else sign[keep][order]
    check("impulses", (graph.impulse == weight[keep][order] * signs).all(), True)


def one_rule(rule):
    table = nodes_by(rule)
    facts = convert("--nodes", files[1], "--node-rule", rule, "--parts", "4")
    source, target = np.isin(pre, table.bodyId), np.isin(post, table.bodyId)
    lost = dropped(facts)
    check("rows", facts["inputs"][0]["rows"] + facts["inputs"][1]["rows"], len(pre) + len(annotations))
    check("no source", lost.get("the source is not a node", 0), int((~source & target).sum()))
    check("no target", lost.get("the target is not a node", 0), int((source & ~target).sum()))
    check("neither", lost.get("neither source nor target is a node", 0), int((~source & ~target).sum()))
    check("rules dropped", sum(dropped(facts, "nodes").values()), len(annotations) - len(table))
    keep = source & target
    result = facts["result"]
    check("nodes", result["nodes"], len(table))
    check("edges", result["edges"], int(keep.sum()))
    check("weight sum", result["weight_sum"], int(weight[keep].sum()))
    check("self-loops", result["self_loops"], int((keep & (pre == post)).sum()))
    linked = np.union1d(pre[keep], post[keep])
    check("isolated", result["isolated_nodes"], int((~np.isin(table.bodyId, linked)).sum()))
    graph = Graph()
    check("ids", graph.body_id.tolist(), table.bodyId.tolist())
    for ours, theirs in (("type", "type"), ("side", "somaSide"), ("superclass", "superclass"), ("status", "status")):
        check(ours, graph.columns[ours], table[theirs].fillna("").tolist())
    same_edges(graph, keep)
    return int(keep.sum()), int(weight[keep].sum())


def test_listed():
    edges, total = one_rule("listed")
    check("as the tables were made", [edges, total], [facts_said["annotated_edges"], facts_said["annotated_sum"]])


def test_superclass():
    edges, total = one_rule("superclass")
    check("as the tables were made", [edges, total], [facts_said["superclass_edges"], facts_said["superclass_sum"]])


def test_traced():
    edges, total = one_rule("traced")
    check("as the tables were made", [edges, total], [facts_said["traced_edges"], facts_said["traced_sum"]])


def test_signs():
    """The rule that makes 24,678,466 edges of the release: listed, and a source of known sign."""
    facts = convert("--nodes", files[1], "--transmitters", files[2], "--signs", "soup", "--no-order")
    table = nodes_by("listed")
    both = np.isin(pre, table.bodyId) & np.isin(post, table.bodyId)
    label = np.array([label_of.get(body, "missing") for body in pre[both].tolist()])
    lost = dropped(facts)
    excluded = {name: int((label == name).sum()) for name in set(label.tolist()) - set(SIGNS)}
    said = {key[key.index("(") + 1:-1]: n for key, n in lost.items() if "excludes" in key}
    check("excluded by label", said, {name: n for name, n in excluded.items() if n})
    rows = dropped(facts, "transmitters")
    check("rows without a node", rows["no such node"], facts_said["transmitters"] - facts_said["annotated_transmitters"])
    sign = np.zeros(len(pre), np.int64)
    sign[both] = [SIGNS.get(name, 0) for name in label.tolist()]
    check("edges", facts["result"]["edges"], int((sign != 0).sum()))
    same_edges(Graph(), sign != 0, sign)


def test_end_points():
    """Every segment is a node."""
    facts = convert("--no-order")
    graph = Graph()
    check("nodes", facts["result"]["nodes"], facts_said["ends"])
    check("edges", facts["result"]["edges"], len(pre))
    check("weight sum", facts["result"]["weight_sum"], facts_said["weight_sum"])
    check("self-loops", facts["result"]["self_loops"], facts_said["self_edges"])
    check("ids", (graph.body_id == np.union1d(pre, post)).all(), True)
    same_edges(graph, np.ones(len(pre), bool))


def test_any_order_of_rows():
    """The same rows in another order and other batches make the same graph."""
    order = np.random.default_rng(1).permutation(len(pre))
    feather.write_feather(weights.take(order), path("mixed.feather"), compression="zstd", chunksize=10_000)
    convert("--nodes", files[1], "--no-order", output="first.h5")
    code, _, error = run("--edges", path("mixed.feather"), "--nodes", files[1], "--no-order", output="second.h5")
    check(error, code, 0)
    check("digest", Graph("second.h5").digest, Graph("first.h5").digest)


def test_benchmark_script():
    """From the tables to rates by type; the reference runtime's benchmark gives its published spike counts."""
    for name in files:
        os.symlink(name, path(os.path.basename(name)))
    script = os.path.join(os.environ["SOURCE"], "jobs", "malecns_benchmark.py")
    done = subprocess.run([sys.executable, script, path(), "--steps", "200", "--only", "listed", "superclass", "reference",
                           "sensory", "rates"], capture_output=True, text=True, timeout=600)
    check(done.stderr, done.returncode, 0)
    rows = {line.split("|")[1].strip(): line for line in done.stdout.splitlines()}
    check("cases", list(rows)[2:], ["listed", "superclass", "reference", "sensory", "rates"])
    check("published spikes", "spikes by step [1, 0, 0, 0]" in rows["reference"], True)
    check("the network is driven", " 0 spikes" in rows["sensory"], False)


if __name__ == "__main__":
    here.folder = folder.name
    run_tests(globals(), workers=8)
