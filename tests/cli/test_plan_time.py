#!/usr/bin/env python3
"""The plan's times against what was measured: one and two H200s within 15 %, NCCL's messages, the CPU within a factor; links and machines that a
user describes; what is wrong with a machine's file is said. Lines of results that are newer than a machine's constants (its "measured_at") are
not looked at: jobs/fit_machine.py takes new constants.

test_plan_time.py --table: every measured time beside its prediction by the files in jobs/conf (not those built in), and nothing else. FASCICLE
and SOURCE as in all tests, or build/fascicle of this checkout. FLY_MODULAR names a file of `generate --nodes 211577 --edges 24680000 --model modular`
for the lines of that graph, whose halo is counted there."""
import json
import os
import subprocess
import sys
import tempfile

here = os.path.dirname(os.path.abspath(__file__))
source = os.environ.get("SOURCE", f"{here}/../..")
fascicle = os.environ.get("FASCICLE", f"{source}/build/fascicle")
ranks = os.environ.get("RANKS", f"{source}/tests/ranks.sh")
sys.path.insert(0, f"{source}/jobs")
from fit_machine import lif_seconds, measured  # noqa: E402

table = "--table" in sys.argv
compared, missed = [], []


def plan(*words, code=0):
    done = subprocess.run([ranks, "1", fascicle, "plan", *map(str, words), "--json"], capture_output=True, text=True, timeout=600)
    assert done.returncode == code, (words, done.stderr)
    return json.loads(done.stdout) if not code else done.stderr


def machine_path(name):
    return f"{source}/jobs/conf/machine_{name}.json"


def machine(name):
    with open(machine_path(name)) as file:
        return json.load(file)


def close(what, predicted, seconds, limit=0.15):
    off = predicted / seconds - 1
    compared.append(abs(off))
    if table:
        print(f"{what:75s} {seconds * 1e6:12.2f} us, predicted {predicted * 1e6:12.2f} {100 * off:+6.1f} %{'' if abs(off) <= limit else '  MISSED'}")
    elif abs(off) > limit:
        missed.append(f"{what}: predicted {predicted:.4g} s, measured {seconds:.4g} s")


ACTIVE = {"idle": 0, "active_1pct": 0.01, "active_10pct": 0.1}


def words_of(line, name):
    words = ["--nodes", line["nodes"], "--edges", line["edges"], "--threads", 1 if name == "h200" else line["threads"]]
    words += ["--machine", machine_path(name)] if table else ["--device", name]
    if line["ranks"] > 1:
        parts = line["ranks"] // line.get("replicas", 1)
        words += ["--ranks", line["ranks"], "--parts", parts]
        words += ["--transport", line["transport"]] if parts > 1 else []
        if parts > 1 and line["bench"] == "recurrence":
            words += ["--exchange", line["exchange"]]
    return words


def predicted(line, name):
    """Seconds, or None where the plan says nothing."""
    words = words_of(line, name)
    if line["bench"] == "recurrence" and line["case"] in ("total", "train_step"):
        if line["graph"].startswith("modular") and line["ranks"] > 1:
            if "FLY_MODULAR" not in os.environ or line["nodes"] != 211577:
                return None
            words = [os.environ["FLY_MODULAR"], *words[4:]]
        answer = plan(*words, "--job", "train", "--set", f"batch={line['batch']}", "--set", f"n_input={line['nodes'] // 20}", "--set",
                      f"n_output={line['nodes'] // 10}", "--set", f"precision={line.get('precision', 'fp32')}")
        return answer["window_seconds" if line["case"] == "total" else "step_seconds"]
    if line["bench"] == "lif" and line["case"] in ACTIVE:
        delay = line.get("delays", "1:8").split(":")[0]
        return plan(*words, "--job", "simulate", "--active", ACTIVE[line["case"]], "--min-delay", delay)["step_seconds"]
    return None


def against_benches(path, name, limit):
    n = 0
    for line in measured(f"{source}/tests/{path}", None if table else machine(name)["measured_at"]):
        seconds = predicted(line, name)
        if seconds is None:
            continue
        how = [line.get("graph"), line["batch"] and f"batch {line['batch']}", line.get("precision"), line.get("delays"), f"{line['ranks']} ranks",
               line.get("replicas", 1) > 1 and f"{line['replicas']} replicas", line["ranks"] > line.get("replicas", 1) and line.get("transport")]
        close(f"{line['bench']} {line['case']} {line['nodes']}, {', '.join(filter(None, how))}", seconds,
              lif_seconds(line) if name == "h200" else line["seconds"], limit)
        n += 1
    return n


def other_sizes():
    """LIF where no line measures it (kernels/cuda/TRIED.md): microseconds a step."""
    for nodes, edges, active, microseconds in ((20000, 1000000, 0, 1.99), (20000, 1000000, 0.01, 4.24), (1000000, 50000000, 0, 11.2),
                                               (1000000, 50000000, 0.01, 62.9), (1000000, 50000000, 0.1, 184)):
        close(f"LIF, {nodes} neurons, {active} active", plan("--nodes", nodes, "--edges", edges, "--job", "simulate", "--device", "h200", "--active",
                                                             active)["step_seconds"], microseconds * 1e-6)


def messages():
    """NCCL between two GPUs, bytes and microseconds in a CUDA graph: the gradient of two replicas is two messages of half the bytes."""
    for half, microseconds in ((262144, 9.6), (2097152, 19.4), (16777216, 79.1), (134217728, 459)):
        answer = plan("--nodes", 1000, "--edges", half // 2, "--job", "train", "--device", "h200", "--ranks", 2, "--parts", 1, "--transport", "nccl",
                      "--set", "n_input=10", "--set", "n_output=10")
        close(f"message of {half} bytes", answer["gradient_seconds"], 2 * microseconds * 1e-6, 0.01)


def links():
    """As a user describes them, and hosts."""
    words = ["--nodes", 211577, "--edges", 24678466, "--job", "train", "--device", "h200", "--ranks", 16, "--parts", 16]
    one, two = plan(*words), plan(*words, "--gpus-per-host", 8)
    assert (one["transport"], two["transport"], plan(*words, "--transport", "nccl")["transport"]) == ("peer", "nccl", "nccl")
    assert one["network_bytes_per_step"] == 0 < two["network_bytes_per_step"] and two["host_bytes_per_step"] < one["host_bytes_per_step"]
    slow = plan(*words, "--gpus-per-host", 8, "--network-bandwidth", 5)
    assert slow["step_seconds"] > 3 * two["step_seconds"] > 3 * one["step_seconds"] * 0.9
    assert plan(*words, "--nvlink-latency", 1000)["exchange_seconds"] > 0.25
    rows = 211577 - -(-211577 // 16)
    near = plan(*words, "--gpus-per-host", 8, "--network-bandwidth", 50, "--network-latency", 0, "--exchange", "all-gather")
    assert near["network_bytes_per_step"] + near["host_bytes_per_step"] == 2 * 128 * rows * 128
    seconds = 256 * 8 / 15 * rows * 128 / 50e9
    assert abs(near["exchange_seconds"] / seconds - 1) < 0.01, (near["exchange_seconds"], seconds)
    alone = words[:-4]
    assert 0.5 < plan(*alone, "--set", "precision=mixed")["window_seconds"] / plan(*alone)["window_seconds"] < 0.9
    return words, one


def broken_machines(words, one):
    mine = machine("h200")
    mine["forward_column_seconds"]["value"] *= 2
    with tempfile.TemporaryDirectory() as work:
        for change, words_wanted in ((lambda m: None, None), (lambda m: m.pop("lif_event_seconds"), '"lif_event_seconds" is missing'),
                                     (lambda m: m["launch_seconds"].pop("origin"), '"origin" is missing'),
                                     (lambda m: m["links"].pop("network"), '"network"'),
                                     (lambda m: m["links"]["nccl"].update(points=[[5, 1], [4, 2]]), "ascend")):
            broken = json.loads(json.dumps(mine))
            change(broken)
            path = f"{work}/machine.json"
            with open(path, "w") as file:
                json.dump(broken, file)
            answer = plan(*words, "--machine", path, code=2 if words_wanted else 0)
            if words_wanted:
                assert words_wanted in answer and path in answer and answer.count("\n") == 1, answer
            else:
                assert answer["compute_seconds"] > 1.1 * one["compute_seconds"]


n = against_benches("gpu_results.jsonl", "h200", 0.15)
if not table:
    assert n >= 8
    other_sizes()
    messages()
    against_benches("cpu_results.jsonl", "cpu", 0.6)
    assert not missed, "\n".join(missed)
    broken_machines(*links())
print(f"{len(compared)} times predicted, {100 * max(compared):.0f} % off at most, {100 * sum(compared) / len(compared):.1f} % in the mean")
