#!/usr/bin/env python3
"""bmtk, the Allen Institute's toolkit, opens our files: nodes and edges of convert, ordered or not, plain or packed, and
merged spikes. It wants the two tables of types that SONATA knows: two lines of text each (io/FORMAT.md)."""
import json
import os
import sys

import h5py

try:
    from bmtk.utils import sonata
    from bmtk.utils.reports.spike_trains import SpikeTrains
except ImportError as missing:
    print(f"skipped: {missing}; jobs/setup.sh run test installs it")
    sys.exit(1 if os.environ.get("CI") == "true" else 77)

from artifact_tools import check, done, main

NAMES = ("nsyns", "impulse", "delay_steps")


def types_of(tables):
    files = []
    for kind, population in (("node", "neurons"), ("edge", "neurons__neurons__chemical")):
        files.append(tables.path(f"{kind}_types.csv"))
        with open(files[-1], "w", encoding="utf-8") as file:
            file.write(f"{kind}_type_id population\n0 {population}\n")
    return files


def test_graphs(tables):
    types = types_of(tables)
    wanted = sorted((e.pre, e.post, e.weight, e.sign * e.weight, 1) for e in tables.edges)
    for words in ((), ("--no-order", "--streamable"), ("--packed",)):
        graph = tables.convert("graph.h5", *words)
        with h5py.File(graph) as file:
            labels = file["nodes/neurons/0/@library/type"].asstr()[:]
        read = sonata.File(data_files=graph, data_type_files=types)
        nodes, edges = read.nodes["neurons"], read.edges["neurons__neurons__chemical"]
        check("node ids", nodes.node_ids.tolist(), list(range(len(tables.ids))))
        check("body ids", [int(node["body_id"]) for node in nodes], tables.ids)
        check("types", [labels[node["type"]] for node in nodes], [tables.type[i] for i in tables.ids])
        check("ends", (edges.source_population, edges.target_population, len(edges)), ("neurons", "neurons", len(tables.edges)))
        found = [(tables.ids[e.source_node_id], tables.ids[e.target_node_id], *(int(e[name]) for name in NAMES))
                 for node in range(len(tables.ids)) for e in edges.get_target(node)]
        check("edges by target", sorted(found), wanted)
        table = edges.to_dataframe()
        check("edges as a table", sorted(table["impulse"].tolist()), sorted(w[3] for w in wanted))


def test_spikes(tables):
    graph, config = tables.convert("graph.h5"), tables.path("lif.json")
    with open(config, "w", encoding="utf-8") as file:
        json.dump({"threshold": 40, "decay_shifts": [4], "refractory_steps": 3, "dt_ms": 0.5, "stimulus": [
            {"neurons": "all", "kind": "poisson", "rate_hz": 40, "weight": 50}]}, file)
    run = tables.path("run")
    done("simulate", graph, "--config", config, "--steps", "300", "--output", run)
    with h5py.File(f"{run}/spikes.h5") as file:
        spikes = file["spikes/neurons"]
        wanted = list(zip(spikes["timestamps"][:].tolist(), spikes["node_ids"][:].tolist()))
    check("some", len(wanted) > 500, True)
    trains = SpikeTrains.load(f"{run}/spikes.h5")
    check("population", trains.populations, ["neurons"])
    table = trains.to_dataframe()
    check("spikes", sorted(zip(table["timestamps"], table["node_ids"])), sorted(wanted))


main(globals())
