"""Run a command on any number of ranks, and read graphs back: what the tests of the verbs that make graphs share."""
import json
import os
import subprocess

import h5py

fascicle, ranks = os.environ["FASCICLE"], os.environ["RANKS"]
edges_at = "/edges/neurons__neurons__chemical/"
EDGE_SETS = ("source_node_id", "target_node_id", "0/impulse", "0/nsyns", "0/delay_steps")


def run(*words, n=1, threads=1, code=0):
    """What it says; with a `code` its one line of error."""
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
    done = subprocess.run([ranks, str(n), fascicle, *map(str, words)], capture_output=True, text=True, timeout=600,
                          env=environment)
    assert done.returncode == code, f"{words}: {done.returncode}, {done.stdout}{done.stderr}"
    if code:
        lines = [line for line in done.stderr.splitlines() if line.startswith("fascicle")]
        assert len(lines) == 1, f"{words}: {done.stderr}"
        return lines[0]
    return done.stdout


def read(path):
    """The edges by data set, the order, digests and provenance."""
    with h5py.File(path) as file:
        graph = {name: file[edges_at + name][:] for name in EDGE_SETS}
        graph["order"] = {k: file["/order/" + k][:] for k in file["/order"]}
        graph["digest"] = file.attrs["graph_digest"].decode()
        graph["order_digest"] = file.attrs["order_digest"].decode()
        graph["provenance"] = json.loads(file.attrs["source_json"])
    return graph


def contents(path):
    """Every dataset, and every attribute but the time of writing."""
    found = {}

    def take(name, item):
        if isinstance(item, h5py.Dataset):
            found[name] = item[()].tobytes() if item.dtype.kind != "O" else tuple(item[()])
        found.update({f"{name}@{k}": str(v) for k, v in item.attrs.items() if k != "created_utc"})

    with h5py.File(path) as file:
        take("/", file)
        file.visititems(take)
    return found
