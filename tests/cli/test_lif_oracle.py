# seconds: 400
"""The reference's simulations from end to end: edges as CSV -> convert -> simulate on some ranks, rows ordered or not ->
spikes and the potentials of every step. tests/unit/test_lif_oracle.c holds each against every rank count and loop."""
import hashlib
import os

import numpy as np

from side_by_side import path, run_tests
from sim_tools import Net, Spikes, check, run, simulate, write_json

RANKS = (1, 2, 3, 4, 7)


class Words:
    def __init__(self, name):
        with open(os.path.join(os.environ["TEST_DATA"], "lif", name)) as file:
            self.words = iter(file.read().split())

    def number(self):
        return int(next(self.words))

    def list(self, name=None):
        if name:
            check(next(self.words) == name, name)
        return [self.number() for _ in range(self.number())]

    def head(self):
        """A case without its outcome, or None at the end."""
        if next(self.words) == "end":
            return None
        case = {"name": next(self.words), "n": self.number()}
        self.number()
        case["steps"] = self.number()
        next(self.words)
        config = {"threshold": self.number(), "reset": self.number(), "refractory_steps": self.number()}
        config["decay_shifts"] = self.list("shifts")
        potential, refractory = self.list("potential"), self.list("refractory")
        config["initial"] = [{"neurons": {"indices": [i]}, "potential": v, "refractory": r}
                             for i, (v, r) in enumerate(zip(potential, refractory)) if v or r]
        edges = self.list("edges")
        case["edges"] = [tuple(edges[i:i + 4]) for i in range(0, len(edges), 5) for _ in range(edges[i + 4])]
        config["record"] = {"spikes": "all", "potential": {"neurons": "all", "every": 1}}
        case["config"] = config
        return case


def vectors():
    words = Words("vectors.txt")
    while case := words.head():
        next(words.words)
        case["spikes"] = [(t, i) for t in range(case["steps"]) for i in words.list()]
        for name in ("final_potential", "final_refractory", "final_pending"):
            words.list(name)
        next(words.words)
        _, case["potentials"], _ = (next(words.words) for _ in range(3))
        next(words.words)
        for _ in range(words.number()):
            for name in "vcp":
                words.list(name)
        yield case


def overflows():
    words = Words("overflow.txt")
    while case := words.head():
        next(words.words)
        case["refused"] = bool(words.number())
        next(words.words)
        case["spikes"] = [(t, i) for t in range(words.number()) for i in words.list()]
        next(words.words)
        case["fault"] = [words.number() for _ in range(4)]
        words.list("final_potential"), words.list("final_refractory")
        yield case


def check_spikes(case, name):
    spikes = Spikes(name)
    check(sorted(spikes.pairs()) == sorted(case["spikes"]), case["name"], name, "spikes")
    return spikes


def play_vectors(part, parts):
    for k, case in enumerate(vectors()):
        if k % parts != part or case["steps"] == 0:
            continue
        net = Net(case["n"], case["edges"])
        ordered, n = k % 2 == 1, RANKS[k // 2 % len(RANKS)]
        graph = net.write(case["name"] + "_graph", ordered=ordered)
        simulate(graph, case["config"], case["steps"], case["name"], "--threads", 1 + k % 3, n=n)
        spikes = check_spikes(case, case["name"])
        rows = np.ascontiguousarray(spikes.potential[:, np.argsort(spikes.potential_node)], dtype="<i4")
        check(rows.shape == (case["steps"], case["n"]), case["name"], "shape of the potentials")
        check(hashlib.sha256(rows.tobytes()).hexdigest() == case["potentials"], case["name"], "potentials")


def test_vectors_first():
    play_vectors(0, 3)


def test_vectors_second():
    play_vectors(1, 3)


def test_vectors_third():
    play_vectors(2, 3)


def test_overflow():
    for k, case in enumerate(overflows()):
        graph = Net(case["n"], case["edges"]).write(case["name"])
        config = write_json(case["name"] + ".json", case["config"])
        code, _, err = run("simulate", graph, "--config", config, "--steps", case["steps"], "--output", path(case["name"]),
                           n=RANKS[k % 3])
        step, phase, node, value = case["fault"]
        if case["refused"]:
            check(code == 2, case["name"], code, err)
            continue
        check(code == (0 if step < 0 else 1), case["name"], code, err)
        if step >= 0:
            lines = [line for line in err.splitlines() if f"step {step}, neuron {node}" in line and str(value) in line]
            check(len(lines) == 1 and str(1000 + 3 * node) in lines[0], case["name"], err)
        check_spikes(case, case["name"])


run_tests(globals())
