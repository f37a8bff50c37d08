#!/usr/bin/env python3
# seconds: 120
"""The artifact as other programs see it: libsonata, five lines of h5py, what bmtk insists on; and its digests
computed again in Python."""
import hashlib
import json
import struct
import subprocess
import sys

import h5py
import libsonata
import numpy as np

from artifact_tools import check, done, main, run

EDGES = "/edges/neurons__neurons__chemical/"


def test_libsonata(tables):
    for words in ((), ("--no-order",), ("--streamable",)):
        graph = tables.convert("graph.h5", *words)
        check_nodes(tables, libsonata.NodeStorage(graph))
        check_edges(tables, libsonata.EdgeStorage(graph))


def check_nodes(tables, storage):
    check("populations", storage.population_names, {"neurons"})
    nodes = storage.open_population("neurons")
    everyone = nodes.select_all()
    check("size", nodes.size, len(tables.ids))
    check("body ids", nodes.get_attribute("body_id", everyone).tolist(), tables.ids)
    check("enumerations", {"type", "model_type"} <= nodes.enumeration_names, True)
    labels = nodes.enumeration_values("type")
    check("labels", sorted(labels), ["", "KC", "MBON", "PN"])
    types = [labels[i] for i in nodes.get_enumeration("type", everyone)]
    check("types", types, [tables.type[i] for i in tables.ids])
    check("types as text", nodes.get_attribute("type", everyone).tolist(), types)
    check("model type", set(nodes.get_attribute("model_type", everyone)), {"point_neuron"})


def check_edges(tables, storage):
    check("populations", storage.population_names, {"neurons__neurons__chemical"})
    edges = storage.open_population("neurons__neurons__chemical")
    check("size, ends", (edges.size, edges.source, edges.target), (len(tables.edges), "neurons", "neurons"))
    inputs = {i: [] for i in tables.ids}
    for e in tables.edges:
        inputs[e.post].append((e.pre, e.weight, e.sign * e.weight, 1))
    for node, body in enumerate(tables.ids):
        found = edges.afferent_edges([node])
        if not inputs[body]:
            check("no inputs", found.flat_size, 0)
            continue
        pre = [tables.ids[i] for i in edges.source_nodes(found)]
        columns = [edges.get_attribute(name, found).tolist() for name in ("nsyns", "impulse", "delay_steps")]
        check(f"inputs of {body}", sorted(zip(pre, *columns)), sorted(inputs[body]))
        check("targets", set(edges.target_nodes(found)), {node})


def test_h5py_in_five_lines(tables):
    graph = tables.convert("graph.h5")
    with h5py.File(graph) as f:
        ids = f["nodes/neurons/0/body_id"][:]
        edges = f["edges/neurons__neurons__chemical"]
        pre, post = ids[edges["source_node_id"][:]], ids[edges["target_node_id"][:]]
        weight = edges["0/nsyns"][:]
    check("edges", sorted(zip(pre.tolist(), post.tolist(), weight.tolist())),
          sorted((e.pre, e.post, e.weight) for e in tables.edges))


def test_what_bmtk_needs(tables):
    with h5py.File(tables.convert("graph.h5")) as f:
        n, n_edges = len(tables.ids), len(tables.edges)
        check("magic", (int(f.attrs["magic"]), f.attrs["magic"].dtype.name), (0x0A7A, "uint32"))
        check("version", (f.attrs["version"].tolist(), f.attrs["version"].dtype.name), ([0, 1], "uint32"))
        nodes, edges = f["nodes/neurons"], f["edges/neurons__neurons__chemical"]
        for name in ("node_type_id", "node_group_id"):
            check(name, (nodes[name].shape, nodes[name].id.get_storage_size(), int(nodes[name][:].max())), ((n,), 0, 0))
        for name in ("edge_type_id", "edge_group_id", "0/delay_steps"):
            check(name, (edges[name].shape, edges[name].id.get_storage_size()), ((n_edges,), 0))
        check("delay", set(edges["0/delay_steps"][:]), {1})
        check("node ids", (nodes["node_id"][:] == np.arange(n)).all(), True)
        check("node places", (nodes["node_group_index"][:] == np.arange(n)).all(), True)
        check("edge places", (edges["edge_group_index"][:] == np.arange(n_edges)).all(), True)
        for end in ("source_node_id", "target_node_id"):
            check(end, (edges[end].attrs["node_population"].decode(), edges[end].dtype.name), ("neurons", "uint32"))
        index = edges["indices/target_to_source"]
        check("both names", index["node_id_to_range"] == index["node_id_to_ranges"], True)
        check("types", (edges["0/nsyns"].dtype.name, edges["0/impulse"].dtype.name), ("uint32", "int16"))
        check("texts", (f.attrs["format"], f.attrs["created_utc"].dtype.char, f.attrs["created_by"][:9]),
              (b"fascicle graph", "S", b"fascicle "))
        provenance = json.loads(f.attrs["source_json"])
        sha = hashlib.sha256(open(tables.path("edges.csv"), "rb").read()).hexdigest()
        check("provenance", sha in json.dumps(provenance), True)


# ---- digests, computed again ----

def philox(key, counter):
    """Ten rounds of Philox4x32 on arrays."""
    c = [x.astype(np.uint64) for x in counter]
    k = [key & np.uint64(0xFFFFFFFF), key >> np.uint64(32)]
    low, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    for _ in range(10):
        a, b = np.uint64(0xD2511F53) * c[0], np.uint64(0xCD9E8D57) * c[2]
        c = [(b >> half) ^ c[1] ^ k[0], b & low, (a >> half) ^ c[3] ^ k[1], a & low]
        k = [(k[0] + np.uint64(0x9E3779B9)) & low, (k[1] + np.uint64(0xBB67AE85)) & low]
    return c


def edge_sum(pre, post, weight, delay):
    pre, post, delay = (x.astype(np.uint64) for x in (pre, post, delay))
    weight = weight.astype(np.int64).view(np.uint64)
    half, zero = np.uint64(32), np.zeros_like(pre)
    key = weight * np.uint64(0x9E3779B97F4A7C15) + delay * np.uint64(0xD1B54A32D192ED03)
    r = philox(key, [pre, zero, post, zero])
    r = philox(delay ^ (weight << half), r)
    return sum(int(a) | int(b) << 32 | int(c) << 64 | int(d) << 96 for a, b, c, d in zip(*r)) % 2**128


def graph_digest(f):
    ids, edges = f["nodes/neurons/0/body_id"][:], f[EDGES]
    total = edge_sum(edges["source_node_id"][:], edges["target_node_id"][:], edges["0/impulse"][:],
                     edges["0/delay_steps"][:])
    words = struct.pack("<q", len(ids)) + ids.astype("<u8").tobytes()
    return hashlib.sha256(words + struct.pack("<QQ", total % 2**64, total >> 64)).hexdigest()


def order_digest(f):
    n = len(f["nodes/neurons/0/body_id"])
    order = f["order/node_of_row"][:] if "order/node_of_row" in f else np.arange(n)
    block = f["order/block"][:] if "order/block" in f else np.zeros(0)
    text = struct.pack("<qq", n, max(0, len(block) - 1)) + order.astype("<u4").tobytes()
    return hashlib.sha256(text + block.astype("<i8").tobytes()).hexdigest()


def test_digests(tables):
    seen = {}
    for name, words in (("ordered", ()), ("plain", ("--no-order",)), ("streamable", ("--streamable",))):
        with h5py.File(tables.convert("graph.h5", *words)) as f:
            check(name, f.attrs["graph_digest"].decode(), graph_digest(f))
            check(name + " order", f.attrs["order_digest"].decode(), order_digest(f))
            seen[name] = (f.attrs["graph_digest"], f.attrs["order_digest"])
    check("the same graph", seen["ordered"][0] == seen["plain"][0] == seen["streamable"][0], True)
    check("another order", seen["ordered"][1] != seen["plain"][1], True)


def contents(path):
    with h5py.File(path) as f:
        found = {}
        f.visititems(lambda name, o: found.update({name: o[()].tobytes()}) if isinstance(o, h5py.Dataset)
                     and o.dtype != object else None)
        return found, f.attrs["graph_digest"], f.attrs["order_digest"]


def test_any_order_of_rows_gives_the_same_file(tables):
    first = contents(tables.convert("graph.h5"))
    for seed in (1, 2):
        check("shuffled rows", contents(tables.convert("graph.h5", shuffle=seed)) == first, True)
    for n in (1, 2, 4, 7):
        done("inspect", tables.path("graph.h5"), "--verify", n=n)


def test_source_major_copy(tables):
    with h5py.File(tables.convert("graph.h5", "--streamable")) as f:
        ids, node_of_row = f["nodes/neurons/0/body_id"][:], f["order/node_of_row"][:]
        ptr, edge = f["out/ptr"][:], np.ascontiguousarray(f["out/edge"][:]).view("<u4,<i2,<u2")[:, 0]
        rows, weight, delay = (edge[name] for name in edge.dtype.names)
        source = ids[node_of_row[np.repeat(np.arange(len(ids)), np.diff(ptr))]]
        out = list(zip(source.tolist(), ids[node_of_row[rows]].tolist(), weight.tolist()))
        check("edges", sorted(out), sorted((e.pre, e.post, e.sign * e.weight) for e in tables.edges))
        check("delays", (delay == 1).all(), True)
        check("ascending", all((np.diff(rows[a:b].astype(int)) > 0).all() for a, b in zip(ptr, ptr[1:])), True)


main(globals())
