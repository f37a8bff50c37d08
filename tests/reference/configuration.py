"""Configurations and graphs of `fascicle simulate`: read for the reference, which refuses what it does not know, and written for
a Case, so that the program itself can run it."""
import csv
import json
import os
import subprocess

import h5py
import numpy as np

import philox
from case import Case
from integrate_and_fire import Network, steps_of

TOP = {"about", "model", "dt_ms", "seed", "neuron", "weight_mv", "weight_pa", "delay_ms", "classes", "initial", "stimulus", "silence",
       "record"}


def neurons_of(selection, n):
    """Node indices of NEURONS: "all" or {"indices": [...]}."""
    if selection == "all":
        return list(range(n))
    if set(selection) != {"indices"}:
        raise ValueError(f"the reference knows neurons only by their indices, not by {sorted(selection)}")
    return selection["indices"]


def classes_of(config, n):
    """The distinct parameters of neurons and which of them each neuron has; later entries win, key by key."""
    each = [dict(config["neuron"]) for _ in range(n)]
    for entry in config.get("classes", []):
        for i in neurons_of(entry["neurons"], n):
            each[i].update({key: value for key, value in entry.items() if key != "neurons"})
    for stimulus in config.get("stimulus", []):
        if stimulus.get("no_refractory"):
            for i in neurons_of(stimulus["neurons"], n):
                each[i]["refractory_ms"] = 0.0
    distinct = []
    class_of = np.zeros(n, int)
    for i, one in enumerate(each):
        if one not in distinct:
            distinct.append(one)
        class_of[i] = distinct.index(one)
    return distinct, class_of


def edges_of(path):
    """Columns pre, post, weight, delay (steps) of a CSV table whose ids are node indices."""
    with open(path) as file:
        rows = [[int(row[key]) for key in ("pre", "post", "weight", "delay")] for row in csv.DictReader(file)]
    return np.array(rows, int).T


def interval(stimulus, steps):
    return range(stimulus.get("first_step", 0), min(stimulus.get("last_step", steps), steps - 1) + 1)


def event_weight(stimulus, unit):
    """In mV or pA."""
    if "weight" in stimulus:
        return stimulus["weight"] * unit
    return stimulus["weight_mv" if "weight_mv" in stimulus else "weight_pa"]


def spikes_of(path):
    """[(step, node)] of a spikes file of the program."""
    with h5py.File(path) as file:
        spikes = file["spikes/neurons"]
        return list(zip(spikes["step"][:].tolist(), spikes["node_ids"][:].tolist()))


def inputs_of(config, n, steps, unit):
    """Tables by step: neurons that are made to fire, currents, events onto v, events into the synapse."""
    fires, currents, events, synaptic = {}, {}, {}, {}
    for index, stimulus in enumerate(config.get("stimulus", [])):
        who = neurons_of(stimulus["neurons"], n)
        if stimulus["kind"] == "spikes":
            for k in stimulus["steps"]:
                fires[k] = sorted({*fires.get(k, []), *who})
        elif stimulus["kind"] == "current":
            for k in interval(stimulus, steps):
                currents.setdefault(k, []).append((np.array(who), float(stimulus["value_pa"])))
        elif stimulus["kind"] == "poisson":
            drawn = philox.poisson(config.get("seed", 1), index, who, interval(stimulus, steps),
                                   stimulus["rate_hz"] * config["dt_ms"] / 1000.0)
            table = events if stimulus.get("into", "synapse") == "v" else synaptic
            for k, neurons in drawn.items():
                table.setdefault(k, []).append((neurons, event_weight(stimulus, unit)))
        elif stimulus["kind"] == "noise":
            for k, drawn in philox.noise(config.get("seed", 1), index, who, interval(stimulus, steps)).items():
                currents.setdefault(k, []).append((np.array(who), float(stimulus["sd_pa"]), drawn))
        elif stimulus["kind"] == "replay":
            for k, i in spikes_of(stimulus["file"]):
                if i in who:
                    fires[k] = sorted({*fires.get(k, []), i})
        else:
            raise ValueError(f"the reference knows no stimulus of kind {stimulus['kind']}")
    return fires, currents, events, synaptic


def load(config, edges, n, steps, name=""):
    """A Case of a configuration (a file or an object) and a table of edges."""
    if isinstance(config, str):
        with open(config) as file:
            config = json.load(file)
    if set(config) - TOP:
        raise ValueError(f"the reference knows no key {sorted(set(config) - TOP)}")
    neurons, class_of = classes_of(config, n)
    pre, post, weight, delay = edges_of(edges)
    if "delay_ms" in config:
        delay = np.full(len(pre), steps_of(config["delay_ms"], config["dt_ms"], "delay_ms"))
    unit = config["weight_mv" if config["model"].startswith("lif_") else "weight_pa"]
    silenced = [i for entry in config.get("silence", []) for i in neurons_of(entry["neurons"], n)]
    if any(entry["mode"] != "output" for entry in config.get("silence", [])):
        raise ValueError("the reference silences outputs only")
    net = Network(config["model"], config["dt_ms"], unit, neurons, class_of, pre, post, weight, delay, silenced=tuple(silenced))
    v = np.array([neurons[c]["v_rest_mv"] for c in class_of], float)
    counter = np.zeros(n, int)
    for entry in config.get("initial", []):
        who = neurons_of(entry["neurons"], n)
        v[who] = entry.get("v_mv", v[who])
        counter[who] = entry.get("refractory", counter[who])
    return Case(name, net, steps, *inputs_of(config, n, steps, unit), v_mv=v, counter=counter)


# ---- the other way ----


def group(pairs):
    """{value: [indices]} of (index, value)."""
    table = {}
    for i, value in pairs:
        table.setdefault(value, []).append(i)
    return table


def stimuli_of(case):
    """Poisson stimuli first, since their index is a part of their random numbers."""
    stimuli = list(case.poisson)
    trains = group((k, i) for k, who in case.fires.items() for i in who)
    stimuli += [{"kind": "spikes", "neurons": {"indices": [int(i)]}, "steps": sorted(steps)} for i, steps in sorted(trains.items())]
    pulses = group((k, (tuple(map(int, who)), pa)) for k, rows in case.currents.items() for who, pa in rows)
    for (who, pa), steps in pulses.items():
        ends = [k for k in steps if k + 1 not in steps]
        for first, last in zip([k for k in steps if k - 1 not in steps], ends):
            stimuli.append({"kind": "current", "neurons": {"indices": list(who)}, "value_pa": pa, "first_step": first, "last_step": last})
    return stimuli


def dump(case):
    """The configuration of a Case."""
    net = case.net
    of_class = group(enumerate(net.class_of.tolist()))
    config = {"model": net.model, "dt_ms": net.dt_ms, "weight_mv" if net.model.startswith("lif_") else "weight_pa": net.weight_unit,
              "neuron": net.neurons[0],
              "classes": [{"neurons": {"indices": who}, **net.neurons[c]} for c, who in of_class.items() if c],
              "stimulus": stimuli_of(case)}
    if case.v_mv is not None:
        config["initial"] = [{"neurons": {"indices": who}, "v_mv": v} for v, who in group(enumerate(case.v_mv.tolist())).items()]
    if net.silenced:
        config["silence"] = [{"neurons": {"indices": list(net.silenced)}, "mode": "output"}]
    return config


def called(words):
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(words[:2])} ended with {done.returncode}: {done.stderr}")


def write_graph(net, fascicle, folder):
    """The graph file of a network, made by `fascicle convert`."""
    tables = {name: os.path.join(folder, name + ".csv") for name in ("edges", "nodes")}
    edges = np.stack([net.pre, net.post, net.weight, net.delay], axis=1)
    np.savetxt(tables["edges"], edges, "%d", ",", header="pre,post,weight,delay", comments="")
    with open(tables["nodes"], "w") as file:
        file.write("id\n" + "".join(f"{i}\n" for i in range(net.n)))
    graph = os.path.join(folder, "graph.h5")
    called([fascicle, "convert", "--edges", tables["edges"], "--columns", "pre=pre,post=post,weight=weight,delay=delay",
            "--nodes", tables["nodes"], "--node-columns", "id=id", "--node-rule", "listed", "--duplicates", "keep",
            "--output", graph, "--no-order"])
    return graph


def fascicle_spikes(case, fascicle, folder):
    """[(step, neuron)] of the program."""
    graph, config, output = write_graph(case.net, fascicle, folder), os.path.join(folder, "run.json"), os.path.join(folder, "run")
    with open(config, "w") as file:
        json.dump(dump(case), file)
    called([fascicle, "simulate", graph, "--config", config, "--steps", str(case.steps), "--output", output])
    return spikes_of(os.path.join(output, "spikes.h5"))
