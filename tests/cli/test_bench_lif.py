"""bench lif: the cases and members of its lines, of neuron models too; who fires does not depend on the ranks; memory."""
import json
import os
import subprocess

NODES, EDGES = 5000, 200000
KEYS = {"bench", "case", "device", "nodes", "edges", "batch", "ranks", "seconds", "floor_seconds", "over_floor", "bytes",
        "peak_bytes", "commit"}


def bench(n, *words):
    command = [os.environ["RANKS"], str(n), os.environ["FASCICLE"], "bench", "lif", "--nodes", str(NODES), "--edges",
               str(EDGES), "--steps", "30", "--device", "cpu", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=600)


def close(a, b):
    return abs(a / b - 1) < 1e-6


def lines_of(n, *words):
    done = bench(n, "--json", *words)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def check_models():
    """Lines of each model; spikes as asked for, the same on any number of ranks."""
    for model, components in (("lif_delta", 1), ("lif_exp", 2), ("psc_exp", 3), ("psc_alpha", 5)):
        fired = set()
        for n in (1, 3):
            lines = lines_of(n, "--model", model, "--steps", "400", "--spikes", "20000", "--rate", "200")
            assert [line["case"] for line in lines] == ["quiet", "idle", "driven", "poisson"], lines
            for line in lines:
                assert KEYS <= set(line) and line["model"] == model and line["delays"] == "18:18", line
                assert close(line["real_time"] * line["seconds"], 1e-4), line
                assert close(line["ns_per_neuron_step"] * NODES, 1e9 * line["seconds"]), line
                bytes_moved = NODES * (16 * components + 4) / 18 + 16 * line["events_per_step"]
                assert abs(line["bytes"] - bytes_moved) <= 1, line
            rates = [line["spikes_per_second"] for line in lines]
            assert rates[:2] == [0, 0] and 15000 < rates[2] < 60000 and rates[3] > 3 * NODES, (model, rates)
            fired.add(tuple(rates))
        assert len(fired) == 1, (model, fired)
    for words, what in ((["--model", "hodgkin"], '"lif_exp"'), (["--model", "lif_exp", "--trials", "4"], "one trial at a time"),
                        (["--model", "lif_exp", "--rate", "2000"], "1000 Hz")):
        done = bench(1, *words)
        assert done.returncode == 2 and what in done.stderr, (words, done.stderr)


def main():
    events = set()
    for n in (1, 2):
        done = bench(n, "--json")
        assert done.returncode == 0, done.stderr
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        assert [line["case"] for line in lines] == ["quiet", "idle", "poisson", "poisson_5hz", "active_1pct", "active_10pct"], lines
        for line, spikes in zip(lines, (0, 0, 0, 0, NODES // 100, NODES // 10)):
            assert KEYS <= set(line), KEYS - set(line)
            assert (line["nodes"], line["edges"], line["ranks"]) == (NODES, EDGES, n), line
            assert line["spikes_per_step"] == spikes, line
            assert line["seconds"] > 0 and abs(line["over_floor"] * line["floor_seconds"] / line["seconds"] - 1) < 1e-6
            assert line["held_bytes"] < 12 * EDGES + 64 * NODES, line
        assert all("draw_ns" in line for line in lines[2:4]), lines[2:4]
        # A mean of 40 edges a spike, and 30 steps of 50 and 500 spikes.
        assert 0.6 < lines[4]["events_per_step"] / (40 * 50) < 1.6, lines[4]
        assert 0.8 < lines[5]["events_per_step"] / (40 * 500) < 1.2, lines[5]
        events.add((lines[4]["events_per_step"], lines[5]["events_per_step"]))
    assert len(events) == 1, events
    table = bench(1).stdout.splitlines()
    assert len(table) == 7 and "floor us" in table[0], table
    for words in (["--delays", "0:3"], ["--delays", "3:2"], ["--nodes", "3", "--edges", "100"]):
        assert bench(1, *words).returncode == 2, words
    check_models()
    print("bench lif is as promised")


main()
