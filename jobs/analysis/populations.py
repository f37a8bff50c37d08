#!/usr/bin/env python3
"""Rates, irregularity and synchrony of each population, of one run or of several beside each other: a table, also as CSV.

Usage: populations.py RUN_FOLDER_OR_SPIKES.h5 [--beside OTHER] ... [--published FILE.json] [--from-ms 500] [--output TABLE.csv]

rate: spikes a second of a neuron. CV: of its intervals, mean over neurons with at least 5 spikes. synchrony: variance over mean of
the spikes of up to 1,000 neurons of the population in bins of 3 ms (1: as if they fired independently)."""
import argparse
import json
import os
import sys

from fascicle_data import Unreadable, load_graph, load_spikes, run_script, save_csv  # says what this Python lacks

import numpy as np

MEASURES = ("rate", "CV", "synchrony")


def mean_cv(step, node, least):
    """Mean coefficient of variation of the intervals of neurons with at least `least` spikes; nan without one.

    Parameters
    ----------
    step, node : [spikes] of one population
    """
    order = np.lexsort((step, node))
    step, node = step[order].astype(float), node[order]
    interval = np.diff(step)[np.diff(node) == 0]
    owner = node[1:][np.diff(node) == 0]
    _, code = np.unique(owner, return_inverse=True)
    n = np.bincount(code)
    mean = np.bincount(code, interval) / np.maximum(n, 1)
    variance = np.maximum(np.bincount(code, interval**2) / np.maximum(n, 1) - mean**2, 0)
    enough = n >= least - 1
    return (np.sqrt(variance[enough]) / mean[enough]).mean() if enough.any() else np.nan


def synchrony(step, n_steps, bin_steps):
    """Variance over mean of the number of spikes in a bin; nan without spikes."""
    counts = np.bincount(step // bin_steps, minlength=n_steps // bin_steps)[:n_steps // bin_steps]
    return counts.var() / counts.mean() if counts.sum() else np.nan


def measure(spikes, labels, options):
    """{label: (rate, CV, synchrony)} of the neurons that were recorded."""
    skipped = round(options.from_ms / spikes.dt_ms) - spikes.first_step
    n_steps, bin_steps = spikes.n_steps - max(skipped, 0), max(1, round(options.bin_ms / spikes.dt_ms))
    if n_steps < bin_steps:
        raise Unreadable(f"--from-ms {options.from_ms:g}: the run ends before that")
    step = spikes.step - spikes.first_step - max(skipped, 0)
    node, step = spikes.node[step >= 0], step[step >= 0]
    recorded, found = spikes.recorded_mask(len(labels)), {}
    for label in np.unique(labels[recorded].astype(str)):
        members = np.flatnonzero(recorded & (labels == label))
        inside = np.isin(node, members)
        sample = np.isin(node, members[:options.sample])
        rate = inside.sum() / len(members) / (n_steps * spikes.dt_ms / 1000)
        found[label] = (rate, mean_cv(step[inside], node[inside], options.least), synchrony(step[sample], n_steps, bin_steps))
    return found


def labels_of(path, spikes, options):
    source = load_graph(options.graph) if options.graph else spikes
    if options.by not in source.columns:
        sys.exit(f"populations.py: {options.graph or path} has no column '{options.by}'; it has {', '.join(source.columns) or 'none'}"
                 + ("" if options.graph else "; --graph graph.h5 may have more"))
    return source.columns[options.by]


def published_rates(path):
    if not path:
        return {}
    try:
        with open(path) as file:
            return json.load(file)["rates_hz"]
    except (ValueError, KeyError) as error:
        raise Unreadable(f"{path}: no JSON with \"rates_hz\": {{label: Hz}} ({error})") from error


def names_of(paths):
    """Short names for the columns: the last part of each path that tells them apart."""
    return [os.path.basename(os.path.dirname(os.path.abspath(p)) if os.path.basename(p) == "spikes.h5" else os.path.normpath(p))
            for p in paths]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", metavar="RUN", help="run folder of `fascicle simulate`, or a SONATA spikes file with labels")
    parser.add_argument("--beside", metavar="RUN", action="append", default=[], help="another, for a column of its own")
    parser.add_argument("--published", metavar="FILE", help='JSON with "rates_hz": {label: Hz}, for a column of its own')
    parser.add_argument("--graph", metavar="GRAPH.h5", help="the graph, for other labels than types")
    parser.add_argument("--by", metavar="LABEL", default="type", help="which column says the population (type)")
    parser.add_argument("--from-ms", metavar="MS", type=float, default=500, help="leave out what is before (500)")
    parser.add_argument("--bin-ms", metavar="MS", type=float, default=3, help="bins of the synchrony (3)")
    parser.add_argument("--sample", metavar="N", type=int, default=1000, help="neurons of a population for the synchrony (1000)")
    parser.add_argument("--least", metavar="N", type=int, default=5, help="spikes that a neuron must have for its CV (5)")
    parser.add_argument("--output", metavar="TABLE.csv", help="also as CSV")
    options = parser.parse_args()
    paths, published = [options.run, *options.beside], published_rates(options.published)
    runs = [measure(spikes, labels_of(path, spikes, options), options) for path, spikes in ((p, load_spikes(p)) for p in paths)]
    header = [options.by] + [f"{measure} {name}" for measure in MEASURES for name in names_of(paths)]
    header += ["rate published"] if published else []
    rows = []
    for label in sorted(set().union(*runs)):
        row = [f"{run.get(label, (np.nan,) * 3)[k]:.3f}" for k in range(len(MEASURES)) for run in runs]
        rows.append([label, *row] + ([str(published.get(label, "-"))] if published else []))
    width = [max(len(row[k]) for row in [header, *rows]) for k in range(len(header))]
    for row in [header, *rows]:
        print("  ".join(cell.rjust(n) for cell, n in zip(row, width)))
    if options.output:
        save_csv(options.output, header, *zip(*rows))


if __name__ == "__main__":
    run_script(main)
