#!/usr/bin/env python3
"""In- and out-degree distributions of a graph: degrees.png and degrees.csv.

Usage: degrees.py graph.h5 [--output PREFIX]"""
import argparse

from fascicle_data import load_graph, new_figure, output_names, run_script, save_csv  # says what this Python lacks

import numpy as np


def survival(degree):
    """Sorted degrees and the share of neurons with at least that many."""
    ordered = np.sort(degree)
    return ordered, 1 - np.arange(len(ordered)) / len(ordered)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("graph", metavar="GRAPH.h5")
    parser.add_argument("--output", metavar="PREFIX", default="degrees", help="of the .png and .csv, or x.pdf, x.svg (degrees)")
    options = parser.parse_args()
    graph = load_graph(options.graph)
    figure, axis = new_figure(figsize=(7, 5))
    for name, degree in (("in-degree", graph.in_degree()), ("out-degree", graph.out_degree())):
        ordered, share = survival(degree)
        axis.loglog(np.maximum(ordered, 0.5), share, label=f"{name}: mean {degree.mean():.1f}, max {degree.max()}")
        print(f"{name}: min {degree.min()} median {np.median(degree):g} mean {degree.mean():.2f} max {degree.max()}")
    axis.set(xlabel="degree (edges)", ylabel="share of neurons with at least this degree")
    axis.set_title(f"{graph.n_nodes} neurons, {len(graph.source)} edges")
    axis.legend()
    picture, table = output_names(options.output)
    figure.savefig(picture, dpi=150)
    save_csv(table, ("body_id", "in_degree", "out_degree"), graph.body_id, graph.in_degree(), graph.out_degree())
    print(f"degrees.py: {graph.n_nodes} neurons in {table} and {picture}")


if __name__ == "__main__":
    run_script(main)
