# seconds: 200
"""inspect of a run's folder: simulations and trainings that are finished, stopped, gone on with, under way, killed; trials."""
import json
import os
import random
import signal

from side_by_side import path, run_tests
from sim_tools import Spikes, check, random_net, run, simulate, start, wait_steps, write_json

CONFIG = {"threshold": 150, "decay_shifts": [4], "refractory_steps": 3, "dt_ms": 0.5, "seed": 12,
          "stimulus": [{"neurons": "all", "kind": "poisson", "rate_hz": 40, "weight": 170}]}
TRAIN = {"batch": 4, "steps_per_window": 8, "n_input": 20, "n_output": 30, "embedding": 6, "eval_every": 2, "train_steps": 5, "log_every": 1}


def facts_of(name, *words, n=1):
    code, out, err = run("inspect", path(name), *words, "--json", n=n)
    check(code == 0, err)
    return json.loads(out)


def has(facts, **wanted):
    for key, value in wanted.items():
        check(facts.get(key) == value, key, "is", facts.get(key), "not", value)


def test_simulation():
    net = random_net(200, 4000, (1, 3), seed=2)
    graph, config = net.write(), write_json("lif.json", CONFIG)
    simulate(graph, config, 400, "run", "--checkpoint-every", 150)
    spikes = len(Spikes("run").step)
    check(spikes > 100, spikes)
    for n in (1, 2):
        facts = facts_of("run", n=n)
        has(facts, kind="run", job="simulate", state="finished", step=400, steps_wanted=400, simulated_ms=200.0, spikes=spikes, spikes_merged=True,
            checkpoints={"number": 3, "latest_step": 400}, graph=graph, seed=12, ranks=1)
        check(abs(facts["rate_hz"] - spikes / 200 / 0.2) < 1e-9 * facts["rate_hz"], facts["rate_hz"])
        check(facts["config"] == json.load(open(path("run/config.json"))) and "resumed" not in facts, facts)
    simulate(graph, config, 600, "run", "--resume", "auto", n=2)
    facts = facts_of("run")
    has(facts, state="finished", step=600, steps_wanted=600, spikes=len(Spikes("run").step), ranks=2, resumed=1)
    _, out, _ = run("inspect", path("run"))
    check("state finished" in " ".join(out.split()) and f"spikes {facts['spikes']:,}" in " ".join(out.split()), out)


def test_stopped_and_killed():
    graph, config = random_net(200, 4000, (1, 3), seed=2).write(), write_json("lif.json", CONFIG)
    process = start(graph, config, 100000000, "run", "--checkpoint-every", 500)
    wait_steps("run", 600)
    has(facts_of("run"), state="running", steps_wanted=100000000, spikes_merged=False)
    process.send_signal(signal.SIGTERM)
    check(process.wait(60) == 75, "stopped")
    facts = facts_of("run")
    check(facts["state"].startswith("stopped on request") and facts["step"] >= 600, facts)
    has(facts, step=facts["checkpoints"]["latest_step"])
    process = start(graph, config, 100000000, "killed", "--checkpoint-every", 500)
    wait_steps("killed", 600)
    process.kill()
    process.wait(60)
    check(facts_of("killed")["state"].startswith("ended early"), "killed")


def test_trials():
    graph = random_net(200, 4000, (1, 3), seed=2).write()
    simulate(graph, CONFIG, 100, "trials", "--trials", 3, n=2)
    facts = facts_of("trials")
    has(facts, job="simulate", state="finished", step=100, seed=12)
    check([t["trial"] for t in facts["trials"]] == [0, 1, 2], facts["trials"])
    for k, trial in enumerate(facts["trials"]):
        has(trial, step=100, spikes=len(Spikes(f"trials/trial_{k}").step), spikes_merged=True)
        has(facts_of(f"trials/trial_{k}"), kind="run", step=100, spikes=trial["spikes"])
    os.rename(path("trials/trial_2"), path("elsewhere"))
    check(facts_of("trials")["state"].startswith("ended early"), "a trial that never began")


def test_training():
    code, _, err = run("generate", "--nodes", 300, "--edges", 3000, "--output", path("g.h5"))
    check(code == 0, err)
    draw = random.Random(1)
    with open(path("text.txt"), "w") as file:
        file.write("".join(draw.choice("abcdefgh .") for _ in range(4000)))
    words = [word for key, value in TRAIN.items() for word in ("--set", f"{key}={value}")]
    code, _, err = run("train", path("g.h5"), "--text", path("text.txt"), "--output", path("model"), *words)
    check(code == 0, err)
    lines = [json.loads(line) for line in open(path("model/metrics.jsonl"))]
    best = min((line for line in lines if line["record"] == "evaluation"), key=lambda line: line["loss"])
    facts = facts_of("model")
    has(facts, job="train", state="finished", step=5, steps_wanted=5, training_loss=[line for line in lines if line["record"] == "step"][-1]["loss"],
        best_validation={key: best[key] for key in ("step", "loss", "bits")}, graph_digest=lines[0]["graph_digest"])
    has(facts["checkpoints"], latest_step=5, best_step=best["step"])


def test_refused():
    os.mkdir(path("empty"))
    code, out, err = run("inspect", path("empty"))
    check(code == 65 and not out and "neither a run" in err, code, err)
    graph = random_net(50, 400, (1, 3), seed=2).write()
    simulate(graph, CONFIG, 10, "run")
    for words in (["--verify"], ["--node", "1000"]):
        code, out, err = run("inspect", path("run"), *words, n=2)
        check(code == 2 and not out and len([line for line in err.splitlines() if line.startswith("fascicle:")]) == 1, words, code, err)


run_tests(globals(), workers=2)
