#!/usr/bin/env python3
# seconds: 240
"""Twenty steps give the same loss and weights on every grid; the same grid repeats its bits; a killed rank ends the
job."""
import os
import signal
import subprocess
import time

from train_tools import FASCICLE, RANKS, Folder, arrays, check, checkpoint, distance, make_graph, make_text, records, train

VALUES = {"train_steps": 20, "eval_every": 20, "eval_windows": 11}


def losses(folder):
    return [line["loss"] for line in records(folder, "step")], records(folder, "evaluation")[0]["loss"]


def compare(one, other, grid):
    (a, a_end), (b, b_end) = losses(one), losses(other)
    check(len(b) == 20 and max(abs(x - y) for x, y in zip(a, b)) < 1e-5 and abs(a_end - b_end) < 1e-5, f"{grid}: losses")
    x, y = arrays(checkpoint(one, 20)), arrays(checkpoint(other, 20))
    for name in x:
        check(distance(x[name], y[name]) < 1e-5, f"{grid}: {name} differs by {distance(x[name], y[name])}")


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return [int(word) for word in file.read().split()]


with Folder() as folder:
    graph, text = make_graph(folder), make_text(folder)
    train(1, graph, text, folder / "1x1", VALUES)
    for parts, replicas in [(2, 1), (1, 2), (2, 2), (4, 1), (1, 4), (4, 2), (2, 4), (4, 4)]:
        name = f"{parts}x{replicas}"
        train(parts * replicas, graph, text, folder / name, VALUES, parts=parts)
        compare(folder / "1x1", folder / name, name)
    train(4, graph, text, folder / "again", VALUES, parts=2)
    a, b = arrays(checkpoint(folder / "2x2", 20)), arrays(checkpoint(folder / "again", 20))
    check(all(a[name].tobytes() == b[name].tobytes() for name in a), "the same grid repeats its bits")
    # the same halo or all states: one result, and the log says which
    for way, words in (("halo", "exchange: halo"), ("all-gather", "exchange: all-gather")):
        train(4, graph, text, folder / way, VALUES, "--exchange", way, parts=4)
        compare(folder / "1x1", folder / way, f"--exchange {way}")
        check(words in (folder / way / "log.txt").read_text(), f"the log names the {way}")
    # more parts than make sense: idle ranks and a batch that does not divide
    train(3, graph, text, folder / "3x1", VALUES, parts=3)
    compare(folder / "1x1", folder / "3x1", "3x1")
    train(3, graph, text, folder / "1x3", VALUES, parts=1)
    compare(folder / "1x1", folder / "1x3", "1x3")
    # a rank that dies in the middle ends the job
    job = subprocess.Popen([RANKS, "2", FASCICLE, "train", str(graph), "--text", str(text), "--output", str(folder / "dies"),
                            "--set", "train_steps=1000000", "--set", "n_input=20", "--set", "n_output=30"],
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    metrics = folder / "dies" / "metrics.jsonl"
    end = time.time() + 600
    while time.time() < end and not (metrics.exists() and len(metrics.read_text().splitlines()) > 1):
        time.sleep(0.1)
    os.kill(children(job.pid)[-1], signal.SIGKILL)
    check(job.wait(timeout=600) != 0, "the job ends when a rank dies")
    print("eleven grids agree")
