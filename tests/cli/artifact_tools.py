"""A small random connectome as tables, its truth in Python, and `fascicle` to run on it."""
import collections
import os
import random
import subprocess

import h5py

from side_by_side import checks, run_tests

FASCICLE, RANKS = os.environ["FASCICLE"], os.environ["RANKS"]
Edge = collections.namedtuple("Edge", "pre post weight sign")


def check(what, value, wanted):
    checks.append(what)
    if value != wanted:
        raise AssertionError(f"{what}: {repr(value)[:500]}, wanted {repr(wanted)[:500]}")


def run(*words, n=1, **more):
    return subprocess.run([RANKS, str(n), FASCICLE, *words], capture_output=True, text=True, timeout=600, **more)


def done(*words, **more):
    result = run(*words, **more)
    check(" ".join(words) + "\n" + result.stderr, result.returncode, 0)
    return result.stdout


def refused(code, *parts_and_words, **more):
    """`code`, nothing on stdout, and one line of error that holds every part (given as a tuple)."""
    parts, *words = parts_and_words
    result = run(*words, **more)
    check(" ".join(words) + "\n" + result.stderr, result.returncode, code)
    check("stdout", result.stdout, "")
    lines = [line for line in result.stderr.splitlines() if line.startswith("fascicle: ")]
    check("one line of error: " + result.stderr, len(lines), 1)
    for part in parts:
        check(f"'{part}' in '{lines[0]}'", part in lines[0], True)


class Tables:
    """`n` neurons, some with ids above 2^53, some without any edge; neuron 0 hears from nearly all."""

    def __init__(self, folder, n=400, n_edges=6000, seed=3):
        rng = random.Random(seed)
        self.folder = folder
        self.ids = sorted(rng.sample(range(10001, 10**6), n - 20) + [2**60 + 3 * i for i in range(20)])
        self.type = {i: rng.choice(["", "KC", "PN", "MBON"]) for i in self.ids}
        self.transmitter = {i: rng.choice(["acetylcholine", "gaba"]) for i in self.ids}
        used = [i for i in self.ids if i % 17]
        pairs = set()
        while len(pairs) < n_edges:
            pairs.add((rng.choice(used), used[0] if rng.random() < 0.05 else rng.choice(used)))
        self.edges = [Edge(a, b, min(2591, int(rng.paretovariate(1))), -1 if self.transmitter[a] == "gaba" else 1)
                      for a, b in sorted(pairs)]
        rng.shuffle(self.edges)

    def path(self, name):
        return os.path.join(self.folder, name)

    def convert(self, name, *words, shuffle=None):
        edges = list(self.edges)
        if shuffle is not None:
            random.Random(shuffle).shuffle(edges)
        with open(self.path("edges.csv"), "w") as f:
            f.write("body_pre,body_post,weight\n" + "".join(f"{e.pre},{e.post},{e.weight}\n" for e in edges))
        with open(self.path("nodes.csv"), "w") as f:
            f.write("bodyId,type\n" + "".join(f"{i},{self.type[i]}\n" for i in self.ids))
        with open(self.path("transmitters.csv"), "w") as f:
            f.write("body,consensus_nt\n" + "".join(f"{i},{self.transmitter[i]}\n" for i in self.ids))
        done("convert", "--edges", self.path("edges.csv"), "--nodes", self.path("nodes.csv"), "--transmitters",
             self.path("transmitters.csv"), "--output", self.path(name), "--force", *words)
        return self.path(name)


def offset_of(path, dataset):
    """Where a contiguous dataset's bytes begin in the file, and how many there are."""
    with h5py.File(path) as f:
        return f[dataset].id.get_offset(), f[dataset].id.get_storage_size()


def flip(path, offset, bit=3):
    with open(path, "r+b") as f:
        f.seek(offset)
        byte = f.read(1)[0]
        f.seek(offset)
        f.write(bytes([byte ^ 1 << bit]))


def main(module):
    """All functions test_* of a module, each with tables in a folder of its own."""
    run_tests(module, given=Tables)
