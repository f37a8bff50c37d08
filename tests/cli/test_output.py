# seconds: 300
"""What cannot be written: results on a full disk or a closed pipe, for all verbs; files beyond `ulimit -f`. One line with the reason, code 73,
and nothing half-written stays."""
import json
import os
import random
import resource
import signal
import subprocess
import time

from side_by_side import path, run_tests
from sim_tools import check, fascicle, ranks, simulate

OUTPUT, AGAIN = 73, 75
LIF = {"threshold": 10, "decay_shifts": [4], "stimulus": [{"neurons": "all", "kind": "poisson", "rate_hz": 200, "weight": 100}]}
TRAIN = {"batch": 4, "steps_per_window": 8, "n_input": 20, "n_output": 30, "embedding": 6, "eval_every": 0, "train_steps": 2}


def program(*words, n=1, code=0, **how):
    done = subprocess.run([ranks, str(n), fascicle, *map(str, words)] if n > 1 else [fascicle, *map(str, words)], text=True, timeout=600,
                          **{"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, **how})
    check(done.returncode == code, words, "ended with", done.returncode, "not", code, done.stderr)
    return [line for line in done.stderr.splitlines() if line.startswith("fascicle:") and "warning" not in line]


def make_files():
    """A graph, its table, a run and a trained model."""
    program("generate", "--nodes", 300, "--edges", 3000, "--output", path("g.h5"))
    program("export", path("g.h5"), "--format", "csv", "--output", path("e.csv"))
    draw = random.Random(1)
    with open(path("text.txt"), "w") as file:
        file.write("".join(draw.choice("abcdefgh .") for _ in range(2000)))
    with open(path("lif.json"), "w") as file:
        json.dump(LIF, file)
    program(*VERBS["simulate"](path("run")))
    program(*VERBS["train"](path("model")))


# each verb, with a result on standard output; the words may name a new output
VERBS = {
    "convert": lambda new: ["convert", "--edges", path("e.csv"), "--columns", "pre=body_pre,post=body_post,weight=weight", "--output", new],
    "generate": lambda new: ["generate", "--nodes", 30, "--edges", 60, "--output", new],
    "order": lambda new: ["order", path("g.h5"), "--output", new],
    "inspect": lambda new: ["inspect", path("g.h5")],
    "simulate": lambda new: ["simulate", path("g.h5"), "--config", path("lif.json"), "--steps", 50, "--output", new, "--json"],
    "trace": lambda new: ["trace", "check", path("run"), "--json"],
    "bench": lambda new: ["bench", "lif", "--nodes", 1000, "--edges", 10000, "--json"],
    "train": lambda new: ["train", path("g.h5"), "--text", path("text.txt"), "--output", new, "--json",
                          *[word for key, value in TRAIN.items() for word in ("--set", f"{key}={value}")]],
    "evaluate": lambda new: ["evaluate", path("model"), "--text", path("text.txt"), "--json"],
    "sample": lambda new: ["sample", path("model"), "--prompt", "a", "--length", 5000],
    "plan": lambda new: ["plan", path("g.h5"), "--job", "simulate"],
    "info": lambda new: ["info"],
}
SILENT = {"export"}  # its result is a file


def verbs():
    lines = subprocess.run([fascicle, "--help"], capture_output=True, text=True).stdout.split("Verbs:\n")[1].split("\n\n")[0].splitlines()
    return {line.split()[0] for line in lines}


def full(words):
    with open("/dev/full", "w") as out:
        said = program(*words, code=OUTPUT, stdout=out)
    check(len(said) == 1 and "standard output: No space left on device" in said[0], words, said)


def closed(words, restore):
    """With SIGPIPE as a shell leaves it, and ignored."""
    reader, writer = os.pipe()
    os.close(reader)
    code = -signal.SIGPIPE if restore else OUTPUT
    said = program(*words, code=code, stdout=writer, restore_signals=restore)
    os.close(writer)
    check(not said, words, said)


def test_results():
    make_files()
    check(verbs() == set(VERBS) | SILENT, "a verb without a case:", verbs() ^ (set(VERBS) | SILENT))
    for name, words in VERBS.items():
        full(words(path(f"{name}.full")))
        if name not in ("bench", "train"):  # these flush as they go, or take long: one way is enough
            closed(words(path(f"{name}.closed")), restore=name in ("inspect", "sample"))
    for words in (["--help"], ["help", "plan"], ["plan", "--help"], ["--version"], ["inspect", path("g.h5"), "--json"],
                  ["plan", path("g.h5"), "--job", "simulate", "--json"], ["info", "--json"], ["generate", "--nodes", 9, "--edges", 9,
                  "--output", path("j.h5"), "--json"]):
        full(words)
    check(os.path.exists(path("convert.full")) and not os.path.exists(path("simulate.full/lock")), "the files are made all the same")


def test_no_standard_output():
    """Closed altogether: what is printed does not go into the file that is opened next, nor is it called written."""
    make_files()
    said = program("inspect", path("g.h5"), code=OUTPUT, preexec_fn=lambda: os.close(1))
    check(len(said) == 1 and "standard output" in said[0], said)
    program(*VERBS["simulate"](path("quiet"))[:-1], preexec_fn=lambda: (os.close(1), os.close(2)))
    for name in ("config.json", "log.txt", "metrics.jsonl"):
        check(os.path.getsize(path("quiet/" + name)) > 0, name)
    program("inspect", path("quiet/spikes.h5"), "--verify")


def limited(*words, n=1):
    size = 5 << 20  # with less MPI does not start
    said = program(*words, n=n, code=OUTPUT, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size)))
    check(len(said) == 1 and "File too large" in said[0], words, said)
    return said[0]


def left(folder=""):
    return sorted(name for _, folders, files in os.walk(path(folder)) for name in folders + files)


def test_file_size_limit():
    said = limited("generate", "--nodes", 4000, "--edges", 500000, "--output", path("big.h5"))
    check("big.h5" in said and left() == [], said, left())
    program("generate", "--nodes", 2000, "--edges", 4000, "--output", path("g.h5"))
    with open(path("lif.json"), "w") as file:
        json.dump(LIF, file)
    for n in (1, 2):
        words = ["simulate", path("g.h5"), "--config", path("lif.json"), "--steps", 1000, "--checkpoint-every", 200, "--output", path(f"run{n}")]
        said = limited(*words, n=n)
        names = left(f"run{n}")
        check(f"run{n}" in said and "lock" not in names and not any(name.endswith(".tmp") for name in names), said, names)
        check(any(name.startswith("step_") for name in names), "the checkpoint stays", names)
        program(*words, "--resume", "auto")
        program("trace", "check", path(f"run{n}"))


def test_hangup():
    """A closed terminal: a checkpoint and code 75; under nohup nothing."""
    program("generate", "--nodes", 2000, "--edges", 4000, "--output", path("g.h5"))
    with open(path("lif.json"), "w") as file:
        json.dump(LIF, file)

    def hang_up(output, steps, ignored):
        words = [fascicle, "simulate", path("g.h5"), "--config", path("lif.json"), "--steps", str(steps), "--output", output]
        process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True,
                                   preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN if ignored else signal.SIG_DFL))
        while "ranks" not in open(output + "/metrics.jsonl").read() if os.path.exists(output + "/metrics.jsonl") else True:
            check(process.poll() is None, "ended early", process.returncode)
            time.sleep(0.05)
        os.kill(process.pid, signal.SIGHUP)
        err = process.communicate(timeout=600)[1]
        check("lock" not in left(os.path.basename(output)), left())
        return process.returncode, err

    code, err = hang_up(path("run"), 100000000, False)
    check(code == AGAIN and any(name.startswith("step_") for name in left("run/checkpoints")), code, err)
    code, err = hang_up(path("nohup"), 3000, True)
    check(code == 0, code, err)


run_tests(globals(), workers=2)
