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

try:
    import h5py
    import numpy as np
except ImportError as missing:
    if os.path.dirname(os.path.abspath(sys.argv[0])) != os.path.dirname(os.path.abspath(__file__)):
        raise
    sys.exit(f"{os.path.basename(sys.argv[0])}: this Python has no {missing.name}; h5py, numpy and matplotlib are needed "
             f"({sys.executable} -m pip install h5py numpy matplotlib, or Debian's for /usr/bin/python3)")


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
    recorded: np.ndarray = None  # node ids whose spikes were recorded, ascending; None: all
    ranks: int = 1  # that wrote
    finished: bool = True  # False: what a run under way has written so far

    @property
    def seconds(self):
        return self.n_steps * self.dt_ms / 1000

    def recorded_mask(self, n_nodes):
        """[n_nodes] bool: whose spikes were recorded. A neuron that was not may have fired."""
        mask = np.full(n_nodes, self.recorded is None)
        if self.recorded is not None:
            mask[self.recorded] = True
        return mask


def trial_folders(run):
    """The folders trial_0, trial_1 .. of a run with --trials, in order; none for another run or a file."""
    folders = []
    while os.path.isdir(os.path.join(run, f"trial_{len(folders)}")):
        folders.append(os.path.join(run, f"trial_{len(folders)}"))
    return folders


def load_names(file, spikes):
    """body_id, labels and the recorded neurons, from a merged file or neurons.h5, into `spikes`."""
    spikes.body_id = file["body_id"][:] if "body_id" in file else None
    if "type" in file and "type_label" in file:
        spikes.columns["type"] = np.array([text(label) for label in file["type_label"][:]], dtype=object)[file["type"][:]]
    if "recorded" in file:
        spikes.recorded = file["recorded"][:].astype(np.int64)


def load_segments(run):
    """What a run under way, or one that was killed, has on disk: the steps that all its ranks have written."""
    folder = os.path.join(run, "trace")
    names = sorted(name for name in os.listdir(folder) if name.endswith(".h5")) if os.path.isdir(folder) else []
    parts = [load_spikes(os.path.join(folder, name)) for name in names]
    if not parts:
        raise Unreadable(f"{run}: no spikes in it yet; a run folder of `fascicle simulate` is wanted")
    ranks = max(parts, key=lambda part: part.first_step).ranks  # after a resume there may be others than before
    ends = dict.fromkeys(range(ranks), 0)
    for name, part in zip(names, parts):  # spikes.rRRRR.sSSSSSS.h5
        rank = int(name.split(".")[1][1:])
        if rank < ranks:
            ends[rank] = max(ends[rank], part.first_step + part.n_steps)
    first, end = min(part.first_step for part in parts), min(ends.values())
    step, node = (np.concatenate([getattr(part, key) for part in parts]) for key in ("step", "node"))
    order = np.lexsort((node, step))
    order = order[step[order] < end]
    spikes = Spikes(step[order], node[order], parts[0].dt_ms, first, end - first, digest=parts[0].digest, finished=False)
    for place in (run, os.path.dirname(os.path.abspath(run))):
        if os.path.exists(os.path.join(place, "neurons.h5")):
            with open_h5(os.path.join(place, "neurons.h5"), "the neurons of a run") as file:
                load_names(file, spikes)
            break
    return spikes


def load_spikes(path):
    """Spikes of a run folder (merged, or so far), or of a SONATA spikes file."""
    if os.path.isdir(path):
        if trial_folders(path):
            raise Unreadable(f"{path}: holds trials; give one of them, such as {os.path.join(path, 'trial_0')}")
        if not os.path.exists(os.path.join(path, "spikes.h5")):
            return load_segments(path)
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
        spikes = Spikes(step, node, dt, first, last - first + 1, digest=text(group.attrs.get("graph_digest", "")))
        load_names(file, spikes)
        spikes.ranks = int(group.attrs.get("ranks", 1))
        return spikes


def load_trials(path):
    """[trials] of Spikes: of each trial of a run folder, or the one of another run or file."""
    return [load_spikes(folder) for folder in trial_folders(path) or [path]]


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


def output_names(output):
    """Paths of picture and table: OUTPUT.png and OUTPUT.csv, or with an ending of its own x.pdf and x.csv."""
    stem, ending = os.path.splitext(output)
    if ending.lower() in (".png", ".pdf", ".svg", ".eps", ".jpg", ".jpeg"):
        return output, stem + ".csv"
    return output + ".png", (stem if ending.lower() == ".csv" else output) + ".csv"


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
    try:
        import matplotlib
    except ImportError:
        raise Unreadable(f"this Python ({sys.executable}) has no matplotlib; python3 -m pip install matplotlib") from None
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    return plt.subplots(*shape, constrained_layout=True, **options)
