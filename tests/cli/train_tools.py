"""What the tests of training share: running the program, small graphs, checkpoints as arrays."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import h5py
import numpy as np

FASCICLE, RANKS = os.environ["FASCICLE"], os.environ["RANKS"]
SHAKESPEARE = pathlib.Path(os.environ["TEST_DATA"]) / "shakespeare.txt"
HANG = 900  # seconds after which a program that waits for nothing but the machine is taken to hang
SMALL = {"batch": 8, "steps_per_window": 12, "n_input": 20, "n_output": 30, "embedding": 6, "eval_every": 0,
         "checkpoint_every": 0, "log_every": 1}


def settings(values):
    words = []
    for key, value in values.items():
        words += ["--set", f"{key}={json.dumps(value)}"]
    return words


def run(ranks, *words, code=0, threads=1):
    """Run the program; fail with its words when the exit code is another."""
    env = dict(os.environ, OMP_NUM_THREADS=str(threads))
    done = subprocess.run([RANKS, str(ranks), FASCICLE, *map(str, words)], capture_output=True, text=True, env=env,
                          timeout=HANG)
    if done.returncode != code:
        sys.exit(f"{words}: code {done.returncode}, wanted {code}\n{done.stdout}{done.stderr}")
    return done


def train(ranks, graph, text, output, values, *words, code=0, parts=1, base=SMALL):
    return run(ranks, "train", graph, "--text", text, "--output", output, "--parts", parts,
               *settings({**base, **values}), *words, code=code)


def check(condition, what):
    if not condition:
        sys.exit(f"check failed: {what}")


class Folder:
    """A folder for the time of a test."""

    def __enter__(self):
        self.path = pathlib.Path(tempfile.mkdtemp(prefix="fascicle_train_"))
        return self.path

    def __exit__(self, *_):
        shutil.rmtree(self.path, ignore_errors=True)


def make_graph(folder, name="graph.h5", nodes=300, edges=6000, seed=3, order=True):
    """A synthetic graph; `order=False`: the same edges, unordered."""
    path = folder / name
    run(1, "generate", "--nodes", nodes, "--edges", edges, "--seed", seed, "--output", path,
        *([] if order else ["--no-order"]))
    return path


def make_text(folder, characters=20000):
    """The first characters of a play."""
    path = folder / "text.txt"
    text = SHAKESPEARE.read_text()[:characters]
    check(len(text) == characters, f"{SHAKESPEARE} has {len(text)} characters")
    path.write_text(text)
    return path


def checkpoint(folder, step):
    return folder / "checkpoints" / f"step_{step:08d}.h5"


def arrays(path):
    """All datasets of a file."""
    found = {}
    with h5py.File(path) as file:
        file.visititems(lambda name, item: found.__setitem__(name, item[()]) if isinstance(item, h5py.Dataset) else None)
    return found


def records(folder, kind):
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [line for line in lines if line["record"] == kind]


def distance(x, y):
    x, y = np.asarray(x, float), np.asarray(y, float)
    return np.linalg.norm(x - y) / max(np.linalg.norm(x), 1e-30)
