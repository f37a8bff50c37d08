#!/usr/bin/env python3
"""The whole MaleCNS on one machine, from its three tables to rates by cell type: what each step takes.

  jobs/malecns_benchmark.py FOLDER [--threads 2] [--steps 10000] [--scale 1] [--only NAME ...]

FOLDER holds the tables of the release as body-annotations.feather, body-neurotransmitters.feather and
connectome-weights.feather; where they are missing, synthetic ones of the same size are made (make_malecns.py, 1.1 GB).
Graphs and runs go there too, about 12 GB in all. A row per step is printed and kept in FOLDER/measured.md:
wall and CPU seconds, the peak of the process, and what came out. Cases, in this order:

  listed, superclass, traced   the tables into a graph under this node rule, ordered for up to 64 parts
  endpoints                    every segment a node: 88 million, not ordered
  shuffle                      a degree-preserving control of the superclass graph
  reference                    the reference runtime's benchmark on the graph of all annotated bodies (signs "soup"):
                               threshold 20000, decay 2, refractory 2, neuron 0 at 30000, 4 steps; best of 5
  stress                       threshold 1, decay 31, refractory 0, 2 steps; best of 5
  sensory                      superclass graph, Poisson input to all sensory types, spikes merged (SONATA)
  rates                        rates by neuron and by type of that run
"""
import argparse
import json
import os
import re
import subprocess
import sys
import time

import h5py
import numpy as np

here = os.path.dirname(os.path.abspath(__file__))
CASES = ["listed", "superclass", "traced", "endpoints", "shuffle", "reference", "stress", "sensory", "rates"]
NEURON_ZERO = [{"neurons": {"indices": [0]}, "potential": 30000}]
CONFIGS = {
    "reference": ({"threshold": 20000, "decay_shifts": [2], "refractory_steps": 2, "initial": NEURON_ZERO}, 4),
    "stress": ({"threshold": 1, "decay_shifts": [31], "refractory_steps": 0, "initial": NEURON_ZERO}, 2),
}


class Bench:
    def __init__(self, options):
        self.options = options
        self.program = os.environ.get("FASCICLE", os.path.join(here, "..", "build", "fascicle"))
        os.environ["OMP_NUM_THREADS"] = str(options.threads)
        self.table = open(self.path("measured.md"), "a", encoding="utf-8")
        self.say("| step | wall s | CPU s | peak GB | load | result |")
        self.say("|---|---|---|---|---|---|")

    def path(self, name):
        return os.path.join(self.options.folder, name)

    def say(self, line):
        print(line, flush=True)
        print(line, file=self.table, flush=True)

    def run(self, *words):
        """(wall, CPU seconds, peak GB, stdout, stderr) of one command."""
        with open(self.path("out"), "w+", encoding="utf-8") as out, open(self.path("err"), "w+", encoding="utf-8") as err:
            began = time.monotonic()
            child = subprocess.Popen([self.program, *words], stdout=out, stderr=err)
            _, status, used = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
            wall = time.monotonic() - began
            out.seek(0), err.seek(0)
            said = out.read(), err.read()
        if child.returncode:
            raise SystemExit(f"{' '.join(words)}: exit code {child.returncode}\n{said[1]}")
        return wall, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024 / 1e9, *said

    def row(self, name, wall, cpu, peak, result):
        self.say(f"| {name} | {wall:.1f} | {cpu:.1f} | {peak:.2f} | {os.getloadavg()[0]:.0f} | {result} |")

    # ---- graphs ----

    def convert(self, name, *words):
        wall, cpu, peak, out, err = self.run("convert", "--edges", self.path("connectome-weights.feather"), *words, "--json",
                                             "--force", "--output", self.path(name + ".h5"))
        facts = json.loads(out)
        for table in facts["inputs"]:
            if table["kept"] + sum(table["dropped"].values()) != table["rows"]:
                raise SystemExit(f"{name}: the rows of {table['file']} do not add up")
        ordered = re.search(r"order: .*, ([0-9.e+]+) s", err)
        text = f"{facts['result']['nodes']:,} nodes, {facts['result']['edges']:,} edges"
        self.row(name, wall, cpu, peak, text + (f"; of that ordering {float(ordered[1]):.1f} s" if ordered else ""))

    def case_listed(self):
        self.convert("listed", "--nodes", self.path("body-annotations.feather"), "--transmitters",
                     self.path("body-neurotransmitters.feather"), "--signs", "soup")

    def case_superclass(self):
        self.convert("superclass", "--nodes", self.path("body-annotations.feather"), "--node-rule", "superclass",
                     "--transmitters", self.path("body-neurotransmitters.feather"))

    def case_traced(self):
        self.convert("traced", "--nodes", self.path("body-annotations.feather"), "--node-rule", "traced")

    def case_endpoints(self):
        self.convert("endpoints", "--no-order")

    def case_shuffle(self):
        wall, cpu, peak, out, _ = self.run("generate", "--shuffle-of", self.path("superclass.h5"), "--no-order", "--force",
                                           "--output", self.path("shuffled.h5"))
        self.row("shuffle", wall, cpu, peak, next((x for x in out.splitlines() if x.startswith("shuffle")), ""))

    # ---- simulations ----

    def simulate(self, name, graph, config, steps):
        with open(self.path(name + ".json"), "w", encoding="utf-8") as file:
            json.dump(config, file)
        wall, cpu, peak, out, err = self.run("simulate", self.path(graph), "--config", self.path(name + ".json"), "--steps",
                                             str(steps), "--device", "cpu", "--json", "--force", "--output",
                                             self.path("run-" + name))
        return (wall, cpu, peak), json.loads(out.splitlines()[-1]), float(re.search(r"loaded in ([0-9.]+) s", err)[1])

    def spikes_by_step(self, name, steps):
        with h5py.File(self.path(f"run-{name}/spikes.h5")) as file:
            (population,) = file["spikes"].values()
            return np.bincount(population["step"][:].astype(int), minlength=steps).tolist()

    def published(self, name):
        config, steps = CONFIGS[name]
        tries = [self.simulate(name, "listed.h5", config, steps) for _ in range(5)]
        used, result, loaded = min(tries, key=lambda t: t[1]["seconds"])
        self.row(name, *used, f"stepping {1000 * result['seconds']:.2f} ms, loading {loaded:.2f} s, spikes by step "
                 f"{self.spikes_by_step(name, steps)}")

    def case_reference(self):
        self.published("reference")

    def case_stress(self):
        self.published("stress")

    def case_sensory(self):
        with h5py.File(self.path("superclass.h5")) as file:
            (nodes,) = file["nodes"].values()
            text = lambda column: np.array(nodes[f"0/@library/{column}"].asstr()[:])[nodes[f"0/{column}"][:]]
            sensory = np.char.find(text("superclass").astype(str), "sensory") >= 0
            types = sorted(set(text("type")[sensory]) - {""})
        config = {"threshold": 400, "decay_shifts": [4], "refractory_steps": 2, "dt_ms": 1.0, "seed": 1, "stimulus": [
            {"neurons": {"types": types}, "kind": "poisson", "rate_hz": 20, "weight": 450}]}
        used, result, loaded = self.simulate("sensory", "superclass.h5", config, self.options.steps)
        self.row("sensory", *used, f"{self.options.steps:,} steps in {result['seconds']:.1f} s, loading {loaded:.2f} s, "
                 f"{result['spikes']:,} spikes, {result['rate_hz']:.3g} Hz, {result['events_per_second']:.3g} edges/s; "
                 f"{len(types)} sensory types driven")

    def case_rates(self):
        *used, _, _ = self.run("trace", "rates", self.path("run-sensory"))
        with open(self.path("run-sensory/type_rates.csv"), encoding="utf-8") as file:
            self.row("rates", *used, f"{len(file.readlines()) - 1} rows in type_rates.csv")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument("--scale", type=float, default=1.0, help="of the synthetic tables")
    parser.add_argument("--only", nargs="+", choices=CASES, default=CASES, metavar="NAME")
    options = parser.parse_args()
    os.makedirs(options.folder, exist_ok=True)
    if not os.path.exists(os.path.join(options.folder, "connectome-weights.feather")):
        subprocess.run([sys.executable, os.path.join(here, "make_malecns.py"), options.folder, "--scale",
                        str(options.scale)], check=True)
    bench = Bench(options)
    for name in CASES:
        if name in options.only:
            getattr(bench, "case_" + name)()


if __name__ == "__main__":
    main()
