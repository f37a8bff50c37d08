# seconds: 400
"""Cut anywhere, go on elsewhere: other ranks, threads, ordering; asked to stop, to save; damaged checkpoints."""
import json
import os
import shutil
import signal
import time

import h5py
import numpy as np

from side_by_side import path, run_tests
from sim_tools import Spikes, Truth, check, random_net, ranks_of, run, simulate, start, wait_for, wait_steps, write_json

CONFIG = {
    "threshold": 150, "reset": -5, "decay_shifts": [4, 7], "refractory_steps": 3, "dt_ms": 0.5, "seed": 12,
    "stimulus": [{"neurons": "all", "kind": "poisson", "rate_hz": 60, "weight": 170},
                 {"neurons": {"indices": [2, 3, 30]}, "kind": "spikes", "steps": [9, 23, 24]}],
    "record": {"spikes": "all", "potential": {"neurons": {"types": ["A"]}, "every": 3}},
}
STEPS = 40


def state(folder, step):
    """A checkpoint's arrays, by node id."""
    with h5py.File(path(f"{folder}/checkpoints/step_{step:08d}.h5")) as file:
        order = np.argsort(file["lif/node_id"][:])
        return [file[f"lif/{name}"][:][order] for name in ("potential", "refractory", "ring")]


def lines(folder):
    with open(path(folder) + "/metrics.jsonl") as file:
        return [json.loads(line) for line in file]


def test_every_cut():
    """500 + 500 = 1000, with spikes under way, for every cut within one delay length."""
    net = random_net(40, 500, (2, 6), seed=5)
    graphs = [net.write("plain"), net.write("ordered", ordered=True)]
    config = write_json("config.json", CONFIG)
    simulate(graphs[0], config, STEPS, "whole")
    whole, final = Spikes("whole"), state("whole", STEPS)
    check(whole.pairs() == Truth(net, CONFIG, STEPS).spikes and len(whole.node) > 100, "the uncut run is right")
    for k, cut in enumerate(range(19, 26)):
        before, after = ((1, 3), (2, 1), (3, 2), (4, 1))[k % 4]
        folder = f"cut{cut}"
        simulate(graphs[k % 2], config, cut, folder, "--threads", 1 + k % 2, n=before)
        check(np.any(state(folder, cut)[2]), "spikes are under way")
        simulate(graphs[(k + 1) % 2], config, STEPS, folder, "--resume", "auto", "--threads", 2 - k % 2, n=after)
        Spikes(folder).same(whole, f"cut at {cut}, {before} then {after} ranks")
        for a, b in zip(state(folder, STEPS), final):
            check(np.array_equal(a, b), "final state")
        steps = [line["step"] for line in lines(folder) if line["record"] == "steps"]
        check(steps == sorted(set(steps)) and steps[-1] == STEPS, "each step once in metrics", steps)
        check(run("trace", "check", path(folder))[0] == 0, "trace check")
    simulate(graphs[0], config, STEPS, "cut19", "--resume", "auto")
    Spikes("cut19").same(whole, "going on with a finished run")


def test_from_a_file():
    """Back to an older checkpoint, twice; rotation keeps K; what was newer is made again."""
    net = random_net(40, 500, (2, 6), seed=6)
    graph, config = net.write(), write_json("config.json", CONFIG)
    simulate(graph, config, STEPS, "run", "--checkpoint-every", 7, "--keep", 3, n=2)
    whole = Spikes("run")
    check(sorted(os.listdir(path("run/checkpoints"))) == ["latest", "step_00000028.h5", "step_00000035.h5", "step_00000040.h5"],
          "the last 3 are kept:", os.listdir(path("run/checkpoints")))
    check(open(path("run/checkpoints/latest")).read() == "step_00000040.h5\n", "latest")
    for n in (3, 1):
        shutil.copy(path("run/checkpoints/step_00000028.h5"), path("old.h5"))
        simulate(graph, config, STEPS, "run", "--resume", path("old.h5"), n=n)
        Spikes("run").same(whole, f"from step 28 on {n} ranks")
    simulate(graph, config, STEPS, "new", "--resume", path("old.h5"), n=2)
    new = Spikes("new")
    check(new.attributes["first_step"] == 28 and new.pairs() == [p for p in whole.pairs() if p[0] >= 28], "in another folder")


def test_refusals():
    net = random_net(20, 100, (1, 3), seed=7)
    graph, config = net.write(), dict(CONFIG, stimulus=CONFIG["stimulus"][:1])
    simulate(graph, config, 10, "run", "--checkpoint-every", 5)
    other = random_net(20, 100, (1, 3), seed=8).write("other")
    about = [open(path("run/" + name), "rb").read() for name in ("config.json", "neurons.h5")]
    err = simulate(graph, dict(config, threshold=151), 20, "run", "--resume", "auto", code=2, n=2)
    check('another "threshold"' in err, err)
    err = simulate(other, config, 20, "run", "--resume", "auto", code=65)
    check("another graph" in err, err)
    err = simulate(graph, config, 7, "run", "--resume", "auto", code=2)
    check("has 10 steps already" in err, err)
    err = simulate(graph, config, 7, "run", "--resume", path("nothing.h5"), code=65)
    check("no such file" in err, err)
    simulate(graph, config, 7, "never", "--resume", path("nothing.h5"), code=65)
    check(not os.path.exists(path("never")), "nothing is made for a run that cannot go on")
    simulate(graph, config, 13, "longer", "--checkpoint-every", 13)
    segments = sorted(os.listdir(path("run/trace")))
    err = simulate(graph, config, 20, "run", "--resume", path("longer/checkpoints/step_00000013.h5"), code=2)
    check("it is another run's" in err and segments == sorted(os.listdir(path("run/trace"))), "a strange checkpoint removes nothing:", err)
    check(about == [open(path("run/" + name), "rb").read() for name in ("config.json", "neurons.h5")],
          "a refused resume leaves the run's configuration and neurons")
    simulate(graph, dict(config, about="a remark"), 20, "run", "--resume", "auto")
    check(Spikes("run").pairs() == Truth(net, config, 20).spikes, "refused attempts did no harm")


def test_replayed_file():
    """A run that replays a file goes on only while that file holds the same spikes."""
    net = random_net(40, 300, (1, 3), seed=7)
    graph = net.write()
    simulate(graph, dict(CONFIG, dt_ms=0.1, threshold=50), 30, "earlier")
    simulate(graph, dict(CONFIG, dt_ms=0.1, threshold=50, seed=13), 30, "another")
    file = path("replayed.h5")
    shutil.copy(path("earlier/spikes.h5"), file)
    config = {"model": "lif_delta", "dt_ms": 0.1, "weight_mv": 0.01,
              "neuron": {"v_rest_mv": -60, "v_threshold_mv": -50, "v_reset_mv": -60, "tau_m_ms": 10},
              "stimulus": [{"neurons": "all", "kind": "replay", "file": file}]}
    simulate(graph, config, 20, "run", "--checkpoint-every", 10)
    simulate(graph, config, 30, "whole")
    shutil.copy(path("another/spikes.h5"), file)
    for n in (1, 2):
        err = simulate(graph, config, 30, "run", "--resume", "auto", n=n, code=2)
        check(err.count("fascicle: ") == 1 and '"stimulus[0].file" held something else' in err, err)
    shutil.copy(path("earlier/spikes.h5"), file)
    simulate(graph, config, 30, "run", "--resume", "auto", n=2)
    Spikes("run").same(Spikes("whole"), "replayed to the end")


def test_changed_labels():
    """A run that chooses neurons by labels goes on only while these choose the same; the edges alone do not tell."""
    net = random_net(40, 300, (1, 3), seed=7)
    simulate(net.write(), CONFIG, 20, "run")
    net.types[4], net.types[5] = net.types[5], net.types[4]
    for n in (1, 2):
        err = simulate(net.write(), CONFIG, 40, "run", "--resume", "auto", n=n, code=2)
        check(err.count("fascicle: ") == 1 and "chose other neurons" in err, err)
    net.types[4], net.types[5] = net.types[5], net.types[4]
    simulate(net.write(), CONFIG, 40, "run", "--resume", "auto", n=2)
    check(Spikes("run").pairs() == Truth(net, CONFIG, 40).spikes, "and then it goes on")


def test_damaged():
    """A damaged newest checkpoint is named; the one before it is used only when the user says so."""
    net = random_net(40, 500, (2, 6), seed=9)
    graph, config = net.write(), write_json("config.json", CONFIG)
    simulate(graph, config, STEPS, "whole", n=2)
    whole = Spikes("whole")
    for kind in ("cut short", "one byte changed", "empty"):
        simulate(graph, config, 30, "run", "--checkpoint-every", 10, "--force", n=2)
        newest = path("run/checkpoints/step_00000030.h5")
        data = bytearray(open(newest, "rb").read())
        with h5py.File(newest) as file:
            at = file["lif/ring"].id.get_offset() + 12
        if kind == "cut short":
            data = data[: len(data) * 6 // 10]
        elif kind == "empty":
            data = b""
        else:
            data[at] ^= 1
        with open(newest, "wb") as file:
            file.write(data)
        err = simulate(graph, config, STEPS, "run", "--resume", "auto", n=2, code=65)
        check("step_00000030.h5" in err and "step_00000020.h5" in err, kind, "names both:", err)
        simulate(graph, config, STEPS, "run", "--resume", path("run/checkpoints/step_00000020.h5"), n=3)
        Spikes("run").same(whole, kind)


LONG = 2000000 # steps: never done in the time of a test


def long_run(n, *words):
    net = random_net(300, 6000, (2, 6), seed=10)
    return net.write(), write_json("config.json", dict(CONFIG, record={"spikes": {"indices": list(range(20))}})), net


def stop_and_compare(signals, n, after, to_all):
    """Signals mid-run, code 75, `again`; then to the end elsewhere: equal to a run that was never asked."""
    graph, config, _ = long_run(n)
    process = start(graph, config, LONG, "run", n=n)
    wait_steps("run", 200)
    pids = ranks_of(process, n)[: None if to_all else 1]
    for number in signals:
        for pid in pids:
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass
        time.sleep(0.02)
    code = process.wait(600)
    check(code == 75, "ended with", code, open(path("log")).read())
    check(os.path.exists(path("run/again")), "again")
    name = open(path("run/checkpoints/latest")).read().strip()
    step = int(name[5:13])
    check(0 < step < LONG, "stopped in the middle:", step)
    check("--resume auto" in open(path("log")).read(), "says how to go on")
    steps = step + 100
    simulate(graph, config, steps, "run", "--resume", "auto", n=after)
    check(not os.path.exists(path("run/again")), "again is gone")
    simulate(graph, config, steps, "whole", n=after)
    Spikes("run").same(Spikes("whole"), "stopped and resumed")


def test_sigterm_one_rank():
    stop_and_compare([signal.SIGTERM], 3, 2, to_all=False)


def test_sigusr1_all_twice():
    stop_and_compare([signal.SIGUSR1, signal.SIGTERM], 2, 1, to_all=True)


def test_sigusr1_to_mpirun():
    """mpirun hands SIGUSR1 on to the ranks (SIGTERM it takes for itself, and kills them)."""
    graph, config, _ = long_run(2)
    process = start(graph, config, LONG, "run", n=2)
    wait_steps("run", 200)
    os.kill(process.pid, signal.SIGUSR1)
    check(process.wait(600) == 75 and os.path.exists(path("run/again")), open(path("log")).read())


def test_stop_in_the_first_step():
    graph, config, _ = long_run(1)
    process = start(graph, config, LONG, "run", n=1)
    wait_for(lambda: os.path.exists(path("run/lock")), "the run's lock")
    os.kill(process.pid, signal.SIGTERM)
    check(process.wait(600) == 75, "75")
    check(run("trace", "merge", path("run"))[0] == 0, "what is there can be merged")


def test_save_and_go_on():
    graph, config, _ = long_run(2)
    process = start(graph, config, LONG, "run", "--max-time", 8, n=2)
    wait_steps("run", 200)
    os.kill(ranks_of(process, 2)[1], signal.SIGUSR2)
    wait_for(lambda: os.path.exists(path("run/checkpoints/latest")), "a checkpoint")
    check(process.poll() is None, "the run goes on")
    first = open(path("run/checkpoints/latest")).read()
    check(process.wait(600) == 75, "--max-time ends it with 75")
    check(open(path("run/checkpoints/latest")).read() > first, "and with a later checkpoint")


def test_trials_stop():
    """A stop that one replica hears of stops all; a resume finishes the trials, each as if never stopped."""
    graph, config, _ = long_run(2)
    process = start(graph, config, LONG, "run", "--trials", 3, "--parts", 1, n=2)
    wait_steps("run/trial_1", 200)
    os.kill(ranks_of(process, 2)[1], signal.SIGTERM)
    check(process.wait(600) == 75, open(path("log")).read())
    steps = 100 + max(int(open(path(f"run/trial_{k}/checkpoints/latest")).read()[5:13]) for k in (0, 1))
    simulate(graph, config, steps, "run", "--resume", "auto", "--trials", 3, n=2)
    simulate(graph, config, steps, "whole", "--trials", 3, "--parts", 1, n=2)
    for k in range(3):
        Spikes(f"run/trial_{k}").same(Spikes(f"whole/trial_{k}"), f"trial {k}")


run_tests(globals())
