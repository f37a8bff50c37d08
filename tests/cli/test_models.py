"""Neuron models: for every configuration of tests/data/models the spikes of NEST or Brian2 and the exact states of the
reference, on several ranks and threads, streamed, resumed on another number of ranks, and on an ordered graph.
seconds: 900"""
import csv
import functools
import glob
import os
import sys

import h5py
import numpy as np

sys.path.insert(0, os.path.dirname(__file__))
from side_by_side import path, run_tests  # noqa: E402
from sim_tools import check, run as launch  # noqa: E402

DATA = os.path.join(os.environ["TEST_DATA"], "models")
STEPS = 2000


def table(path):
    with open(path) as file:
        return list(csv.DictReader(file))


def spikes_of(folder):
    with h5py.File(os.path.join(folder, "spikes.h5")) as file:
        group = next(iter(file["spikes"].values()))
        return list(zip(group["step"][:].tolist(), group["node_ids"][:].tolist()))


def states_of(folder):
    """Columns of the last checkpoint by node id."""
    name = sorted(glob.glob(os.path.join(folder, "checkpoints", "step_*.h5")))[-1]
    with h5py.File(name) as file:
        order = np.argsort(file["lif/node_id"][:].ravel())
        return {key: file["lif/" + key][:].ravel()[order].tolist()
                for key in file["lif"] if not key.startswith("ring") and key != "node_id"}


def expected(name):
    spikes = [(int(row["step"]), int(row["node"])) for row in table(f"{DATA}/{name}.spikes.csv")]
    rows = table(f"{DATA}/{name}.states.csv")
    states = {key if key != "counter" else "refractory": [int(row[key]) for row in rows] for key in rows[0] if key != "node"}
    return spikes, states


def compare(name, folder, what):
    spikes, states = expected(name)
    got = spikes_of(folder)
    check(len(spikes) > 50, name, "has few spikes:", len(spikes))
    at = next((i for i, (a, b) in enumerate(zip(got, spikes)) if a != b), min(len(got), len(spikes)))
    check(got == spikes, name, what, len(got), "spikes,", len(spikes), "wanted; number", at, "differs:", got[at:at + 1],
          "for", spikes[at:at + 1])
    check(states_of(folder) == states, name, what, "the states differ")


def simulate(graph, name, what, ranks, *options, steps=STEPS):
    folder = path(f"{name}_{what}")
    code, _, err = launch("simulate", path(graph), "--config", f"{DATA}/{name}.json", "--steps", steps, "--output", folder,
                          *options, n=ranks, timeout=600)
    check(code == 0, name, what, "ended with", code, err)
    return folder


def graphs(folder):
    for words in (("convert", "--edges", f"{DATA}/edges.csv", "--columns", "pre=pre,post=post,weight=weight,delay=delay",
                   "--duplicates", "keep", "--no-order", "--streamable", "--output", f"{folder}/g.h5"),
                  ("order", f"{folder}/g.h5", "--parts", "4", "--streamable", "--output", f"{folder}/ordered.h5")):
        code, _, err = launch(*words, timeout=600)
        check(code == 0, *words[:1], err)
    return folder


def one(name, folder):
    compare(name, simulate("g.h5", name, "one", 1, "--threads", 1), "on one rank")
    compare(name, simulate("ordered.h5", name, "ordered", 3, "--threads", 2), "ordered, on three ranks")
    compare(name, simulate("ordered.h5", name, "streamed", 2, "--residency", "streamed"), "streamed")
    simulate("g.h5", name, "resumed", 1, steps=STEPS // 2 + 37)
    compare(name, simulate("g.h5", name, "resumed", 4, "--resume", "auto"), "resumed on four ranks")


if __name__ == "__main__":
    names = sorted(os.path.basename(file)[:-5] for file in glob.glob(f"{DATA}/*.json"))
    if len(names) < 12:
        raise SystemExit(f"only {len(names)} configurations in {DATA}")
    run_tests({f"test_{name}": functools.partial(one, name) for name in names}, given=graphs)
