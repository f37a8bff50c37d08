"""bench lif: the cases and members of its lines; who is made to fire does not depend on the ranks; memory."""
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


def main():
    events = set()
    for n in (1, 2):
        done = bench(n, "--json")
        assert done.returncode == 0, done.stderr
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        assert [line["case"] for line in lines] == ["quiet", "idle", "active_1pct", "active_10pct"], lines
        for line, spikes in zip(lines, (0, 0, NODES // 100, NODES // 10)):
            assert KEYS <= set(line), KEYS - set(line)
            assert (line["nodes"], line["edges"], line["ranks"]) == (NODES, EDGES, n), line
            assert line["spikes_per_step"] == spikes, line
            assert line["seconds"] > 0 and abs(line["over_floor"] * line["floor_seconds"] / line["seconds"] - 1) < 1e-6
            assert line["held_bytes"] < 12 * EDGES + 64 * NODES, line
        # A mean of 40 edges a spike, and 30 steps of 50 and 500 spikes.
        assert 0.6 < lines[2]["events_per_step"] / (40 * 50) < 1.6, lines[2]
        assert 0.8 < lines[3]["events_per_step"] / (40 * 500) < 1.2, lines[3]
        events.add((lines[2]["events_per_step"], lines[3]["events_per_step"]))
    assert len(events) == 1, events
    table = bench(1).stdout.splitlines()
    assert len(table) == 5 and "floor us" in table[0], table
    for words in (["--delays", "0:3"], ["--delays", "3:2"], ["--nodes", "3", "--edges", "100"]):
        assert bench(1, *words).returncode == 2, words
    print("bench lif is as promised")


main()
