#!/usr/bin/env python3
"""Loss curves of one or more training runs: PREFIX.png and PREFIX.csv.

Usage: plot_loss.py RUN_FOLDER... [--names A,B] [--output PREFIX] [--bigram 2.482]

Thin lines: training loss (mean between two records); thick lines with dots: validation. The dashed line is the loss
of a bigram table, 2.482 nats for the first nine tenths of tinyshakespeare against the rest."""
import argparse
import pathlib
import sys

from fascicle_data import load_metrics, new_figure, output_names, run_script, save_csv  # says what this Python lacks

import numpy as np


def curves(folder):
    """(steps, loss) of training and of validation; where a resumed run repeats steps, the last record counts."""
    found = {"step": {}, "evaluation": {}}
    for line in load_metrics(folder):
        if line["record"] in found:
            found[line["record"]][line["step"]] = line["loss"]
    return [np.array(sorted(points.items()), dtype=float).reshape(-1, 2).T for points in found.values()]


def smooth(x, n):
    """Mean over windows of n, without the ends."""
    return np.convolve(x, np.ones(n) / n, mode="valid") if len(x) >= n else x


def draw(axis, colour, name, training, validation):
    n = max(1, training.shape[1] // 200)
    loss = smooth(training[1], n)
    first = (training.shape[1] - len(loss)) // 2
    axis.plot(training[0][first:first + len(loss)], loss, color=colour, linewidth=0.8, alpha=0.6)
    label = name
    if validation.shape[1]:
        label += f": validation {validation[1].min():.3f} nats at best"
    elif training.shape[1]:
        label += f": training {loss[-1]:.3f} nats at the end"
    axis.plot(*validation, color=colour, marker=".", markersize=4, linewidth=1.6, label=label)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", metavar="RUN_FOLDER", nargs="+", help="of `fascicle train`")
    parser.add_argument("--names", metavar="A,B", help="in the legend, instead of the folders' names")
    parser.add_argument("--output", metavar="PREFIX", default="loss", help="of the .png and .csv, or x.pdf, x.svg (loss)")
    parser.add_argument("--title", default="", help="above the picture")
    parser.add_argument("--bigram", metavar="NATS", type=float, help="draw this loss as a dashed line")
    options = parser.parse_args()
    names = options.names.split(",") if options.names else [pathlib.Path(run).name for run in options.runs]
    if len(names) != len(options.runs):
        sys.exit(f"plot_loss.py: {len(names)} names for {len(options.runs)} runs")
    figure, axis = new_figure(figsize=(8, 5))
    rows = []
    for i, (name, run) in enumerate(zip(names, options.runs)):
        training, validation = curves(run)
        if not training.size and not validation.size:
            sys.exit(f"plot_loss.py: {run}: no losses in its metrics.jsonl; a run folder of `fascicle train` is wanted")
        draw(axis, f"C{i}", name, training, validation)
        for kind, points in (("training", training), ("validation", validation)):
            rows += [(name, kind, int(step), loss) for step, loss in points.T]
    if options.bigram:
        axis.axhline(options.bigram, color="black", linestyle="--", linewidth=0.8, label=f"bigram {options.bigram}")
    axis.set(xlabel="training step", ylabel="loss (nats per character)", title=options.title)
    axis.legend()
    axis.grid(alpha=0.3)
    picture, table = output_names(options.output)
    figure.savefig(picture, dpi=130)
    save_csv(table, ("run", "kind", "step", "nats"), *zip(*rows))
    print(f"plot_loss.py: {len(rows)} points in {table} and {picture}")


if __name__ == "__main__":
    run_script(main)
