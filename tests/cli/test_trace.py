# seconds: 200
"""fascicle trace: merging, rates against NumPy, and checks that find what is missing or changed."""
import csv
import json
import os
import shutil
import subprocess

import h5py
import numpy as np

from side_by_side import path, run_tests
from sim_tools import Net, Spikes, check, random_net, run, simulate, write_json

CONFIG = {"threshold": 150, "decay_shifts": [4], "refractory_steps": 3, "dt_ms": 0.25, "seed": 12,
          "stimulus": [{"neurons": "all", "kind": "poisson", "rate_hz": 100, "weight": 170}],
          "record": {"potential": {"neurons": {"indices": [3, 1, 17]}, "every": 5}}}


def make(folder="run", n=3, steps=60):
    net = random_net(40, 500, (2, 6), seed=5)
    net.types = ["A, left", 'B "x"', "", "D"] * 10
    simulate(net.write(), write_json("config.json", CONFIG), steps, folder, "--checkpoint-every", 20, n=n)
    return net


def test_merge():
    """The merged file is made of the segments, whoever wrote them; packed or not."""
    make()
    first = Spikes("run")
    names = sorted(os.listdir(path("run/trace")))
    check(names == [f"spikes.r{r:04d}.s{s:06d}.h5" for r in range(3) for s in range(3)], names)
    pairs = []
    for name in names:
        with h5py.File(path("run/trace/" + name)) as file:
            group = file["spikes/neurons"]
            pairs += zip(group["step"][:].tolist(), group["node_ids"][:].tolist())
            check(len(file["step_counts"]) == group.attrs["last_step"] - group.attrs["first_step"] + 1, "counts")
            check(json.loads(file.attrs["provenance"])["program"] == "fascicle", "provenance")
    check(sorted(pairs) == first.pairs(), "the merged file is the sorted sum of the segments")
    os.remove(path("run/spikes.h5"))
    code, out, err = run("trace", "merge", path("run"), "--packed", "--json", n=2)
    check(code == 0 and json.loads(out)["spikes"] == len(first.node), err)
    packed = Spikes("run")
    packed.same(first, "packed")
    with h5py.File(path("run/spikes.h5")) as file:
        check(file["spikes/neurons/node_ids"].compression == "gzip", "packed")
    check(run("trace", "check", path("run"))[0] == 0, "check")


def wrong(text, action="check"):
    code, _, err = run("trace", action, path("run"))
    check(code == 65 and text in err, f"'{text}' is not in: {err}")


def test_check():
    make()
    code, out, _ = run("trace", "check", path("run"), "--json")
    facts = json.loads(out)
    check(code == 0 and facts["segments"] == 9 and facts["last_step"] == 59 and facts["merged"], facts)
    shutil.move(path("run/spikes.h5"), path("good.h5"))
    keep = path("run/trace/spikes.r0001.s000001.h5")
    shutil.move(keep, path("kept.h5"))
    for action in ("check", "merge"):
        wrong("is missing", action)
    check(not os.path.exists(path("run/spikes.h5")), "no merged file of half the segments")
    shutil.copy(path("run/trace/spikes.r0001.s000002.h5"), path("other.h5"))
    os.remove(path("run/trace/spikes.r0001.s000002.h5"))
    wrong("segments are missing")
    shutil.copy(path("other.h5"), path("run/trace/spikes.r0001.s000002.h5"))
    with open(path("kept.h5"), "rb") as file:
        data = file.read()
    with open(keep, "wb") as file:
        file.write(data[: len(data) // 2])
    wrong("spikes.r0001.s000001.h5")
    shutil.copy(path("kept.h5"), keep)
    shutil.copy(path("good.h5"), path("run/spikes.h5"))
    with h5py.File(path("run/spikes.h5"), "r+") as file:
        file["spikes/neurons/node_ids"][5] += 1
    wrong("spikes.h5")
    with h5py.File(path("good.h5"), "r+") as file:
        ids, step = file["spikes/neurons/node_ids"], file["spikes/neurons/step"][:]
        at = int(np.flatnonzero(step[1:] == step[:-1])[0])
        ids[at], ids[at + 1] = ids[at + 1], ids[at]
    shutil.copy(path("good.h5"), path("run/spikes.h5"))
    wrong("out of order")


def test_ragged():
    """A run that was killed between two ranks' segments: what all ranks have is merged."""
    make()
    whole = Spikes("run")
    os.remove(path("run/trace/spikes.r0001.s000002.h5"))
    wrong("segments are missing", "merge")
    for name in ("step_00000060.h5", "step_00000040.h5"):
        os.remove(path("run/checkpoints/" + name))
    with open(path("run/checkpoints/latest"), "w") as file:
        file.write("step_00000020.h5\n")
    code, _, err = run("trace", "merge", path("run"))
    check(code == 0 and "only steps up to 39" in err, err)
    cut = Spikes("run")
    check(cut.pairs() == [p for p in whole.pairs() if p[0] < 40] and len(cut.counts) == 40, "cut at 40")
    check(cut.potential_step.tolist() == list(range(0, 40, 5)), "potentials are cut too")
    check(run("trace", "check", path("run"))[0] == 0, "check")
    simulate(path("graph.h5"), path("config.json"), 60, "run", "--resume", "auto", n=2)
    Spikes("run").same(whole, "and the run goes on from there")


def test_full_segments():
    """A segment closes when 64 MB are full: 3.2 million spikes on one rank, against two ranks and the count."""
    net = Net(3200, [])
    config = {"threshold": -1, "decay_shifts": [1]}
    for n in (1, 2):
        simulate(net.write(), config, 1000, f"run{n}", n=n)
    check(len(os.listdir(path("run1/trace"))) == 2, os.listdir(path("run1/trace")))
    one = Spikes("run1")
    check(len(one.node) == 3200000 and (one.counts == 3200).all(), len(one.node))
    check(np.array_equal(one.node, np.tile(np.arange(3200), 1000)), "each neuron at each step")
    Spikes("run2").same(one, "2 ranks")


def test_many_segments():
    """More segments than a process may have open files: merged, checked, and gone on from."""
    graph, config = random_net(40, 500, (2, 6), seed=5).write(), write_json("config.json", CONFIG)
    simulate(graph, config, 120, "plain")
    simulate(graph, config, 110, "run", "--checkpoint-every", 1)
    check(len(os.listdir(path("run/trace"))) == 110, "a segment for each checkpoint")
    few = ["bash", "-c", 'ulimit -n 64; exec "$0" "$@"', os.environ["FASCICLE"]]
    for words in (["trace", "merge", path("run")], ["trace", "check", path("run")],
                  ["simulate", graph, "--config", config, "--steps", "120", "--output", path("run"), "--resume", "auto"]):
        done = subprocess.run(few + words, capture_output=True, text=True, timeout=600)
        check(done.returncode == 0, words, done.stderr)
    Spikes("run").same(Spikes("plain"), "from many segments")


def test_rates():
    net = make(n=1)
    spikes = Spikes("run")
    code, out, err = run("trace", "rates", path("run"), "--json")
    check(code == 0, err)
    seconds = 60 * 0.25e-3
    count = np.bincount(spikes.node.astype(int), minlength=40)
    rows = list(csv.DictReader(open(path("run/rates.csv"), newline="")))
    check([int(r["spikes"]) for r in rows] == count.tolist(), "spikes of each neuron")
    check([int(r["body_id"]) for r in rows] == net.body and [r["type"] for r in rows] == net.types, "names")
    check(np.allclose([float(r["rate_hz"]) for r in rows], count / seconds), "rates")
    table = {r["type"]: r for r in csv.DictReader(open(path("run/type_rates.csv"), newline=""))}
    for name in set(net.types):
        of = [i for i in range(40) if net.types[i] == name]
        check(int(table[name]["spikes"]) == count[of].sum() and int(table[name]["neurons"]) == 10, name)
        check(np.isclose(float(table[name]["rate_hz"]), count[of].mean() / seconds), name)
        check(int(table[name]["active"]) == (count[of] > 0).sum(), name)
    facts = json.loads(out)
    check(facts["active"] == (count > 0).sum() and np.isclose(facts["mean_hz"], count.mean() / seconds), facts)


PARTLY = {"threshold": 10, "decay_shifts": [31],
          "stimulus": [{"neurons": "all", "kind": "spikes", "steps": list(range(0, 100, 10))}]}


def test_partly_recorded():
    """Six neurons that all fire at 100 Hz: who was not recorded is in no table, and lowers no rate."""
    graph = Net(6, [(i, (i + 1) % 6, 1, 1) for i in range(6)], list("AAAABB")).write()
    for name, record, types in (("two", {"indices": [0, 4]}, {"A": (1, 100.0), "B": (1, 100.0)}),
                                ("one", {"types": ["B"]}, {"B": (2, 100.0)}),
                                ("none", {"indices": []}, {}),
                                ("all", "all", {"A": (4, 100.0), "B": (2, 100.0)})):
        config = dict(PARTLY, record={"spikes": record})
        for n in (1, 3):
            said = simulate(graph, config, 100, f"{name}{n}", n=n)
            check(" 60 spikes in 0.1 s of simulated time, 100 Hz a neuron" in said, said)
            n_recorded = sum(neurons for neurons, _ in types.values())
            check(("; %d of them recorded, those of %d neurons" % (10 * n_recorded, n_recorded) in said) == (name != "all"), said)
            code, out, err = run("trace", "rates", path(f"{name}{n}"), "--json")
            check(code == 0, err)
            rows = list(csv.DictReader(open(path(f"{name}{n}/rates.csv"), newline="")))
            check(len(rows) == n_recorded and all(float(r["rate_hz"]) == 100 for r in rows), name, rows)
            table = csv.DictReader(open(path(f"{name}{n}/type_rates.csv"), newline=""))
            check({r["type"]: (int(r["neurons"]), float(r["rate_hz"])) for r in table} == types, name, types)
            facts = json.loads(out)
            check((facts["neurons"], facts["recorded"]) == (6, n_recorded), facts)
            check(facts["mean_hz"] == (100 if n_recorded else 0), facts)
    with h5py.File(path("two3/spikes.h5")) as file:
        check(file["recorded"][:].tolist() == [0, 4], "node ids in the file")
    with h5py.File(path("all1/spikes.h5")) as file:
        check("recorded" not in file, "absent: all")


def test_partly_recorded_trials():
    graph = Net(6, [(0, 1, 1, 1)], list("AAAABB")).write()
    config = write_json("partly.json", dict(PARTLY, record={"spikes": {"indices": [0, 4]}}))
    code, out, err = run("simulate", graph, "--config", config, "--steps", 100, "--trials", 2, "--json",
                         "--output", path("trials"))
    check(code == 0, err)
    for line in out.splitlines():
        facts = json.loads(line)
        check((facts["spikes"], facts["spikes_recorded"], round(facts["rate_hz"], 9)) == (60, 20, 100), facts)
    code, out, err = run("trace", "rates", path("trials"), "--json")
    check([json.loads(line)["mean_hz"] for line in out.splitlines()] == [100, 100], out, err)


def test_wrong_words():
    check(run("trace", "melt", path("run"))[0] == 2, "an unknown action")
    check(run("trace", "merge", path("run"))[0] == 65, "no such folder")
    check(run("trace", "rates", path("run"), n=2)[0] == 65, "no such file")


run_tests(globals())
