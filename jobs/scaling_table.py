#!/usr/bin/env python3
"""Scaling on machines that are not here: real halo counts of ordered graphs, times by `fascicle plan`. Writes markdown.

  fascicle generate --nodes 211577 --edges 24678466 --model modular --no-order --output hash.h5
  fascicle order hash.h5 --parts 1024 --output ordered.h5 --json >ordered.json
  fascicle convert --edges larva_edges.txt --output larva_hash.h5 --no-order
  fascicle order larva_hash.h5 --parts 1024 --output larva.h5 --json >larva.json
  jobs/scaling_table.py --ordered ordered --hash hash.h5 --larva larva --larva-hash larva_hash.h5 >jobs/results/scaling.md

hash: the same graph with its neurons in the order of their ids, which scatter over the modules. NAME.h5 and NAME.json are read."""
import argparse
import json
import os
import subprocess
import sys

options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
options.add_argument("--fascicle", default=os.environ.get("FASCICLE", "fascicle"))
for name in ("ordered", "hash", "larva", "larva-hash"):
    options.add_argument(f"--{name}", required=True)
args = options.parse_args()
MOUSE = ("--nodes", 70000000, "--edges", 100000000000)
FLY = ("--nodes", 211577, "--edges", 24678466)


def plan(*words):
    done = subprocess.run([args.fascicle, "plan", *map(str, words), "--json"], capture_output=True, text=True)
    if done.returncode not in (0, 2) or not done.stdout:
        sys.exit(f"plan {words}: {done.stderr}")
    return json.loads(done.stdout)


def table(head, rows):
    print("| " + " | ".join(head) + " |\n|" + "---|" * len(head))
    for row in rows:
        print("| " + " | ".join(str(cell) for cell in row) + " |")
    print()


def number(n):
    return f"{n:,}"


def seconds(t):
    return f"{t * 1e6:.1f} us" if t < 1e-3 else f"{t * 1e3:.1f} ms" if t < 1 else f"{t:.1f} s"


def size(b):
    return f"{b / 1e3:.0f} kB" if b < 1e6 else f"{b / 1e6:.1f} MB" if b < 1e9 else f"{b / 1e9:.1f} GB"


# ---- halo rows, counted ----

def halo_rows(ordered, hashed, counted):
    """Ordered graphs by what `order` says of its parts; hash parts counted by `plan`."""
    with open(f"{ordered}.json") as file:
        levels = json.load(file)["levels"]
    rows = []
    for level in levels:
        parts, every = level["parts"], level["gather_rows"]
        scattered = ("", "")
        if parts in counted:
            words = ("--job", "train", "--device", "h200", "--ranks", parts, "--parts", parts, "--set", f"batch={parts}")
            halo = plan(hashed, *words, "--exchange", "halo", "--set", "n_input=100", "--set", "n_output=100")["halo_rows_needed"]
            scattered = (f"{100 * halo / every:.1f} %", f"{halo / level['halo_rows']:.1f} x")
        rows.append((parts, number(every // (parts - 1) // parts), number(level["halo_rows"] // parts), number(level["halo_rows_max"]),
                     f"{100 * level['halo_rows'] / every:.1f} %", *scattered, f"{level['edge_balance']:.3f}"))
    table(("parts", "own rows", "halo rows", "largest", "of an all-gather", "hash parts, of an all-gather", "saved", "edges, largest over mean"), rows)


# ---- times, predicted ----

def training(graph, gpus, parts, batch):
    return plan(*graph, "--job", "train", "--device", "h200", "--ranks", gpus, "--parts", parts, "--gpus-per-host", 8, "--set", f"batch={batch}",
                "--set", "n_input=1024", "--set", "n_output=2048")


def training_rows(gpus, grids, batch, one):
    rows = []
    for parts in grids:
        replicas = gpus // parts
        for name, graph in (("ordered", (f"{args.ordered}.h5",)), ("random", FLY)) if parts > 1 else (("any", FLY),):
            a = training(graph, gpus, parts, batch)
            ideal = one * batch / 32 / gpus
            rows.append((f"{parts} x {replicas}", name, a["exchange"], seconds(a["step_seconds"]),
                         f"{100 * ideal / a['step_seconds']:.0f} %", seconds(a["exchange_seconds"]), size(a["host_bytes_per_step"]),
                         size(a["network_bytes_per_step"]), size(a["total_bytes"])))
    return rows


HEAD = ("parts x replicas", "order", "exchange", "step", "of ideal", "exchanges alone", "from the host", "by network", "memory of a GPU")


def malecns():
    one = training(FLY, 1, 1, 32)["step_seconds"]
    print(f"### Training, batch 32, T = 64, M = 2: one GPU {seconds(one)} a step\n")
    print("8 GPUs of one host:\n")
    table(HEAD, training_rows(8, (1, 2, 4, 8), 32, one))
    print("16 hosts of 8, batch 4,096 (32 for each GPU):\n")
    table(HEAD, training_rows(128, (1, 2, 4, 8, 16, 128), 4096, one))
    print("16 hosts of 8, batch 32 (strong scaling):\n")
    table(HEAD, training_rows(128, (4, 8, 16, 32, 128), 32, one))
    print("### LIF, delays of at least 1 step, 1 % fire\n")
    rows = []
    for gpus in (1, 2, 4, 8, 128):
        words = ("--job", "simulate", "--device", "h200", "--ranks", gpus, "--gpus-per-host", 8, "--active", 0.01)
        a = plan(*FLY, *words)
        rows.append((gpus, seconds(a["step_seconds"]), seconds(a["compute_seconds"]), seconds(a["exchange_seconds"])))
    table(("GPUs", "step", "work", "exchange of spikes"), rows)


def mouse():
    rows = []
    for gpus in (128, 256, 512, 1024):
        for share, name in ((None, "random"), (0.3, "30 % from other parts")):
            far = () if share is None else ("--far-edges", share)
            a = plan(*MOUSE, "--job", "train", "--device", "h200", "--ranks", gpus, "--parts", gpus, "--gpus-per-host", 8, *far)
            halo = a["bytes"]["saved states, halo rows"]
            rows.append((gpus, name, number(a["largest_part"]["halo_rows"]), size(a["total_bytes"]), size(halo), size(a["total_bytes"] - halo),
                         "yes" if a["fits"] else "no", seconds(a["compute_seconds"]), seconds(a["step_seconds"])))
    print("### Training, batch 32, T = 64, M = 2\n")
    table(("GPUs", "sources", "halo rows of a GPU", "memory of a GPU", "of that, saved halo states", "the rest", "fits 141 GB", "work", "step"), rows)
    print("### LIF, 0.1 % fire in a step\n")
    rows = []
    for gpus in (8, 16, 64, 128, 1024):
        words = ("--job", "simulate", "--device", "h200", "--ranks", gpus, "--gpus-per-host", 8, "--active", 0.001)
        a = plan(*MOUSE, *words)
        rows.append((gpus, size(a["total_bytes"]), "yes" if a["fits"] else "no", size(8 * a["host_total_bytes"]), seconds(a["step_seconds"]),
                     seconds(a["compute_seconds"]), seconds(a["exchange_seconds"]), size(a["host_bytes_per_step"]), size(a["network_bytes_per_step"])))
    table(("GPUs", "memory of a GPU", "fits 141 GB", "of a host with 8", "step", "work", "exchange", "told by the host's others", "by network"), rows)


print("""# Scaling, on machines that are not here

**Counted**: halo rows of graphs ordered by `fascicle order` (CPU). **Predicted**: everything in seconds, by `fascicle plan` from constants measured
on one and two H200s (`jobs/conf/machine_h200.json`; within 15 % of all that was measured there, `tests/cli/test_plan_time.py`). **Assumed, never
measured**: the network between hosts (20 us an exchange, 45 GB/s a GPU each way; published figures behind that are named in the machine's file), and
that NVLink gives each of 8 GPUs what it gives each of two.
Made by `jobs/scaling_table.py`.
""")
print("## Halo rows, counted\n\nThe larva's brain (3,554 neurons, 119,010 edges):\n")
halo_rows(args.larva, args.larva_hash, [2**k for k in range(1, 11)])
print("A synthetic graph of the whole MaleCNS' size (modular, 211,577 neurons, 24,678,466 edges; 77 % of the edges within modules):\n")
halo_rows(args.ordered, args.hash, (2, 8, 64, 1024))
print("## MaleCNS' size, predicted\n")
malecns()
print("""What follows: as long as every GPU has 32 columns of the batch, replicas or few parts of a host lose little. Splitting the graph over more GPUs
than a host has is paid by the network: 256 exchanges a step at the assumed 20 us and 45 GB/s outweigh the work, though three to
four times less for ordered parts than for scattered ones. One small step of batch 32 is fastest on 8 parts x 16 replicas, not on all GPUs as
parts. `of ideal` at few columns a GPU is the kernels' cost of an edge whatever the batch, not the exchange: fewer than 16 columns take as long
as 16 (`least_columns`).
""")
print("## A mouse's brain: 70,000,000 neurons, 100,000,000,000 edges, predicted\n")
mouse()
print("""What it takes, where it breaks, what must change:

- **LIF fits as it is**: edges cost 8 bytes on the GPU and 8 on its host, so 8 GPUs of 141 GB with 1 TB of host memory hold them; work and memory
  divide by the number of GPUs (its time is extrapolated from 1,000,000 neurons and 50 M edges on one GPU).
- **What of LIF does not divide** is in every rank's memory 8 bytes a neuron of the whole graph for the offsets by source (0.56 GB, on the GPU and on
  the host), 12 for body ids and types on the host, 4 to 8 while loading, and an inbox of 1 byte for 4 neurons and step heard; and in every step the
  words of all other neurons, 17.5 MB, whoever fired: with some tens of GPUs they are most of a step. What must change: tell only those ranks that have
  edges from a neuron, or send lists where less than 0.4 % fire.
- **Training breaks on the saved states of halo rows**: (T M + 1) x B x 4 bytes a row, for nearly all neurons where sources are random. Everything
  else fits 128 GPUs. What must change: keep only own states and send halo rows again in the backward pass (half as much traffic again; the rest
  of the memory is in the table), or fewer columns a GPU; and an order in which parts need few rows. Then the network decides: rows that travel, not work.
  On its host a rank holds 12 bytes an edge of its own and 12 a neuron of the whole graph, for a moment 16 more of each.
- **Ordering breaks first**: `order` refuses more than 1,073,741,823 edges, because METIS counts both directions of each in 32 bits, and it would need
  44 bytes an edge on one rank (4.4 TB). It needs a parallel partitioner, or the brain's own regions as the first levels. `convert` and `generate`
  (`--no-order`) too hold all edges on one rank, 16 bytes each and as much again while they are sorted: 3.2 TB.
- **Counts hold**: rows, edges and offsets are 64 bits wide; a rank's rows 31 bits, edges on a GPU in training 32 bits (both refused with the
  remedy, never wrapped); node ids 32 bits (4.29 thousand million neurons). `tests/cli/test_large.py` runs on a sparse file of 1e11 edges.""")
