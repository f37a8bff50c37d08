"""Read what fascicle writes: graphs, spikes, checkpoints, metrics. Needs h5py and numpy; scipy and pandas only where named.

    from fascicle_data import load_graph, load_spikes
    graph = load_graph("graph.h5")
    matrix = graph.to_scipy()            # CSR, row = postsynaptic, column = presynaptic
    edges, nodes = graph.to_pandas()
    spikes = load_spikes("run")          # run folder or SONATA file: .step, .node, .dt_ms, .body_id, .columns
"""
import csv
import json
import os
import sys
from dataclasses import dataclass, field

import h5py
import numpy as np


class Unreadable(Exception):
    """A file that is not there, or not what it is taken for; the text says which and what to do."""


def open_h5(path, wanted):
    """The HDF5 file for reading; `wanted` says what it should be."""
    if not os.path.exists(path):
        raise Unreadable(f"{path}: no such file; {wanted} is wanted")
    if os.path.isdir(path) or not h5py.is_hdf5(path):
        raise Unreadable(f"{path}: not an HDF5 file; {wanted} is wanted")
    return h5py.File(path, "r")


def text(value):
    return value.decode() if isinstance(value, bytes) else str(value)


@dataclass
class Graph:
    body_id: np.ndarray  # [nodes] u64
    source: np.ndarray  # [edges] presynaptic node id
    target: np.ndarray  # [edges] postsynaptic node id
    count: np.ndarray  # [edges] synapses (all 1 where the file has none)
    impulse: np.ndarray  # [edges] signed weight of the simulation
    delay: np.ndarray  # [edges] steps
    columns: dict = field(default_factory=dict)  # name -> labels or numbers per node
    digest: str = ""
    population: str = ""

    @property
    def n_nodes(self):
        return len(self.body_id)

    def in_degree(self):
        return np.bincount(self.target, minlength=self.n_nodes)

    def out_degree(self):
        return np.bincount(self.source, minlength=self.n_nodes)

    def to_scipy(self, values=None):
        from scipy.sparse import csr_matrix

        values = self.impulse if values is None else values
        return csr_matrix((values, (self.target, self.source)), shape=(self.n_nodes, self.n_nodes))

    def to_pandas(self):
        import pandas

        edges = {"pre": self.body_id[self.source], "post": self.body_id[self.target], "count": self.count}
        edges.update(impulse=self.impulse, delay=self.delay)
        return pandas.DataFrame(edges), pandas.DataFrame({"body_id": self.body_id, **self.columns})


def load_columns(group, n_nodes):
    """Attributes of the nodes; enumerations become arrays of labels."""
    library = group.get("@library", {})
    columns = {}
    for name, dataset in group.items():
        if not isinstance(dataset, h5py.Dataset) or len(dataset) != n_nodes or name == "model_type":
            continue
        values = dataset[:]
        if name in library:
            values = np.array([text(label) for label in library[name][:]], dtype=object)[values]
        columns[name] = values
    return columns


def load_graph(path):
    with open_h5(path, "a graph of `fascicle convert` or `generate`") as file:
        if "nodes" not in file or "edges" not in file:
            raise Unreadable(f"{path}: no /nodes and /edges in it; a graph of `fascicle convert` or `generate` is wanted")
        population = next(iter(file["nodes"]))
        nodes = file["nodes"][population]
        edges = file["edges"][next(iter(file["edges"]))]
        values = edges["0"]
        source = edges["source_node_id"][:].astype(np.int64)
        target = edges["target_node_id"][:].astype(np.int64)
        ones = np.ones(len(source), np.uint32)
        columns = load_columns(nodes["0"], len(nodes["node_type_id"]))
        body_id = columns.pop("body_id", np.arange(len(nodes["node_type_id"]), dtype=np.uint64))
        return Graph(
            body_id=body_id,
            source=source,
            target=target,
            count=values["nsyns"][:] if "nsyns" in values else ones,
            impulse=values["impulse"][:] if "impulse" in values else ones.astype(np.int16),
            delay=values["delay_steps"][:] if "delay_steps" in values else ones.astype(np.uint16),
            columns=columns,
            digest=text(file.attrs.get("graph_digest", "")),
            population=population,
        )


@dataclass
class Spikes:
    step: np.ndarray  # [spikes] i64
    node: np.ndarray  # [spikes] canonical node id
    dt_ms: float
    first_step: int
    n_steps: int
    body_id: np.ndarray = None  # [nodes] u64, None where the file does not say
    columns: dict = field(default_factory=dict)  # "type" -> labels per node, where the file has them
    digest: str = ""  # of the graph


def load_spikes(path):
    if os.path.isdir(path):
        path = os.path.join(path, "spikes.h5")
    with open_h5(path, "a run folder of `fascicle simulate`, or a SONATA spikes file,") as file:
        if "spikes" not in file:
            raise Unreadable(f"{path}: no /spikes in it; a run folder of `fascicle simulate` is wanted")
        group = file["spikes"][next(iter(file["spikes"]))]
        dt = float(group.attrs.get("dt_ms", 1.0))
        node = group["node_ids"][:].astype(np.int64)
        if "step" in group:
            step = group["step"][:].astype(np.int64)
        else:
            step = np.rint(group["timestamps"][:] / dt).astype(np.int64)
        first = int(group.attrs.get("first_step", 0))
        last = int(group.attrs.get("last_step", step.max() if len(step) else first))
        body_id = file["body_id"][:] if "body_id" in file else None
        columns = {}
        if "type" in file and "type_label" in file:
            columns["type"] = np.array([text(label) for label in file["type_label"][:]], dtype=object)[file["type"][:]]
        return Spikes(step, node, dt, first, last - first + 1, body_id, columns, text(group.attrs.get("graph_digest", "")))


def load_metrics(path):
    """The records of metrics.jsonl (run folder or file), as a list of dictionaries."""
    if os.path.isdir(path):
        path = os.path.join(path, "metrics.jsonl")
    if not os.path.exists(path):
        raise Unreadable(f"{path}: no such file; a run folder of `fascicle train` or `simulate` is wanted")
    with open(path) as file:
        try:
            return [json.loads(line) for line in file if line.strip()]
        except ValueError as error:
            raise Unreadable(f"{path}: not lines of JSON ({error}); a metrics.jsonl is wanted") from error


def save_csv(path, header, *columns):
    """Columns of equal length under a header; texts that hold commas or quotes are quoted."""
    with open(path, "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(zip(*columns))


def beside(run, name):
    """`name` in the run folder, or beside its spikes file."""
    return os.path.join(run if os.path.isdir(run) else os.path.dirname(run), name)


def run_script(main):
    """main(), with one line for what cannot be read or written in place of a traceback."""
    try:
        main()
    except (Unreadable, OSError) as error:
        sys.exit(f"{os.path.basename(sys.argv[0])}: {error}")


def new_figure(*shape, **options):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    return plt.subplots(*shape, constrained_layout=True, **options)
