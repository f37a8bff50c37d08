#!/usr/bin/env python3
"""faults.py COUNT [SEED] [--record]

COUNT times: one system call of one verb fails (faulty.c), drawn from the seed: a read, write, fsync, rename, open, flush or lock; EIO,
no space, no quota, or half of what was asked for; once or from then on; on one rank. Then:

  the program ends within a minute, with a documented exit code and exactly one line that says why, or goes on as if nothing were;
  a file of a final name is whole: it holds what an undisturbed run writes;
  a run folder goes on with --resume auto to the undisturbed result, spikes and losses."""
import collections
import concurrent.futures
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import time

from endure_tools import FASCICLE, SOURCE, check, fail, numbers, program, record

import h5py
import numpy as np

LIBRARY = os.environ.get("FAULTY", str(pathlib.Path(FASCICLE).parent / "tests" / "libfaulty.so"))
LIMIT = 60 # seconds within which a program must end
RUNTIME, INPUT, OUTPUT, WATCHDOG = 1, 65, 73, 71
WAYS = [("write", "EIO"), ("write", "ENOSPC"), ("write", "EDQUOT"), ("write", "SHORT"), ("read", "EIO"), ("read", "SHORT"),
        ("fsync", "EIO"), ("fsync", "ENOSPC"), ("rename", "EIO"), ("rename", "ENOSPC"), ("open", "EIO"), ("open", "ENOSPC"),
        ("open", "EROFS"), ("fflush", "EIO"), ("fflush", "ENOSPC"), ("flock", "ENOLCK")]
LIF = {"threshold": 150, "decay_shifts": [4], "refractory_steps": 3, "seed": 12,
       "stimulus": [{"neurons": "all", "kind": "poisson", "rate_hz": 40, "weight": 170}],
       "record": {"spikes": "all", "potential": {"neurons": {"indices": [0, 5, 9]}, "every": 7}}}
TRAIN = {"batch": 4, "steps_per_window": 8, "n_input": 20, "n_output": 30, "embedding": 6, "eval_every": 6, "eval_windows": 3,
         "checkpoint_every": 4, "log_every": 1, "train_steps": 12}


def contents(path):
    """What a file holds, without dates: HDF5 by its datasets, others by their bytes."""
    if path.suffix != ".h5":
        return path.read_bytes()
    found = {}

    def take(name, item):
        if isinstance(item, h5py.Dataset):
            value = item[()]
            found[name] = value.tobytes() if value.dtype != object else [bytes(x) for x in np.ravel(value)]

    with h5py.File(path) as file:
        file.visititems(take)
    return found


class Verb:
    """Something to disturb: words and ranks of the command, the files that it leaves, relative to the folder it works in."""

    def __init__(self, name, ranks, files, *words, resumes=False, prepare=None):
        self.name, self.ranks, self.files, self.words, self.resumes, self.prepare = name, ranks, files, words, resumes, prepare

    def command(self, base, work):
        return [str(word).format(base=base, work=work) for word in self.words]


def sets(values):
    return [word for key, value in values.items() for word in ("--set", f"{key}={json.dumps(value)}".replace("{", "{{").replace("}", "}}"))]


def copy_run(base, work):
    shutil.copytree(base / "run", work / "run")
    (work / "run" / "spikes.h5").unlink()


SIMULATE = ["simulate", "{base}/graph.h5", "--watchdog", 8, "--config", "{base}/lif.json", "--steps", 300, "--checkpoint-every", 80, "--keep", 9,
            "--output", "{work}/run"]
TEACH = ["train", "{base}/graph.h5", "--watchdog", 8, "--text", "{base}/text.txt", "--output", "{work}/run", "--keep", 9, *sets(TRAIN)]
VERBS = [
    Verb("convert", 1, ["g.h5"], "convert", "--edges", "{base}/edges.csv", "--columns", "pre=body_pre,post=body_post,weight=weight",
         "--output", "{work}/g.h5"),
    Verb("generate", 1, ["g.h5"], "generate", "--nodes", 300, "--edges", 6000, "--seed", 3, "--output", "{work}/g.h5"),
    Verb("order", 1, ["g.h5"], "order", "{base}/graph.h5", "--parts", 8, "--output", "{work}/g.h5"),
    Verb("export csv", 1, ["out.csv"], "export", "{base}/graph.h5", "--format", "csv", "--output", "{work}/out.csv"),
    Verb("export scx", 1, [], "export", "{base}/graph.h5", "--format", "scx", "--output", "{work}/out.scx"),
    Verb("export weights", 1, ["w.csv"], "export", "{base}/model", "--format", "weights", "--output", "{work}/w.csv"),
    Verb("trace merge", 1, ["run/spikes.h5"], "trace", "merge", "{work}/run", prepare=copy_run),
    Verb("simulate", 2, ["run/spikes.h5"], *SIMULATE, resumes=True),
    Verb("simulate", 1, ["run/spikes.h5"], *SIMULATE, resumes=True),
    Verb("train", 2, ["run/checkpoints/step_00000012.h5"], *TEACH, resumes=True),
    Verb("train", 1, ["run/checkpoints/step_00000012.h5"], *TEACH, resumes=True),
    Verb("simulate", 1, ["run/spikes.h5"], *SIMULATE, "--residency", "streamed", "--threads", 1, resumes=True), # one reads ahead
]


class Faults:
    def __init__(self, folder):
        self.folder, self.base, self.counts, self.truth = folder, folder / "base", {}, {}
        self.base.mkdir()
        program("generate", "--nodes", 300, "--edges", 6000, "--delays", "2:5", "--seed", 3, "--streamable", "--output", self.base / "graph.h5")
        program("export", self.base / "graph.h5", "--format", "csv", "--output", self.base / "edges.csv")
        (self.base / "lif.json").write_text(json.dumps(LIF))
        draw = random.Random(4)
        (self.base / "text.txt").write_text("".join(draw.choice("abcdefgh .") for _ in range(3000)))
        program(*[str(word).format(base=self.base, work=self.base) for word in SIMULATE])
        program(*[str(word).format(base=self.base, work=self.base).replace(f"{self.base}/run", f"{self.base}/model") for word in TEACH])
        self.outcomes = collections.Counter()

    def reference(self, index):
        """What verb `index` leaves when nothing fails."""
        if index not in self.truth:
            work = self.work(f"plain{index}", index)
            verb = VERBS[index]
            program(*verb.command(self.base, work), n=verb.ranks)
            self.truth[index] = {name: contents(path) for name, path in self.finished(work)}
            check(self.truth[index], verb.name, "leaves nothing")
        return self.truth[index]

    def finished(self, work):
        """Files under final names that hold results; logs and what is rewritten all the time are not."""
        skip = {"log.txt", "metrics.jsonl", "lock", "again", "latest", "best", ".fascicle-run", "config.json", "hook"}
        return [(str(path.relative_to(work)), path) for path in sorted(work.rglob("*"))
                if path.is_file() and path.name not in skip and path.suffix not in (".tmp", ".aside") and ".tmp/" not in str(path)]

    def work(self, name, index):
        work = self.folder / name
        work.mkdir(exist_ok=True)
        if VERBS[index].prepare:
            VERBS[index].prepare(self.base, work)
        return work

    def environment(self, work, way, nth, rank, sticky):
        return {"LD_PRELOAD": LIBRARY, "FAULT_CALL": way[0], "FAULT_KIND": way[1], "FAULT_NTH": str(nth), "FAULT_RANK": str(rank),
                "FAULT_STICKY": str(int(sticky)), "FAULT_PATH": str(self.folder), "FAULT_LOG": str(work / "hook")}

    def run(self, index, work, environment):
        started = time.time()
        verb = VERBS[index]
        done = program(*verb.command(self.base, work), n=verb.ranks, code=None, timeout=LIMIT, env=environment)
        check(time.time() - started < LIMIT, verb.name, "took", time.time() - started)
        return done

    def count(self, index, way, rank):
        """How many such calls the verb makes on a rank."""
        key = index, way[0], rank
        if key not in self.counts:
            work = self.work(f"count{index}_{way[0]}_{rank}", index)
            self.run(index, work, self.environment(work, way, 0, rank, False))
            lines = [line.split() for line in (work / "hook").read_text().splitlines()]
            self.counts[key] = max(int(n) for word, n in lines if word == "calls")
            shutil.rmtree(work)
        return self.counts[key]

    def inject(self, number, draw):
        index, way = draw.randrange(len(VERBS)), draw.choice(WAYS)
        verb = VERBS[index]
        rank, sticky, place = draw.randrange(verb.ranks), draw.random() < 0.4, draw.random()
        sticky = sticky and way[1] != "SHORT"
        calls = self.count(index, way, rank)
        if not calls:
            return "nothing to fail"
        nth = 1 + int(place * calls)
        work = self.work(f"try{number}", index)
        what = f"{verb.name} on {verb.ranks}: {' '.join(way)} at call {nth} of {calls} of rank {rank}{', and after' if sticky else ''}"
        try:
            done = self.run(index, work, self.environment(work, way, nth, rank, sticky))
        except subprocess.TimeoutExpired as error:
            fail(f"{what}: not over after {LIMIT} s: {error.stderr}")
        try:
            outcome = self.judge(index, work, way, done)
        except Exception as error:
            fail(f"{what}: {error}\ncode {done.returncode}, said: {done.stderr}")
        if "-v" in sys.argv or "--verbose" in sys.argv:
            said = [line for line in done.stderr.splitlines() if line.startswith("fascicle")]
            print(f"{what}: {outcome}: {said}", flush=True)
        shutil.rmtree(work)
        return outcome

    def judge(self, index, work, way, done, reached=None, make_room=lambda: None):
        """Did it end or go on as it should? `make_room` takes the trouble away, for the resume."""
        verb, truth = VERBS[index], self.reference(index)
        if reached is None and not any(line.startswith(way[1]) for line in (work / "hook").read_text().splitlines()):
            return "not reached" # a count that varies from run to run
        said = [line for line in done.stderr.splitlines() if line.startswith("fascicle:") and "warning" not in line]
        check("ORTE_ERROR" not in done.stderr and "MPI_ABORT" not in done.stderr, "MPI's words stand around ours")
        if done.returncode:
            check(done.returncode in (RUNTIME, INPUT, OUTPUT) or (done.returncode == WATCHDOG and verb.ranks > 1), "an undocumented exit code")
            check(len(said) == 1, len(said), "lines that say why")
            check(way[1] != "SHORT" or verb.resumes, "half a transfer is no failure") # MPI-IO, in checkpoints, says it is one
            check(way[0] in ("read", "open", "flock") or done.returncode != INPUT, "blames the input")
        else:
            check(not said, "says that it failed, and ends with 0")
        make_room()
        present = dict(self.finished(work))
        for name, path in present.items():
            check(name in truth, name, "is no file of this verb")
            check(contents(path) == truth[name], name, "is not whole")
        if done.returncode == 0:
            check(set(present) == set(truth), "files are missing:", set(truth) - set(present))
        elif verb.resumes:
            again = [word for word in verb.command(self.base, work)]
            program(*again, "--resume", "auto", n=3 - verb.ranks if verb.name == "simulate" else verb.ranks)
            for name in verb.files:
                check(contents(work / name) == truth[name], name, "is another after a resume")
        return "went on" if done.returncode == 0 else f"ended with {done.returncode}"


def main():
    words = numbers()
    count, seed = int(words[0]), int(words[1]) if len(words) > 1 else 1
    with tempfile.TemporaryDirectory(prefix="fascicle_faults_") as name:
        faults = Faults(pathlib.Path(name))
        failures = []
        outcomes = collections.Counter()
        for number in range(count):
            try:
                outcomes[faults.inject(number, random.Random(seed * 1000003 + number))] += 1
            except Exception as error:
                failures.append(f"{number}: {error}")
                print("FAILED", failures[-1], flush=True)
        injected = sum(n for outcome, n in outcomes.items() if outcome not in ("nothing to fail", "not reached")) + len(failures)
        record("faults", injected=injected, seed=seed, outcomes=dict(sorted(outcomes.items())), failed=len(failures))
        sys.exit(1 if failures else 0)


if __name__ == "__main__":
    if not numbers():
        sys.exit(__doc__)
    main()
