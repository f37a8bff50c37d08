#!/usr/bin/env python3
"""How training has changed the weights of the edges: weights.png and weights.csv.

Usage: weights.py CHECKPOINT_BEFORE CHECKPOINT_AFTER [--output PREFIX]
Both must belong to the same graph in the same order; the values are theta, one per edge in file order."""
import argparse
import json
import sys

from fascicle_data import new_figure, open_h5, output_names, run_script, save_csv, text  # says what this Python lacks

import numpy as np


def load(path):
    with open_h5(path, "a checkpoint of `fascicle train`") as file:
        if "edge/theta" not in file:
            sys.exit(f"weights.py: {path}: no edge/theta in it; give a checkpoint of `fascicle train`")
        return json.loads(text(file.attrs["meta"])), file["edge/theta"][:]


def summary(before, after):
    """Rows of name and number about the change."""
    change = after - before
    yield "edges", len(before)
    yield "rms_before", float(np.sqrt(np.mean(before**2)))
    yield "rms_after", float(np.sqrt(np.mean(after**2)))
    yield "rms_change", float(np.sqrt(np.mean(change**2)))
    yield "largest_change", float(np.abs(change).max())
    yield "sign_flips", int(np.sum(before * after < 0))
    yield "correlation", float(np.corrcoef(before, after)[0, 1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", metavar="CHECKPOINT_BEFORE", help="such as run/checkpoints/step_00001000.h5")
    parser.add_argument("after", metavar="CHECKPOINT_AFTER", help="a later one")
    parser.add_argument("--output", metavar="PREFIX", default="weights", help="of the .png and .csv, or x.pdf, x.svg (weights)")
    options = parser.parse_args()
    (first, before), (second, after) = load(options.before), load(options.after)
    for key in ("graph_digest", "order_digest"):
        if first[key] != second[key]:
            sys.exit(f"weights.py: the two checkpoints differ in {key}; they are not of the same graph file")
    rows = list(summary(before, after))
    picture, table = output_names(options.output)
    save_csv(table, ("figure", "value"), *zip(*rows))
    figure, (values, change) = new_figure(1, 2, figsize=(10, 4))
    bins = np.linspace(*np.percentile(np.concatenate([before, after]), [0.1, 99.9]), 120)
    values.hist(before, bins, histtype="step", label=f"step {first['step']}")
    values.hist(after, bins, histtype="step", label=f"step {second['step']}")
    values.set(xlabel="theta (dimensionless)", ylabel="edges", title="values")
    values.legend()
    change.hist(after - before, 120, color="tab:red")
    change.set(xlabel="change of theta", ylabel="edges", yscale="log", title="change")
    figure.savefig(picture, dpi=150)
    print("weights.py: " + ", ".join(f"{name} {value:.6g}" for name, value in rows) + f"; in {table} and {picture}")


if __name__ == "__main__":
    run_script(main)
