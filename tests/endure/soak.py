#!/usr/bin/env python3
"""soak.py simulate|train SECONDS [SEED] [--record]

Two ranks for so many seconds, disturbed all the time: SIGUSR2 (checkpoint and go on) and SIGTERM to one rank or to both (checkpoint,
leave with 75, resume) at random moments. The first half is made of lives of 5 to 40 s, the second half is one long life that is only
asked for checkpoints; resident memory is sampled and its slope over the longest life is stated. Afterwards the same steps are made
by an undisturbed run, and both must be equal: the spikes, or the losses and the bits of the last checkpoint."""
import json
import pathlib
import random
import signal
import sys
import tempfile
import time

from endure_tools import begin, check, numbers, program, ranks_of, record, rss_kib, send

import h5py
import numpy as np

ENDLESS = 10**9
ENDED = 75 # the exit code of a run that was asked to stop
LIF = {"threshold": 150, "decay_shifts": [4], "refractory_steps": 3, "seed": 12,
       "stimulus": [{"neurons": "all", "kind": "poisson", "rate_hz": 10, "weight": 170}],
       "record": {"spikes": {"indices": list(range(20))}}}
TRAIN = {"batch": 8, "steps_per_window": 12, "n_input": 20, "n_output": 30, "embedding": 6, "eval_every": 0, "log_every": 50,
         "eval_windows": 4, "carry_state": True}


class Simulate:
    every = 50000 # steps between checkpoints

    def __init__(self, folder):
        self.graph, self.config = folder / "graph.h5", folder / "lif.json"
        program("generate", "--nodes", 4000, "--edges", 200000, "--delays", "2:6", "--seed", 3, "--output", self.graph)
        self.config.write_text(json.dumps(LIF))

    def words(self, output, steps):
        return ["simulate", self.graph, "--config", self.config, "--steps", steps, "--output", output]

    def same(self, a, b):
        with h5py.File(a / "spikes.h5") as x, h5py.File(b / "spikes.h5") as y:
            (group,) = x["spikes"]
            p, q = x["spikes"][group], y["spikes"][group]
            check(p.attrs["spikes_digest"] == q.attrs["spikes_digest"], "spikes differ")
            for name in ("node_ids", "step"):
                check(np.array_equal(p[name][:], q[name][:]), name, "differ")
            check(np.array_equal(x["step_counts"][:], y["step_counts"][:]), "counts differ")
            return {"spikes": int(x["step_counts"][:].sum())}


class Train:
    every = 20000

    def __init__(self, folder):
        self.graph, self.text = folder / "graph.h5", folder / "text.txt"
        program("generate", "--nodes", 600, "--edges", 12000, "--seed", 3, "--output", self.graph)
        draw = random.Random(4)
        self.text.write_text("".join(draw.choice("abcdefgh .") for _ in range(20000)))

    def words(self, output, steps):
        sets = [word for key, value in TRAIN.items() for word in ("--set", f"{key}={json.dumps(value)}")]
        return ["train", self.graph, "--text", self.text, "--parts", 2, "--output", output, "--set", f"train_steps={steps}", *sets]

    def same(self, a, b):
        losses = []
        for folder in (a, b):
            lines = [json.loads(line) for line in open(folder / "metrics.jsonl")]
            losses.append([(line["step"], line["loss"]) for line in lines if line["record"] == "step"])
        check(losses[0] == losses[1], "losses differ")
        name = (a / "checkpoints" / "latest").read_text().strip()
        with h5py.File(a / "checkpoints" / name) as x, h5py.File(b / "checkpoints" / name) as y:
            found = []
            x.visititems(lambda path, item: found.append(path) if isinstance(item, h5py.Dataset) else None)
            check(found and all(x[path][()].tobytes() == y[path][()].tobytes() for path in found), "the last checkpoints differ")
        return {"losses": len(losses[0])}


def step_of(folder):
    latest = folder / "checkpoints" / "latest"
    return int(latest.read_text()[5:].split(".")[0]) if latest.exists() else 0


class Soak:
    def __init__(self, verb, folder, draw):
        self.verb, self.folder, self.draw = verb, folder, draw
        self.stops = self.saves = 0
        self.samples = [] # of the longest life: (seconds, KiB of the larger rank)

    def life(self, seconds):
        """One process after another of the same run: from its latest checkpoint until it is told to stop."""
        output = self.folder / "run"
        words = [*self.verb.words(output, ENDLESS), "--checkpoint-every", self.verb.every, "--resume", "auto"]
        process = begin(*words, n=2, log=self.folder / "log")
        pids, started, samples = ranks_of(process, 2), time.time(), []
        ask_at = started + self.draw.uniform(1, 15)
        while time.time() - started < seconds:
            check(process.poll() is None, "the run ended by itself:", (self.folder / "log").read_text()[-2000:])
            time.sleep(min(1, seconds / 10))
            samples.append((time.time() - started, max(rss_kib(pid) or 0 for pid in pids)))
            if time.time() >= ask_at:
                send(self.draw.choice(pids), signal.SIGUSR2)
                self.saves += 1
                ask_at = time.time() + self.draw.uniform(1, 15)
        for pid in self.draw.choice((pids, pids[:1], pids[1:])):
            send(pid, signal.SIGTERM)
        code = process.wait(120)
        check(code == ENDED, "ended with", code, (self.folder / "log").read_text()[-2000:])
        self.stops += 1
        if len(samples) > len(self.samples):
            self.samples = samples

    def disturbed(self, seconds):
        half = time.time() + seconds / 2
        end = half + seconds / 2
        while time.time() < half:
            self.life(min(self.draw.uniform(5, 40), seconds / 4))
        self.life(max(end - time.time(), 1))

    def slope(self):
        """MiB an hour, by least squares over the longest life without its first tenth."""
        t, kib = np.array(self.samples[len(self.samples) // 10:], float).T
        return float(np.polyfit(t, kib, 1)[0]) * 3600 / 1024 if len(t) > 10 else None


def main():
    verb, seconds, *seed = numbers()
    seed = int(seed[0]) if seed else 1
    with tempfile.TemporaryDirectory(prefix="fascicle_soak_") as name:
        folder = pathlib.Path(name)
        soak = Soak({"simulate": Simulate, "train": Train}[verb](folder), folder, random.Random(seed))
        started = time.time()
        soak.disturbed(float(seconds))
        spent = time.time() - started
        steps = step_of(folder / "run") + 100
        program(*soak.verb.words(folder / "run", steps), "--resume", "auto", n=2, timeout=36000)
        program(*soak.verb.words(folder / "plain", steps), n=2, timeout=36000)
        facts = soak.verb.same(folder / "run", folder / "plain")
        t, kib = zip(*soak.samples)
        slope = soak.slope()
        record("soak", verb=verb, seconds=round(spent), steps=steps, saves=soak.saves, stops=soak.stops, longest_life_s=round(t[-1]),
               rss_mib=[round(kib[0] / 1024, 1), round(max(kib) / 1024, 1), round(kib[-1] / 1024, 1)],
               slope_mib_per_hour=slope if slope is None else round(slope, 2), equal=True, seed=seed, **facts)


if __name__ == "__main__":
    if len(numbers()) < 2:
        sys.exit(__doc__)
    main()
