# seconds: 300
"""`export --format sonata`: what the files hold, by h5py, libsonata and bmtk; and every spike of bmtk's PointNet (NEST) on the exported
folder is one of `fascicle simulate` with the same configuration, where `jobs/setup.sh test parity` installed both."""
import csv
import glob
import json
import os
import random
import resource
import subprocess

import h5py
import numpy as np

from side_by_side import path, run_tests
from sim_tools import check, fascicle, run, simulate, write_json

SOURCE = os.environ["SOURCE"]
PARITY = os.path.join(SOURCE, ".venv-parity", "bin", "python")
(PACKAGES,) = glob.glob(os.path.join(SOURCE, ".venv", "lib", "python3*", "site-packages")) or [""]
N = 200


def can_run():
    """bmtk is in .venv, NEST in .venv-parity: one Python sees both."""
    words = "import sys; sys.path.append(sys.argv[1]); import nest; from bmtk.simulator import pointnet"
    return bool(PACKAGES) and os.path.exists(PARITY) and not subprocess.run([PARITY, "-c", words, PACKAGES], capture_output=True).returncode


def config_of(model, **neuron):
    synapses = {} if model == "lif_delta" else {"tau_syn_ex_ms": 0.5, "tau_syn_in_ms": 2.0}
    return {"model": model, "dt_ms": 0.1, "weight_mv" if model == "lif_delta" else "weight_pa": {"lif_delta": 2e-3, "psc_exp": 0.5}.get(model, 0.25),
            "neuron": {"v_rest_mv": -65.0, "v_threshold_mv": -50.0, "v_reset_mv": -66.0, "tau_m_ms": 10.0, "c_m_pf": 250.0,
                       "refractory_ms": 2.0, "i_e_pa": {"column": "drive"}, **synapses, **neuron}}


def write_graph(seed, *words):
    """Edges of weights of either sign and delays of 1 to 30 steps; nodes with a column of currents. Returns the edges."""
    draw = random.Random(seed)
    edges = [(draw.randrange(N), draw.randrange(N), draw.randint(-300, 400), draw.randint(1, 30)) for _ in range(6000)]
    with open(path("e.csv"), "w") as file:
        file.write("pre,post,weight,delay\n" + "".join(f"{1000 + s},{1000 + t},{w},{d}\n" for s, t, w, d in edges))
    with open(path("n.csv"), "w") as file:
        file.write("bodyId,type,drive\n" + "".join(f"{1000 + i},{'AB'[i % 2]},{draw.choice([370, 400, 420, 435.5])}\n" for i in range(N)))
    code, _, err = run("convert", "--edges", path("e.csv"), "--nodes", path("n.csv"), "--columns", "pre=pre,post=post,weight=weight,delay=delay",
                       "--duplicates", "keep", "--output", path("g.h5"), "--force", *words)
    check(code == 0, err)
    return edges


def export(*words, code=0, n=1, output="circuit"):
    got, _, err = run("export", path("g.h5"), "--format", "sonata", "--output", path(output), *words, n=n)
    check(got == code, "export ended with", got, err)
    return err


def table(name):
    with open(path(name)) as file:
        return list(csv.DictReader(file, delimiter=" "))


def test_files():
    for words in ((), ("--no-order",), ("--packed",)):
        edges = write_graph(1, *words)
        config = config_of("psc_exp")
        config["classes"] = [{"neurons": {"types": ["B"]}, "refractory_ms": 1.0}]
        subprocess.run(["rm", "-rf", path("circuit")], check=True)
        export("--config", write_json("c.json", config), n=2)
        with h5py.File(path("circuit/network/edges.h5")) as file:
            group = file["edges/neurons__neurons__chemical"]
            found = list(zip(*(group[name][:].tolist() for name in ("source_node_id", "target_node_id", "0/syn_weight", "0/delay"))))
            check(sorted(found) == sorted((s, t, w * 0.5, d * 0.1) for s, t, w, d in edges), "edges")
            check("nsyns" not in group["0"] and set(group["edge_type_id"][:]) == {0}, "no nsyns: PointNet would multiply by it")
        types = {int(row["node_type_id"]): row for row in table("circuit/network/node_types.csv")}
        check(len(types) == 8 and all(row["model_template"] == "nest:iaf_psc_exp" and row["model_type"] == "point_neuron"
                                      and row["population"] == "neurons" for row in types.values()), types)
        with open(path("n.csv")) as file:
            nodes = list(csv.DictReader(file))
        with h5py.File(path("circuit/network/nodes.h5")) as file:
            type_of = file["nodes/neurons/node_type_id"][:].tolist()
            check(file["nodes/neurons/0/body_id"][:].tolist() == list(range(1000, 1000 + N)), "body ids")
        for i, row in enumerate(nodes):
            with open(path("circuit/components/cell_models/" + types[type_of[i]]["dynamics_params"])) as file:
                p = json.load(file)
            check(p == {"C_m": 250.0, "tau_m": 10.0, "E_L": -65.0, "V_m": -65.0, "V_th": -50.0, "V_reset": -66.0, "tau_syn_ex": 0.5, "tau_syn_in": 2.0,
                        "t_ref": 1.0 if row["type"] == "B" else 2.0, "I_e": float(row["drive"])}, row, p)
        read_by_others(edges)


def read_by_others(edges):
    try:
        import libsonata
        from bmtk.utils import sonata
    except ImportError as missing:
        print(f"passed over: {missing}")
        return
    population = libsonata.EdgeStorage(path("circuit/network/edges.h5")).open_population("neurons__neurons__chemical")
    into = population.afferent_edges([7])
    found = zip(population.source_nodes(into).tolist(), *(population.get_attribute(name, into).tolist() for name in ("syn_weight", "delay")))
    check(sorted(found) == sorted((s, w * 0.5, d * 0.1) for s, t, w, d in edges if t == 7), "libsonata")
    check(libsonata.NodeStorage(path("circuit/network/nodes.h5")).open_population("neurons").size == N, "libsonata's nodes")
    network = path("circuit/network/")
    read = sonata.File(data_files=[network + "nodes.h5", network + "edges.h5"], data_type_files=[network + "node_types.csv", network + "edge_types.csv"])
    node = next(iter(read.nodes["neurons"]))
    check(node["model_template"] == "nest:iaf_psc_exp" and node["model_type"] == "point_neuron", "bmtk's nodes")
    found = [(e.source_node_id, e["syn_weight"], e["delay"], e["model_template"]) for e in read.edges["neurons__neurons__chemical"].get_target(7)]
    check(sorted(found) == sorted((s, w * 0.5, d * 0.1, "static_synapse") for s, t, w, d in edges if t == 7), "bmtk's edges")


def test_without_configuration():
    edges = write_graph(2)
    export("--dt", "0.5", "--weight", "2")
    with h5py.File(path("circuit/network/edges.h5")) as file:
        group = file["edges/neurons__neurons__chemical/0"]
        check(sorted(group["syn_weight"][:]) == sorted(2.0 * w for _, _, w, _ in edges) and sorted(group["delay"][:]) == sorted(0.5 * d for *_, d in edges),
              "weights, delays")
    with open(path("circuit/simulation_config.json")) as file:
        check(json.load(file)["run"]["dt"] == 0.5, "dt")
    with open(path("e.csv"), "w") as file:
        file.write("pre,post,weight\n1,2,3\n2,1,4\n")
    code, _, err = run("convert", "--edges", path("e.csv"), "--output", path("g.h5"), "--force")
    check(code == 0, err)
    export(output="counted")
    with h5py.File(path("counted/network/edges.h5")) as file:
        group = file["edges/neurons__neurons__chemical/0"]
        check(sorted(group["synapse_count"][:]) == [3, 4] and sorted(group["syn_weight"][:]) == [3.0, 4.0] and "nsyns" not in group, "counts")


def pointnet(model, seed, **change):
    write_graph(seed)
    config = {**config_of(model), **change}
    err = export("--config", write_json("c.json", config))
    check("run_pointnet.py" in err, err)
    simulate(path("g.h5"), config, 5000, "run", n=2)
    with h5py.File(path("run/spikes.h5")) as file:
        spikes = file["spikes/neurons"]
        expected = sorted(zip(spikes["step"][:].tolist(), spikes["node_ids"][:].tolist()))
    words = "import sys, runpy; sys.path.append(sys.argv.pop(1)); sys.argv.pop(0); runpy.run_path(sys.argv[0])"
    with open(path("circuit/simulation_config.json")) as file:
        simulation = json.load(file)
    simulation["run"]["tstop"] = 500.0
    write_json("circuit/simulation_config.json", simulation)
    done = subprocess.run([PARITY, "-c", words, PACKAGES, path("circuit/run_pointnet.py")], capture_output=True, text=True, timeout=300, cwd="/",
                          env={**os.environ, "OMP_NUM_THREADS": "1"})
    check(done.returncode == 0, "PointNet:", done.stderr[-2000:])
    with h5py.File(path("circuit/output/spikes.h5")) as file:
        spikes = file["spikes/neurons"]
        got = sorted(zip((np.rint(spikes["timestamps"][:] / 0.1).astype(int) - 1).tolist(), spikes["node_ids"][:].tolist()))
    got = [spike for spike in got if spike[0] < 5000]
    only = set(got) ^ set(expected)
    check(len(expected) > 500 and len({i for _, i in expected}) > N // 2, model, "is quiet:", len(expected))
    check(got == expected, model, len(got), "spikes of PointNet,", len(expected), "of fascicle; first other:", min(only) if only else "order")
    print(f"{model}: {len(got)} spikes, each the same")


def test_refusals():
    write_graph(3)
    adapts = config_of("psc_exp", adaptation={"tau_ms": 30.0, "jump_mv": 1.0})
    fly = {**config_of("lif_delta", tau_syn_ms=5.0), "model": "lif_exp"}
    for config, part in ((fly, '"lif_exp", which NEST does not have'), (adapts, "no adaptation"), ({"threshold": 5, "decay_shifts": []}, '"lif_shift"')):
        err = export("--config", write_json("c.json", config), code=2)
        check(part in err and err.count("fascicle: ") == 1, err)
    export("--config", write_json("c.json", config_of("psc_exp")), "--dt", "1", code=2)
    export("--dt", "0", code=2)
    export("--set", "model=psc_exp", code=2)
    code, _, err = run("export", path("g.h5"), "--format", "csv", "--output", path("x.csv"), "--dt", "1")
    check(code == 2 and "for --format sonata" in err, err)
    export("--force", code=2)
    config = config_of("psc_exp", i_e_pa=1.0)
    config["stimulus"] = [{"kind": "current", "neurons": "all", "value_pa": 1.0}]
    check('"stimulus" of the configuration is not exported' in export("--config", write_json("c.json", config)), "omission")
    export(code=73)
    words = [fascicle, "export", path("g.h5"), "--format", "sonata", "--output", path("full")]
    code, _, err = run("generate", "--nodes", 3000, "--edges", 400000, "--output", path("g.h5"), "--force")
    check(code == 0, err)
    done = subprocess.run(words, capture_output=True, text=True, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (5 << 20, 5 << 20)))
    said = [line for line in done.stderr.splitlines() if line.startswith("fascicle: ")]
    check(done.returncode == 73 and len(said) == 1 and "File too large" in said[0], done.returncode, done.stderr)
    check(not glob.glob(path("full*")), "nothing stays", glob.glob(path("full*")))


if __name__ == "__main__":
    tests = {name: value for name, value in globals().items() if name.startswith("test_")}
    if can_run():
        for number, name in enumerate(["psc_exp", "psc_alpha", "lif_delta"]):
            tests[f"test_pointnet_{name}"] = lambda name=name, number=number: pointnet(name, 10 + number)
        tests["test_pointnet_one_delay"] = lambda: pointnet("psc_exp", 20, delay_ms=1.5)
    else:
        print("passed over: PointNet itself; jobs/setup.sh test parity installs bmtk and NEST")
    run_tests(tests, 2)
