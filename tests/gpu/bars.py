#!/usr/bin/env python3
"""One GPU and several, side by side: lines of `fascicle bench` as one table, then their ratios against what is wanted.

Usage: bars.py LINES.jsonl [--ranks R] [--commit COMMIT]    (tests/gpu_results.jsonl has every run: name a commit there; R = 1: the table alone)

Times of the last line of each case. A ratio is a share of ideal for training (more is better: one GPU's time over R times R GPUs' time, or over
theirs for as much work on each), of one GPU's step for LIF (less is better). `exchange`: what travels, with nothing beside it: of replicas a
gradient of every edge, by the time of those that `bench halo` sums; of parts the states there and their gradients back, 128 times. What is not a
line of a bench is left alone."""
import argparse
import json

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("lines")
parser.add_argument("--ranks", type=int, default=2)
parser.add_argument("--commit", default="")
options = parser.parse_args()
R = options.ranks
FLY, CORE = 211577, 160514
verdicts = []


def read(path):
    with open(path) as file:
        for text in file:
            try:
                line = json.loads(text)
            except ValueError:
                continue
            if isinstance(line, dict) and "case" in line and line.get("commit", "").startswith(options.commit):
                yield line


lines = list(read(options.lines))


def last(bench, case, nodes, ranks, **more):
    """The last line that has these members; one that lacks a member counts only where "none", 1 or fp32 would stand."""
    default = {"replicas": 1, "precision": "fp32"}
    found = [b for b in lines if b.get("bench") == bench and b["case"] == case and b["nodes"] == nodes and b["ranks"] == ranks
             and all(b.get(key, default.get(key)) == value for key, value in more.items())]
    return found[-1] if found else None


def seconds(line):
    return line["seconds"] if line else None


def shown(t):
    return "-" if t is None else f"{t * 1e6:.2f} us" if t < 1e-3 else f"{t * 1e3:.2f} ms"


def table():
    print(f"\n{'bench':11s} {'case':22s} {'nodes':>8s} {'edges':>10s} {'GPUs':>4s} {'measured':>11s} {'GB':>6s}  how")
    for b in lines:
        how = [b.get("graph"), f"batch {b['batch']}" if b["batch"] else None, b.get("precision"), b.get("delays"),
               f"{b['replicas']} replicas" if b.get("replicas", 1) > 1 else None,
               f"{b.get('transport')} {b.get('exchange', '')}".strip() if b["ranks"] > 1 else None, b.get("commit")]
        print(f"{b['bench']:11s} {b['case']:22s} {b['nodes']:8d} {b['edges']:10d} {b['ranks']:4d} {shown(b['seconds']):>11s} {b['peak_bytes'] / 1e9:6.2f}  {', '.join(filter(None, how))}")


def row(what, one, many, ratio, bar, goal, least, exchange):
    """`least`: at least the bar is wanted, else at most."""
    if ratio is None:
        verdicts.append("not measured" if bar is not None else "")
        print(f"{what:52s} {shown(one):>10s} {shown(many):>10s}   not measured")
        return
    met = "" if bar is None else "met" if (ratio >= bar if least else ratio <= bar) else "MISSED"
    verdicts.append(met)
    value = f"{100 * ratio:.1f} %" if least else f"{ratio:.2f} x"
    wanted = "" if bar is None else f">= {100 * bar:.0f} % ({100 * goal:.0f})" if least else f"<= {bar:.2f} x"
    print(f"{what:52s} {shown(one):>10s} {shown(many):>10s} {value:>8s}  {wanted:16s} {met:6s}  exchange {shown(exchange)}")


def training(what, nodes, graph, batch, scale, bar, goal, exchange, **how):
    """On R GPUs against one; `scale`: how many times quicker they would be at best."""
    for case, words in (("total", "window"), ("train_step", "whole step")):
        one = seconds(last("recurrence", case, nodes, 1, batch=32, graph=graph, precision="fp32"))
        many = seconds(last("recurrence", case, nodes, R, batch=batch, graph=graph, precision="fp32", **how))
        row(f"{what}, {words}", one, many, one / many / scale if one and many else None, bar, goal, True, exchange(many, how))


def replicas(name, nodes):
    def total(_many, _how):
        line = last("halo", "all-reduce", nodes, R)
        return line and line["seconds"] * line["edges"] * 8 * (R - 1) / R / line["bytes"]

    training(f"{R} replicas, strong, {name}", nodes, "lognormal", 32, R, 0.85, 0.92, total, replicas=R)
    training(f"{R} replicas, weak, {name}", nodes, "lognormal", 32 * R, 1, 0.95, 0.97, total, replicas=R)


def parts(name, nodes, graph, bar=0.85, goal=0.95):
    def window(_many, how):
        """128 microsteps there and back, by the kind of exchange that the window took."""
        took = (last("recurrence", "total", nodes, R, graph=graph, batch=32, **how) or {}).get("exchange")
        cases = ("all-gather", "reduce-scatter") if took == "all-gather" else ("exchange", "reduce")
        both = [last("halo", case, nodes, R, graph=graph, transport=how["transport"]) for case in cases]
        return 128 * sum(line["seconds"] for line in both) if all(both) else None

    for transport in ("peer", "nccl"):
        if last("recurrence", "total", nodes, R, graph=graph, replicas=1, transport=transport) or transport == "peer":
            training(f"{R} parts, {transport}, {name}", nodes, graph, 32, R, bar, goal, window, replicas=1, transport=transport)


def simulation(what, delays, scale, bar):
    via = next((t for t in ("peer", "nccl", "mpi") if last("lif", "quiet", FLY * scale, R, delays=delays, transport=t)), None)
    one = seconds(last("lif", "active_1pct", FLY, 1, delays=delays))
    many = seconds(last("lif", "active_1pct", FLY * scale, R, delays=delays, transport=via))
    quiet = last("lif", "quiet", FLY * scale, R, delays=delays, transport=via)
    row(f"LIF 1 %, {what}", one, many, many / one if one and many else None, bar, bar, False, quiet and quiet["exchange_seconds"])


table()
if R > 1:
    print(f"\n{'against the bars (training: goal in brackets)':52s} {'one GPU':>10s} {f'{R} GPUs':>10s} {'ratio':>8s}  wanted")
    replicas("24.7 M", FLY)
    replicas("10.4 M", CORE)
    parts("24.7 M", FLY, "lognormal")
    parts("24.7 M, modular, ordered", FLY, "modular, ordered")
    parts("10.4 M", CORE, "lognormal", None)
    simulation("delays 4..8", "4:8", 1, 1.0)
    simulation("delays 1..8", "1:8", 1, 1.3)
    simulation(f"{R} times the graph, delays 4..8", "4:8", R, 1.25)
    print(f"bars: {verdicts.count('met')} met, {verdicts.count('MISSED')} missed, {verdicts.count('not measured')} not measured")
