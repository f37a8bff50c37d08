#!/usr/bin/env python3
"""What `fascicle plan` reckons with on an H200, taken anew from the lines of tests/gpu_results.jsonl (the last one of each case):

  tests/run_gpu.sh && tests/run_gpu.sh 2               # on the GPUs: they append their lines
  jobs/fit_machine.py                                  # rewrites jobs/conf/machine_h200.json, says what was and what is
  ninja -C build fascicle                              # the constants are built in
  tests/cli/test_plan_time.py --table                  # every measured time beside its prediction; without --table the test

Fits are linear, each line weighted by one over its time. What no line measures keeps its value: NCCL's messages, launches, neurons beyond those on
chip, the network. Needs NumPy and SciPy."""
import argparse
import json
import os
import re

HERE = os.path.dirname(os.path.abspath(__file__))
MICROSTEPS = 128  # of a window: T = 64, M = 2


# ---- the lines ----

def key(line):
    """What makes two lines the same case; None: a line that does not say enough. Parts differ by how they talk, replicas and one GPU do not."""
    parts = line["ranks"] // line.get("replicas", 1)
    delays = line.get("delays", "1:8" if line["ranks"] == 1 else None) if line["bench"] == "lif" else ""
    how = (line.get("transport"), line.get("exchange", "")) if parts > 1 and line["bench"] != "halo" else (line.get("transport"), "")
    if delays is None or (parts > 1 and how[0] is None):
        return None
    return (line["bench"], line["case"], line["nodes"], line["batch"], line["ranks"], line.get("replicas", 1), delays, line.get("graph", ""),
            line.get("precision", "fp32"), *(how if parts > 1 else ()))


def measured(path, commits=None):
    """The last line of each case, of the given commits or of all."""
    cases = {}
    with open(path) as file:
        for line in map(json.loads, filter(lambda text: text.startswith("{"), file)):
            if line.get("commit") and "threads" in line and (commits is None or any(line["commit"].startswith(c) for c in commits)) and key(line):
                cases[key(line)] = line
    return list(cases.values())


# ---- the fits ----

def solve(rows, seconds):
    """Constants of at least 0 whose sums over rows come closest to the seconds, relatively."""
    import numpy as np
    from scipy.optimize import nnls
    a, t = np.array(rows, float), np.array(seconds, float)
    a = a / t[:, None]
    size = np.abs(a).max(axis=0)
    return nnls(a / size, np.ones(len(t)))[0] / size


def columns(line):
    return line["batch"] // line.get("replicas", 1)


class Fit:
    def __init__(self, machine, lines):
        self.machine, self.lines, self.found, self.links, self.used = machine, lines, {}, {}, set()

    def value(self, name):
        return self.found.get(name, self.machine[name]["value"])

    def of(self, bench, cases, test=lambda line: True):
        found = [line for line in self.lines if line["bench"] == bench and line["case"] in cases and test(line)]
        self.used.update(line["commit"] for line in found)
        return found

    def edges(self, way, line):
        mixed = self.value("mixed_columns_share") if line.get("precision") == "mixed" else 1
        width = max(columns(line) * mixed, self.value("least_columns"))
        return line["edges"] * (self.value(f"{way}_edge_seconds") + self.value(f"{way}_column_seconds") * width)

    def rest(self, way, line):
        return self.value(f"{way}_step_seconds") + line["nodes"] * columns(line) * self.value(f"{way}_row_seconds")

    def passes(self):
        def whole(line):
            return line["ranks"] == line.get("replicas", 1) and line.get("graph") == "lognormal"

        for way in ("forward", "backward"):
            def plain(line):
                return whole(line) and line.get("precision", "fp32") == "fp32" and line["edges"] > self.value("window_edges")

            lines = self.of("recurrence", (way,), plain)
            rows = [(1, line["edges"], line["edges"] * columns(line), line["nodes"] * columns(line)) for line in lines]
            if len({(line["nodes"], columns(line)) for line in lines}) >= 4:
                names = [f"{way}_{what}_seconds" for what in ("step", "edge", "column", "row")]
                self.found.update(zip(names, solve(rows, [line["seconds"] / MICROSTEPS for line in lines])))
            mixed = self.of("recurrence", (way,), lambda line: whole(line) and line.get("precision") == "mixed" and
                            line["edges"] > self.value("mixed_edges"))
            shares = [(line["seconds"] / MICROSTEPS - self.rest(way, line)) / self.edges(way, line) for line in mixed]
            if shares:
                self.found[f"mixed_{way}_share"] = (min(shares) + max(shares)) / 2
        small = self.of("recurrence", ("total",), lambda line: whole(line) and line.get("precision", "fp32") == "fp32" and line["batch"] == 32
                        and line["edges"] <= self.value("window_edges"))
        for line in small:
            plain = sum(self.edges(way, line) + self.rest(way, line) for way in ("forward", "backward"))
            self.found["window_gain"] = MICROSTEPS * plain / line["seconds"]

    def step(self):
        """The training step around the window: fixed, and by its readout (65 tokens, a tenth of the neurons, 64 characters)."""
        windows = {key(line)[2:]: line["seconds"] for line in self.of("recurrence", ("total",), lambda line: line["ranks"] == 1)}
        lines = [line for line in self.of("recurrence", ("train_step",), lambda line: line["ranks"] == 1) if key(line)[2:] in windows]
        if len({line["nodes"] for line in lines}) >= 3:
            rows = [(1, 6 * (line["nodes"] // 10) * 64 * line["batch"] * 65) for line in lines]
            fixed, flop = solve(rows, [max(line["seconds"] - windows[key(line)[2:]], 1e-5) for line in lines])
            self.found.update(train_step_seconds=fixed, readout_flops=1 / flop)

    def exchanges(self):
        """peer: rows of an all-gather, and what it and the work on own edges cost each other."""
        points, beside = {}, []
        for line in self.of("halo", ("all-gather",), lambda line: line["ranks"] == 2 and line["transport"] == "peer"):
            points[line["bytes"]] = line["seconds"]
            same = {other["case"]: other["seconds"] for other in self.lines if other["bench"] == "halo" and key(other)[2:] == key(line)[2:]}
            add = self.value("launch_seconds") + 3 * line["bytes"] / self.value("row_bytes_per_second")
            for near, both, extra in (("near", "there-all", 0), ("near-back", "back-all", add)):
                if near in same and both in same:
                    beside.append((same[both] - max(same[near], line["seconds"]) - extra) / min(same[near], line["seconds"]))
        link = self.machine["links"]["peer"]
        if points:
            self.links["peer"] = {"points": [link["points"][0], *map(list, sorted(points.items()))],
                                  "beside_work": max(0, sum(beside) / len(beside)) if beside else link["beside_work"]}

    def idle(self, neurons):
        return self.value("lif_step_seconds") + neurons * self.value("lif_neuron_seconds")

    def active(self, neurons, events):
        return (self.idle(neurons) + self.value("lif_active_seconds") + neurons * self.value("lif_active_neuron_seconds") +
                events * self.value("lif_event_seconds"))

    def spiking(self):
        def small(line):
            return line["ranks"] == 1 and line["nodes"] <= self.value("lif_on_chip_neurons")

        idle = self.of("lif", ("idle",), small)
        if len({line["nodes"] for line in idle}) >= 2:
            found = solve([(1, line["nodes"]) for line in idle], [line["seconds"] for line in idle])
            self.found.update(zip(("lif_step_seconds", "lif_neuron_seconds"), found))
        lines = self.of("lif", ("active_1pct", "active_10pct"), small)
        if len({line["nodes"] for line in lines}) >= 2:
            rows = [(1, line["nodes"], line["events_per_step"]) for line in lines]
            more = [max(lif_seconds(line) - self.idle(line["nodes"]), 1e-7) for line in lines]
            self.found.update(zip(("lif_active_seconds", "lif_active_neuron_seconds", "lif_event_seconds"), solve(rows, more)))
        self.told("peer", "spikes", 2)
        self.told("nccl", "spikes_hosts", 1)

    def told(self, transport, link, delays):
        """What telling another rank adds to a step: by exchange and by neuron, from lines of so many delays at least."""
        several = self.of("lif", ("idle", "active_1pct"), lambda line: line["ranks"] == 2 and line.get("transport") == transport)
        rows, rest = [], []
        for line in several:
            own = line["nodes"] / 2
            alone = self.idle(own) if line["case"] == "idle" else self.active(own, line["events_per_step"] / 2)
            rows.append((1 / int(line["delays"].split(":")[0]), own))
            rest.append(max(line["seconds"] - alone, 1e-7))
        if len({line["delays"] for line in several}) >= delays:
            each, row = solve(rows, rest) if delays > 1 else (min(t / r[0] for t, r in zip(rest, rows)), 0)
            self.links[link] = {"points": [[4, each], [134217728, each + 459e-6]], "row_seconds": row}


def lif_seconds(line):
    """`bench lif` on a GPU is one run from cold: the best of its heavy steps is what the device takes."""
    return line["best_seconds"] if line["case"] == "active_10pct" else line["seconds"]


# ---- the file ----

def shown(x):
    if isinstance(x, list):
        return "[" + ", ".join(map(shown, x)) + "]"
    return str(x) if isinstance(x, int) else f"{x:.4g}"


def rewrite(text, fit):
    for name, value in fit.found.items():
        text, n = re.subn(rf'("{name}": {{"value": )[^,]+', lambda m: m.group(1) + shown(float(value)), text)
        assert n == 1, name
    for name, link in fit.links.items():
        head, rest = text.split(f'"{name}": {{', 1)
        for member, value in link.items():
            rest = re.sub(rf'("{member}": )(\[\[.*\]\]|[^,\n]+)', lambda m: m.group(1) + shown(value), rest, count=1)
        text = head + f'"{name}": {{' + rest
    return re.sub(r'"measured_at": \[.*\]', f'"measured_at": {json.dumps(sorted(fit.used))}', text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", default=f"{HERE}/../tests/gpu_results.jsonl")
    parser.add_argument("--machine", default=f"{HERE}/conf/machine_h200.json")
    parser.add_argument("--commits", help="comma separated: only lines of these")
    options = parser.parse_args()
    with open(options.machine) as file:
        text = file.read()
    fit = Fit(json.loads(text), measured(options.results, options.commits and options.commits.split(",")))
    for part in (fit.passes, fit.step, fit.exchanges, fit.spiking):
        part()
    for name, value in fit.found.items():
        print(f"{name:28s} {fit.machine[name]['value']:10.4g} -> {value:10.4g}")
    for name, link in fit.links.items():
        print(f"{name:28s} {link}")
    with open(options.machine, "w") as file:
        file.write(rewrite(text, fit))
    print(f"{options.machine}: from {len(fit.lines)} cases of {', '.join(sorted(fit.used))}")


if __name__ == "__main__":
    main()
