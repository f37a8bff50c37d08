#!/usr/bin/env python3
"""seconds: 240
The analysis scripts on real output: every one leaves a PNG and a CSV whose numbers agree with a computation of our own; the readers open graph and
spikes, in SciPy and pandas too."""
import csv
import json
import os
import subprocess
import sys
import tempfile

import h5py
import numpy as np

fascicle, ranks, source = (os.environ[name] for name in ("FASCICLE", "RANKS", "SOURCE"))
analysis = os.path.join(source, "jobs", "analysis")
sys.path.insert(0, analysis)
from fascicle_data import load_graph, load_metrics, load_spikes, load_trials  # noqa: E402


def run(n, *words):
    done = subprocess.run([ranks, str(n), fascicle, *map(str, words)], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, (words, done.stderr)


def script(name, *words, code=0):
    done = subprocess.run([sys.executable, f"{analysis}/{name}", *map(str, words)], capture_output=True, text=True, timeout=600)
    assert done.returncode == code, (name, words, done.returncode, done.stderr)
    return done.stdout + done.stderr


def rows(path):
    with open(path) as file:
        return list(csv.DictReader(file))


def is_png(path):
    with open(path, "rb") as file:
        return file.read(8) == b"\x89PNG\r\n\x1a\n" and os.path.getsize(path) > 5000


def kind_of(path):
    """pdf or svg, by what the file begins with."""
    with open(path, "rb") as file:
        return "pdf" if file.read(5) == b"%PDF-" else "svg"


# A Python without NumPy gets one line from each script.
for name in sorted(set(os.listdir(analysis)) - {"fascicle_data.py"}):
    if name.endswith(".py"):
        bare = subprocess.run([sys.executable, "-S", f"{analysis}/{name}", "x", "y"], capture_output=True, text=True, timeout=600)
        assert bare.returncode == 1 and bare.stderr.count("\n") == 1 and "this Python has no" in bare.stderr, (name, bare.stderr)

with tempfile.TemporaryDirectory() as work:
    path, config = f"{work}/graph.h5", f"{work}/lif.json"
    run(1, "generate", "--nodes", 400, "--edges", 12000, "--types", 5, "--delays", "1:4", "--seed", 7, "--parts", 4, "--output", path)
    with open(config, "w") as file:
        json.dump({"threshold": 300, "decay_shifts": [4], "refractory_steps": 3, "dt_ms": 0.5, "seed": 5, "stimulus": [
            {"neurons": "all", "kind": "poisson", "rate_hz": 20, "weight": 310}]}, file)
    run(2, "simulate", path, "--config", config, "--steps", 400, "--output", f"{work}/a")
    run(1, "simulate", path, "--config", config, "--steps", 400, "--output", f"{work}/b")
    run(1, "simulate", path, "--config", config, "--steps", 400, "--set", "seed=6", "--output", f"{work}/c")

    graph = load_graph(path)
    with h5py.File(path) as file:
        edges = next(iter(file["edges"].values()))
        assert graph.n_nodes == 400 and np.array_equal(graph.source, edges["source_node_id"][:])
    matrix = graph.to_scipy(np.ones(12000))
    assert matrix.shape == (400, 400) and np.array_equal(np.asarray(matrix.sum(1)).ravel(), graph.in_degree())
    frame, nodes = graph.to_pandas()
    assert len(frame) == 12000 and set(frame["pre"]) <= set(nodes["body_id"]) and "type" in nodes

    script("degrees.py", path, "--output", f"{work}/degrees")
    table = rows(f"{work}/degrees.csv")
    assert is_png(f"{work}/degrees.png") and [int(r["in_degree"]) for r in table] == list(graph.in_degree())
    assert sum(int(r["out_degree"]) for r in table) == 12000

    spikes = load_spikes(f"{work}/a")
    assert len(spikes.step) > 500 and spikes.dt_ms == 0.5 and spikes.n_steps == 400
    script("raster.py", f"{work}/a", "--output", f"{work}/raster")
    assert is_png(f"{work}/raster.png") and sum(int(r["spikes"]) for r in rows(f"{work}/raster.csv")) == len(spikes.step)

    script("rates.py", f"{work}/a", "--graph", path, "--by", "type", "--output", f"{work}/rates")
    label = np.asarray(graph.columns["type"], dtype=str)
    for row in rows(f"{work}/rates.csv"):
        mine = np.flatnonzero(label == row["type"])
        fired = np.isin(spikes.node, mine).sum()
        assert fired == int(row["spikes"]) and abs(fired / len(mine) / 0.2 - float(row["rate_hz"])) < 1e-9, row
    assert is_png(f"{work}/rates.png")
    assert "it has" in script("rates.py", f"{work}/a", "--graph", path, "--by", "colour", code=1)
    script("rates.py", f"{work}/a")  # types from the spikes themselves
    with open(f"{work}/a/rates_by_type.csv") as alone, open(f"{work}/rates.csv") as with_graph:
        assert alone.read() == with_graph.read()

    # Rates are over the neurons that were recorded; two trials give a mean and an error; so does a run that has not merged.
    with open(f"{work}/part.json", "w") as file:
        json.dump({"threshold": 10, "decay_shifts": [31], "stimulus": [{"neurons": "all", "kind": "spikes", "steps": list(range(0, 100, 10))}],
                   "record": {"spikes": {"indices": [0, 4]}}}, file)
    run(2, "simulate", path, "--config", f"{work}/part.json", "--steps", 100, "--trials", 2, "--output", f"{work}/part")
    script("rates.py", f"{work}/part", "--output", f"{work}/part.pdf")
    assert os.path.exists(f"{work}/part.pdf") and not os.path.exists(f"{work}/part.pdf.png")
    table = rows(f"{work}/part.csv")
    assert sum(int(r["neurons"]) for r in table) == 2 and {float(r["standard_error_hz"]) for r in table} == {0}
    alone = load_spikes(f"{work}/part/trial_0")
    assert [float(r["rate_hz"]) for r in table] == [len(alone.step) / 2 / (100 * alone.dt_ms / 1000)] * len(table)
    os.remove(f"{work}/part/trial_1/spikes.h5")
    assert "1 not finished" in script("rates.py", f"{work}/part", "--output", f"{work}/again")
    assert rows(f"{work}/again.csv") == table

    # Labels with commas and quotes come back whole; another graph is refused; what cannot be read is one line.
    with open(f"{work}/edges.csv", "w") as edges, open(f"{work}/nodes.csv", "w") as nodes:
        edges.write("pre,post,weight\n1,2,500\n2,1,500\n")
        nodes.write('bodyId,type\n1,"LC4, ""giant"""\n2,DNp01\n')
    run(1, "convert", "--edges", f"{work}/edges.csv", "--nodes", f"{work}/nodes.csv", "--output", f"{work}/two.h5")
    run(1, "simulate", f"{work}/two.h5", "--config", config, "--steps", 100, "--output", f"{work}/two")
    script("rates.py", f"{work}/two")
    assert {row["type"] for row in rows(f"{work}/two/rates_by_type.csv")} == {'LC4, "giant"', "DNp01"}
    assert "graph_digest" in script("rates.py", f"{work}/two", "--graph", path, code=1)
    for name, *words in (["raster.py", f"{work}/none"], ["rates.py", config], ["degrees.py", f"{work}/a/spikes.h5"],
                         ["plot_loss.py", f"{work}/none"], ["plot_loss.py", f"{work}/a"], ["weights.py", path, path], ["compare.py", path, path],
                         ["raster.py", f"{work}/a", "--output", f"{work}/none/raster"]):
        error = script(name, *words, code=1)
        assert error.count("\n") == 1 and error.startswith(name + ": ") and "/" in error, error

    assert "the same" in script("compare.py", f"{work}/a", f"{work}/b", "--output", f"{work}/compare")
    assert is_png(f"{work}/compare.png") and rows(f"{work}/compare.csv")
    for ending in ("pdf", "svg"):
        for name, *words in (["degrees.py", path], ["raster.py", f"{work}/a"], ["compare.py", f"{work}/a", f"{work}/b"]):
            picture = f"{work}/as_{name}.{ending}"
            script(name, *words, "--output", picture)
            assert kind_of(picture) == ending and rows(f"{work}/as_{name}.csv"), picture
    # Two runs of three trials by type: rates, difference, error and t, counted here from the spikes.
    for name, seed in (("trials_a", 5), ("trials_b", 9)):
        run(1, "simulate", path, "--config", config, "--steps", 400, "--trials", 3, "--set", f"seed={seed}", "--output", f"{work}/{name}")
    script("compare.py", f"{work}/trials_a", f"{work}/trials_b", "--by", "type", "--output", f"{work}/by_type")
    types = np.asarray(graph.columns["type"], dtype=str)
    compared = rows(f"{work}/by_type.csv")
    assert len(compared) == 5 and is_png(f"{work}/by_type.png")
    for row in compared:
        members = np.flatnonzero(types == row["type"])
        rate = [[np.isin(trials[k].node, members).sum() / len(members) / 0.2 for k in range(3)]
                for trials in (load_trials(f"{work}/trials_a"), load_trials(f"{work}/trials_b"))]
        means, variances = [sum(r) / 3 for r in rate], [sum((x - sum(r) / 3) ** 2 for x in r) / 2 for r in rate]
        error = ((variances[0] + variances[1]) / 3) ** 0.5
        right = [len(members), *means, means[1] - means[0], error, (means[1] - means[0]) / error]
        assert np.allclose([float(row[key]) for key in list(row)[1:]], right), (row, right)
    lines = script("compare.py", f"{work}/a", f"{work}/c", "--by", "type").splitlines()  # one trial each: no error
    assert len(lines) == 6 and all(line.split("\t")[5] == "nan" for line in lines[1:])
    assert "it has" in script("compare.py", f"{work}/a", f"{work}/c", "--by", "colour", code=1)
    assert "first difference" in script("compare.py", f"{work}/a", f"{work}/c", code=1)

    with open(f"{work}/text.txt", "w") as file:
        file.write("to be or not to be that is the question. " * 100)
    small = [w for pair in ("batch=4", "steps_per_window=8", "n_input=20", "n_output=40", "embedding=8") for w in ("--set", pair)]
    run(1, "train", path, "--text", f"{work}/text.txt", "--output", f"{work}/train", "--checkpoint-every", 2, "--set", "train_steps=4",
        "--set", "eval_every=2", "--set", "eval_windows=4", "--set", "log_every=1", *small)
    first, second = f"{work}/train/checkpoints/step_00000002.h5", f"{work}/train/checkpoints/step_00000004.h5"
    script("weights.py", first, second, "--output", f"{work}/weights")
    script("weights.py", first, second, "--output", f"{work}/as_weights.pdf")
    script("plot_loss.py", f"{work}/train", "--output", f"{work}/as_loss.svg")
    assert kind_of(f"{work}/as_weights.pdf") == "pdf" and kind_of(f"{work}/as_loss.svg") == "svg"
    with h5py.File(first) as one, h5py.File(second) as two:
        change = two["edge/theta"][:].astype(float) - one["edge/theta"][:]
    figures = {row["figure"]: float(row["value"]) for row in rows(f"{work}/weights.csv")}
    assert is_png(f"{work}/weights.png") and abs(figures["rms_change"] - np.sqrt((change**2).mean())) < 1e-6 and figures["rms_change"] > 0
    losses = [record["loss"] for record in load_metrics(f"{work}/train") if record["record"] == "step"]
    assert len(losses) == 4
    if os.path.exists(f"{analysis}/plot_loss.py"):
        script("plot_loss.py", f"{work}/train", "--output", f"{work}/loss")
        assert is_png(f"{work}/loss.png")
    print("analysis: all scripts agree")
