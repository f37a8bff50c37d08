#!/usr/bin/env python3
"""Firing rates by a label of the neurons (type, side, superclass ...): rates.png and rates.csv.

Usage: rates.py RUN_FOLDER_OR_SPIKES.h5 --graph graph.h5 [--by type] [--output PREFIX]"""
import argparse
import sys

import numpy as np
from fascicle_data import load_graph, load_spikes, new_figure, save_csv


def rates_by_label(spikes, graph, labels):
    """Label, neurons, spikes, mean rate in Hz per neuron; highest rate first."""
    seconds = spikes.n_steps * spikes.dt_ms / 1000
    per_neuron = np.bincount(spikes.node, minlength=graph.n_nodes)
    names, code = np.unique(np.asarray(labels, dtype=str), return_inverse=True)
    neurons = np.bincount(code)
    total = np.bincount(code, weights=per_neuron).astype(np.int64)
    rate = total / neurons / seconds
    order = np.lexsort((names, -rate))
    return names[order], neurons[order], total[order], rate[order]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run")
    parser.add_argument("--graph", required=True)
    parser.add_argument("--by", default="type")
    parser.add_argument("--output", default="rates")
    parser.add_argument("--most", type=int, default=40, help="labels drawn")
    options = parser.parse_args()
    graph, spikes = load_graph(options.graph), load_spikes(options.run)
    if options.by not in graph.columns:
        sys.exit(f"rates.py: {options.graph} has no column '{options.by}'; it has {', '.join(graph.columns) or 'none'}")
    names, neurons, total, rate = rates_by_label(spikes, graph, graph.columns[options.by])
    save_csv(options.output + ".csv", (options.by, "neurons", "spikes", "rate_hz"), names, neurons, total, rate)
    n = min(len(names), options.most)
    figure, axis = new_figure(figsize=(8, 1 + 0.22 * n))
    axis.barh([f"{name or '(none)'} ({k})" for name, k in zip(names[:n], neurons[:n])][::-1], rate[:n][::-1])
    axis.set(xlabel="mean rate (Hz)", title=f"{total.sum()} spikes by {options.by}, {n} of {len(names)} labels")
    figure.savefig(options.output + ".png", dpi=150)
    print(f"rates.py: {len(names)} labels in {options.output}.csv")


if __name__ == "__main__":
    main()
