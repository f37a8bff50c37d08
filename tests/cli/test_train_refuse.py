#!/usr/bin/env python3
"""Bad input of train, evaluate and sample: one clear line each, nothing lost; a loss that is not finite."""
import json
import os

import h5py

from train_tools import Folder, check, checkpoint, make_graph, make_text, records, run, train


def refused(done, *words):
    lines = [line for line in done.stderr.splitlines() if line.startswith("fascicle: ") and "warning" not in line]
    check(len(lines) == 1, f"one line: {done.stderr}")
    for word in words:
        check(word in lines[0], f"'{word}' in: {lines[0]}")


with Folder() as folder:
    graph, text = make_graph(folder, nodes=120, edges=1500), make_text(folder, 3000)
    out = folder / "out"

    def bad(values, *words, code=2, ranks=1, **more):
        limit = ("--memory", more["memory"]) if "memory" in more else ()
        refused(train(ranks, more.get("graph", graph), more.get("text", text), out, values, *limit, code=code), *words)
        check(not out.exists(), "no folder is made for bad input")

    bad({"n_input": 121}, "n_input", "121", "120 neurons")
    bad({"n_output": 5000}, "n_output", "5000")
    bad({"batch": 2}, "batch", "3 replicas", ranks=3)
    bad({"batch": 64}, "GiB", "--parts", code=2, memory=0.001)
    bad({"steps_per_window": 5000}, "text.txt", "5000", code=65)
    bad({"learning_rate": 1}, "learning_rate", "known are")
    bad({"batch": "many"}, "batch", "integer")
    bad({"optimizer.schedule": "step"}, "schedule", "constant|cosine")
    bad({}, "nowhere.txt", code=65, text=folder / "nowhere.txt")
    bad({}, "nowhere.h5", code=65, graph=folder / "nowhere.h5")
    (folder / "latin.txt").write_bytes(b"caf\xe9 " * 100)
    bad({}, "latin.txt", "UTF-8", code=65, text=folder / "latin.txt")
    edges = folder / "twice.txt"
    edges.write_text("1 2 1\n1 2 2\n2 3 1\n3 1 1\n")
    run(1, "convert", "--edges", edges, "--duplicates", "keep", "--output", folder / "twice.h5")
    bad({"n_input": 1, "n_output": 1}, "twice.h5", "parallel edges", code=65, graph=folder / "twice.h5")

    # a loss that is not finite: the step and the last good checkpoint, which stays
    wild = {"train_steps": 50, "checkpoint_every": 1, "optimizer.lr_adapters": 1e30, "optimizer.clip": 0}
    for ranks, parts in ((1, 1), (4, 2)):
        run_folder = folder / f"wild{ranks}"
        done = train(ranks, graph, text, run_folder, wild, code=1, parts=parts)
        step = records(run_folder, "step")[-1]["step"]
        refused(done, f"step {step + 1}", "not finite", str(checkpoint(run_folder, step)))
        check(checkpoint(run_folder, step).exists(), "the last good checkpoint stays")

    done = train(1, graph, text, folder / "wilder", {**wild, "checkpoint_every": 0}, code=1)
    refused(done, "step 2", "not finite", "no checkpoint was written yet; start again")

    # a model that is not finite is not saved
    done = train(2, graph, text, folder / "inf", {**wild, "optimizer.lr_adapters": 1e38}, code=1)
    refused(done, "step_00000001.h5 is not written", "not finite")
    check(not list((folder / "inf" / "checkpoints").glob("*.h5*")), "no file of it")

    # a trained model and its users
    model = folder / "model"
    train(2, graph, text, model, {"train_steps": 6, "eval_every": 3, "eval_windows": 8, "checkpoint_every": 3})
    done = run(2, "evaluate", model, "--json")
    windows = json.loads(done.stdout)
    train(1, graph, text, folder / "never", {"train_steps": 6, "eval_every": 0, "checkpoint_every": 2}, "--checkpoint-every", 0)
    check(len(list((folder / "never" / "checkpoints").glob("step_*.h5"))) == 1, "--checkpoint-every 0: one at the end")
    best = min(line["loss"] for line in records(model, "evaluation"))
    check(abs(windows["nats"] - best) < 1e-6, "evaluate repeats the evaluation of the best checkpoint")
    one_lane, lanes = (json.loads(run(ranks, "evaluate", model, "--whole", "--lanes", n, "--json").stdout)
                       for ranks, n in ((1, 1), (2, 3)))
    check(one_lane["characters"] == lanes["characters"] == 299, "the whole validation text but its first character")
    check(abs(one_lane["nats"] - lanes["nats"]) < 1e-5, "lanes do not change the whole-text loss")
    (folder / "odd.txt").write_text("To be, or not to be\nthat is the \u20ac question " * 3)
    refused(run(1, "evaluate", model, "--text", folder / "odd.txt", code=65), "odd.txt", "line 2, column 13", "U+20AC")
    (folder / "short.txt").write_text("To be")
    refused(run(1, "evaluate", model, "--text", folder / "short.txt", code=65), "short.txt", "5 characters")
    refused(run(1, "sample", model, "--prompt", "F\u00d6rst", code=65), "U+00D6")
    refused(run(1, "evaluate", folder / "nothing", code=65), "nothing")
    words = ("--prompt", "First Citizen:", "--prompt", "All", "--length", 40, "--json")
    first, other_grid = (run(ranks, "sample", model, *words, "--parts", parts).stdout for ranks, parts in ((1, 1), (2, 1)))
    check(first == other_grid and first == run(1, "sample", model, *words).stdout, "the same seed, the same text")
    check(first != run(1, "sample", model, *words, "--seed", 2).stdout, "another seed, another text")
    top1 = run(1, "sample", model, *words, "--top-k", 1).stdout
    check(top1 == run(1, "sample", model, *words, "--greedy", "--seed", 9).stdout, "top-k 1 is greedy")
    cold = run(1, "sample", model, *words, "--temperature", 1e-6).stdout
    check(top1 == cold, "at temperature 0 the likeliest character")
    hot = json.loads(run(1, "sample", model, "--prompt", "All", "--length", 1000, "--temperature", 1e6, "--json").stdout)["text"]
    known = set(text.read_text())
    check(len(set(hot)) > 0.95 * len(known), "at a high temperature all characters alike")
    check(all(len(json.loads(line)["text"]) == 40 for line in first.splitlines()), "40 characters each")

    os.mkfifo(folder / "pipe")
    done = run(1, "export", model, "--format", "weights", "--output", folder / "pipe", "--force", code=73)
    refused(done, "pipe", "not an ordinary file")

    # damage is found, and the checkpoint before it named
    train(1, graph, text, folder / "broken", {"train_steps": 4, "checkpoint_every": 2})
    with h5py.File(checkpoint(folder / "broken", 4), "r+") as file:
        file["edge/theta"][7] = 1e38
    done = train(1, graph, text, folder / "broken", {"train_steps": 8}, "--resume", "auto", code=65)
    refused(done, "step_00000004.h5", "edge/theta", "step_00000002.h5")
    train(1, graph, text, folder / "broken", {"train_steps": 8}, "--resume", checkpoint(folder / "broken", 2))
    print("bad input: fine")
