#!/usr/bin/env python3
# seconds: 240
"""Stopping and going on: equal bits on the same grid, within tolerance on another grid or ordering; requests by signal
and by time; what a resumed run may not change."""
import json
import os
import shutil
import signal
import subprocess
import time

from side_by_side import listens
from train_tools import (FASCICLE, RANKS, SMALL, Folder, arrays, check, checkpoint, distance, make_graph, make_text,
                         records, run, settings, train)

import numpy as np

VALUES = {"train_steps": 24, "eval_every": 8, "eval_windows": 9, "checkpoint_every": 12, "log_every": 5,
          "optimizer.schedule": "cosine", "optimizer.warmup": 6}
RESUME = ("--resume", "auto")


def weights(folder, name):
    """Values by (pre, post), independent of the order."""
    out = folder / f"{name}.csv"
    run(1, "export", folder / name, "--which", "latest", "--format", "weights", "--output", out, "--force")
    return np.loadtxt(out, delimiter=",", skiprows=1)


def stop_at(folder, graph, text, name, ranks, parts, values):
    """A run that stops at step 13 by a copy of its state there: checkpoint_every 13."""
    train(ranks, graph, text, folder / name, {**values, "checkpoint_every": 13}, "--keep", 10, parts=parts)
    for step in (24, 16):
        path = checkpoint(folder / name, step)
        if path.exists():
            path.unlink()
    (folder / name / "checkpoints" / "latest").unlink()


def exact(folder, graph, text, values, ranks, parts):
    tag = f"{ranks}_{parts}_{values.get('carry_state', False)}"
    train(ranks, graph, text, folder / f"whole_{tag}", {**values, "checkpoint_every": 13}, "--keep", 10, parts=parts)
    stop_at(folder, graph, text, f"half_{tag}", ranks, parts, values)
    shutil.copytree(folder / f"half_{tag}", folder / f"kept_{tag}")
    done = train(ranks, graph, text, folder / f"half_{tag}", {**values, "checkpoint_every": 13}, *RESUME, parts=parts)
    check("at step 13" in done.stderr, "resumed at step 13")
    a, b = (arrays(checkpoint(folder / f"{kind}_{tag}", 24)) for kind in ("whole", "half"))
    check(all(a[n].tobytes() == b[n].tobytes() for n in a), f"{tag}: equal bits after a resume")
    first, second = (records(folder / f"{kind}_{tag}", "step") for kind in ("whole", "half"))
    check([x["loss"] for x in first] == [x["loss"] for x in second], f"{tag}: the same losses")
    check([x["lr_edges"] for x in first] == [x["lr_edges"] for x in second], f"{tag}: the schedule goes on")
    return f"kept_{tag}", f"whole_{tag}"


def elsewhere(folder, text, values, kept, whole, places):
    for graph, ranks, parts in places:
        name = f"moved_{ranks}_{parts}_{graph.stem}"
        shutil.rmtree(folder / name, ignore_errors=True)
        shutil.copytree(folder / kept, folder / name)
        train(ranks, graph, text, folder / name, {**values, "checkpoint_every": 13}, *RESUME, parts=parts)
        a, b = weights(folder, whole), weights(folder, name)
        check((a[:, :2] == b[:, :2]).all() and distance(a[:, 2], b[:, 2]) < 1e-5, f"{name}: weights")
        x, y = records(folder / whole, "step")[-1]["loss"], records(folder / name, "step")[-1]["loss"]
        check(abs(x - y) < 1e-5, f"{name}: loss {x} {y}")


def refusals(folder, graph, text, kept):
    for key, value in (("n_input", 21), ("seed", 5), ("embedding", 7), ("normalize", False)):
        done = train(1, graph, text, folder / kept, {**VALUES, key: value}, *RESUME, code=2)
        check(key in done.stderr and "cannot change" in done.stderr, done.stderr)
    done = train(1, graph, text, folder / kept, {**VALUES, "train_steps": 14, "optimizer.clip": 0.5}, *RESUME)
    check("optimizer.clip: 1.0 -> 0.5" in done.stderr and "train_steps: 24 -> 14" in done.stderr, "changes said aloud")
    other = make_graph(folder, "other.h5", seed=9)
    done = train(1, other, text, folder / kept, VALUES, *RESUME, code=65)
    check("another graph" in done.stderr, done.stderr)
    (folder / "other.txt").write_text(text.read_text()[::-1])
    done = train(1, graph, folder / "other.txt", folder / kept, VALUES, *RESUME, code=65)
    check("another text" in done.stderr, done.stderr)
    done = train(1, graph, text, folder / kept, VALUES, code=73)
    check("--resume" in done.stderr, "a folder that holds a run is refused")


def ranks_of(job, n):
    if n == 1:
        return [job.pid]
    with open(f"/proc/{job.pid}/task/{job.pid}/children") as file:
        return [int(word) for word in file.read().split()]


def stopped(folder, graph, text, name, n, send, wanted=75):
    """Start an endless run, signal it when it has recorded a step, and go on afterwards."""
    words = [RANKS, str(n), FASCICLE, "train", str(graph), "--text", str(text), "--output", str(folder / name),
             "--resume", "auto", *settings({**SMALL, "train_steps": 10**7})]
    job = subprocess.Popen(words, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    metrics, end = folder / name / "metrics.jsonl", time.time() + 600
    while time.time() < end and not (metrics.exists() and len(metrics.read_text().splitlines()) > 2):
        time.sleep(0.05)
    send(ranks_of(job, n))
    _, said = job.communicate(timeout=600)
    check(job.returncode == wanted, f"{name}: code {job.returncode}\n{said}")
    check((folder / name / "again").exists(), f"{name}: the file `again`")
    step = records(folder / name, "step")[-1]["step"]
    check(checkpoint(folder / name, step).exists(), f"{name}: a checkpoint of the last step")
    train(n, graph, text, folder / name, {"train_steps": step + 3}, *RESUME)
    check(not (folder / name / "again").exists(), f"{name}: `again` is gone")


def saved_on_request(folder, graph, text):
    """SIGUSR2: a checkpoint, and the run goes on until it is stopped."""

    def both(pids):
        os.kill(pids[0], signal.SIGUSR2)
        end = time.time() + 600
        while time.time() < end and not list((folder / "asked" / "checkpoints").glob("step_*.h5")):
            time.sleep(0.05)
        saved = list((folder / "asked" / "checkpoints").glob("step_*.h5"))
        check(len(saved) == 1, "a checkpoint on SIGUSR2")
        os.kill(pids[0], signal.SIGTERM)

    stopped(folder, graph, text, "asked", 1, both)


def interrupted(model):
    """What has nothing to save ends at once."""
    job = subprocess.Popen([RANKS, "1", FASCICLE, "sample", str(model), "--prompt", "A", "--length", str(10**7)],
                           stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    end = time.time() + 600
    while time.time() < end and job.poll() is None and not listens(job.pid, signal.SIGTERM):
        time.sleep(0.02)
    job.terminate()
    check(job.wait(timeout=600) == 1, "sample ends on SIGTERM")


with Folder() as folder:
    graph, text = make_graph(folder), make_text(folder)
    plain = make_graph(folder, "plain.h5", order=False)
    places = [(graph, 1, 1), (graph, 3, 3), (plain, 2, 2)]
    kept, whole = exact(folder, graph, text, VALUES, 2, 1)
    elsewhere(folder, text, VALUES, kept, whole, places)
    carried = {**VALUES, "carry_state": True}
    kept_carried, whole_carried = exact(folder, graph, text, carried, 4, 2)
    elsewhere(folder, text, carried, kept_carried, whole_carried, places[:1] + places[2:])
    refusals(folder, graph, text, kept)
    for key, value in (("batch", 4), ("steps_per_window", 9), ("validation_fraction", 0.2)):
        done = train(1, graph, text, folder / kept_carried, {**carried, key: value}, *RESUME, code=2)
        check(key in done.stderr and "cannot change" in done.stderr, done.stderr)
    stopped(folder, graph, text, "term", 1, lambda pids: os.kill(pids[0], signal.SIGTERM))
    stopped(folder, graph, text, "one", 2, lambda pids: os.kill(pids[-1], signal.SIGUSR1))
    stopped(folder, graph, text, "twice", 2, lambda pids: [os.kill(pid, signal.SIGTERM) for pid in pids * 2])
    saved_on_request(folder, graph, text)
    interrupted(folder / whole)
    train(1, graph, text, folder / "timed", {"train_steps": 10**7}, "--max-time", 3, code=75)
    print("stopping and going on: fine")
