#!/usr/bin/env python3
"""A graph of 100,000,000,000 edges in a sparse file: declared in full, written only at its end. What stands there is read back by
tests/unit/test_large.c; a streamed simulation runs on it; plan reckons with such sizes."""
import json
import os
import subprocess
import sys
import tempfile
import zlib

import h5py
import numpy as np

FASCICLE, RANKS = os.environ["FASCICLE"], os.environ["RANKS"]
EDGES, NODES, TAIL, ROWS, PIECE = 10**11, 4000, 300, 3, 262144
unit = os.path.join(os.path.dirname(FASCICLE), "tests", "test_large")


def run(*words):
    return subprocess.run([RANKS, "1", *words], capture_output=True, text=True, timeout=600)


def done(*words):
    result = run(*words)
    if result.returncode:
        sys.exit(f"{words}: code {result.returncode}: {result.stderr}")
    return result.stdout


def huge(file, name, dtype, tail, width=None):
    """All of it declared and given a place in the file, only the tail written: the rest is a hole."""
    attributes = {}
    if name in file:
        attributes = {key: (value, file[name].attrs.get_id(key).dtype) for key, value in file[name].attrs.items() if key != "crc32"}
        del file[name]
    layout = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    layout.set_layout(h5py.h5d.CONTIGUOUS)
    layout.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    layout.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
    shape = (EDGES,) if width is None else (EDGES, width)
    made = h5py.h5d.create(file.id, name.encode(), h5py.h5t.py_create(np.dtype(dtype)), h5py.h5s.create_simple(shape), layout)
    data = h5py.Dataset(made)
    data[EDGES - len(tail):] = tail
    for key, (value, kind) in attributes.items():
        data.attrs.create(key, value, dtype=kind)
    return data


def add_checksums(data, tail):
    size = np.dtype(data.dtype).itemsize
    pieces = -(-EDGES // PIECE)
    sums = np.full(pieces, zlib.crc32(bytes(PIECE * size)), np.uint32)
    last = np.zeros(EDGES - (pieces - 1) * PIECE, data.dtype)
    last[-len(tail):] = tail
    sums[-1] = zlib.crc32(last.tobytes())
    data.attrs.create("crc32", sums)


def offsets(tail_rows):
    """As many edges for every row as there are, but the last rows have the tail alone."""
    rows = NODES - len(tail_rows)
    ptr = np.zeros(NODES + 1, np.int64)
    ptr[:rows + 1] = (EDGES - sum(tail_rows)) * np.arange(rows + 1) // rows
    ptr[rows + 1:] = ptr[rows] + np.cumsum(tail_rows)
    return ptr


def replace(file, name, values):
    """With the checksum of its one piece."""
    file[name][:] = values
    if "crc32" in file[name].attrs:
        file[name].attrs.modify("crc32", np.array([zlib.crc32(file[name][:].tobytes())], np.uint32))


with tempfile.TemporaryDirectory() as work:
    path = f"{work}/fake.h5"
    done(FASCICLE, "generate", "--nodes", str(NODES), "--edges", "40000", "--streamable", "--no-order", "--output", path)
    edge = np.arange(EDGES - TAIL, EDGES)
    with h5py.File(path, "r+", libver=("v110", "v110")) as file:
        group = "edges/neurons__neurons__chemical/"
        for name, dtype, tail in (("source_node_id", "u4", edge % 1000), ("target_node_id", "u4", NODES - ROWS + np.arange(TAIL) // (TAIL // ROWS)),
                                  ("0/impulse", "i2", -(edge % 100)), ("0/delay_steps", "u2", np.ones(TAIL))):
            tail = tail.astype(dtype)
            add_checksums(huge(file, group + name, dtype, tail), tail)
        del file[group + "0/nsyns"]
        record = np.zeros((100, 2), np.uint32)
        record[:, 0] = np.arange(100) % 50
        record[49, 0] = NODES - 1
        weight = -np.arange(100)
        weight[49] = 5000
        record[:, 1] = weight.astype(np.int16).view(np.uint16).astype(np.uint32) | 1 << 16
        huge(file, "out/edge", "u4", record, 2)
        replace(file, "order/row_ptr", offsets([TAIL // ROWS] * ROWS))
        replace(file, "out/ptr", offsets([50, 50]))
        file.attrs.modify("n_edges", np.int64(EDGES))
    size, blocks = os.stat(path).st_size, os.stat(path).st_blocks * 512
    assert size > 10 * EDGES and blocks < 50e6, (size, blocks)
    print(done(unit, path).strip())
    # Streamed: the second last neuron is made to fire, which makes the last one fire, from edges at the end.
    config = f"{work}/lif.json"
    with open(config, "w") as file:
        json.dump({"threshold": 1000, "decay_shifts": [2], "refractory_steps": 5, "stimulus": [
            {"neurons": {"indices": [NODES - 2]}, "kind": "spikes", "steps": [1]}]}, file)
    facts = json.loads(done(FASCICLE, "simulate", path, "--config", config, "--steps", "6", "--residency", "streamed", "--memory", "1", "--device", "cpu", "--output",
                            f"{work}/run", "--json"))
    assert facts["spikes"] == 2, facts
# What a graph of a mouse's brain takes, by the plan: more than 32 bits of everything.
answer = json.loads(run(FASCICLE, "plan", "--nodes", "70000000", "--edges", str(EDGES), "--job", "train", "--ranks", "128", "--parts", "128",
                         "--device", "h200", "--gpus-per-host", "8", "--json").stdout)
assert answer["edges"] == EDGES and answer["largest_part"]["near_edges"] + answer["largest_part"]["far_edges"] == EDGES // 128
assert answer["network_bytes_per_step"] > 2**40 and answer["total_bytes"] > 2**40 and not answer["fits"]
refused = run(FASCICLE, "plan", "--nodes", "70000000", "--edges", str(EDGES), "--job", "train", "--ranks", "16", "--parts", "16", "--device",
              "h200", "--memory", "1000000", "--json")
assert refused.returncode == 2 and "6250000000 edges" in refused.stderr, refused.stderr
