#!/usr/bin/env python3
"""Draw the spikes of a run: a raster of (time, neuron) above the number of spikes in each step.

Usage: raster.py RUN_FOLDER_OR_SPIKES.h5 [--output raster.png] [--first MS] [--last MS] [--max-neurons N]
Needs h5py, numpy and matplotlib."""
import argparse
import os
import sys

import h5py
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np


def load_spikes(path):
    """Times in ms and canonical node ids of a SONATA spikes file, and the time step in ms."""
    with h5py.File(path, "r") as file:
        population = file["spikes"][next(iter(file["spikes"]))]
        times = population["timestamps"][:]
        nodes = population["node_ids"][:]
        dt = float(population.attrs.get("dt_ms", 1.0))
    return times, nodes, dt


def choose_neurons(nodes, most):
    """All neurons that fired, or an even choice of them, and their place on the vertical axis."""
    fired = np.unique(nodes)
    if len(fired) > most:
        fired = fired[np.linspace(0, len(fired) - 1, most).astype(int)]
    return fired


def draw(times, nodes, dt, output, most):
    fired = choose_neurons(nodes, most)
    shown = np.isin(nodes, fired)
    figure, (raster, rate) = plt.subplots(
        2, 1, figsize=(10, 7), sharex=True, gridspec_kw={"height_ratios": [4, 1]}, constrained_layout=True
    )
    size = float(np.clip(20000 / max(1, shown.sum()), 0.3, 6))
    raster.scatter(times[shown], np.searchsorted(fired, nodes[shown]), s=size, c="black", linewidths=0)
    raster.set_ylabel(f"neuron ({len(fired)} that fired, by node id)")
    raster.set_title(f"{len(times)} spikes of {len(np.unique(nodes))} neurons")
    if len(times):
        edges = np.arange(times.min(), times.max() + 2 * dt, dt)
        counts, _ = np.histogram(times, edges - dt / 2)
        rate.step(edges[:-1], counts, where="mid", color="tab:red", linewidth=0.8)
    rate.set_ylabel("spikes a step")
    rate.set_xlabel("time (ms)")
    figure.savefig(output, dpi=150)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run")
    parser.add_argument("--output")
    parser.add_argument("--first", type=float, default=-np.inf, help="ms")
    parser.add_argument("--last", type=float, default=np.inf, help="ms")
    parser.add_argument("--max-neurons", type=int, default=2000)
    options = parser.parse_args()
    path = options.run
    if os.path.isdir(path):
        path = os.path.join(path, "spikes.h5")
    if not os.path.exists(path):
        sys.exit(f"raster.py: {path}: no such file; give a run folder of `fascicle simulate`, or a SONATA spikes file")
    times, nodes, dt = load_spikes(path)
    window = (times >= options.first) & (times <= options.last)
    output = options.output or os.path.join(os.path.dirname(path) or ".", "raster.png")
    draw(times[window], nodes[window], dt, output, options.max_neurons)
    print(f"raster.py: {window.sum()} spikes drawn in {output}")


if __name__ == "__main__":
    main()
