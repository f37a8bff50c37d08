"""`fascicle simulate` beside Brian2 (C++ standalone) or NEST on the CPU: the same graph, weights, input and threads, in turns in one run.

    .venv-parity/bin/python tests/bench/peers.py --peer brian2|nest [--fascicle build/fascicle] [--nodes 138639 --edges 15100000 ...]

brian2 runs lif_exp with the fly's parameters, one delay of 18 steps and events on v; nest runs psc_exp with the same time constants
and the same graph, and events into the synapse. The events are the program's own (Philox), so the spikes of both must be equal, which
is checked. Prints one JSON object per turn (seconds of the loop over steps alone, as each program measures it) and one with
the ratio of medians; --record appends that to tests/bench/results.jsonl, with date, commit, processor and load. `jobs/setup.sh parity` makes the environment. Where fascicle cannot run the case, the peer is still measured;
the line then says what is missing, and the exit code is 1.
"""
import argparse
import datetime
import importlib.metadata
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time

import h5py
import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "reference"))
import configuration  # noqa: E402
import philox  # noqa: E402
from case import Case  # noqa: E402
from integrate_and_fire import Network  # noqa: E402

FLY = {"v_rest_mv": -52.0, "v_threshold_mv": -45.0, "v_reset_mv": -52.0, "tau_m_ms": 20.0, "c_m_pf": 200.0, "refractory_ms": 2.2}
DT_MS, DELAY = 0.1, 18


def parse():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--peer", choices=("brian2", "nest"), required=True)
    p.add_argument("--fascicle", default=os.path.join(HERE, "..", "..", "build", "fascicle"))
    for name, value in (("nodes", 138639), ("edges", 15100000), ("steps", 10000), ("driven", 100), ("turns", 3), ("seed", 1),
                        ("threads", len(os.sched_getaffinity(0)))):
        p.add_argument("--" + name, type=int, default=value, help="%(default)s")
    p.add_argument("--rate", type=float, default=150.0, help="Hz, events of each driven neuron (%(default)s)")
    p.add_argument("--scale", type=float, default=1.0, help="of all weights (%(default)s)")
    p.add_argument("--record", action="store_true", help="append the last line to tests/bench/results.jsonl")
    return p.parse_args()


def generated(options, folder):
    """A graph file and its edges."""
    graph = os.path.join(folder, "graph.h5")
    subprocess.run([options.fascicle, "generate", "--nodes", str(options.nodes), "--edges", str(options.edges), "--delays", str(DELAY),
                    "--seed", str(options.seed), "--output", graph], check=True, stdout=sys.stderr)
    with h5py.File(graph) as file:
        edges, = file["edges"].values()
        return graph, edges["source_node_id"][:].astype(np.int32), edges["target_node_id"][:].astype(np.int32), edges["0/impulse"][:]


def case_of(options, pre, post, weight):
    """Neurons 0 .. driven - 1 get Poisson events of 250 counts: on v and without refractory time, or into the synapse."""
    onto_v = options.peer == "brian2"
    unit = options.scale * (0.275 if onto_v else 2.75)
    size = 68.75 if onto_v else 687.5
    neuron = dict(FLY, **({"tau_syn_ms": 5.0} if onto_v else {"tau_syn_ex_ms": 5.0, "tau_syn_in_ms": 5.0}))
    neurons, class_of = [neuron], np.zeros(options.nodes, int)
    if onto_v:
        neurons, class_of = [neuron, dict(neuron, refractory_ms=0.0)], (np.arange(options.nodes) < options.driven).astype(int)
    stimulus = {"kind": "poisson", "neurons": {"indices": list(range(options.driven))}, "rate_hz": options.rate, "first_step": 1,
                "weight_mv" if onto_v else "weight_pa": size, "into": "v" if onto_v else "synapse", "no_refractory": onto_v}
    table = philox.poisson(1, 0, range(options.driven), range(1, options.steps), options.rate * DT_MS / 1000.0)
    events = {k: [(who, size)] for k, who in table.items()}
    net = Network("lif_exp" if onto_v else "psc_exp", DT_MS, unit, neurons, class_of, pre, post, weight, np.full(len(pre), DELAY))
    return Case("peers", net, options.steps, events=events if onto_v else {}, synaptic={} if onto_v else events, poisson=[stimulus])


# ---- one turn of each: seconds of the loop, spikes, what went wrong ----


def turn_of_fascicle(options, case, graph, folder):
    config, output = os.path.join(folder, "peers.json"), os.path.join(folder, "run")
    with open(config, "w") as file:
        json.dump(configuration.dump(case), file)
    done = subprocess.run([options.fascicle, "simulate", graph, "--config", config, "--steps", str(options.steps), "--threads",
                           str(options.threads), "--device", "cpu", "--output", output, "--force", "--json"], capture_output=True, text=True)
    if done.returncode:
        return None, [], (done.stderr.strip().splitlines() or ["no message"])[-1]
    return json.loads(done.stdout)["seconds"], configuration.spikes_of(os.path.join(output, "spikes.h5")), None


class Brian2:
    """Compiled once; each turn starts the program anew, and the program itself says how long its loop took."""

    def __init__(self, options, case, folder):
        import brian2
        import compare_brian2
        self.options, self.case, self.folder = options, case, os.path.join(folder, "brian2")
        brian2.set_device("cpp_standalone", build_on_run=False, directory=self.folder)
        brian2.prefs.devices.cpp_standalone.openmp_threads = options.threads if options.threads > 1 else 0
        network, self.monitor = compare_brian2.network_of(case)
        network.run(case.steps * DT_MS * brian2.ms)
        self.device, self.monitored = brian2.device, compare_brian2.monitored
        self.device.build(directory=self.folder, compile=True, run=False)

    def turn(self):
        self.device.run(self.folder, with_output=False, run_args=[])
        return self.device._last_run_time, self.monitored(self.case, self.monitor)


class Nest:
    """Built anew for each turn."""

    def __init__(self, options, case, folder):
        self.options, self.case = options, case

    def turn(self):
        import compare_nest
        import nest
        neurons, recorder = compare_nest.build(self.case, self.options.threads)
        nest.Prepare()
        start = time.perf_counter()
        nest.Run(self.case.steps * DT_MS)
        seconds = time.perf_counter() - start
        nest.Cleanup()
        return seconds, compare_nest.recorded(self.case, neurons, recorder)


def line_of(options, case, program, seconds, spikes):
    model_seconds = options.steps * DT_MS / 1000.0
    return {"program": program, "model": case.net.model, "neurons": options.nodes, "edges": options.edges, "threads": options.threads,
            "steps": options.steps, "spikes_per_second": len(spikes) / model_seconds, "seconds": seconds,
            "us_per_step": 1e6 * seconds / options.steps, "real_time": model_seconds / seconds}


def record(options, result, load):
    """load: how many processes wanted a core before the first turn; more than cores less threads makes all times longer."""
    facts = json.loads(subprocess.run([options.fascicle, "info", "--json"], check=True, capture_output=True, text=True).stdout)
    with open("/proc/cpuinfo") as file:
        processor = next((line.split(":", 1)[1].strip() for line in file if line.startswith("model name")), platform.machine())
    version = importlib.metadata.version({"brian2": "brian2", "nest": "nest-simulator"}[options.peer])
    line = dict(result, peer_version=version, date=datetime.date.today().isoformat(), commit=facts["commit"], processor=processor, cores=os.cpu_count(), load_before=load)
    with open(os.path.join(HERE, "results.jsonl"), "a") as file:
        file.write(json.dumps(line) + "\n")


def main():
    options, load = parse(), os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder:
        graph, *edges = generated(options, folder)
        case = case_of(options, *edges)
        peer = {"brian2": Brian2, "nest": Nest}[options.peer](options, case, folder)
        seconds, equal, missing = {"fascicle": [], options.peer: []}, True, None
        for _ in range(options.turns):
            ours, spikes, missing = turn_of_fascicle(options, case, graph, folder)
            theirs, peers_spikes = peer.turn()
            for program, took, fired in (("fascicle", ours, spikes), (options.peer, theirs, peers_spikes)):
                if took is not None:
                    seconds[program].append(took)
                    print(json.dumps(line_of(options, case, program, took, fired)), flush=True)
            equal &= spikes == peers_spikes
            fired_per_second = len(peers_spikes) / (options.steps * DT_MS / 1000.0)
    result = {"peer": options.peer, "model": case.net.model, "seconds": {who: statistics.median(took) if took else None for who, took in seconds.items()}}
    if missing:
        result["missing"] = missing
    else:
        result.update(ratio=result["seconds"][options.peer] / result["seconds"]["fascicle"], equal_spikes=equal)
    result.update(neurons=options.nodes, edges=options.edges, steps=options.steps, threads=options.threads, turns=options.turns,
                  spikes_per_second=fired_per_second, us_per_step={who: took and 1e6 * took / options.steps for who, took in result["seconds"].items()})
    print(json.dumps(result))
    if options.record:
        record(options, result, load)
    sys.exit(bool(missing) or not equal)


if __name__ == "__main__":
    main()
