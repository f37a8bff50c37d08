#!/usr/bin/env python3
"""seconds: 300
The plan against runs: predicted bytes within a tenth of the measured peak, for train and simulate, whole and split; what does not fit is refused
with a change that then fits; graphs that do not exist."""
import json
import os
import subprocess
import tempfile

fascicle, ranks = (os.environ[name] for name in ("FASCICLE", "RANKS"))


def run(n, *words, code=0):
    done = subprocess.run([ranks, str(n), fascicle, *map(str, words)], capture_output=True, text=True, timeout=600)
    assert done.returncode == code, (words, done.returncode, done.stderr)
    return done


def plan(*words, code=0):
    done = run(1, "plan", *words, "--json", code=code)
    return json.loads(done.stdout), done.stderr


def near(predicted, measured):
    assert abs(predicted - measured) <= 0.1 * predicted, (predicted, measured)


def last_peak(folder):
    records = [json.loads(line) for line in open(f"{folder}/metrics.jsonl")]
    return [record["peak_bytes"] for record in records if "peak_bytes" in record][-1]


with tempfile.TemporaryDirectory() as work:
    graph, text = f"{work}/g.h5", f"{work}/text.txt"
    run(1, "generate", "--nodes", 8000, "--edges", 400000, "--delays", "1:8", "--parts", "4", "--output", graph)
    with open(text, "w") as file:
        file.write("the quick brown fox jumps over the lazy dog. " * 4000)
    small = ["--set", "batch=8", "--set", "steps_per_window=32", "--set", "n_input=100", "--set", "n_output=200"]
    for n in (1, 2):
        folder = f"{work}/train_{n}"
        done = run(n, "train", graph, "--text", text, "--parts", n, "--output", folder, "--set", "train_steps=2", "--set", "log_every=1",
                   "--set", "eval_every=0", *small)
        assert "warning: memory" not in done.stderr, done.stderr
        facts, _ = plan(graph, "--job", "train", "--ranks", n, "--parts", n, "--vocabulary", 28, "--characters", 180000, *small)
        near(facts["total_bytes"], last_peak(folder))
        assert facts["counted"] and facts["largest_part"]["near_edges"] + facts["largest_part"]["far_edges"] >= 400000 // n
        assert (facts["largest_part"]["halo_rows"] > 0) == (n == 2)

    config = f"{work}/lif.json"
    with open(config, "w") as file:
        json.dump({"threshold": 1000, "decay_shifts": [4], "stimulus": [
            {"neurons": {"indices": [1, 2, 3]}, "kind": "current", "first_step": 0, "last_step": 10, "value": 2000}]}, file)
    for n in (1, 2):
        done = run(n, "simulate", graph, "--config", config, "--steps", 50, "--parts", n, "--output", f"{work}/sim_{n}", "--json")
        facts, _ = plan(graph, "--job", "simulate", "--ranks", n, "--parts", n)
        without = facts["total_bytes"] - facts["bytes"]["recorded spikes"]
        near(without, json.loads(done.stdout)["peak_bytes"])

    # Neuron models: components of 8 bytes, a second ring.
    for model, components, weight in (("lif_exp", 2, "weight_mv"), ("psc_exp", 3, "weight_pa")):
        neuron = {"v_rest_mv": -65, "v_threshold_mv": -50, "v_reset_mv": -65, "tau_m_ms": 10, "c_m_pf": 250, "refractory_ms": 2}
        neuron.update({"tau_syn_ms": 5} if model == "lif_exp" else {"tau_syn_ex_ms": 0.5, "tau_syn_in_ms": 0.5})
        with open(config, "w") as file:
            json.dump({"model": model, "dt_ms": 0.1, weight: 0.1, "neuron": neuron}, file)
        done = run(1, "simulate", graph, "--config", config, "--steps", 50, "--output", f"{work}/{model}", "--json")
        facts, _ = plan(graph, "--job", "simulate", "--model", model)
        near(facts["total_bytes"] - facts["bytes"]["recorded spikes"], json.loads(done.stdout)["peak_bytes"])
        shift, _ = plan(graph, "--job", "simulate")
        assert facts["bytes"]["components and counter"] == 8000 * (8 * components + 2), facts["bytes"]
        assert facts["bytes"]["delay ring"] == (components - 1) * shift["bytes"]["delay ring"], (facts["bytes"], shift["bytes"])
        assert facts["step_seconds"] > shift["step_seconds"], (facts, shift)
    for words in (["--job", "train", "--model", "lif_exp"], ["--job", "simulate", "--model", "iaf"]):
        run(1, "plan", graph, *words, code=2)

    # Too large: refused with code 2 and a remedy that works.
    facts, line = plan("--nodes", 211577, "--edges", 24700000, "--job", "train", "--ranks", 1, "--memory", 3, code=2)
    assert not facts["fits"] and line.count("\n") == 1 and "it would fit with --parts" in line, line
    words = line.split()
    parts = words[words.index("--parts") + 1]
    facts, _ = plan("--nodes", 211577, "--edges", 24700000, "--job", "train", "--ranks", parts, "--parts", parts, "--memory", 3)
    assert facts["fits"] and not facts["counted"]
    # Machines and graphs that are not here, beyond 32 bits.
    facts, _ = plan("--nodes", 70000000, "--edges", 100000000000, "--job", "simulate", "--ranks", 1024, "--parts", 1024, "--device", "h200")
    assert facts["largest_part"]["near_edges"] + facts["largest_part"]["far_edges"] >= 100000000000 // 1024
    # A simulation on a GPU: all edges there, or in host memory and some of them kept, or refused.
    gpu = ("--nodes", 211577, "--edges", 24678466, "--job", "simulate", "--device", "h200")
    whole, _ = plan(*gpu)
    some, _ = plan(*gpu, "--memory", 0.35)
    all_kept, _ = plan(*gpu, "--residency", "streamed")
    assert (whole["residency"], some["residency"], all_kept["residency"]) == ("resident", "streamed", "streamed")
    assert whole["bytes"]["edges by source"] == 8 * 24678466 == all_kept["bytes"]["edges kept on the device"]
    assert 0 < some["bytes"]["edges kept on the device"] < 8 * 24678466 and some["total_bytes"] <= 0.35 * 2**30
    assert min(whole["host_total_bytes"], some["host_total_bytes"]) > 8 * 24678466
    assert whole["step_seconds"] == all_kept["step_seconds"] < some["step_seconds"]
    refused, line = plan(*gpu, "--memory", 0.1, code=2)
    assert not refused["fits"] and "it would fit with" in line, line
    # Training on a GPU: peaks that `bench recurrence` measured (tests/gpu_results.jsonl, train_step), one GPU and two replicas.
    for nodes, edges, n, peak in ((160514, 10402842, 1, 3852184260), (211577, 24678466, 1, 5646865720), (211577, 24680000, 2, 3620134832)):
        facts, _ = plan("--nodes", nodes, "--edges", edges, "--job", "train", "--device", "h200", "--ranks", n, "--parts", 1, "--set",
                        f"n_input={nodes // 20}", "--set", f"n_output={nodes // 10}")
        near(facts["total_bytes"], peak)
        assert n > 1 or abs(facts["total_bytes"] / peak - 1) < 0.03, (facts["total_bytes"], peak)  # from the lists of arrays, in every build
        assert facts["host_total_bytes"] > 28 * edges
    # The whole run: train_steps of the configuration, --steps, or a second of simulated time.
    facts, _ = plan("--nodes", 5000, "--edges", 500000, "--job", "train", "--set", "train_steps=700")
    assert facts["steps"] == 700 and abs(facts["run_seconds"] - 700 * facts["step_seconds"]) < 1e-9 and "real_time_factor" not in facts
    for words, steps, dt in (([], 1000, 1), (["--dt-ms", 0.1], 10000, 0.1), (["--steps", 50, "--dt-ms", 0.5], 50, 0.5)):
        facts, _ = plan(*gpu, *words)
        assert facts["steps"] == steps and abs(facts["run_seconds"] / (steps * facts["step_seconds"]) - 1) < 1e-9, facts
        assert abs(facts["real_time_factor"] * dt / 1000 / facts["step_seconds"] - 1) < 1e-9, facts
    facts, _ = plan(*gpu, "--dt-ms", 0.1)
    text = run(1, "plan", *gpu, "--dt-ms", 0.1).stdout
    assert "211,577 neurons, 24,678,466 edges" in text and "the run: 10,000 steps take" in text and "for 1.00 s of simulated time" in text, text
    shown = float(text.split(" times as fast as real time")[0].split()[-1])
    assert abs(shown * facts["real_time_factor"] - 1) < 0.01 and "edges by source" in text and "188 MiB" in text, text
    assert "above 0" in run(1, "plan", *gpu, "--dt-ms", 0, code=2).stderr
    # The fewest parts that fit, the rest replicas.
    facts, _ = plan("--nodes", 5000, "--edges", 500000, "--job", "train", "--ranks", 4, "--memory", 8)
    assert (facts["parts"], facts["replicas"]) == (1, 4)
    # What train would refuse: more replicas than samples, more inputs than neurons.
    facts, _ = plan(graph, "--job", "train", "--ranks", 16, *small)
    assert (facts["parts"], facts["replicas"]) == (2, 8)
    assert "replicas" in run(1, "plan", graph, "--job", "train", "--ranks", 16, "--parts", 1, *small, code=2).stderr
    assert "8000 neurons" in run(1, "plan", graph, "--job", "train", "--set", "n_input=8001", code=2).stderr
    run(1, "plan", "--job", "train", code=2)
    print("plan: agrees with the runs")
