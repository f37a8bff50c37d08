#!/usr/bin/env python3
"""models.py [NODES EDGES STEPS] [--record]

lif_exp with one delay of 18 steps, and psc_exp with the graph's delays of 3 to 20: the same spikes and the same last state on 1, 2, 4
and 7 ranks, with two threads, with streamed edges, and resumed on other ranks. Without numbers at the sizes of FlyWire (138,639 / 15.1 M)
and MaleCNS (166,000 / 25.6 M), 10,000 steps: some 15 minutes and 3 GB of disk."""
import glob
import hashlib
import json
import pathlib
import shutil
import tempfile

from endure_tools import check, numbers, program, record

import h5py
import numpy as np

SIZES = ((138639, 15100000, 10000), (166000, 25600000, 10000))
NEURON = {"v_rest_mv": -65, "v_threshold_mv": -58, "v_reset_mv": -65, "c_m_pf": 250, "refractory_ms": 2.2}


def config_of(model, nodes):
    """Some thousand spikes a second and more by driven neurons, 150 of them; the rest is what these bring about."""
    driven = {"indices": list(range(0, nodes, max(nodes // 150, 1)))[:150]}
    events = {"kind": "poisson", "neurons": driven, "rate_hz": 150}
    if model == "lif_exp":
        return {"model": model, "dt_ms": 0.1, "delay_steps": 18, "weight_mv": 0.275, "neuron": dict(NEURON, tau_m_ms=20, tau_syn_ms=5),
                "stimulus": [dict(events, weight_mv=68.75, into="v", no_refractory=True)]}
    background = {"kind": "poisson", "neurons": {"indices": list(range(0, nodes, 20))}, "rate_hz": 3000, "weight_pa": 80}
    return {"model": model, "dt_ms": 0.1, "weight_pa": 15, "neuron": dict(NEURON, tau_m_ms=10, tau_syn_ex_ms=0.5, tau_syn_in_ms=0.8),
            "stimulus": [dict(events, weight_pa=20000), background]}


def state_of(folder):
    """A digest of the last checkpoint's values by node id, sums of arrivals included."""
    digest = hashlib.sha256()
    with h5py.File(sorted(glob.glob(f"{folder}/checkpoints/step_*.h5"))[-1]) as file:
        order = np.argsort(file["lif/node_id"][:].ravel())
        for key in sorted(file["lif"]):
            values = file["lif"][key][:]
            digest.update(np.ascontiguousarray(values.reshape(len(order), -1)[order]).tobytes())
    return digest.hexdigest()


class Case:
    def __init__(self, folder, graph, model, nodes, steps):
        self.folder, self.graph, self.model, self.steps = folder, graph, model, steps
        self.config = folder / f"{model}.json"
        self.config.write_text(json.dumps(config_of(model, nodes)))

    def run(self, *words, steps=None, n=1, threads=1, fresh=True):
        output = self.folder / "run"
        if fresh:
            shutil.rmtree(output, ignore_errors=True)
        done = program("simulate", self.graph, "--config", self.config, "--steps", steps or self.steps, "--output", output, "--device", "cpu",
                       "--threads", threads, "--json", *words, n=n, threads=threads, timeout=3600)
        facts = json.loads(done.stdout)
        return facts["spikes_digest"], state_of(output), facts["spikes"]

    def results(self):
        yield "one", self.run()
        yield "two threads", self.run(threads=2)
        for n in (2, 4, 7):
            yield f"{n} ranks", self.run(n=n)
        yield "streamed, 2 ranks", self.run("--residency", "streamed", n=2)
        self.run(steps=self.steps * 43 // 100 + 1, n=2)
        yield "resumed on 4 ranks", self.run("--resume", "auto", n=4, fresh=False)


def check_size(folder, nodes, edges, steps):
    graph = folder / "graph.h5"
    program("generate", "--nodes", nodes, "--edges", edges, "--delays", "3:20", "--seed", 8, "--streamable", "--no-order", "--output", graph,
            "--force")
    for model in ("lif_exp", "psc_exp"):
        wanted, compared = None, []
        for what, (spikes, state, number) in Case(folder, graph, model, nodes, steps).results():
            wanted = wanted or (spikes, state)
            check((spikes, state) == wanted, model, nodes, what, "differs from one rank:", spikes, state, "for", *wanted)
            check(number > steps / 10, model, nodes, "has few spikes:", number)
            compared.append(what)
        record("models", model=model, nodes=nodes, edges=edges, steps=steps, spikes=number, equal=compared, digest=wanted[0][:16])


def main():
    given = [int(word) for word in numbers()]
    check(len(given) in (0, 3), "give NODES EDGES STEPS, or nothing")
    for size in ((tuple(given),) if given else SIZES):
        with tempfile.TemporaryDirectory() as folder:
            check_size(pathlib.Path(folder), *size)


main()
