#!/usr/bin/env python3
"""The fly experiments of Shiu et al. (Nature 634, 210-219, 2024): tables to graph, runs, and a table beside the published values.

    jobs/shiu.sh --edges connections.csv.gz --nodes neurons.csv.gz --transmitters neurons.csv.gz       FlyWire, from Codex
    jobs/shiu.sh --edges Connectivity_783.parquet --nodes Completeness_783.csv         FlyWire, as the authors publish it, with signs
    jobs/shiu.sh --edges connectome-weights.feather --nodes body-annotations.feather --transmitters body-neurotransmitters.feather \\
        --experiments mine.json -- --node-rule superclass                              MaleCNS: its neurons named by you
    jobs/shiu.sh --graph flywire.h5                                                    a graph of `fascicle convert`
    jobs/shiu.sh --synthetic 2000 --trials 3 --only sugar_100Hz                        no data: a synthetic graph, for trying

Words after -- go to `fascicle convert`. Tables: Feather, text, .gz, Parquet (needs pyarrow). Pairs of fewer than 5 synapses are left out,
as by Codex; not so of the authors' own table, which holds them. Runs that were stopped go on when the same command is given again.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(here, "analysis"))
from fascicle_data import Unreadable, load_graph, run_script  # noqa: E402

FLYWIRE = 138639, 109  # neurons of FlyWire v783, connections of one
WORDS = {"histamine": ("histamine",), "monoamines": ("dopamine", "octopamine", "serotonin", "tyramine", "DA", "OCT", "SER"),
         "unclear": ("unclear", "missing")}
AUTHORS = "Excitatory x Connectivity"  # the signed weight in the authors' table


def say(*words):
    print("shiu:", *words, file=sys.stderr, flush=True)


def call(*words):
    """Runs a command; its failure is the script's."""
    say(" ".join(map(str, words)))
    code = subprocess.run([str(word) for word in words]).returncode
    if code:
        sys.exit(code)


def read_json(path):
    try:
        with open(path) as file:
            return json.load(file)
    except ValueError as error:
        raise Unreadable(f"{path}: not JSON ({error})") from error


def write_json(path, content):
    with open(path, "w") as file:
        json.dump(content, file, indent=1)
    return path


# ---- the graph ----


def is_authors(path):
    if not path.endswith((".parquet", ".pq")):
        return False
    try:
        from pyarrow import parquet
    except ImportError:
        raise Unreadable(f"{path}: Parquet needs the Python package pyarrow (python3 -m pip install pyarrow)") from None
    return AUTHORS in parquet.ParquetFile(path).schema_arrow.names


def parquet_as_text(path, to):
    """A table of neurons or transmitters."""
    try:
        from pyarrow import csv, parquet
    except ImportError:
        raise Unreadable(f"{path}: Parquet needs the Python package pyarrow (python3 -m pip install pyarrow)") from None
    file = parquet.ParquetFile(path)
    with csv.CSVWriter(to + ".tmp", file.schema_arrow) as writer:
        for batch in file.iter_batches():
            writer.write(batch)
    os.replace(to + ".tmp", to)
    return to


def plain(path, folder, edges=False):
    """The file as `convert` reads it: unpacked, Parquet as text."""
    if not os.path.exists(path):
        raise Unreadable(f"{path}: no such file")
    name = os.path.basename(path)
    if name.endswith(".gz"):
        import gzip

        unpacked = os.path.join(folder, name[:-3])
        with gzip.open(path) as packed, open(unpacked + ".tmp", "wb") as file:
            shutil.copyfileobj(packed, file, 1 << 20)
        os.replace(unpacked + ".tmp", unpacked)
        return unpacked
    if name.endswith((".parquet", ".pq")) and not edges:
        return parquet_as_text(path, os.path.join(folder, os.path.splitext(name)[0] + ".csv"))
    if name.endswith((".parquet", ".pq")):
        columns = ["--columns", f"pre=Presynaptic_ID,post=Postsynaptic_ID,weight={AUTHORS}"] if is_authors(path) else []
        prefix = os.path.join(folder, os.path.splitext(name)[0])
        call(sys.executable, os.path.join(here, "import.py"), path, *columns, "--prefix", prefix, "--force")
        return prefix + ".edges.csv"
    return path


def signs(options, folder):
    """The table of signs, with what the options say of histamine, monoamines and unclear neurons."""
    table = read_json(os.path.join(here, "conf", "signs_shiu.json"))
    for option, transmitters in WORDS.items():
        value = getattr(options, option)
        for word in transmitters:
            table["signs"][word] = value if value == "exclude" else int(value)
    table["name"] = "shiu with histamine {histamine}, monoamines {monoamines}, unclear {unclear}".format(**vars(options))
    return write_json(os.path.join(folder, "signs.json"), table)


def convert_words(options, folder):
    words = ["--edges", plain(options.edges, folder, edges=True)]
    authors = is_authors(options.edges)
    if options.nodes:
        nodes = plain(options.nodes, folder)
        words += ["--nodes", nodes]
        with open(nodes, "rb") as file:
            if file.read(1) == b",":  # the authors' list of neurons: its first column has no name
                words += ["--node-columns", "id=#1"]
    if options.transmitters:
        same = options.transmitters == options.nodes
        words += ["--transmitters", nodes if same else plain(options.transmitters, folder), "--signs", signs(options, folder)]
    least = options.min_synapses if options.min_synapses is not None else 1 if authors else 5
    return words + (["--min-weight", least] if least > 1 else [])


def what_makes(options):
    """All that a graph of `folder` follows from: options, and size and time of the tables."""
    tables = [options.edges, options.nodes, options.transmitters]
    for path in filter(None, tables):
        if not os.path.exists(path):
            raise Unreadable(f"{path}: no such file")
    return {"tables": [[os.path.abspath(path), os.path.getsize(path), os.path.getmtime(path)] for path in filter(None, tables)],
            "given": [bool(path) for path in tables], "synthetic": options.synthetic, "min_synapses": options.min_synapses,
            "signs": [getattr(options, option) for option in WORDS], "convert": options.convert}


def make_graph(options, folder):
    """The path of the graph, made from what is given unless it is there."""
    if options.graph:
        return options.graph
    graph, program = os.path.join(folder, "graph.h5"), os.environ.get("FASCICLE", "fascicle")
    made_from, asked = os.path.join(folder, "graph_made_from.json"), what_makes(options)
    if os.path.exists(graph):
        if not os.path.exists(made_from) or read_json(made_from) != asked:
            raise Unreadable(f"{graph} was made from other tables or with other options: give another --output, or --graph {graph} to take it")
        say(f"{graph} is there, made from the same tables and options, and is taken")
        return graph
    write_json(made_from, asked)
    if options.synthetic:
        n = options.synthetic
        call(program, "generate", "--nodes", n, "--edges", n * min(FLYWIRE[1], max(n // 8, 1)), "--no-order", "--output", graph)
    else:
        call(program, "convert", *convert_words(options, folder), *options.convert, "--output", graph)
    return graph


# ---- the experiments ----


def strongest(graph, driven):
    """Nodes by what they get from these, most first."""
    import numpy as np

    given = np.isin(graph.source, np.array(driven))
    return np.argsort(-np.bincount(graph.target[given], graph.impulse[given], graph.n_nodes), kind="stable")


def stand_ins(graph, listed):
    """For a synthetic graph: neurons in place of those of the list. Driven groups are sensory neurons, the others those that get most from
    the neurons that their experiment drives."""
    groups = listed["groups"]
    sensory = [i for i, label in enumerate(graph.columns["superclass"]) if label == "sensory"]
    place, ranking = {}, {}
    for body in (body for e in listed["experiments"] for name in e["drive"] for body in groups[name]):
        if body not in place:
            place[body] = sensory.pop(0) if sensory else len(place)
    for e in listed["experiments"]:
        driven = [place[body] for name in e["drive"] for body in groups[name]]
        order = ranking.setdefault(tuple(driven), iter(strongest(graph, driven)))
        for body in (body for name in [e["read"], *e.get("silence", [])] for body in groups.get(name, [name])):
            if body not in place:
                place[body] = next(node for node in order if node not in place.values())
    named = {body: str(graph.body_id[node]) for body, node in place.items()}
    for e in listed["experiments"]:
        e["silence"] = [named.get(body, body) for body in e.get("silence", [])]
        e.pop("published", None)
    listed["groups"] = {name: [named[body] for body in ids if body in named] for name, ids in groups.items()}


def present(groups, listed, known, absent):
    """NEURONS of groups (and single ids): those that the graph has; what it lacks goes into `absent`."""
    bodies, others = [], {}
    for name in groups:
        group = listed["groups"].get(name, [name])
        if isinstance(group, dict):
            for key, values in group.items():
                others.setdefault(key, []).extend(values)
            continue
        bodies += [body for body in group if int(body) in known]
        absent.update(body for body in group if int(body) not in known)
    return {**({"body_ids": bodies} if bodies else {}), **others}


def configure(experiment, listed, known, absent):
    """The configuration of one experiment, or None where nobody that it drives or reads is in the graph."""
    config = read_json(os.path.join(here, "conf", "shiu.json"))
    drive = present(experiment["drive"], listed, known, absent)
    silence = present(experiment.get("silence", []), listed, known, absent)
    read = present([experiment["read"]], listed, known, absent)
    if not drive or not read or (experiment.get("silence") and not silence):
        return None
    config["about"] = experiment["name"]
    config["stimulus"][0].update(neurons=drive, rate_hz=experiment["rate_hz"])
    config["silence"] = [{"neurons": silence, "mode": "output"}] if silence else []
    return {"config": config, "read": read, "drive": drive}


def chosen(listed, options):
    for experiment in listed["experiments"]:
        unknown = [name for name in experiment["drive"] + [experiment["read"]] if name not in listed["groups"]]
        if unknown:
            raise Unreadable(f"{options.experiments}: experiment {experiment['name']} names the group {unknown[0]}, which is not in \"groups\"")
    listed["experiments"] = [e for e in listed["experiments"]
                             if not options.only or any(e["name"] == word or e["name"].startswith(word + "_") for word in options.only)]
    if not listed["experiments"]:
        raise Unreadable(f"--only {' '.join(options.only)}: {options.experiments} has no such experiment")


def plan(graph_path, options, folder):
    """A file of experiments with their configurations, which analysis/shiu_table.py reads too."""
    listed, graph, absent = read_json(options.experiments), load_graph(graph_path), set()
    chosen(listed, options)
    if options.synthetic:
        stand_ins(graph, listed)
    known, made = set(map(int, graph.body_id)), []
    for experiment in listed["experiments"]:
        found = configure(experiment, listed, known, absent)
        if found is None:
            say(f"{experiment['name']} is left out: the graph has none of its neurons")
            continue
        path = write_json(os.path.join(folder, experiment["name"] + ".json"), found.pop("config"))
        made.append({**experiment, "group": experiment["read"], **found, "config": path, "run": os.path.join(folder, experiment["name"])})
    if absent:
        say(f"{len(absent)} of the listed neurons are not in the graph (another release?): {', '.join(sorted(absent)[:5])} ...")
    if not made:
        raise Unreadable(f"{graph_path}: none of the neurons of {options.experiments} is in it; another connectome needs --experiments "
                         "of its own, with neurons named by type")
    return write_json(os.path.join(folder, "experiments.json"), {"experiments": made})


def run_all(graph, options, plan_path):
    program = os.environ.get("FASCICLE", "fascicle")
    start = ["mpirun", "-n", str(options.ranks)] if options.ranks > 1 else []
    threads = ["--threads", options.threads] if options.threads else []
    for experiment in read_json(plan_path)["experiments"]:
        call(*start, program, "simulate", graph, "--config", experiment["config"], "--steps", round(options.ms * 10), "--trials",
             options.trials, "--output", experiment["run"], "--resume", "auto", "--device", options.device, *threads)


def parse():
    words, after = sys.argv[1:], []
    if "--" in words:
        words, after = words[:words.index("--")], words[words.index("--") + 1:]
    parser = argparse.ArgumentParser(prog="shiu.sh", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--edges", metavar="FILE", help="the connectivity table")
    parser.add_argument("--nodes", metavar="FILE", help="the table of neurons")
    parser.add_argument("--transmitters", metavar="FILE", help="the table of transmitters; may be that of the neurons")
    parser.add_argument("--graph", metavar="FILE", help="a graph in place of tables")
    parser.add_argument("--synthetic", metavar="NEURONS", nargs="?", type=int, const=FLYWIRE[0],
                        help=f"a synthetic graph in place of tables ({FLYWIRE[0]:,} neurons)")
    for option, transmitters in WORDS.items():
        parser.add_argument(f"--{option}", choices=("exclude", "1", "-1"), default="exclude",
                            help=f"sign of {', '.join(transmitters[:4])} (exclude)")
    parser.add_argument("--min-synapses", metavar="N", type=int, help="leave out pairs with fewer (5; 1 with the authors' table)")
    parser.add_argument("--experiments", metavar="FILE", default=os.path.join(here, "conf", "shiu_experiments.json"),
                        help="the list (conf/shiu_experiments.json)")
    parser.add_argument("--only", metavar="NAME", nargs="+", help="these experiments, such as sugar_100Hz, or all that begin so: JON")
    parser.add_argument("--trials", type=int, default=30), parser.add_argument("--ms", type=float, default=1000)
    parser.add_argument("--ranks", type=int, default=1), parser.add_argument("--threads", type=int, help="of a rank")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--output", metavar="FOLDER", default="shiu-out", help="graph, runs and table (shiu-out)")
    options = parser.parse_args(words)
    options.convert = after
    if sum(bool(given) for given in (options.edges, options.graph, options.synthetic)) != 1:
        parser.error("give --edges FILE, --graph FILE or --synthetic")
    return options


def main():
    options = parse()
    os.makedirs(options.output, exist_ok=True)
    graph = make_graph(options, options.output)
    plan_path = plan(graph, options, options.output)
    run_all(graph, options, plan_path)
    call(sys.executable, os.path.join(here, "analysis", "shiu_table.py"), plan_path)


if __name__ == "__main__":
    run_script(main)
