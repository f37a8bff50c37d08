# seconds: 600
"""Recorded variables of models: SONATA reports whose values are the reference's states, to the last bit of a float; read by libsonata; the
same on any ranks, after a kill, and for every trial."""
import json
import os
import resource
import signal
import subprocess
import sys

import h5py
import numpy as np

sys.path.insert(0, os.path.join(os.environ["SOURCE"], "tests", "reference"))
import configuration  # noqa: E402
from integrate_and_fire import ONE, Integers  # noqa: E402
from side_by_side import path, run_tests  # noqa: E402
from sim_tools import check, fascicle, run, start, wait_steps, write_json  # noqa: E402

try:
    import libsonata
except ImportError:
    libsonata = None

DATA = os.path.join(os.environ["TEST_DATA"], "models")
N, STEPS, EVERY = 80, 700, 7
WHO = [3, 0, 44, 69, 12, 13]
UNITS = {"v": "mV", "g": "mV", "w": "mV"}


def graph():
    for words in (("convert", "--edges", f"{DATA}/edges.csv", "--columns", "pre=pre,post=post,weight=weight,delay=delay",
                   "--duplicates", "keep", "--no-order", "--output", path("g.h5")),
                  ("order", path("g.h5"), "--parts", "4", "--output", path("ordered.h5"))):
        code, _, err = run(*words)
        check(code == 0, *words[:1], err)


def config_of(name, record):
    with open(f"{DATA}/{name}.json") as file:
        return {**json.load(file), "record": record}


def record_of(variables, who=WHO, **every):
    return {"variables": {"neurons": {"indices": who} if who else "all", "variables": variables, **(every or {"every": EVERY})}}


def simulate(name, config, *words, n=1, steps=STEPS, code=0, given="g.h5"):
    got, _, err = run("simulate", path(given), "--config", write_json(name + ".json", config), "--steps", steps, "--output", path(name),
                      *words, n=n, timeout=500)
    check(got == code, name, "on", n, "ranks ended with", got, err)
    return err


def report(folder, variable):
    """All that a report holds; the provenance and what it is called apart."""
    with h5py.File(path(f"{folder}/reports/{variable}.h5")) as file:
        found = {}
        file.visititems(lambda name, o: found.update({name: (o[()].tobytes(), o.shape, o.dtype.str) if isinstance(o, h5py.Dataset) else None,
                                                      name + "@": sorted((k, str(v)) for k, v in o.attrs.items())}))
        return found


def states(config, steps):
    """{variable: [steps][neurons]} in mV and pA of the reference."""
    case = configuration.load({k: v for k, v in config.items() if k != "record"}, f"{DATA}/edges.csv", N, steps)
    net, simulation = case.net, case.start(Integers)
    rest = np.array([net.neurons[c]["v_rest_mv"] for c in net.class_of])
    names = max((c.components for c in net.classes), key=len)
    tables = [case.fires, case.currents, case.events, case.synaptic]
    found = {name: [] for name in names}
    for k in range(steps):
        simulation.step(k, *(table.get(k, ()) for table in tables))
        for name, x in zip(names if "w" in names else names + [None], simulation.x):
            if name:
                unit = net.weight_unit if name[:2] in ("i_", "a_") else net.voltage_unit()
                found[name].append((rest if name == "v" else 0.0) + x.astype(float) / ONE * unit)
    return {name: np.array(rows) for name, rows in found.items()}


def compare(folder, variable, expected, who, every, dt):
    with h5py.File(path(f"{folder}/reports/{variable}.h5")) as file:
        part = file["report/neurons"]
        data, mapping = part["data"], part["mapping"]
        check(data.dtype == np.float32 and data.attrs["units"].decode() == UNITS.get(variable, "pA"), folder, variable, "type, units")
        check(mapping["node_ids"][:].tolist() == sorted(who) and mapping["element_ids"][:].tolist() == [0] * len(who), "who")
        check(mapping["index_pointers"][:].tolist() == list(range(len(who) + 1)), "pointers")
        check(mapping["index_pointer"] == mapping["index_pointers"] and mapping["time"].attrs["units"] == b"ms", "names")
        rows = expected[::every][:, sorted(who)].astype(np.float32)
        check(np.allclose(mapping["time"][:], [0, len(rows) * every * dt, every * dt], rtol=1e-14), "time", mapping["time"][:])
        check(data.shape == rows.shape and np.array_equal(data[:], rows), folder, variable, "differs at",
              np.argwhere(data[:] != rows)[:3].tolist() if data.shape == rows.shape else data.shape)


def by_libsonata(folder, variable, expected, who, every, dt):
    if not libsonata:
        return
    population = libsonata.SomaReportReader(path(f"{folder}/reports/{variable}.h5"))["neurons"]
    check(population.data_units == UNITS.get(variable, "pA") and population.time_units == "ms", "units")
    check(population.get_node_ids() == sorted(who) and population.sorted, "node ids")
    some = sorted(who)[1:4]
    got = population.get(node_ids=some, tstart=10 * every * dt, tstop=20 * every * dt)
    rows = expected[::every][10:21][:, some].astype(np.float32)
    check(got.ids.tolist() == some and np.allclose(got.times, np.arange(10, 21) * every * dt) and np.array_equal(got.data, rows),
          folder, variable, got.ids, got.times)
    check(population.get().data.shape == (len(expected[::every]), len(who)), "all of it")


def one(name):
    graph()
    expected = states(config_of(name, {}), STEPS)
    variables = list(expected)
    config = config_of(name, record_of(variables))
    err = simulate("one", config)
    check(f"of {len(WHO)} neurons, {len(range(0, STEPS, EVERY))} records each" in err, err)
    check(sorted(os.listdir(path("one/reports"))) == sorted(v + ".h5" for v in variables), "one file a variable")
    simulate("three", config, n=3, given="ordered.h5")
    simulate("cut", config, n=3, steps=STEPS // 2 + 3)
    simulate("cut", config, "--resume", "auto", n=2, given="ordered.h5")
    for variable in variables:
        check(np.ptp(expected[variable][:, WHO]) > 0, name, variable, "stands still")
        compare("one", variable, expected[variable], WHO, EVERY, config["dt_ms"])
        by_libsonata("one", variable, expected[variable], WHO, EVERY, config["dt_ms"])
        for other in ("three", "cut"):
            check(report(other, variable) == report("one", variable), name, variable, other, "is not the same")
    with h5py.File(path("one/spikes.h5")) as file:
        check("potential" not in file and "variables" not in file, "variables are in reports only")


def test_all_neurons_every_step():
    graph()
    expected = states(config_of("psc_exp", {}), 300)
    simulate("all", config_of("psc_exp", record_of(["i_ex", "v"], None, every=1)), n=4, steps=300)
    simulate("ms", config_of("psc_exp", record_of(["v"], None, every_ms=0.5)), n=2, steps=300)
    simulate("single", config_of("psc_exp", record_of(["v"], [5])), n=2, steps=300)
    for folder, variable, who, every in (("all", "v", range(N), 1), ("all", "i_ex", range(N), 1), ("ms", "v", range(N), 5), ("single", "v", [5], EVERY)):
        compare(folder, variable, expected[variable], list(who), every, 0.1)
    if libsonata:
        check(libsonata.ElementReportReader(path("single/reports/v.h5"))["neurons"].get().data.shape == (43, 1), "one neuron: two dimensions")


def test_killed():
    """SIGKILL in the middle, then other ranks: as if nothing had been."""
    graph()
    config = config_of("lif_exp_drive", record_of(["v", "g", "w"], None, every=3))
    config["stimulus"].append({"kind": "noise", "neurons": "all", "sd_pa": 30.0})
    config["neuron"]["c_m_pf"] = 250.0
    simulate("whole", config, steps=20000, n=2)
    process = start(path("g.h5"), write_json("killed.json", config), 20000, "killed", "--checkpoint-every", 500, n=2)
    wait_steps("killed", 3000)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait(60)
    check(not os.path.exists(path("killed/reports")), "it was killed on its way")
    simulate("killed", config, "--resume", "auto", "--checkpoint-every", 5000, n=3, given="ordered.h5", steps=20000)
    for variable in "vgw":
        check(report("killed", variable) == report("whole", variable), variable, "after a kill")


def test_trials():
    graph()
    config = config_of("psc_exp", record_of(["v"]))
    config["stimulus"].append({"kind": "poisson", "neurons": "all", "rate_hz": 500.0, "weight_pa": 60.0})
    for n in (1, 2):
        simulate(f"on{n}", config, "--trials", 3, n=n, steps=300)
    for k in range(3):
        check(report(f"on1/trial_{k}", "v") == report(f"on2/trial_{k}", "v"), "trial", k)
    check(report("on1/trial_0", "v")["report/neurons/data"] != report("on1/trial_1", "v")["report/neurons/data"], "trials differ")
    code, out, err = run("inspect", path("on2/trial_1/trace/spikes.r0000.s000000.h5"), "--json")
    check(code == 0 and json.loads(out)["variables"] == {"v": "mV"}, out, err)
    err = simulate("on2", {**config, "record": {}}, "--force", steps=10)
    check(not os.path.exists(path("on2/trial_0")) and "reports" not in err, "--force removes reports of trials")
    simulate("on2", config, "--force", steps=10)
    simulate("on2", {**config, "record": {}}, "--force", steps=10)
    check(not os.path.exists(path("on2/reports")), "--force removes reports")


def test_full_disk():
    graph()
    config = config_of("psc_exp", record_of(["v"], None, every=1))
    words = [fascicle, "simulate", path("g.h5"), "--config", write_json("c.json", config), "--steps", "30000", "--checkpoint-every", "3000",
             "--output", path("run")]
    size = 6 << 20
    done = subprocess.run(words, capture_output=True, text=True, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size)))
    said = [line for line in done.stderr.splitlines() if line.startswith("fascicle: ")]
    check(done.returncode == 73 and len(said) == 1 and "reports/v.h5" in said[0] and "File too large" in said[0], done.returncode, done.stderr)
    names = [name for _, _, files in os.walk(path("run")) for name in files]
    check("lock" not in names and "v.h5" not in names and not any(name.endswith(".tmp") for name in names), names)
    code, _, err = run(*words[1:], "--resume", "auto")
    check(code == 0 and report("run", "v")["report/neurons/data"][1] == (30000, N), err)


def test_refusals():
    graph()
    for model, record, parts in (
            ("psc_exp", record_of(["u"]), ['no "u"', '"v", "i_ex", "i_in"']), ("psc_exp", record_of(["w"]), ['no "w"']),
            ("psc_exp", record_of(["v", "v"]), ['"v" twice']), ("psc_exp", record_of([]), ["must be a list"]),
            ("psc_exp", record_of("v"), ["must be a list"]), ("psc_exp", record_of([1]), ["names are wanted"]),
            ("psc_exp", record_of(["v"], every_ms=0.25), ["every_ms", "nearest"]), ("psc_exp", record_of(["v"], every=2, every_ms=0.2), ["not both"]),
            ("psc_exp", record_of(["v"], [N]), ["index 80"]), ("psc_exp", {"potential": {"neurons": "all"}}, ["record.potential", '"variables"'])):
        for n in (1, 2):
            err = simulate("never", config_of(model, record), n=n, code=2)
            lines = [line for line in err.splitlines() if line.startswith("fascicle: ")]
            check(len(lines) == 1 and all(part in lines[0] for part in parts), record, err)
    err = simulate("never", {"threshold": 5, "decay_shifts": [3], "record": record_of(["v"])}, code=2)
    check('record "potential"' in err, err)


if __name__ == "__main__":
    if not libsonata:
        print("passed over: libsonata is not installed")
    tests = {f"test_{name}": lambda name=name: one(name) for name in (
        "lif_delta", "lif_exp", "lif_exp_drive", "psc_exp", "psc_exp_threshold", "psc_alpha_drive")}
    run_tests({**tests, **{name: value for name, value in globals().items() if name.startswith("test_")}}, 2)
