#!/usr/bin/env python3
"""Draw the spikes of a run: a raster of (time, neuron) above the number of spikes in each step (raster.png, raster.csv).

Usage: raster.py RUN_FOLDER_OR_SPIKES.h5 [--output PREFIX] [--first MS] [--last MS] [--max-neurons N]
Needs h5py, numpy and matplotlib."""
import argparse

from fascicle_data import beside, load_spikes, new_figure, output_names, run_script, save_csv  # says what this Python lacks

import numpy as np


def choose_neurons(nodes, most):
    """All neurons that fired, or an even choice of them: one line of the raster each."""
    fired = np.unique(nodes)
    if len(fired) > most:
        fired = fired[np.linspace(0, len(fired) - 1, most).astype(int)]
    return fired


def draw(spikes, shown, output, most):
    step, node = spikes.step[shown], spikes.node[shown]
    fired = choose_neurons(node, most)
    drawn = np.isin(node, fired)
    figure, (raster, rate) = new_figure(2, 1, figsize=(10, 7), sharex=True, gridspec_kw={"height_ratios": [4, 1]})
    size = float(np.clip(20000 / max(1, drawn.sum()), 0.3, 6))
    raster.scatter(step[drawn] * spikes.dt_ms, np.searchsorted(fired, node[drawn]), s=size, c="black", linewidths=0)
    raster.set_ylabel(f"{len(fired)} neurons that fired, by node id")
    raster.set_title(f"{len(step)} spikes of {len(np.unique(node))} neurons")
    first = int(step.min()) if len(step) else 0
    counts = np.bincount(step - first) if len(step) else np.zeros(0, int)
    steps = first + np.arange(len(counts))
    rate.step(steps * spikes.dt_ms, counts, where="mid", color="tab:red", linewidth=0.8)
    rate.set(ylabel=f"spikes per step\n({spikes.dt_ms:g} ms)", xlabel="time (ms)")
    picture, table = output_names(output)
    figure.savefig(picture, dpi=150)
    save_csv(table, ("step", "spikes"), steps, counts)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", metavar="RUN", help="run folder of `fascicle simulate`, or a SONATA spikes file")
    parser.add_argument("--output", metavar="PREFIX", help="of the .png and .csv, or x.pdf, x.svg (raster beside the spikes)")
    parser.add_argument("--first", metavar="MS", type=float, default=-np.inf, help="draw from this time on")
    parser.add_argument("--last", metavar="MS", type=float, default=np.inf, help="draw up to this time")
    parser.add_argument("--max-neurons", metavar="N", type=int, default=2000, help="lines of the raster at most (2000)")
    options = parser.parse_args()
    spikes = load_spikes(options.run)
    shown = (spikes.step * spikes.dt_ms >= options.first) & (spikes.step * spikes.dt_ms <= options.last)
    output = options.output or beside(options.run, "raster")
    draw(spikes, shown, output, options.max_neurons)
    print(f"raster.py: {shown.sum()} spikes drawn in {output_names(output)[0]}")


if __name__ == "__main__":
    run_script(main)
