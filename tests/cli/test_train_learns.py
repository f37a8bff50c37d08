#!/usr/bin/env python3
# seconds: 300
# data: yes
"""On the real larval brain: Shakespeare better than a bigram table in a few hundred steps, frozen edges worse, a
short text by heart."""
import os
import subprocess
import sys

from real_data import need
from train_tools import Folder, check, records, run, train

BIGRAM = 2.48189  # nats; add-1 counts of the training part, scored on the validation part
RECIPE = {"n_input": 256, "n_output": 512, "embedding": 32, "steps_per_window": 32, "batch": 16, "init_scale": 0.6,
          "optimizer.lr_edges": 2e-3, "optimizer.lr_adapters": 4e-3, "checkpoint_every": 0, "log_every": 10,
          "eval_windows": 64, "train_steps": 150, "eval_every": 150, "seed": 1}
BY_HEART = {**RECIPE, "text_characters": 400, "validation_fraction": 0, "eval_every": 0, "batch": 8, "train_steps": 220}
# few inputs and outputs, so that the core has to do the work
NARROW = {**BY_HEART, "n_input": 32, "n_output": 48, "embedding": 8, "steps_per_window": 24, "batch": 6,
          "text_characters": 300, "optimizer.lr_edges": 4e-3, "train_steps": 150}

larva, text = need("larva_edges.txt", "tinyshakespeare.txt")
with Folder() as folder:
    graph = folder / "larva.h5"
    run(1, "convert", "--edges", larva, "--output", graph)
    train(1, graph, text, folder / "run", RECIPE, base={})
    loss = records(folder / "run", "evaluation")[-1]["loss"]
    print(f"after {RECIPE['train_steps']} steps: {loss} nats; bigram {BIGRAM}")
    check(loss < BIGRAM, "better than a bigram table")
    train(1, graph, text, folder / "heart", BY_HEART, base={})
    loss = records(folder / "heart", "step")[-1]["loss"]
    print(f"400 characters by heart: {loss} nats")
    check(loss < 0.5, "a short text is learnt by heart")
    ends = {}
    for name, values in (("trained", {}), ("frozen", {"frozen_edges": True})):
        train(1, graph, text, folder / name, {**NARROW, **values}, base={})
        ends[name] = records(folder / name, "step")[-1]["loss"]
    print(f"few inputs and outputs: {ends} nats")
    check(ends["trained"] < ends["frozen"] - 0.1, "frozen edges are worse")
    plot = os.path.join(os.environ["SOURCE"], "jobs", "analysis", "plot_loss.py")
    subprocess.run([sys.executable, plot, folder / "run", folder / "frozen", "--output", folder / "loss"], check=True)
    points = (folder / "loss.csv").read_text().splitlines()
    check(points[0] == "run,kind,step,nats" and any(line.startswith("run,validation,150,") for line in points), "curves")
    check((folder / "loss.png").read_bytes()[:4] == b"\x89PNG", "a picture")
