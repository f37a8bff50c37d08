#!/usr/bin/env python3
"""Several GPUs (or several ranks on one): do they agree with one rank, and how do they scale?

Usage: ranks.py FASCICLE TEST_TRANSPORT RANKS [--transport nccl|mpi] [--text FILE] [--quick] [--jsonl FILE]
Prints a table last; every check that fails ends it with 1. With more ranks than GPUs use --transport mpi."""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("fascicle")
parser.add_argument("test_transport")
parser.add_argument("ranks", type=int)
parser.add_argument("--transport", default="nccl")
parser.add_argument("--text")
parser.add_argument("--quick", action="store_true", help="small graphs, no benchmarks")
parser.add_argument("--jsonl", help="append the benchmark lines")
options = parser.parse_args()
R, failures, table = options.ranks, [], []
environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMP_NUM_THREADS="4",
                   OMPI_MCA_rmaps_base_oversubscribe="1", OMPI_MCA_btl_vader_single_copy_mechanism="none")


def run(n, *words, program=None, seconds=400):
    command = [program or options.fascicle, *map(str, words)]
    if n > 1:
        command = ["mpirun", "-q", "--bind-to", "none", "-n", str(n), *command]
    start = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, env=environment)
    if done.returncode:
        failures.append(f"{' '.join(command[-12:])}: code {done.returncode}: {done.stderr.strip()[-400:]}")
    print(f"  {time.monotonic() - start:6.1f} s  {n} x {' '.join(map(str, words))[:100]}", flush=True)
    return done


def lines(done):
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def check(good, what):
    print(("ok      " if good else "FAILED  ") + what, flush=True)
    if not good:
        failures.append(what)


def losses(folder):
    records = [json.loads(line) for line in open(f"{folder}/metrics.jsonl")]
    return [record["loss"] for record in records if record["record"] == "step"]


def train(work, name, n, *words):
    folder = f"{work}/{name}"
    run(n, "train", f"{work}/graph.h5", "--text", options.text or f"{work}/text.txt", "--output", folder, "--force", "--device", "cuda",
        "--set", "train_steps=50", "--set", "log_every=1", "--set", "eval_every=0", *words)
    return losses(folder) if os.path.exists(f"{folder}/metrics.jsonl") else []


def agree(a, b, what, tolerance=1e-5):
    worst = max((abs(x - y) for x, y in zip(a, b)), default=9)
    check(len(a) == len(b) == 50 and worst <= tolerance, f"{what}: losses of 50 steps within {worst:.1e} of one rank")


def training(work):
    one = train(work, "one", 1)
    via = ["--transport", options.transport]
    agree(one, train(work, "parts", R, "--parts", R, *via), f"{R} parts")
    agree(one, train(work, "replicas", R, "--parts", 1, *via), f"{R} replicas")


def simulate(work, name, n, steps, *words):
    done = run(n, "simulate", f"{work}/lif.h5", "--config", f"{work}/lif.json", "--steps", steps, "--output", f"{work}/{name}", "--force",
               "--json", *words)
    facts = lines(done)
    return facts[-1] if facts else {"spikes_digest": name, "spikes": 0, "steps_per_second": 0}


def simulation(work):
    steps = 2000 if options.quick else 10000
    one = simulate(work, "sim_one", 1, steps, "--device", "cuda")
    many = simulate(work, "sim_many", R, steps, "--device", "cuda", "--transport", options.transport)
    check(one["spikes_digest"] == many["spikes_digest"] and one["spikes"] > 1000,
          f"{R} ranks: {one['spikes']} spikes of {steps} steps are bit-identical")
    table.append(("lif steps/s, one rank / all", one["steps_per_second"], many["steps_per_second"]))


def bench(n, *words):
    result = lines(run(n, "bench", *words, "--device", "cuda", "--json", *(["--transport", options.transport] if n > 1 else [])))
    if options.jsonl:
        with open(options.jsonl, "a") as file:
            for line in result:
                file.write(json.dumps(line) + "\n")
    return {(line["case"], line.get("graph", "")): line for line in result}


def scaling():
    for nodes, edges in ((160514, 10400000), (211577, 24680000)):
        size = ["--nodes", nodes, "--edges", edges]
        one, many = bench(1, "recurrence", *size), bench(R, "recurrence", *size)
        for key in one:
            if key[0] == "total" and key in many:
                table.append((f"parts {nodes}/{edges} {key[1]}: strong scaling", one[key]["seconds"] * 1e3, many[key]["seconds"] * 1e3))
        half = bench(1, "recurrence", *size, "--batch", 32 // R, "--model", "lognormal")
        halo = bench(R, "halo", *size)
        total = ("total", "lognormal")
        if total in half and total in one:
            table.append((f"replicas {nodes}/{edges}: batch {32 // R} of 32 on one GPU", one[total]["seconds"] * 1e3, half[total]["seconds"] * 1e3))
        for (case, _), line in halo.items():
            table.append((f"halo {nodes}/{edges} {case}: floor / measured, ms", line["floor_seconds"] * 1e3, line["seconds"] * 1e3))


with tempfile.TemporaryDirectory() as work:
    done = run(R, options.transport, program=options.test_transport)
    check(done.returncode == 0, f"transport {options.transport}: {done.stdout.strip()}")
    with open(f"{work}/text.txt", "w") as file:
        file.write("the quick brown fox jumps over the lazy dog, and back again. " * 3000)
    with open(f"{work}/lif.json", "w") as file:
        json.dump({"threshold": 2000, "decay_shifts": [4], "refractory_steps": 5, "seed": 3, "stimulus": [
            {"neurons": "all", "kind": "poisson", "rate_hz": 4, "weight": 2100}]}, file)
    run(1, "generate", "--nodes", 5000, "--edges", 524324, "--parts", 8, "--output", f"{work}/graph.h5")
    size = (20000, 1000000) if options.quick else (211577, 24680000)
    run(1, "generate", "--nodes", size[0], "--edges", size[1], "--delays", "1:8", "--no-order", "--output", f"{work}/lif.h5")
    training(work)
    simulation(work)
    if not options.quick:
        scaling()
print()
for name, one, many in table:
    print(f"{name:70s} {one:12.4g} {many:12.4g} {one / many if many else 0:7.3f}")
for failure in failures:
    print("FAILED", failure)
print(f"{'ALL PASS' if not failures else 'FAILURES'} on {R} ranks, transport {options.transport}")
sys.exit(bool(failures))
