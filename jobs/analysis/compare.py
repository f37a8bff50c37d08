#!/usr/bin/env python3
"""Do two runs have the same spikes? If not: the first difference, and with --output how the numbers part (PREFIX.png, PREFIX.csv).

Usage: compare.py RUN_A RUN_B [--output PREFIX]      exit code 0 = the same, 1 = different"""
import argparse
import sys

from fascicle_data import load_spikes, new_figure, output_names, run_script, save_csv  # says what this Python lacks

import numpy as np


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


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("a", metavar="RUN_A", help="run folder or spikes.h5")
    parser.add_argument("b", metavar="RUN_B", help="the other")
    parser.add_argument("--output", metavar="PREFIX", help="write PREFIX.png (or x.pdf, x.svg) and PREFIX.csv: spikes so far, step by step")
    options = parser.parse_args()
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
