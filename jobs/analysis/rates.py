#!/usr/bin/env python3
"""Firing rates by a label of the neurons (type, side, superclass ...): rates_by_LABEL.png and .csv.

Usage: rates.py RUN_FOLDER_OR_SPIKES.h5 [--graph graph.h5] [--by type] [--output PREFIX]
The types stand in spikes.h5; other labels need the graph."""
import argparse
import sys

import numpy as np
from fascicle_data import beside, load_graph, load_spikes, new_figure, run_script, save_csv


def labels_of(spikes, options):
    """A label for each neuron, and the word for them."""
    source = load_graph(options.graph) if options.graph else spikes
    if options.by not in source.columns:
        remedy = "" if options.graph else "; --graph graph.h5 may have more"
        sys.exit(f"rates.py: {options.graph or options.run} has no column '{options.by}'; "
                 f"it has {', '.join(source.columns) or 'none'}{remedy}")
    if source is not spikes and spikes.digest not in ("", source.digest):
        sys.exit(f"rates.py: {options.graph} is not the graph of {options.run}: their graph_digest differ")
    return source.columns[options.by]


def rates_by_label(spikes, labels):
    """Label, neurons, spikes, mean rate in Hz per neuron; highest rate first."""
    seconds = spikes.n_steps * spikes.dt_ms / 1000
    per_neuron = np.bincount(spikes.node, minlength=len(labels))
    names, code = np.unique(np.asarray(labels, dtype=str), return_inverse=True)
    neurons = np.bincount(code)
    total = np.bincount(code, weights=per_neuron).astype(np.int64)
    rate = total / neurons / seconds
    order = np.lexsort((names, -rate))
    return names[order], neurons[order], total[order], rate[order]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", metavar="RUN", help="run folder of `fascicle simulate`, or its spikes.h5")
    parser.add_argument("--graph", metavar="GRAPH.h5", help="the graph that was simulated, for its columns")
    parser.add_argument("--by", metavar="LABEL", default="type", help="which column (type)")
    parser.add_argument("--output", metavar="PREFIX", help="of the .png and .csv (rates_by_LABEL beside the spikes)")
    parser.add_argument("--most", metavar="N", type=int, default=40, help="labels drawn, those of highest rates (40)")
    options = parser.parse_args()
    spikes = load_spikes(options.run)
    output = options.output or beside(options.run, f"rates_by_{options.by}")
    names, neurons, total, rate = rates_by_label(spikes, labels_of(spikes, options))
    save_csv(output + ".csv", (options.by, "neurons", "spikes", "rate_hz"), names, neurons, total, rate)
    n = min(len(names), options.most)
    figure, axis = new_figure(figsize=(8, 1 + 0.22 * n))
    axis.barh([f"{name or '(none)'} ({k})" for name, k in zip(names[:n], neurons[:n])][::-1], rate[:n][::-1])
    axis.margins(y=0.01)
    axis.set(xlabel="mean rate of a neuron (Hz)", ylabel=f"{options.by} (neurons)", title=f"{total.sum()} spikes by {options.by}, {n} of {len(names)} labels")
    figure.savefig(output + ".png", dpi=150)
    print(f"rates.py: {len(names)} labels in {output}.csv and .png")


if __name__ == "__main__":
    run_script(main)
