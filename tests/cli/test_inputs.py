# seconds: 200
"""An output that is an input is refused, whatever the verb and however its name is spelt, and the input stays as it is; order may
replace its input."""
import json
import os
import random
import shutil

from side_by_side import path, run_tests
from sim_tools import check, run

TRAIN = {"batch": 4, "steps_per_window": 8, "n_input": 20, "n_output": 30, "embedding": 6, "eval_every": 0, "train_steps": 2}


def good(*words):
    code, _, err = run(*words)
    check(code == 0, words, err)


def spellings(name):
    """Other names of a file."""
    folder, base = os.path.split(name)
    soft, hard = path("soft.link"), path("hard.link")
    for link in (soft, hard):
        if os.path.lexists(link):
            os.remove(link)
    os.symlink(name, soft)
    os.link(name, hard)
    return [name, f"{folder}/./{base}", f"{folder}/../{os.path.basename(folder)}/{base}", soft, hard, os.path.relpath(name)]


def refused(source, *words):
    """--output at every name of `source`, with and without --force."""
    with open(source, "rb") as file:
        before = file.read()
    for name in spellings(source):
        for force in (["--force"], []):
            code, out, err = run(*words, "--output", name, *force)
            said = [line for line in err.splitlines() if line.startswith("fascicle:")]
            check(code == 2 and not out and len(said) == 1 and "this is an input" in said[0] and "give another name" in said[0], words, name, code, err)
            with open(source, "rb") as file:
                check(file.read() == before and os.path.samefile(name, source), words, name, "changed its input")


def make_graph():
    good("generate", "--nodes", 300, "--edges", 3000, "--output", path("g.h5"))
    return path("g.h5")


def test_export():
    graph = make_graph()
    refused(graph, "export", graph, "--format", "csv")
    good("export", graph, "--format", "csv", "--output", path("new.csv"))
    good("export", graph, "--format", "csv", "--output", path("new.csv"), "--force")


def test_weights():
    graph, draw = make_graph(), random.Random(1)
    with open(path("text.txt"), "w") as file:
        file.write("".join(draw.choice("abcdefgh .") for _ in range(2000)))
    sets = [word for key, value in TRAIN.items() for word in ("--set", f"{key}={value}")]
    good("train", graph, "--text", path("text.txt"), "--output", path("run"), *sets)
    step = path("run/checkpoints/step_00000002.h5")
    refused(step, "export", path("run"), "--format", "weights")
    refused(step, "export", step, "--format", "weights")
    refused(graph, "export", path("run"), "--format", "weights")
    good("export", path("run"), "--format", "weights", "--output", path("run/weights.csv"))
    good("export", path("run"), "--format", "weights", "--output", path("run/weights.csv"), "--force")


def test_generate_and_order():
    graph = make_graph()
    refused(graph, "generate", "--shuffle-of", graph)
    good("order", graph, "--output", graph, "--force", "--parts", 8)
    good("inspect", graph, "--verify")


def spared(folder, files, *words):
    """--force with an input in the folder that it would replace: refused, everything stays."""
    for name in files:
        before = {os.path.join(top, f): os.stat(os.path.join(top, f)).st_ino for top, _, names in os.walk(folder) for f in names
                  if f not in ("lock", "log.txt")}
        for n in (1, 2):
            code, _, err = run(*[name if word is None else word for word in words], "--output", folder, "--force", n=n)
            said = [line for line in err.splitlines() if line.startswith("fascicle: --force")]
            check(code == 2 and len(said) == 1 and folder in said[0] and "copy it elsewhere" in said[0], words, name, code, err)
        check(all(os.path.exists(f) and os.stat(f).st_ino == inode for f, inode in before.items()), "something is gone", name)


def test_forced_runs():
    graph, folder = make_graph(), path("run")
    with open(path("c.json"), "w") as file:
        json.dump({"threshold": 100, "decay_shifts": [4], "stimulus": [{"neurons": "all", "kind": "current", "value": 20}]}, file)
    good("simulate", graph, "--config", path("c.json"), "--steps", 20, "--output", folder)
    shutil.copy(graph, path("run/g.h5"))
    os.symlink(path("run/config.json"), path("link.json"))
    words = ["simulate", graph, "--config", None, "--steps", 20]
    spared(folder, [path("run/config.json"), path("link.json"), f"{folder}/../run/config.json"], *words)
    spared(folder, [path("run/g.h5")], "simulate", None, "--config", path("c.json"), "--steps", 20)
    with open(path("m.json"), "w") as file:
        json.dump({"model": "lif_delta", "dt_ms": 1, "weight_mv": 0.01,
                   "neuron": {"v_rest_mv": -60, "v_threshold_mv": -50, "v_reset_mv": -60, "tau_m_ms": 10},
                   "stimulus": [{"neurons": "all", "kind": "replay", "file": path("run/spikes.h5")}]}, file)
    spared(folder, [path("m.json")], "simulate", graph, "--config", None, "--steps", 20)
    good("simulate", graph, "--config", path("m.json"), "--steps", 20, "--output", path("replayed"))
    good("simulate", graph, "--config", path("c.json"), "--steps", 20, "--output", folder, "--force")
    with open(path("text.txt"), "w") as file:
        file.write("abcdefgh " * 300)
    sets = [word for key, value in TRAIN.items() for word in ("--set", f"{key}={value}")]
    good("train", graph, "--text", path("text.txt"), "--output", path("taught"), *sets)
    spared(path("taught"), [path("taught/config.json")], "train", graph, "--text", path("text.txt"), "--config", None)
    shutil.copy(path("text.txt"), path("taught/text.txt"))
    spared(path("taught"), [path("taught/text.txt")], "train", graph, *sets, "--text", None)


def test_convert():
    for name, text in (("e.csv", "pre,post,weight\n1,2,3\n2,3,4\n"), ("n.csv", "id,type\n1,A\n2,B\n3,C\n"), ("t.csv", "id,nt\n1,GABA\n2,ACH\n"),
                       ("s.json", '{"GABA": -1, "ACH": 1}')):
        with open(path(name), "w") as file:
            file.write(text)
    words = ["convert", "--edges", path("e.csv"), "--nodes", path("n.csv"), "--node-columns", "id=id,type=type",
             "--transmitters", path("t.csv"), "--transmitter-columns", "id=id,type=nt", "--signs", path("s.json")]
    for name in ("e.csv", "n.csv", "t.csv", "s.json"):
        refused(path(name), *words)


def test_scx():
    shutil.copytree(os.path.join(os.environ["SOURCE"], "tests/data/scx/example.scx"), path("in.scx"))
    for name in ("in.scx/manifest.json", "in.scx/blocks/block_00000.scb"):
        refused(path(name), "convert", "--edges", path("in.scx"))


run_tests(globals(), workers=2)
