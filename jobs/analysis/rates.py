#!/usr/bin/env python3
"""Firing rates by a label of the neurons (type, side, superclass ...): rates_by_LABEL.png and .csv.

Usage: rates.py RUN_FOLDER_OR_SPIKES.h5 [--graph graph.h5] [--by type] [--output PREFIX]
The types stand in spikes.h5; other labels need the graph. Of a run with --trials: the mean over trials and its standard
error. Of a run under way: what it has written so far. Neurons whose spikes were not recorded are left out."""
import argparse
import sys

from fascicle_data import beside, load_graph, load_trials, new_figure, output_names, run_script, save_csv  # says what this Python lacks

import numpy as np


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
    """Rates of the recorded neurons.

    Parameters
    ----------
    spikes : Spikes
    labels : [nodes] text

    Returns
    -------
    names, neurons, spikes, rate : [labels] label, recorded neurons, their spikes, mean rate of one (Hz);
        ascending by label; a label without recorded neurons is left out
    """
    recorded = spikes.recorded_mask(len(labels))
    per_neuron = np.bincount(spikes.node, minlength=len(labels))[recorded]
    names, code = np.unique(np.asarray(labels, dtype=str)[recorded], return_inverse=True)
    neurons = np.bincount(code, minlength=len(names))
    total = np.bincount(code, weights=per_neuron, minlength=len(names)).astype(np.int64)
    return names, neurons, total, total / neurons / spikes.seconds if spikes.seconds else np.zeros(len(names))


def mean_and_error(rates):
    """Mean over trials, and its standard error (empty with one trial); rates [trials, labels] in Hz."""
    n = len(rates)
    error = rates.std(axis=0, ddof=1) / np.sqrt(n) if n > 1 else np.full(rates.shape[1], np.nan)
    return rates.mean(axis=0), error


def draw(output, by, names, neurons, rate, error, most, said):
    n = min(len(names), most)
    figure, axis = new_figure(figsize=(8, 1.5 + 0.22 * n))
    bars = [f"{name or '(none)'} ({k})" for name, k in zip(names[:n], neurons[:n])]
    axis.barh(bars[::-1], rate[:n][::-1], xerr=None if np.isnan(error).all() else error[:n][::-1])
    axis.margins(y=0.01)
    axis.set(xlabel="mean rate of a neuron (Hz)", ylabel=f"{by} (neurons)", title=f"{said} by {by}, {n} of {len(names)} labels")
    figure.savefig(output, dpi=150)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", metavar="RUN", help="run folder of `fascicle simulate`, also with trials, or its spikes.h5")
    parser.add_argument("--graph", metavar="GRAPH.h5", help="the graph that was simulated, for its columns")
    parser.add_argument("--by", metavar="LABEL", default="type", help="which column (type)")
    parser.add_argument("--output", metavar="PREFIX", help="of the .png and .csv, or x.pdf, x.svg (rates_by_LABEL beside the spikes)")
    parser.add_argument("--most", metavar="N", type=int, default=40, help="labels drawn, those of highest rates (40)")
    options = parser.parse_args()
    trials = load_trials(options.run)
    labels = labels_of(trials[0], options)
    names, neurons, _, _ = rates_by_label(trials[0], labels)
    each = [rates_by_label(spikes, labels) for spikes in trials]
    total = sum(trial[2] for trial in each)
    rate, error = mean_and_error(np.stack([trial[3] for trial in each]))
    order = np.lexsort((names, -rate))
    names, neurons, total, rate, error = (column[order] for column in (names, neurons, total, rate, error))
    picture, table = output_names(options.output or beside(options.run, f"rates_by_{options.by}"))
    header, columns = [options.by, "neurons", "spikes", "rate_hz"], [names, neurons, total, rate]
    if len(trials) > 1:
        header, columns = header + ["standard_error_hz", "trials"], columns + [error, np.full(len(names), len(trials))]
    save_csv(table, header, *columns)
    said = f"{total.sum()} spikes" + f" of {len(trials)} trials" * (len(trials) > 1)
    draw(picture, options.by, names, neurons, rate, error, options.most, said)
    unfinished = sum(not spikes.finished for spikes in trials)
    print(f"rates.py: {len(names)} labels in {table} and {picture}" + f"; {unfinished} not finished: spikes so far" * bool(unfinished))


if __name__ == "__main__":
    run_script(main)
