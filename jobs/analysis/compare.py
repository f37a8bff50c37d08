#!/usr/bin/env python3
"""Do two runs have the same spikes? If not: the first difference, and with --output how the numbers part (PREFIX.png, PREFIX.csv).

Usage: compare.py RUN_A RUN_B [--output PREFIX]      exit code 0 = the same, 1 = different
       compare.py RUN_A RUN_B --by type [--graph graph.h5] [--output PREFIX]
With --by: mean rates of both by a label, their difference (B - A), and where both have trials its standard error
and Welch's t, as tab-separated lines or in PREFIX.csv with a picture; exit code 0."""
import argparse
import sys

from fascicle_data import Unreadable, load_graph, load_spikes, load_trials, new_figure, output_names, run_script, save_csv

import numpy as np
from rates import mean_and_error, rates_by_label


def pairs(spikes):
    """Spikes as sorted (step, node) rows."""
    order = np.lexsort((spikes.node, spikes.step))
    return np.stack([spikes.step[order], spikes.node[order]], axis=1)


def first_difference(a, b):
    """Index of the first row in which the two lists differ; None when they are the same."""
    n = min(len(a), len(b))
    differ = np.flatnonzero((a[:n] != b[:n]).any(axis=1))
    if len(differ):
        return int(differ[0])
    return None if len(a) == len(b) else n


def labels_for(trials, options):
    """[nodes] the label of each neuron; both runs are of one graph."""
    source = load_graph(options.graph) if options.graph else trials[0]
    of = options.graph or options.a
    if options.by not in source.columns:
        raise Unreadable(f"{of} has no column '{options.by}'; it has {', '.join(source.columns) or 'none'} (--graph graph.h5 may have more)")
    if len({digest for digest in (source.digest, *(t.digest for t in trials)) if digest}) > 1:
        raise Unreadable(f"{options.a}, {options.b}{' and ' + options.graph if options.graph else ''} are not of one graph: their graph_digest differ")
    return source.columns[options.by]


def compare_by_label(a, b, labels):
    """Rates of two runs by label.

    Parameters
    ----------
    a, b : [trials] of Spikes, of the same recorded neurons
    labels : [nodes] text

    Returns
    -------
    names, neurons : [labels] label, recorded neurons; greatest difference first
    rate_a, rate_b, difference : [labels] mean over trials (Hz), and B - A
    error, t : [labels] standard error of the difference (Hz) from the variances over trials, and difference / error
        (Welch's t); not a number where a run has one trial, t also where nothing varies
    """
    each = [[rates_by_label(spikes, labels) for spikes in trials] for trials in (a, b)]
    names, neurons = each[0][0][:2]
    for trial in (*each[0], *each[1]):
        if not np.array_equal(trial[0], names) or not np.array_equal(trial[1], neurons):
            raise Unreadable("the two runs recorded different neurons (record.spikes): their rates by label do not compare")
    (rate_a, error_a), (rate_b, error_b) = (mean_and_error(np.stack([trial[3] for trial in trials])) for trials in each)
    difference, error = rate_b - rate_a, np.hypot(error_a, error_b)
    t = np.divide(difference, error, out=np.full(len(names), np.nan), where=error > 0)
    order = np.lexsort((names, -np.abs(difference)))
    return tuple(column[order] for column in (names, neurons, rate_a, rate_b, difference, error, t))


def draw_by_label(picture, options, rate_a, rate_b, error):
    """The two rates of each label against each other."""
    figure, axis = new_figure(figsize=(5, 5))
    most = max(rate_a.max(initial=0), rate_b.max(initial=0)) or 1
    axis.plot([0, most], [0, most], color="0.7", linewidth=1)
    axis.errorbar(rate_a, rate_b, yerr=None if np.isnan(error).all() else error, fmt="o", markersize=4)
    axis.set(xlabel=f"{options.a}: mean rate (Hz)", ylabel=f"{options.b}: mean rate (Hz)", title=f"by {options.by}; bars: error of the difference")
    figure.savefig(picture, dpi=150)


def report_by_label(options):
    a, b = load_trials(options.a), load_trials(options.b)
    columns = compare_by_label(a, b, labels_for([*a, *b], options))
    header = (options.by, "neurons", "rate_a_hz", "rate_b_hz", "difference_hz", "standard_error_hz", "welch_t")
    if not options.output:
        print("\n".join("\t".join(map(str, row)) for row in (header, *zip(*columns))))
        return
    picture, table = output_names(options.output)
    save_csv(table, header, *columns)
    draw_by_label(picture, options, columns[2], columns[3], columns[5])
    print(f"compare.py: {len(columns[0])} labels, {len(a)} and {len(b)} trials, in {table} and {picture}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("a", metavar="RUN_A", help="run folder or spikes.h5")
    parser.add_argument("b", metavar="RUN_B", help="the other")
    parser.add_argument("--output", metavar="PREFIX", help="write PREFIX.png (or x.pdf, x.svg) and PREFIX.csv: spikes so far, step by step")
    parser.add_argument("--by", metavar="LABEL", help="compare rates by this column of the neurons instead; also of folders of trials")
    parser.add_argument("--graph", metavar="GRAPH.h5", help="with --by: the graph that was simulated, for its columns")
    options = parser.parse_args()
    if options.by:
        report_by_label(options)
        return
    spikes = load_spikes(options.a), load_spikes(options.b)
    a, b = (pairs(s) for s in spikes)
    at = first_difference(a, b)
    if options.output:
        steps = np.arange(max(s.first_step + s.n_steps for s in spikes))
        counts = [np.bincount(s.step, minlength=len(steps)) for s in spikes]
        picture, table = output_names(options.output)
        save_csv(table, ("step", "spikes_a", "spikes_b"), steps, *counts)
        figure, axis = new_figure(figsize=(9, 4))
        axis.plot(steps, np.cumsum(counts[0]), label=options.a)
        axis.plot(steps, np.cumsum(counts[1]), label=options.b, linestyle="--")
        axis.set(xlabel=f"step ({spikes[0].dt_ms:g} ms)", ylabel="spikes so far")
        axis.legend()
        figure.savefig(picture, dpi=150)
    if at is None:
        print(f"compare.py: the same {len(a)} spikes")
        return
    show = lambda rows: f"step {rows[at][0]}, node {rows[at][1]}" if at < len(rows) else "no more spikes"
    sys.exit(f"compare.py: {len(a)} and {len(b)} spikes; first difference at spike {at}: {show(a)} against {show(b)}")


if __name__ == "__main__":
    run_script(main)
