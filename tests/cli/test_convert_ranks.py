"""convert on several ranks, which share the edge table: the same artifact as on one, whatever the table is and however
it can be shared; and the same words where it is wrong."""
import json
import random

import h5py

try:
    import pyarrow
    from pyarrow import feather
except ImportError:
    feather = None

from convert_tools import check, dropped, run, write
from side_by_side import path, run_tests
from graph_tools import contents, run as graph_run

RANKS = (2, 4)


def same(*words, parts="4", ranks=RANKS):
    """As on one rank."""
    facts = []
    for n in (1, *ranks):
        code, said, error = run(*words, "--parts", parts, n=n, output=f"{n}.h5")
        check(error, code, 0)
        said.pop("output", None)
        facts.append((said, contents(path(f"{n}.h5"))))
    for n, (said, content) in zip(ranks, facts[1:]):
        check(f"account of {n} ranks", said, facts[0][0])
        check(f"artifact of {n} ranks", content == facts[0][1], True)
    return facts[0][0]


def same_refusal(*words):
    """One line, that of one rank."""
    lines = []
    for n in (1, *RANKS):
        code, _, error = run(*words, n=n)
        lines.append((code, [line for line in error.splitlines() if line.startswith("fascicle: ")]))
        check(error, len(lines[-1][1]), 1)
    for n, line in zip(RANKS, lines[1:]):
        check(f"refusal of {n} ranks", line, lines[0])
    return lines[0][1][0]


def rows(n=20000, nodes=300, seed=1):
    draw = random.Random(seed)
    return [(draw.randrange(nodes), draw.randrange(nodes), draw.randrange(1, 9)) for _ in range(n)]


def text(edges, header="body_pre,body_post,weight\n"):
    return header + "".join(",".join(map(str, row)) + "\n" for row in edges)


def test_text():
    nodes = write("nodes.csv", "bodyId,type\n" + "".join(f"{i},t{i % 7}\n" for i in range(0, 250)))
    edges = write("edges.csv", text(rows()))
    same("--edges", edges)
    account = same("--edges", edges, "--nodes", nodes, "--self-loops", "drop")
    check("some rows are dropped", sum(dropped(account).values()) > 1000, True)


def test_text_without_last_line_end():
    same("--edges", write("edges.txt", "1 2 3\n\n2 3 4\n3 1 5"))
    same("--edges", write("one.txt", "1 2 3"))


def test_quotes_are_read_by_one():
    edges = rows(3000)
    lines = text(edges[:1500]) + "".join(f'"{a}","{b}",{c}\n' for a, b, c in edges[1500:])
    same("--edges", write("edges.csv", lines))


def test_names_and_delays():
    draw = random.Random(3)
    names = [f"cell {i}" for i in range(60)]
    lines = ["pre,post,weight,steps"]
    for a, b, c in rows(4000, 60):
        blank = " " * (draw.random() < 0.01)
        lines.append(f"{blank}{names[a]},{names[b]}{blank},{c},{draw.randrange(1, 5)}")
    same("--edges", write("edges.csv", "\n".join(lines) + "\n"), "--columns", "pre=pre,post=post,weight=weight,delay=steps")


def test_kinds():
    """Two kinds in different shares are noticed as on one rank; one kind is taken."""
    lines = ["pre,post,weight,type"] + [f"{a},{b},{c},{'chemical' if i < 3000 else 'electrical'}" for i, (a, b, c) in enumerate(rows(4000))]
    edges = write("edges.csv", "\n".join(lines))
    words = ("--edges", edges, "--columns", "pre=pre,post=post,weight=weight")
    check("row", "row 3001" in same_refusal(*words), True)
    same(*words, "--where", "type=chemical")
    same(*words, "--merge-kinds")


def test_wrong_rows_are_named():
    for bad in (5, 12000, 19999):
        edges = rows()
        edges[bad] = (1, 2, "nonsense")
        line = same_refusal("--edges", write("edges.csv", text(edges)))
        check(line, f"row {bad + 1}" in line, True)
    edges = rows()
    edges[3], edges[15000] = (1, 2, "x"), (1, "x", 1)
    check("the first of two", "row 4" in same_refusal("--edges", write("edges.csv", text(edges))), True)
    same_refusal("--edges", path("missing.csv"))
    same_refusal("--edges", write("edges.csv", text(rows())), "--where", "nothing")
    same_refusal("--edges", path("edges.csv"), "--nodes", write("other.csv", "bodyId\n9999\n"))


def ring(n):
    """A ring of n neurons with delays 1 to 9."""
    return {"pre": list(range(n)), "post": [(i + 1) % n for i in range(n)], "weight": [1 + i % 4 for i in range(n)],
            "delay": [1 + i % 9 for i in range(n)]}


DELAYS = ("--columns", "pre=pre,post=post,weight=weight,delay=delay")


def delays(name):
    with h5py.File(path(name)) as file:
        return sorted(file["edges/neurons__neurons__chemical/0/delay_steps"][:].tolist())


def test_text_rows_for_some_ranks_only():
    """A column of delays counts for all, whichever ranks have rows; so do kinds, names and labels."""
    for n in (1, 3, 7):
        columns = ring(n)
        edges = write("edges.csv", text(zip(*columns.values()), ",".join(columns) + "\n"))
        same("--edges", edges, *DELAYS, ranks=(2, 8))
        check("delays", delays("8.h5"), sorted(columns["delay"]))
    edges = write("none.csv", "pre,post,weight,delay\n")
    same("--edges", edges, *DELAYS, ranks=(3,))
    names = write("names.csv", "pre,post,weight,kind,delay\nA, B,1,x,7\nB,A,2,x,9\n")
    nodes = write("nodes.csv", "id,transmitter\nA,gaba\nB,acetylcholine\nC,gaba\n")
    words = ("--edges", names, *DELAYS, "--nodes", nodes, "--node-columns", "id=id,transmitter=transmitter")
    same(*words, ranks=(5,))
    same(*words, "--where", "kind=x", "--node-rule", "endpoints", ranks=(5,))
    check("delays", delays("5.h5"), [7, 9])


def test_feather_batches_for_some_ranks_only():
    if feather is None:
        return
    for n, batches, ranks in ((30, 1, (2, 3)), (30, 3, (4,)), (70, 7, (8,)), (2500, 1, (2,)), (0, 0, (2,))):
        columns = ring(n)
        table = pyarrow.table({name: pyarrow.array(values, pyarrow.int64()) for name, values in columns.items()})
        feather.write_feather(table, path("edges.feather"), chunksize=-(-n // batches) if n else None)
        same("--edges", path("edges.feather"), *DELAYS, ranks=ranks)
        check("delays", delays(f"{ranks[0]}.h5"), sorted(columns["delay"]))
    table = pyarrow.table({"pre": ["A", "B"], "post": [" B", "A"], "weight": [1, 2], "kind": ["x", "y"]})
    feather.write_feather(table, path("edges.feather"))
    columns = ("--columns", "pre=pre,post=post,weight=weight")
    check("kinds", "'x', 'y'" in same_refusal("--edges", path("edges.feather"), *columns), True)
    same("--edges", path("edges.feather"), *columns, "--merge-kinds", ranks=(2,))


def test_more_ranks_than_neurons():
    """The verbs that read a graph: ranks without neurons know its delays and columns too."""
    columns = ring(3)
    columns["weight"] = [30, -20, 70]
    edges = write("edges.csv", text(zip(*columns.values()), ",".join(columns) + "\n"))
    check("made", run("--edges", edges, *DELAYS)[0], 0)
    graph_run("export", path("graph.h5"), "--format", "scx", "--output", path("graph.scx"))
    same("--edges", path("graph.scx"), ranks=(5,))
    config = write("config.json", json.dumps(
        {"threshold": 10, "decay_shifts": [3], "seed": 3, "record": {"spikes": {"body_ids": [1]}},
         "stimulus": [{"neurons": "all", "kind": "poisson", "rate_hz": 100, "weight": 12}]}))
    found = {}
    for n in (1, 2, 5):
        graph_run("order", path("graph.h5"), "--output", path(f"order{n}.h5"), n=n)
        graph_run("simulate", path("graph.h5"), "--config", config, "--steps", 300, "--output", path(f"run{n}"), n=n)
        with h5py.File(path(f"run{n}/spikes.h5")) as file:
            spikes = next(iter(file["spikes"].values()))
            found[n] = (spikes["timestamps"][:].tolist(), spikes["node_ids"][:].tolist(), file["step_counts"][:].tolist())
    check("it fires", len(found[1][0]) > 10, True)
    for n in (2, 5):
        check(f"spikes on {n} ranks", found[n], found[1])
        check(f"order on {n} ranks", contents(path(f"order{n}.h5")), contents(path("order1.h5")))


def test_feather():
    if feather is None:
        print("skipped Feather: pyarrow is not there")
        return
    table = pyarrow.table(dict(zip(("body_pre", "body_post", "weight"), map(list, zip(*rows(20000, 2000))))))
    nodes = write("nodes.csv", "bodyId\n" + "".join(f"{i}\n" for i in range(0, 2000, 2)))
    for rows_a_batch, compression in ((1000, "lz4"), (7000, "zstd"), (20000, "uncompressed")):
        feather.write_feather(table, path("edges.feather"), compression=compression, chunksize=rows_a_batch)
        same("--edges", path("edges.feather"))
        same("--edges", path("edges.feather"), "--nodes", nodes)
    weight = table["weight"].to_pylist()
    weight[15500] = None
    feather.write_feather(table.set_column(2, "weight", [weight]), path("edges.feather"), chunksize=1000)
    line = same_refusal("--edges", path("edges.feather"))
    check(line, "row 15501 (record batch 16)" in line, True)


if __name__ == "__main__":
    run_tests(globals(), workers=8)
