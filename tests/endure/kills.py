#!/usr/bin/env python3
"""kills.py COUNT [SEED] [--record]

COUNT times SIGKILL to one rank, or to all and their launcher, at a random moment of a verb: convert, generate, order, export, trace merge,
simulate and train, on 1 to 3 ranks. Moments are drawn over the whole time that the verb takes, and half of those of a run as a checkpoint
is being written. Afterwards:

  every file of a final name is whole: HDF5 files open, checkpoints verify, results hold what an undisturbed run writes;
  segments up to the newest checkpoint merge, and no spike of an undisturbed run is missing or there twice;
  the verb runs again (a run: with --resume auto, on another number of ranks and threads) and ends with the undisturbed result: the same
  spikes, or for training on the same grid the same losses and bits.

A run is killed several times on its way before it is let through. The kills are spread over two runs at a time."""
import collections
import concurrent.futures
import json
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from endure_tools import begin, check, numbers, program, ranks_of, record, send
from faults import VERBS, Faults, contents
from side_by_side import kill_session

import h5py
import numpy as np

LIF_STEPS, TRAIN_STEPS = 8000, 120


def spikes_of(path):
    with h5py.File(path) as file:
        (group,) = file["spikes"]
        p = file["spikes"][group]
        return p["step"][:], p["node_ids"][:], int(p.attrs["last_step"])


class Kills:
    def __init__(self, folder):
        self.faults, self.folder = Faults(folder), folder
        self.base = self.faults.base
        self.counts = collections.Counter()
        self.seconds = {} # what a verb takes

    def strike(self, draw, process, n, moment):
        """Kill after `moment` seconds; False when it was over by then."""
        try:
            process.wait(moment)
            return False
        except subprocess.TimeoutExpired:
            pass
        if n > 1 and draw.random() < 0.5:
            pids = ranks_of(process, n, 0)
            if pids:
                send(draw.choice(pids), signal.SIGKILL)
                self.all_end(process)
        kill_session(process)
        return True

    def all_end(self, process):
        """The other ranks end by themselves. Their launcher may not: mpirun 4.1 was seen to wait for a lock of its own PMIx library when
        a rank was killed as it started."""
        until = time.time() + 60
        while process.poll() is None and (ranks_of(process, 0, 0) or time.time() < until - 50):
            check(time.time() < until, "a rank was killed, and a minute later others still run")
            time.sleep(0.02)
        if process.poll() is None:
            self.counts["launcher hung"] += 1
        check(process.returncode != 0, "a rank was killed and the code is 0")

    # ---- verbs that make one file ----

    def single(self, draw, name):
        index = next(i for i, verb in enumerate(VERBS) if verb.name == name)
        verb, truth = VERBS[index], self.faults.reference(index)
        work = self.faults.work(f"{name.replace(' ', '_')}{draw.random()}", index)
        words = verb.command(self.base, work)
        if index not in self.seconds:
            started = time.time()
            spare = self.faults.work(f"timed{index}", index)
            program(*verb.command(self.base, spare))
            self.seconds[index] = time.time() - started
        process = begin(*words, log=work / "log.txt")
        hit = self.strike(draw, process, 1, draw.uniform(0, 1.1 * self.seconds[index]))
        for path in self.faults.finished(work):
            check(path[0] in truth and contents(path[1]) == truth[path[0]], path[0], "is not whole")
        force = ["--force"] if name in ("convert", "generate", "order", "export csv", "export weights") else []
        if name != "export scx" or not (work / "out.scx").exists():
            program(*words, *force)
        present = {key: contents(path) for key, path in self.faults.finished(work)}
        check(present == truth, "another result after a kill")
        shutil.rmtree(work)
        return hit

    # ---- runs ----

    def simulate_words(self, output, steps=LIF_STEPS):
        return ["simulate", self.base / "graph.h5", "--config", self.base / "quiet.json", "--steps", steps, "--checkpoint-every", 500,
                "--keep", 3, "--output", output]

    def train_words(self, output):
        from faults import TRAIN, sets
        values = {**TRAIN, "train_steps": TRAIN_STEPS, "checkpoint_every": 10, "eval_every": 25}
        return ["train", self.base / "graph.h5", "--text", self.base / "text.txt", "--output", output,
                *[word.replace("{{", "{").replace("}}", "}") for word in sets(values)]]

    def prepare_runs(self):
        (self.base / "quiet.json").write_text(json.dumps({
            "threshold": 150, "decay_shifts": [4], "refractory_steps": 3, "seed": 5,
            "stimulus": [{"neurons": "all", "kind": "poisson", "rate_hz": 5, "weight": 170}]}))
        started = time.time()
        program(*self.simulate_words(self.folder / "whole_lif"))
        self.spikes = spikes_of(self.folder / "whole_lif" / "spikes.h5")
        self.lif_seconds = time.time() - started
        started = time.time()
        program(*self.train_words(self.folder / "whole_train"), n=2)
        self.losses = self.losses_of(self.folder / "whole_train")
        self.train_seconds = time.time() - started

    @staticmethod
    def losses_of(folder):
        lines = [json.loads(line) for line in open(folder / "metrics.jsonl") if line.endswith("\n")]
        return [(line["step"], line["loss"]) for line in lines if line["record"] in ("step", "evaluation")]

    def moment(self, draw, folder, process, seconds):
        """A random moment, or one as a checkpoint is being written."""
        if draw.random() < 0.5:
            return draw.uniform(0.1, seconds)
        until = time.time() + seconds
        while time.time() < until and process.poll() is None:
            if list((folder / "checkpoints").glob("*.tmp")):
                return 0
            time.sleep(0.0005)
        return 0

    def look_at_run(self, folder):
        """After a kill: complete files are complete."""
        for path in [*folder.glob("checkpoints/step_*.h5"), *folder.glob("trace/*.h5"), *folder.glob("*.h5")]:
            if path.suffix == ".h5":
                with h5py.File(path) as file:
                    file.visititems(lambda name, item: item[()] if isinstance(item, h5py.Dataset) else None)
        latest = folder / "checkpoints" / "latest"
        if latest.exists():
            check((folder / "checkpoints" / latest.read_text().strip()).exists(), "latest names what is not there")
        return int(latest.read_text()[5:].split(".")[0]) if latest.exists() else 0

    def look_at_spikes(self, folder, saved):
        if not list(folder.glob("trace/*.h5")):
            return
        program("trace", "merge", folder)
        step, node, last = spikes_of(folder / "spikes.h5")
        check(last >= saved - 1, "steps up to the checkpoint are missing:", last, saved)
        known = self.spikes[0] <= last
        check(np.array_equal(step, self.spikes[0][known]) and np.array_equal(node, self.spikes[1][known]), "spikes up to", last, "differ")

    def run(self, draw, kind, wanted):
        """Kill a run `wanted` times on its way; then let it end and compare. Returns the kills."""
        folder, kills = self.folder / f"{kind}{draw.random()}", 0
        simulates = kind == "simulate"
        words = self.simulate_words(folder) if simulates else self.train_words(folder)
        seconds = self.lif_seconds if simulates else self.train_seconds
        while kills < wanted:
            n = draw.choice((1, 2, 3)) if simulates else 2
            process = begin(*words, "--resume", "auto", n=n, threads=draw.choice((1, 2)) if simulates else 1, log=self.folder / "log")
            if not self.strike(draw, process, n, self.moment(draw, folder, process, seconds / 3)):
                check(process.returncode == 0, "ended with", process.returncode, (self.folder / "log").read_text()[-1000:])
                break
            kills += 1
            if folder.exists():
                saved = self.look_at_run(folder)
                if simulates:
                    self.look_at_spikes(folder, saved)
        program(*words, "--resume", "auto", n=draw.choice((1, 2, 3)) if simulates else 2, threads=1)
        if simulates:
            step, node, _ = spikes_of(folder / "spikes.h5")
            check(np.array_equal(step, self.spikes[0]) and np.array_equal(node, self.spikes[1]), "spikes differ")
            check(not list(folder.rglob("*.tmp")), "unfinished files are left")
        else:
            check(self.losses_of(folder) == self.losses, "losses differ")
            name = (folder / "checkpoints" / "latest").read_text().strip()
            check(contents(folder / "checkpoints" / name) == contents(self.folder / "whole_train" / "checkpoints" / name), "bits differ")
        shutil.rmtree(folder)
        return kills


def main():
    words = numbers()
    count, seed = int(words[0]), int(words[1]) if len(words) > 1 else 1
    counts, missed = collections.Counter(), 0
    with tempfile.TemporaryDirectory(prefix="fascicle_kills_") as name:
        kills, draw = Kills(pathlib.Path(name)), random.Random(seed)
        kills.prepare_runs()
        singles = ["convert", "generate", "order", "export csv", "trace merge", "export scx"]
        while sum(counts.values()) < count:
            left = count - sum(counts.values())
            for verb in draw.sample(singles, min(2, left)):
                hit = kills.single(draw, verb)
                counts[verb] += hit
                missed += not hit
            for verb in ("simulate", "train"):
                wanted = min(3, count - sum(counts.values()))
                if wanted > 0:
                    counts[verb] += kills.run(draw, verb, wanted)
    record("kills", survived=sum(counts.values()), by_verb=dict(sorted(counts.items())), too_late=missed,
           launcher_hung=kills.counts["launcher hung"], seed=seed)


if __name__ == "__main__":
    if not numbers():
        sys.exit(__doc__)
    main()
