# seconds: 400
"""fascicle simulate: against an independent simulator, on any rank count, thread count and ordering; what is recorded
and how it reads elsewhere; silence; trials; overflow; refusals."""
import json
import os
import subprocess

import h5py
import numpy as np

from side_by_side import path, run_tests
from sim_tools import Net, Spikes, Truth, check, fascicle, random_net, run, simulate, write_json

LIVELY = {
    "threshold": 150, "reset": -5, "decay_shifts": [4, 7], "refractory_steps": 2, "dt_ms": 0.5, "seed": 11,
    "initial": [{"neurons": {"indices": [0, 7]}, "potential": 149}, {"neurons": {"types": ["B"]}, "refractory": 3}],
    "stimulus": [
        {"neurons": "all", "kind": "poisson", "rate_hz": 60, "weight": 170},
        {"neurons": {"body_ids": [1006, "1009"]}, "kind": "current", "first_step": 4, "last_step": 40, "value": 21},
        {"neurons": {"indices": [2, 3, 30]}, "kind": "spikes", "steps": [9, 3, 3, 10]},
    ],
    "silence": [{"neurons": {"indices": [5]}, "mode": "output"}, {"neurons": {"indices": [6, 8]}, "mode": "remove"}],
    "record": {"spikes": "all", "potential": {"neurons": {"indices": [0, 2, 5, 6, 39]}, "every": 4}},
}
STEPS = 100


def test_any_ranks_threads_order():
    """The same bits everywhere, and those of the independent simulator."""
    net = random_net(40, 500, (2, 6), seed=4)
    graphs = [net.write("plain"), net.write("ordered", ordered=True)]
    truth = Truth(net, LIVELY, STEPS)
    check(len(truth.spikes) > 300, "the test is lively")
    first = None
    for k, n in enumerate((1, 2, 3, 4, 7)):
        for graph in graphs if n in (1, 3) else [graphs[k % 2]]:
            out = f"run{n}_{graphs.index(graph)}"
            simulate(graph, LIVELY, STEPS, out, "--threads", 1 + k % 3, n=n)
            spikes = Spikes(out)
            if first is None:
                first = spikes
                check(spikes.pairs() == truth.spikes, "spikes are those of the independent simulator")
                check(spikes.counts.tolist() == truth.counts, "spikes in each step")
                check(spikes.potential_step.tolist() == list(range(0, STEPS, 4)), "steps recorded")
                check(spikes.potential_node.tolist() == [0, 2, 5, 6, 39], "neurons recorded")
                for at, step in enumerate(spikes.potential_step):
                    expected = [truth.potential[step][i] for i in spikes.potential_node]
                    check(spikes.potential[at].tolist() == expected, "potential after step", step)
            spikes.same(first, f"{n} ranks, {graph}")
            for segment in os.listdir(path(f"{out}/trace")):
                with h5py.File(path(f"{out}/trace/{segment}")) as file:
                    nodes = file["potential/node_ids"][:].tolist() if "potential" in file else []
                check(nodes == sorted(nodes), "segments hold potentials by node id", out, segment, nodes)


def test_reads_elsewhere():
    """h5py in five lines, libsonata, one order, body ids."""
    net = random_net(40, 500, (1, 3), seed=4)
    simulate(net.write(), LIVELY, 60, "run", n=2)
    with h5py.File(path("run/spikes.h5")) as file:
        spikes = file["spikes/neurons"]
        node, ms, step = spikes["node_ids"][:], spikes["timestamps"][:], spikes["step"][:]
        body = file["body_id"][:][node]
        provenance = json.loads(file.attrs["provenance"])
        sorting = h5py.check_enum_dtype(spikes.attrs.get_id("sorting").dtype)
        check(sorting == {"none": 0, "by_id": 1, "by_time": 2} and spikes.attrs["sorting"] == 2, "sorting")
        check(spikes["timestamps"].attrs["units"] == b"ms" and spikes.attrs["dt_ms"] == 0.5, "units")
        check(file.attrs["magic"] == 0x0A7A and file.attrs["version"].tolist() == [0, 1], "magic")
    check(np.array_equal(ms, step * 0.5) and np.array_equal(body, 1000 + 3 * node), "times and body ids")
    check(np.array_equal(np.lexsort((node, step)), np.arange(len(step))), "by step, then node")
    check(provenance["ranks"] == 2 and provenance["seed"] == 11 and provenance["graph_digest"], "provenance")
    import libsonata

    reader = libsonata.SpikeReader(path("run/spikes.h5"))
    check(reader.get_population_names() == ["neurons"], "libsonata finds the population")
    got = reader["neurons"].get()
    check([(float(t), int(i)) for i, t in got] == list(zip(ms.tolist(), node.tolist())), "libsonata reads the spikes")
    check(reader["neurons"].sorting == "by_time", "libsonata reads the order")


def test_hand_numbers():
    """"Step n" is the state after update n; a spike at t arrives at t + delay; input is lost for t+1 .. t+R."""
    net = Net(3, [(0, 1, 40, 2), (0, 2, 40, 1)])
    config = {"threshold": 100, "decay_shifts": [31], "refractory_steps": 3,
              "initial": [{"neurons": {"indices": [1]}, "potential": 90}],
              "stimulus": [{"neurons": {"indices": [0]}, "kind": "spikes", "steps": [5, 8]}],
              "record": {"potential": {"neurons": "all", "every": 1}}}
    simulate(net.write(), config, 14, "run", n=2)
    spikes = Spikes("run")
    check(spikes.pairs() == [(5, 0), (7, 1), (8, 0)], "0 fires at 5 and 8 by order; 1 at 7, through delay 2:", spikes.pairs())
    one = spikes.potential[:, 1].tolist()
    check(one == [90] * 7 + [0] * 7, "1 fires at 7; the spike of 8 arrives at 10, the last refractory step, and is lost:", one)
    check(spikes.potential[:, 2].tolist() == [0] * 6 + [40] * 3 + [80] * 5, "2 adds at 6 and 9:", spikes.potential[:, 2])


def test_silence():
    """A -> B -> C. Output cut: B fires and is recorded, C stays still. Removed: B is not in the file."""
    net = Net(3, [(0, 1, 10, 1), (1, 2, 10, 1)])
    graph = net.write()
    config = {"threshold": 10, "decay_shifts": [31],
              "stimulus": [{"neurons": {"indices": [0]}, "kind": "spikes", "steps": [1]}]}
    expected = {None: [(1, 0), (2, 1), (3, 2)], "output": [(1, 0), (2, 1)], "remove": [(1, 0)]}
    for mode, spikes in expected.items():
        one = dict(config, silence=[{"neurons": {"body_ids": [1003]}, "mode": mode}] if mode else [])
        simulate(graph, one, 6, f"run{mode}", n=2)
        check(Spikes(f"run{mode}").pairs() == spikes, mode, Spikes(f"run{mode}").pairs())


def test_record_a_set():
    """Only the set is recorded; step counts still hold all spikes."""
    net = random_net(40, 500, (1, 4), seed=9)
    config = dict(LIVELY, record={"spikes": {"types": ["A"]}})
    truth = Truth(net, config, 50)
    simulate(net.write(), config, 50, "run", n=3)
    spikes = Spikes("run")
    check(spikes.pairs() == [(t, i) for t, i in truth.spikes if i % 2 == 0], "spikes of type A")
    check(spikes.counts.tolist() == truth.counts and spikes.potential is None, "counts of all")
    lines = [json.loads(line) for line in open(path("run/metrics.jsonl"))]
    check(lines[0]["record"] == "run" and lines[0]["schema"] == 1 and lines[0]["commit"], "provenance first")
    steps = [line for line in lines if line["record"] == "steps"]
    check(sum(line["spikes"] for line in steps) == len(truth.spikes), "spikes in metrics")
    out = [[t for t, i in truth.spikes if i == k] for k in range(net.n)]
    events = sum(len(out[s]) for s, _, _, _ in net.edges if s not in (5,))
    check(sum(line["events"] for line in steps) == events, "events = out-degrees of the spikes sent")


def test_edge_cases():
    """No edges; more ranks than neurons; no steps; no spikes; all spikes on one rank."""
    for name, net, n in (("none", Net(5, []), 3), ("few", Net(3, [(0, 1, 5, 2), (1, 2, -5, 3)]), 7)):
        config = {"threshold": 3, "decay_shifts": [1], "stimulus": [
            {"neurons": {"indices": [0]}, "kind": "current", "value": 9, "first_step": 2}]}
        simulate(net.write(name), config, 12, "run" + name, n=n)
        check(Spikes("run" + name).pairs() == Truth(net, config, 12).spikes, name)
        quiet = {"threshold": 3, "decay_shifts": [1]}
        simulate(path(name + ".h5"), quiet, 12, "quiet" + name, n=2)
        check(Spikes("quiet" + name).pairs() == [] and len(Spikes("quiet" + name).counts) == 12, "no spikes")
        simulate(path(name + ".h5"), quiet, 0, "zero" + name, n=2)
        check(len(Spikes("zero" + name).counts) == 0, "no steps")
        check(run("trace", "check", path("zero" + name))[0] == 0, "trace check of no steps")


def test_trials():
    """Trial k is keyed by k: the same alone, shared out over replicas, and different from the others."""
    net = random_net(40, 300, (1, 4), seed=3)
    graph = net.write()
    simulate(graph, LIVELY, 40, "one", "--trials", 3)
    simulate(graph, LIVELY, 40, "two", "--trials", 3, "--parts", 1, n=2)
    simulate(graph, LIVELY, 40, "four", "--trials", 3, "--parts", 2, n=4)
    for k in range(3):
        spikes = Spikes(f"one/trial_{k}")
        check(spikes.pairs() == Truth(net, LIVELY, 40, trial=k).spikes, "trial", k)
        for other in ("two", "four"):
            Spikes(f"{other}/trial_{k}").same(spikes, f"{other}, trial {k}")
    err = simulate(graph, LIVELY, 50, "another", "--resume", path("one/trial_1/checkpoints/step_00000040.h5"), code=65)
    check("is of trial 1, not 0" in err, err)
    code, _, err = run("trace", "check", path("four"))
    check(code == 0, err)
    code, _, err = run("simulate", graph, "--config", path("one.json"), "--steps", 4, "--output", path("x"), "--parts", 1, n=2)
    check(code == 2 and "copies of the graph" in err and not os.path.exists(path("x")), err)


def test_overflow():
    """Refused with step, neuron and value; the same words on any ranks; what came before is there."""
    edges = [(i, 20, 32767, 3) for i in range(20)] + [(20, 21, 10, 1)]
    net = Net(22, [e for e in edges for _ in range(40)])
    config = {"threshold": 100, "decay_shifts": [31], "stimulus": [
        {"neurons": {"indices": list(range(20))}, "kind": "spikes", "steps": [4]},
        {"neurons": {"indices": [20]}, "kind": "current", "value": 2147483647, "first_step": 7, "last_step": 7},
        {"neurons": {"indices": [1, 21]}, "kind": "spikes", "steps": [2, 6, 7]}]}
    said = set()
    for n, ordered in ((1, False), (2, True), (4, False)):
        graph = net.write(f"graph{n}", ordered)
        err = simulate(graph, config, 20, f"run{n}", n=n, code=1)
        (line,) = [line for line in err.splitlines() if line.startswith("fascicle:") and "step 7" in line]
        said.add(line)
        spikes = Spikes(f"run{n}")
        expected = sorted([(4, i) for i in range(20)] + [(2, 1), (2, 21), (6, 1), (6, 21), (5, 20)])
        check(spikes.pairs() == expected, "spikes up to step 6", spikes.pairs())
        check(spikes.attributes["last_step"] == 6, "last step")
        check(run("trace", "check", path(f"run{n}"))[0] == 0, "trace check")
    check(len(said) == 1 and "1060" in said.pop(), "one message with the body id:", said)


def test_threads_of_small_graphs():
    """A small graph gets one thread, unless somebody asks for more."""
    graph, config = random_net(200, 2000, (1, 3), 4).write(), {"threshold": 400, "decay_shifts": [4]}
    env = {key: value for key, value in os.environ.items() if key != "OMP_NUM_THREADS"}
    words = [fascicle, "simulate", graph, "--config", write_json("threads.json", config), "--steps", "5"]
    for more, alone in (([], len(os.sched_getaffinity(0)) > 1), (["--threads", "2"], False)):
        done = subprocess.run([*words, "--output", path(f"threads{len(more)}"), *more], capture_output=True, text=True, env=env)
        check(done.returncode == 0 and ("one thread a rank" in done.stderr) == alone, done.stderr)


def test_leak_is_said():
    """Where the leak ends above 1 % of the range, and the scale that cures it; the real-time factor in the result."""
    graph = random_net(10, 20, (1, 1), seed=3).write("leak")
    for shifts, threshold, said in (([4], 400, "stimuli by 4\n"), ([4], 1600, None), ([], 400, None),
                                    ([6, 3], 70, "the leak ends at 7,"), ([31], 400, "[] for no leak")):
        config = write_json("leak.json", {"threshold": threshold, "decay_shifts": shifts})
        code, facts, errors = run("simulate", graph, "--config", config, "--steps", 20, "--output", path("leak_run"),
                                  "--force", "--json")
        check(code == 0 and ("leak ends" in errors) == (said is not None) and (said or "") in errors, shifts, errors)
        check(json.loads(facts)["real_time_factor"] > 0, facts)


def wrong(code, text, *words, n=1):
    got, out, err = run(*words, n=n)
    check(got == code, f"{words}: {got}, not {code}: {err}")
    lines = [line for line in err.splitlines() if line.startswith("fascicle: ")]
    check(len(lines) == 1 and text in lines[0], f"{words}: one line with '{text}':", err)


def test_refusals():
    net = random_net(10, 30, (1, 2), seed=1)
    graph, good = net.write(), {"threshold": 10, "decay_shifts": [3]}
    base = ["simulate", graph, "--steps", 5, "--output", path("out")]
    config = write_json("good.json", good)

    def bad(text, **keys):
        wrong(2, text, *base, "--config", write_json("bad.json", {k: v for k, v in dict(good, **keys).items() if v is not None}))

    bad('unknown key "leak"', leak=3)
    wrong(2, 'good.json with --set: unknown key "treshold"', *base, "--config", config, "--set", "treshold=3")
    bad('"threshold" is missing', threshold=None)
    bad('"threshold" is 5.5', threshold=5.5)
    bad("decay_shifts", decay_shifts=[32])
    bad("decay_shifts", decay_shifts=4)
    bad("4294967296", threshold=1 << 32)
    bad("65536", refractory_steps=65536)
    bad('"kind" must be', stimulus=[{"neurons": "all", "kind": "laser"}])
    bad("at most one", stimulus=[{"neurons": "all", "kind": "poisson", "rate_hz": 2000, "weight": 1}])
    bad("before \"first_step\"", stimulus=[{"neurons": "all", "kind": "current", "value": 1, "first_step": 3, "last_step": 2}])
    bad("use body_ids", silence=[{"neurons": {"names": ["AVAL"]}, "mode": "output"}])
    bad("\"mode\" is \"off\"; it must be one of output|remove", silence=[{"neurons": "all", "mode": "off"}])
    # All unknown names in one error, before anything runs.
    bad("no neuron of these names: body id 5 (stimulus[0]), body id \"9007199254740993\" (stimulus[0]), type \"Z\" "
        "(record.spikes), index 10 (record.spikes)", stimulus=[{"neurons": {"body_ids": [1000, 5, "9007199254740993"]}, "kind": "current", "value": 1}],
        record={"spikes": {"types": ["Z"], "indices": [10]}})
    check(not os.path.exists(path("out")), "nothing is made when the configuration is wrong")
    wrong(2, "--steps N is missing", "simulate", graph, "--config", config, "--output", path("out"))
    wrong(2, "--output DIR is missing", "simulate", graph, "--config", config, "--steps", 3)
    wrong(65, "nothing.h5", "simulate", path("nothing.h5"), "--config", config, "--steps", 3, "--output", path("out"), n=2)
    _, facts, _ = run("info", "--json")
    if "built without" in json.loads(facts)["cuda"]:
        wrong(69, "built without CUDA", *base, "--config", config, "--device", "cuda", n=2)
    check(not os.path.exists(path("out")), "nothing is made when the command is wrong")
    simulate(graph, config, 5, "out")
    wrong(73, "holds a run already", *base, "--config", config)
    wrong(73, "cannot", "simulate", graph, "--steps", 5, "--output", path("good.json") + "/out", "--config", config)
    simulate(graph, config, 5, "out", "--force")


run_tests(globals())
