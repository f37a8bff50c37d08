"""Reads a configuration of `fascicle simulate` and a table of edges for the reference; what it does not know it refuses."""
import csv
import json

import numpy as np

from integrate_and_fire import Network, steps_of
from nets import Case

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


def inputs_of(config, n, steps):
    """Tables by step of the neurons that are made to fire and of currents."""
    fires, currents = {}, {}
    for stimulus in config.get("stimulus", []):
        who = neurons_of(stimulus["neurons"], n)
        if stimulus["kind"] == "spikes":
            for k in stimulus["steps"]:
                fires[k] = sorted({*fires.get(k, []), *who})
        elif stimulus["kind"] == "current":
            for k in range(stimulus.get("first_step", 0), min(stimulus.get("last_step", steps), steps - 1) + 1):
                currents.setdefault(k, []).append((np.array(who), float(stimulus["value_pa"])))
        else:
            raise ValueError(f"the reference knows no stimulus of kind {stimulus['kind']}")
    return fires, currents


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
    return Case(name, net, steps, *inputs_of(config, n, steps), v_mv=v, counter=counter)
