"""A graph of `fascicle generate --kind microcircuit` and its configuration, in NEST: the same neurons and synapses, synapse by synapse, the
same initial potentials and the same Poisson events, so that the spikes are those of fascicle until rounding has grown. With --own-random
NEST draws potentials and events itself, for long runs. Spikes go to a file that jobs/analysis/populations.py and compare.py read.

    python microcircuit_nest.py graph.h5 config.json --output nest.h5 [--ms 1000] [--threads 1]     exit code 77 without NEST
"""
import argparse
import json
import sys
import time

import h5py
import numpy as np

from philox import philox, quantiles, tails, words

try:
    import nest
except ImportError:
    print("skipped: nest is not installed (pip install nest-simulator)")
    sys.exit(77)

KEYS = {"E_L": "v_rest_mv", "V_th": "v_threshold_mv", "V_reset": "v_reset_mv", "tau_m": "tau_m_ms", "C_m": "c_m_pf",
        "t_ref": "refractory_ms", "tau_syn_ex": "tau_syn_ex_ms", "tau_syn_in": "tau_syn_in_ms"}


def read_graph(path):
    """Edges as arrays, and the type of each neuron."""
    with h5py.File(path) as file:
        edges, nodes = next(iter(file["edges"].values())), next(iter(file["nodes"].values()))["0"]
        names = ("source_node_id", "target_node_id", "0/impulse", "0/delay_steps")
        labels = np.array([t.decode() for t in nodes["@library/type"][:]])
        return [edges[name][:] for name in names], labels, nodes["type"][:], file.attrs["graph_digest"]


def initial_mv(config, entry, n):
    """v of each neuron, as the first trial of `fascicle simulate` draws it."""
    who = config["initial"][entry]
    word = philox(config["seed"], (np.arange(n), 0, entry, 2**32 - 1))[0] >> np.uint64(20)
    return who["v_mv"] + who["v_sd_mv"] * np.array(quantiles(), float)[word.astype(int)] / 2**32


def event_counts(config, index, members, steps):
    """[steps, members] events of stimulus `index` in each step, as the first trial of `fascicle simulate` draws them."""
    bars = [np.uint64(bar) for bar in tails(config["stimulus"][index]["rate_hz"] * config["dt_ms"] / 1000)]
    blocks = []
    for _, high, low in words(config["seed"], index, members, range(steps), 0):
        u = (high << np.uint64(32) | low) >> np.uint64(11)
        blocks.append(sum((u < bar).astype(np.uint8) for bar in bars))
    return np.concatenate(blocks)


def give_events(nodes, config, index, members, steps):
    """Generators that send these events with a delay of one step: those of our step k at time (k + 1) dt, see main()."""
    h, counts = config["dt_ms"], event_counts(config, index, members, steps)
    generators = nest.Create("spike_generator", len(members))
    for generator, count in zip(generators, counts.T):
        at = np.flatnonzero(count)
        generator.set(spike_times=np.round((at + 1) * h, 6), spike_multiplicities=count[at].astype(int))
    nest.Connect(generators, nodes, "one_to_one", {"weight": config["stimulus"][index]["weight_pa"], "delay": h})


def drive(nodes, config, labels, code, steps, own):
    """The Poisson background of each population."""
    for k, entry in enumerate(config["stimulus"]):
        members = np.flatnonzero(labels[code] == entry["neurons"]["types"][0])
        if not own:
            give_events(nodes[members.tolist()], config, k, members, steps)
            continue
        generator = nest.Create("poisson_generator", params={"rate": entry["rate_hz"]})
        nest.Connect(generator, nodes[members.tolist()], syn_spec={"weight": entry["weight_pa"], "delay": config["dt_ms"]})


def make_neurons(config, labels, code):
    """All neurons in the order of the graph, with their currents."""
    neuron = config["neuron"]
    nodes = nest.Create("iaf_psc_exp", len(code), params={key: neuron[ours] for key, ours in KEYS.items()})
    for entry in config["classes"]:
        nodes[np.flatnonzero(labels[code] == entry["neurons"]["types"][0]).tolist()].set(I_e=entry["i_e_pa"])
    return nodes


def start_at_rest(nodes, config, own):
    """NEST can send nothing at time 0: it makes one step before ours, at rest, and then gets the initial potentials."""
    nest.Simulate(config["dt_ms"])
    for k, entry in enumerate(config["initial"]):
        nodes.set(V_m=nest.random.normal(entry["v_mv"], entry["v_sd_mv"]) if own else initial_mv(config, k, len(nodes)).tolist())


def connect(nodes, edges, config):
    first, piece = nodes[0].global_id, 1 << 22
    for k in range(0, len(edges[0]), piece):
        source, target, impulse, delay = (values[k:k + piece] for values in edges)
        nest.Connect(source.astype(np.int64) + first, target.astype(np.int64) + first, "one_to_one",
                     {"weight": impulse * config["weight_pa"], "delay": delay * config["dt_ms"]})


def write_spikes(path, events, first_id, config, steps, labels, code, digest):
    step = np.rint(events["times"] / config["dt_ms"]).astype(np.int64) - 2  # a spike at the end of our step k has the time (k + 2) dt
    node = np.asarray(events["senders"], np.int64) - first_id
    order = np.lexsort((node, step))
    with h5py.File(path, "w") as file:
        group = file.create_group("spikes/neurons")
        group["step"], group["node_ids"] = step[order], node[order].astype(np.uint64)
        group["timestamps"] = step[order] * config["dt_ms"]
        group.attrs.update(dt_ms=config["dt_ms"], first_step=0, last_step=steps - 1, graph_digest=digest)
        file["type"], file["type_label"] = code, [label.encode() for label in labels]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("graph"), parser.add_argument("config")
    parser.add_argument("--output", required=True), parser.add_argument("--ms", type=float, default=1000)
    parser.add_argument("--own-random", action="store_true")
    parser.add_argument("--threads", type=int, default=1), parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with open(options.config) as file:
        config = json.load(file)
    edges, labels, code, digest = read_graph(options.graph)
    nest.verbosity = nest.VerbosityLevel.ERROR
    nest.ResetKernel()
    nest.set(resolution=config["dt_ms"], local_num_threads=options.threads, rng_seed=options.seed)
    begin = time.time()
    steps = round(options.ms / config["dt_ms"])
    nodes = make_neurons(config, labels, code)
    drive(nodes, config, labels, code, steps, options.own_random)
    connect(nodes, edges, config)
    recorder = nest.Create("spike_recorder")
    nest.Connect(nodes, recorder)
    start_at_rest(nodes, config, options.own_random)
    nest.Prepare()
    built = time.time()
    nest.Run(options.ms)
    ended = time.time()
    nest.Cleanup()
    write_spikes(options.output, recorder.events, nodes[0].global_id, config, steps, labels, code, digest)
    print(json.dumps({"neurons": len(code), "synapses": len(edges[0]), "spikes": recorder.n_events, "ms": options.ms,
                      "threads": options.threads, "build_seconds": round(built - begin, 2), "seconds": round(ended - built, 2),
                      "real_time": round(options.ms / 1000 / (ended - built), 4)}))


if __name__ == "__main__":
    main()
