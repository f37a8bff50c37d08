#!/usr/bin/env python3
"""The experiments of jobs/shiu.sh beside the published values: rates as mean +- standard deviation over trials; also as CSV.

Usage: shiu_table.py FOLDER/experiments.json, as jobs/shiu.sh leaves it

rate: of the neuron that the experiment reads. driven: mean rate of the neurons that are driven. neurons: that fire in any trial.
spikes: of a trial."""
import argparse
import json
import os
import sys

from fascicle_data import Unreadable, load_trials, run_script, save_csv  # says what this Python lacks

import numpy as np

COLUMNS = ("rate_hz", "driven_hz", "neurons", "spikes")
HEADER = ["experiment", "read", "trials", "rate (Hz)", "published", "driven (Hz)", "published", "neurons", "published", "spikes",
          "published"]


def members(spikes, neurons):
    """[nodes] bool: those whom {"body_ids": .., "types": ..} names."""
    mask = np.isin(spikes.body_id, np.array([int(body) for body in neurons.get("body_ids", [])], np.uint64))
    for key, values in neurons.items():
        if key == "types":
            mask |= np.isin(spikes.columns["type"].astype(str), values)
        elif key != "body_ids":
            sys.exit(f"shiu_table.py: neurons by \"{key}\" cannot be found in a run; name them by body_ids or types")
    return mask


def rates(trials, mask):
    """[trials] mean rate of a neuron of the mask, in Hz."""
    return np.array([mask[spikes.node].sum() / mask.sum() / spikes.seconds for spikes in trials])


def measure(experiment):
    """Mean and standard deviation over trials of each column; its trials."""
    trials = load_trials(experiment["run"])
    if not all(spikes.finished and spikes.seconds for spikes in trials):
        raise Unreadable(f"{experiment['run']}: not finished; the same command of jobs/shiu.sh goes on with it")
    read, driven = (rates(trials, members(trials[0], experiment[key])) for key in ("read", "drive"))
    fired = np.unique(np.concatenate([spikes.node for spikes in trials]))
    counts = np.array([len(spikes.step) for spikes in trials])
    found = {"rate_hz": (read.mean(), read.std()), "driven_hz": (driven.mean(), driven.std()), "neurons": (len(fired), None),
             "spikes": (counts.mean(), counts.std())}
    return found, len(trials)


def shown(value, sd, digits):
    return f"{value:.{digits}f}" + (f" +- {sd:.{digits}f}" if sd is not None else "")


def row_of(experiment):
    found, n = measure(experiment)
    published, row = experiment.get("published", {}), [experiment["name"], experiment["group"], str(n)]
    for column in COLUMNS:
        digits = 0 if column == "neurons" else 1 if column == "spikes" else 2
        row.append(shown(*found[column], digits))
        value = published.get(column)
        row.append("-" if value is None else shown(value, published.get("sd") if column == "rate_hz" else None, digits))
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("experiments", metavar="experiments.json")
    options = parser.parse_args()
    if not os.path.exists(options.experiments):
        raise Unreadable(f"{options.experiments}: no such file; jobs/shiu.sh makes it")
    with open(options.experiments) as file:
        listed = json.load(file)["experiments"]
    rows = [HEADER] + [row_of(experiment) for experiment in listed]
    width = [max(len(row[k]) for row in rows) for k in range(len(HEADER))]
    for row in rows:
        print("  ".join(cell.ljust(n) for cell, n in zip(row, width)).rstrip())
    save_csv(os.path.join(os.path.dirname(options.experiments), "table.csv"), HEADER, *zip(*rows[1:]))


if __name__ == "__main__":
    run_script(main)
