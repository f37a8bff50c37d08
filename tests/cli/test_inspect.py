#!/usr/bin/env python3
# seconds: 180
"""inspect against the tables that a graph was made of; and files that are damaged, cut short, of another kind, or
cannot be written."""
import collections
import json
import os
import signal
import statistics
import subprocess
import time

import h5py
import numpy as np

from artifact_tools import FASCICLE, check, done, flip, main, offset_of, refused, run

USAGE, INPUT, OUTPUT = 2, 65, 73
EDGES = "/edges/neurons__neurons__chemical/"


def facts_of(*words, **more):
    return json.loads(done("inspect", *words, "--json", **more))


def degrees(tables, end):
    count = collections.Counter(getattr(e, end) for e in tables.edges)
    all_counts = [count[i] for i in tables.ids]
    return {"min": min(all_counts), "median": statistics.median(all_counts), "mean": statistics.fmean(all_counts),
            "max": max(all_counts)}


def test_graph(tables):
    facts = facts_of(tables.convert("graph.h5"), "--verify", n=2)
    for key, wanted in {
            "kind": "graph", "neurons": len(tables.ids), "edges": len(tables.edges), "verified": True,
            "synapses": sum(e.weight for e in tables.edges), "first_id": tables.ids[0],
            "self_loops": sum(e.pre == e.post for e in tables.edges), "parallel_edges": False,
            "isolated": len(set(tables.ids) - {e.pre for e in tables.edges} - {e.post for e in tables.edges}),
            "in_degree": degrees(tables, "post"), "out_degree": degrees(tables, "pre"),
            "delay_steps": {"min": 1, "max": 1}}.items():
        check(key, facts[key], wanted)
    signs = collections.Counter(e.sign for e in tables.edges)
    check("signs", facts["signs"], {"positive": signs[1], "negative": signs[-1], "zero": 0})
    into = collections.Counter()
    for e in tables.edges:
        into[e.post] += e.weight
    check("most into one", facts["impulse"]["most_into_one_neuron"], max(into.values()))
    types = collections.Counter(tables.type.values())
    types["(none)"] = types.pop("")
    check("types", facts["columns"]["type"], {"labels": 3, "neurons": dict(types)})
    first = types.most_common()[0]
    shown = facts_of(tables.path("graph.h5"), "--labels", "1")["columns"]["type"]["neurons"]
    check("the most frequent type", shown, {first[0]: first[1], "(others)": types.total() - first[1]})
    rows = {table["role"]: table["rows"] for table in facts["provenance"]["inputs"]}
    check("provenance", rows["edges"], len(tables.edges))
    text = done("inspect", tables.path("graph.h5"))
    check("plain", f"edges {len(tables.edges):,}" in " ".join(text.split()), True)


def test_node(tables):
    graph = tables.convert("graph.h5")
    for body in (tables.ids[0], tables.edges[0].post, tables.ids[-1]):
        facts = facts_of(graph, "--node", str(body), "--partners", "0")
        check("id", facts["id"], body if body <= 2**53 else str(body))
        check("node", facts["node"], tables.ids.index(body))
        check("type", facts["type"], tables.type[body])
        for end, other, name in (("post", "pre", "inputs"), ("pre", "post", "outputs")):
            mine = [e for e in tables.edges if getattr(e, end) == body]
            wanted = sorted((getattr(e, other), e.sign * e.weight, e.weight) for e in mine)
            found = [(int(p["id"]), p["impulse"], p["synapses"]) for p in facts[name]["partners"]]
            check(name, sorted(found), wanted)
            check("strongest first", [abs(f[1]) for f in found], sorted((abs(f[1]) for f in found), reverse=True))
    few = facts_of(graph, "--node", str(tables.edges[0].post), "--partners", "2")
    check("few", len(few["inputs"].get("strongest", few["inputs"].get("partners"))), 2)
    for wrong in ("10000", "x", "-5", "99999999999999999999999"):
        refused(USAGE, (wrong, "body id"), "inspect", graph, f"--node={wrong}")


def test_damage_is_named(tables):
    graph = tables.convert("graph.h5")
    whole = open(graph, "rb").read()
    for name in ("source_node_id", "target_node_id", "0/impulse", "0/nsyns"):
        offset, size = offset_of(graph, EDGES + name)
        flip(graph, offset + size // 2)
        refused(INPUT, (graph, name, "damaged"), "inspect", graph, n=2)
        with open(graph, "wb") as f:
            f.write(whole)
    labels = "nodes/neurons/0/@library/type"
    with h5py.File(graph) as f:
        n, width = f[labels].shape[0], f[labels].dtype.itemsize
    flip(graph, offset_of(graph, labels)[0] + (n - 1) * width)  # the first letter of the last label
    refused(INPUT, (graph, "type", "damaged"), "inspect", graph)
    with open(graph, "wb") as f:
        f.write(whole)
    for share in (0, 0.001, 0.1, 0.6, 0.999):
        with open(tables.path("cut.h5"), "wb") as f:
            f.write(whole[:int(len(whole) * share)])
        refused(INPUT, ("cut.h5", "cut short" if share > 0.01 else ""), "inspect", tables.path("cut.h5"))
    done("inspect", graph, "--verify")


def test_packed(tables):
    graph = tables.convert("graph.h5", "--packed")
    check("packed", facts_of(graph, "--verify")["packed"], True)
    with h5py.File(graph) as f:
        pre, weight = f[EDGES + "source_node_id"], f[EDGES + "0/nsyns"]
        check("filters", (pre.compression, pre.compression_opts, pre.shuffle), ("gzip", 1, True))
        check("h5py", sorted(zip(pre[:].tolist(), weight[:].tolist())),
              sorted((tables.ids.index(e.pre), e.weight) for e in tables.edges))
        offset = pre.id.get_chunk_info(0).byte_offset
    flip(graph, offset + 5000)
    refused(INPUT, ("source_node_id", "damaged"), "inspect", graph)


def test_repacked(tables):
    """Packed anew by HDF5's own tool, texts and all: the same graph; filters that we do not write are named."""
    with open(tables.path("names.csv"), "w") as f:
        f.write("pre,post,weight\n" + "".join(f"n{e.pre},n{e.post},{e.weight}\n" for e in tables.edges))
    done("convert", "--edges", tables.path("names.csv"), "--output", tables.path("names.h5"))
    for graph in (tables.convert("labels.h5"), tables.path("names.h5")):
        packed = tables.path("packed.h5")
        done("export", graph, "--format", "csv", "--output", tables.path("a.csv"), "--force")
        for filters in (["-f", "GZIP=1"], ["-f", "SHUF", "-f", "GZIP=6"], ["-l", "CHUNK=50", "-f", "GZIP=1"]):
            subprocess.run(["h5repack", "-m", "1", *filters, graph, packed], check=True)
            with h5py.File(packed) as f:
                texts = [f[name] for name in ("/nodes/neurons/0/name", "/nodes/neurons/0/@library/type") if name in f]
                check("texts are in chunks", bool(texts[0].chunks), len(texts[0]) >= 50 or "CHUNK=50" not in filters)
            facts, wanted = facts_of(packed, "--verify"), facts_of(graph)
            for key in ("neurons", "edges", "graph_digest", "columns", "ids_are_names"):
                check(key, facts[key], wanted[key])
            done("export", packed, "--format", "csv", "--output", tables.path("b.csv"), "--force")
            check("the same table", open(tables.path("b.csv")).read(), open(tables.path("a.csv")).read())
        subprocess.run(["h5repack", "-f", "FLET", graph, packed], check=True)
        refused(INPUT, ("a filter that fascicle does not write",), "export", packed, "--format", "csv", "--output", tables.path("c.csv"))


def test_other_kinds(tables):
    refused(INPUT, ("none.h5", "No such file"), "inspect", tables.path("none.h5"), n=2)
    refused(INPUT, (tables.folder, "folder"), "inspect", tables.folder)
    with open(tables.path("text.h5"), "w") as f:
        f.write("not HDF5 at all\n")
    words = ("--config", lif_config(tables), "--steps", "1", "--output", tables.path("run"))
    refused(INPUT, ("text.h5", "not an HDF5 file"), "simulate", tables.path("text.h5"), *words)
    with h5py.File(tables.path("other.h5"), "w") as f:
        f["a/b"] = [[1.0, 2.0], [3.0, 4.0]]
        ascii = h5py.h5t.py_create(h5py.string_dtype("ascii", 2), logical=True)
        unit = h5py.h5a.create(f["a/b"].id, b"units", ascii, h5py.h5s.create(h5py.h5s.SCALAR))
        unit.write(np.array(b"ms", dtype=h5py.string_dtype("ascii", 2)))
        f["a/b"].attrs["about"] = "of variable length: not read"
    check("datasets", facts_of(tables.path("other.h5"))["datasets"],
          [{"name": "/a/b", "type": "f64", "rows": 2, "width": 2, "units": "ms"}])
    graph = tables.convert("graph.h5")
    table = facts_of(tables.path("edges.csv"))
    check("table", (table["kind"], table["rows"], [c["name"] for c in table["columns"]]),
          ("table", len(tables.edges), ["body_pre", "body_post", "weight"]))
    refused(USAGE, ("--node",), "inspect", tables.path("edges.csv"), "--node", "5")
    with open(tables.path("p.parquet"), "wb") as f:
        f.write(b"PAR1" + bytes(100))
    refused(INPUT, ("p.parquet", "Parquet"), "inspect", tables.path("p.parquet"))
    with h5py.File(graph, "r+") as f:
        f.attrs["format_version"] = 99
        kept = f.attrs["format"]
    refused(INPUT, ("version 99",), "inspect", graph)
    with h5py.File(graph, "r+") as f:
        f.attrs["format_version"] = 1
        f.attrs["format"] = "fascicle graph"
    refused(INPUT, ("variable length", "make it again"), "simulate", graph, *words)
    with h5py.File(graph, "r+") as f:
        f.attrs["format"] = kept
        del f[EDGES + "0/impulse"]
    refused(INPUT, ("impulse", "missing"), "inspect", graph)


def test_output_that_cannot_be_written(tables):
    tables.convert("graph.h5")
    words = ("convert", "--edges", tables.path("edges.csv"), "--output")
    refused(OUTPUT, ("--force",), *words, tables.path("graph.h5"))
    refused(USAGE, ("edges.csv", "is an input"), *words, tables.path("edges.csv"), "--force")
    refused(OUTPUT, ("no/such",), *words, tables.path("no/such/graph.h5"))
    refused(OUTPUT, ("graph.h5",), *words, tables.path("graph.h5/x.h5"))
    refused(OUTPUT, ("new/",), *words, tables.path("new/"))
    refused(OUTPUT, ("/proc",), *words, "/proc/graph.h5")


def test_small_disk(tables):
    tables.convert("graph.h5")
    os.mkdir(tables.path("small"))
    script = 'mount -t tmpfs -o size=200k none "$0" && exec "$@"'
    words = ["unshare", "-rm", "bash", "-c", script, tables.path("small"), FASCICLE, "convert", "--edges",
             tables.path("edges.csv"), "--output", tables.path("small/graph.h5")]
    if subprocess.run([*words[:6], "true"], capture_output=True).returncode:
        print("test_small_disk skipped: this account may not mount a file system")
        return
    result = subprocess.run(words, capture_output=True, text=True, timeout=600)
    check("small disk: " + result.stderr, result.returncode, OUTPUT)
    check("says why: " + result.stderr, "are free" in result.stderr, True)


def test_kill_leaves_no_half_file(tables):
    """SIGKILL at any time: the name is absent or the file is whole."""
    tables.convert("graph.h5")
    words = [FASCICLE, "convert", "--edges", tables.path("edges.csv"), "--output", tables.path("killed.h5"), "--force"]
    started = time.monotonic()
    subprocess.run(words, check=True, capture_output=True)
    usual = time.monotonic() - started
    for i in range(8):
        if os.path.exists(tables.path("killed.h5")):
            os.remove(tables.path("killed.h5"))
        child = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(usual * (0.55 + 0.06 * i))
        child.send_signal(signal.SIGKILL)
        child.wait()
        if os.path.exists(tables.path("killed.h5")):
            done("inspect", tables.path("killed.h5"), "--verify")
    subprocess.run(words, check=True, capture_output=True)
    done("inspect", tables.path("killed.h5"), "--verify")


# As FORMAT.md gives them.
def mix(x):
    x = (x ^ x >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ x >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return x ^ x >> np.uint64(31)


def checksum(a):
    bits = a.reshape(-1).view(f"u{a.itemsize}").astype(np.uint64)
    return int(mix(mix(np.arange(1, a.size + 1, dtype=np.uint64)) + bits).sum(dtype=np.uint64))


def lif_config(tables):
    config = {"threshold": 1000, "decay_shifts": [4], "stimulus": [
        {"neurons": "all", "kind": "current", "first_step": 0, "last_step": 99, "value": 300}]}
    with open(tables.path("lif.json"), "w") as f:
        json.dump(config, f)
    return f.name


def test_checkpoint_and_spikes(tables):
    graph, folder = tables.convert("graph.h5"), tables.path("run")
    done("simulate", graph, "--config", lif_config(tables), "--steps", "60", "--checkpoint-every", "20",
         "--output", folder, n=2)
    newest = sorted(f for f in os.listdir(folder + "/checkpoints") if f.endswith(".h5"))[-1]
    newest = os.path.join(folder, "checkpoints", newest)
    facts = facts_of(newest, "--verify", n=2)
    check("checkpoint", (facts["kind"], facts["verified"]), ("checkpoint", True))
    names = [d["name"] for d in facts["datasets"] if d.get("rows") == len(tables.ids)]
    check("fields", bool(names), True)
    with h5py.File(newest) as f:
        check("h5py opens it", f[names[0]].shape[0], len(tables.ids))
        check("texts", (f.attrs["meta"].dtype.char, f[names[0]].attrs["about"].dtype.char), ("S", "S"))
        sums = {}
        f.visititems(lambda name, d: sums.update({name: (d.attrs["checksum"].decode(), f"{checksum(d[()]):016x}")})
                     if isinstance(d, h5py.Dataset) else None)
        check("checksums", [name for name, (stored, mine) in sums.items() if stored != mine], [])
    offset, size = offset_of(newest, names[0])
    flip(newest, offset + size // 2)
    refused(INPUT, (names[0].split("/")[-1], "damaged"), "inspect", newest, "--verify", n=2)
    spikes = facts_of(os.path.join(folder, "spikes.h5"), "--verify")
    check("spikes", (spikes["kind"], spikes["verified"], spikes["steps"]["last"]), ("spikes", True, 59))


def test_impulses_of_one_sign(tables):
    """The least and the largest impulse are those of edges, where all are of one sign too."""
    for sign, wanted in ((1, (3, 5)), (-1, (-5, -3))):
        table, graph = tables.path(f"sign{sign}.csv"), tables.path(f"sign{sign}.h5")
        with open(table, "w") as file:
            file.write(f"A,B,{3 * sign}\nB,C,{5 * sign}\n")
        done("convert", "--edges", table, "--columns", "pre=1,post=2,weight=3", "--output", graph)
        facts = facts_of(graph)["impulse"]
        check(f"impulses of sign {sign}", (facts["min"], facts["max"]), wanted)


main(globals())
