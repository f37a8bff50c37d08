"""Run `fascicle convert` on small tables and read back what it wrote."""
import json
import os
import subprocess

import h5py
import numpy as np

from side_by_side import checks, path

fascicle = os.environ["FASCICLE"]
ranks = os.environ["RANKS"]


def write(name, text):
    with open(path(name), "wb") as file:
        file.write(text if isinstance(text, bytes) else text.encode())
    return path(name)


def run(*words, n=1, output="graph.h5"):
    """Exit code, JSON facts (or None), stderr."""
    command = [ranks, str(n), fascicle, "convert", "--json", "--force", "--output", path(output), *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    facts = json.loads(done.stdout) if done.returncode == 0 else None
    return done.returncode, facts, done.stderr


class Graph:
    """The artifact in NumPy, edges sorted by (pre, post, delay, impulse)."""

    def __init__(self, name="graph.h5"):
        with h5py.File(path(name)) as file:
            (population,) = file["nodes"]
            nodes = file["nodes"][population]
            edges = file["edges"][next(iter(file["edges"]))]
            self.body_id = nodes["0/body_id"][:]
            self.names = [s.decode() for s in nodes["0/name"][:]] if "0/name" in nodes else None
            self.columns = {}
            for column in nodes["0"]:
                if column in ("@library", "body_id", "name", "model_type"):
                    continue
                values = nodes["0"][column][:]
                if column in nodes["0/@library"]:
                    values = np.array([s.decode() for s in nodes["0/@library"][column][:]])[values]
                self.columns[column] = values.tolist()
            rows = [edges[k][:].astype(np.int64) if k in edges else np.zeros(0, np.int64) for k in
                    ("source_node_id", "target_node_id", "0/delay_steps", "0/impulse", "0/nsyns")]
            order = np.lexsort([row for row in rows[::-1] if len(row) == len(rows[0])])
            self.source, self.target, self.delay, self.impulse, self.count = (r[order] if len(r) else r for r in rows)
            self.digest = file.attrs["graph_digest"].decode()
            self.provenance = json.loads(file.attrs["source_json"])

    def edges(self):
        """(pre id, post id, impulse) with ids or names."""
        ids = self.names or [int(i) for i in self.body_id]
        return [(ids[s], ids[t], int(w)) for s, t, w in zip(self.source, self.target, self.impulse)]


def check(what, value, wanted):
    checks.append(what)
    if value != wanted:
        raise AssertionError(f"{what}: {repr(value)[:400]}, wanted {repr(wanted)[:400]}")


def good(*words, **more):
    code, facts, error = run(*words, **more)
    check(" ".join(words) + "\n" + error, code, 0)
    return facts, Graph(more.get("output", "graph.h5")), error


def refused(code, parts, *words):
    """The exit code, one line of error that holds every part, and no file left behind."""
    before = set(os.listdir(path()))
    got, _, error = run(*words, output="refused.h5")
    check(" ".join(words) + "\n" + error, got, code)
    lines = [line for line in error.splitlines() if line.startswith("fascicle: ") and "warning" not in line]
    check(error, len(lines), 1)
    for part in parts:
        check(f"'{part}' in {lines[0]}", part in lines[0], True)
    check("files left behind", set(os.listdir(path())) - before, set())


def dropped(facts, role="edges"):
    (table,) = [t for t in facts["inputs"] if t["role"] == role]
    check("rows add up", table["kept"] + sum(table["dropped"].values()), table["rows"])
    return table["dropped"]
