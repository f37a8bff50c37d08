#!/usr/bin/env python3
# seconds: 300
"""jobs/import.py: what it makes of other formats, read back from the graph that convert makes of that, against values
written by hand or by the format's own library; what is damaged or unclear is refused in one line, and leaves no file."""
import bz2
import gzip
import os
import shlex
import subprocess
import sys

import numpy as np

from convert_tools import Graph, check, fascicle, good, path, write
from side_by_side import run_tests

script = os.path.join(os.environ["SOURCE"], "jobs", "import.py")
EDGES = [(1, 2, -3), (1, 3, 2), (2, 3, 5), (3, 1, -1)]
MATRIX = np.array([[0, -3, 2], [0, 0, 5], [-1, 0, 0]])


def call(*words, python=sys.executable, flags=(), env=None):
    return subprocess.run([python, *flags, script, *map(str, words)], cwd=path(), capture_output=True, text=True, timeout=100,
                          env=dict(os.environ, FASCICLE=fascicle, **(env or {})))


def imported(*words):
    """The graph of `import.py ... --output graph.h5`; the line it printed must be that line."""
    done = call(*words, "--output", "graph.h5", "--force")
    check(f"{words}: {done.stderr}", done.returncode, 0)
    line = shlex.split(done.stdout.splitlines()[0])
    check("the line to run", line[:2] + line[-3:], ["fascicle", "convert", "--output", "graph.h5", "--force"])
    check("no unfinished file", [name for name in os.listdir(path()) if name.endswith(".tmp")], [])
    return Graph("graph.h5")


def refused(parts, *words, **more):
    before = set(os.listdir(path()))
    done = call(*words, **more)
    check(f"{words}: {done.stdout}", done.returncode, 1)
    check(done.stderr, (done.stderr.count("\n"), done.stderr.startswith("import.py: ")), (1, True))
    for part in parts:
        check(f"'{part}' in {done.stderr}", part in done.stderr, True)
    check("files left behind", set(os.listdir(path())) - before, set())


def test_table():
    text = "# a comment\n% another\nA,B,3\n\n#C,D,4\nB,C,4\n"
    for name, packed in (("t.csv", text.encode()), ("t.csv.gz", gzip.compress(text.encode())), ("t.csv.bz2", bz2.compress(text.encode()))):
        write(name, packed)
        graph = imported(name, "--columns", "pre=1,post=2,weight=3", "--header", "no")
        check(name, graph.edges(), [("A", "B", 3), ("B", "C", 4)])
    check("comments are counted", "3 comment lines left out" in call("t.csv", "--force").stderr, True)
    write("quoted.csv", 'pre,post,weight,note\n1,2,3,"two\n# lines"\n2,1,4,x\n')
    check("a # in quotes", imported("quoted.csv").edges(), [(1, 2, 3), (2, 1, 4)])
    write("pairs.txt", "# from to\n1 2\n2 3\n")
    check("one weight for all", imported("pairs.txt", "--weight", 1, "--header", "no").edges(), [(1, 2, 1), (2, 3, 1)])
    refused(["--header yes or no"], "pairs.txt", "--weight", 1, "--prefix", "p")
    refused(["--scale"], "pairs.txt", "--scale", 2, "--prefix", "p")
    refused(["no row of data"], write("empty.txt", "# nothing\n"), "--prefix", "p")
    refused(["cut.gz", "cut off"], write("cut.gz", gzip.compress(text.encode())[:-12]), "--prefix", "p")
    refused(["UTF-8"], write("latin.csv", b"A\xe9,B,3\n"), "--prefix", "p")
    refused(["is an input"], write("t2.edges.txt", "1 2 3\n"), "--prefix", "t2", "--force")
    refused(["No such file", "none.csv"], "none.csv", "--prefix", "p")


def test_matrices():
    write("m.txt", "0 -3 2\n0 0 5\n-1 0 0\n")
    write("m.csv", "0,-3,2\n0,0,5\n-1,0,0\n")
    write("names.txt", "c\nb\na\n")
    for name in ("m.txt", "m.csv"):
        graph = imported(name, "--format", "matrix")
        check(name, graph.edges(), EDGES)
    check("row = post", imported("m.txt", "--format", "matrix", "--rows", "post").edges(), sorted((b, a, w) for a, b, w in EDGES))
    graph = imported("m.txt", "--format", "matrix", "--names", "names.txt")
    check("names", graph.edges(), sorted(("cba"[a - 1], "cba"[b - 1], w) for a, b, w in EDGES))
    write("half.txt", "0 0.5 0\n0 0 0\n0 0 0\n")
    graph = imported("half.txt", "--format", "matrix", "--scale", 10)
    check("0.5 x 10; lonely neurons stay", (graph.edges(), graph.body_id.tolist()), ([(1, 2, 5)], [1, 2, 3]))
    for parts, *words in ((["row 1, column 2", "0.5", "--scale"], "half.txt"),
                          (["row 2", "2 numbers"], write("bad.txt", "0 1 2\n0 1\n1 1 1\n")),
                          (["row 1, column 1", "'x'"], write("word.txt", "x 1\n1 0\n")),
                          (["row 1, column 2", "nan"], write("nan.txt", "0 nan\n1 0\n")),
                          (["2 names", "3 rows"], "m.txt", "--names", write("few.txt", "a\nb\n"))):
        refused(parts, *words, "--format", "matrix", "--prefix", "p")


def test_numpy():
    np.save(path("m.npy"), MATRIX)
    np.savez(path("m.npz"), m=MATRIX.astype("i1"), other=MATRIX[:2])
    wanted = [(a - 1, b - 1, w) for a, b, w in EDGES]
    check("npy", imported("m.npy").edges(), wanted)
    check("npz", imported("m.npz", "--array", "m").edges(), wanted)
    refused(["m, other", "--array"], "m.npz", "--prefix", "p")
    refused(["2 x 3"], "m.npz", "--array", "other", "--prefix", "p")
    np.save(path("o.npy"), np.array([["a"]], dtype=object))
    refused(["o.npy"], "o.npy", "--prefix", "p")
    refused(["cut.npz"], write("cut.npz", open(path("m.npz"), "rb").read()[:200]), "--prefix", "p")
    try:
        import scipy.io
        import scipy.sparse
    except ImportError:
        return
    for kind in ("csr", "csc", "coo"):
        scipy.sparse.save_npz(path("s.npz"), scipy.sparse.coo_matrix(MATRIX).asformat(kind))
        check(kind, imported("s.npz").edges(), wanted)
    twice = scipy.sparse.coo_matrix((np.full(4, 100, "i1"), ([0] * 4, [1] * 4)), shape=(2, 2))
    scipy.sparse.save_npz(path("t.npz"), twice)
    check("repeated cells are summed in 64 bits", imported("t.npz").edges(), [(0, 1, 400)])
    for name, matrix in (("s.mtx", scipy.sparse.coo_matrix(MATRIX)), ("d.mtx", MATRIX)):
        scipy.io.mmwrite(path(name), matrix)
        check(name, imported(name).edges(), EDGES)
    write("sym.mtx", "%%MatrixMarket matrix coordinate integer symmetric\n% both\n3 3 1\n3 1 -7\n")
    check("symmetric", imported("sym.mtx").edges(), [(1, 3, -7), (3, 1, -7)])
    refused(["bad.mtx"], write("bad.mtx", "%%MatrixMarket matrix coordinate integer general\n3 3 2\n1 2 4\n"), "--prefix", "p")
    refused(["2 x 3"], write("w.mtx", "%%MatrixMarket matrix coordinate integer general\n2 3 1\n1 2 4\n"), "--prefix", "p")


GRAPHML = """<?xml version="1.0"?><graphml xmlns="http://graphml.graphdrawing.org/xmlns">
<key id="d0" for="node" attr.name="cell type" attr.type="string"><default>none</default></key>
<key id="d1" for="edge" attr.name="weight" attr.type="int"/>
<graph edgedefault="%s"><node id="n0"><data key="d0">LC4, big</data></node><node id="n1"/><node id="n2"/>
<edge source="n0" target="n1"><data key="d1">3</data></edge><edge source="n1" target="%s"><data key="d1">-4</data></edge>
</graph></graphml>"""


def test_graphml():
    write("g.graphml", GRAPHML % ("directed", "n0"))
    graph = imported("g.graphml")
    check("edges", graph.edges(), [("n0", "n1", 3), ("n1", "n0", -4)])
    check("names, types", (graph.names, graph.columns), (["n0", "n1", "n2"], {"cell_type": ["LC4, big", "none", "none"]}))
    refused(["edge 2", "'n9'"], write("m.graphml", GRAPHML % ("directed", "n9")), "--prefix", "p")
    write("u.graphml", GRAPHML % ("undirected", "n1"))
    refused(["edge 1", "--both-ways"], "u.graphml", "--prefix", "p")
    check("both ways", imported("u.graphml", "--both-ways").edges(), [("n0", "n1", 3), ("n1", "n0", 3), ("n1", "n1", -4)])
    refused(["XML"], write("cut.graphml", (GRAPHML % ("directed", "n0"))[:300]), "--prefix", "p")
    refused(["edge 1", "'cost'"], "g.graphml", "--columns", "weight=cost", "--prefix", "p")
    try:
        import networkx
    except ImportError:
        return
    made = networkx.gnm_random_graph(20, 60, seed=1, directed=True)
    for i, (_, _, data) in enumerate(made.edges(data=True)):
        data["weight"] = i - 30 or 7
    networkx.write_graphml(made, path("nx.graphml"))
    check("networkx", imported("nx.graphml").edges(), sorted((int(a), int(b), w) for a, b, w in made.edges(data="weight")))


def test_parquet():
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        print("passed over: without pyarrow no Parquet is written")
        return
    big = 2**63 + 5
    edges = pa.table({"pre_pt_root_id": pa.array([big, 7, big], pa.uint64()), "post_pt_root_id": pa.array([7, big, big], pa.uint64()),
                      "n": pa.array([3, 4, 5]), "ms": pa.array([0.5, 1.0, 1.5])})
    pq.write_table(edges, path("e.parquet"), row_group_size=2)
    pq.write_table(pa.table({"id": pa.array([7, big], pa.uint64()), "type": pa.array(["A", "B"]).dictionary_encode()}), path("n.parquet"))
    graph = imported("e.parquet", "--columns", "weight=n,delay=ms", "--dt-ms", 0.5)
    check("edges", (graph.edges(), graph.delay.tolist()), ([(7, big, 4), (big, 7, 3), (big, big, 5)], [2, 1, 3]))
    graph = imported("e.parquet", "--weight", 1)
    check("weight 1", graph.impulse.tolist(), [1, 1, 1])
    line = shlex.split(call("e.parquet", "--weight", 1, "--nodes", "n.parquet", "--force").stdout)
    words = line[2:line.index("--output")] + ["--node-columns", "id=id,type=type"]
    _, graph, _ = good(*[path(w) if w.startswith(("e.", "n.")) else w for w in words])
    check("node table", graph.columns["type"], ["A", "B"])
    refused(["delay 0.5", "--dt-ms"], "e.parquet", "--columns", "weight=n,delay=ms", "--prefix", "p")
    refused(["which column is weight", "ms"], "e.parquet", "--prefix", "p")
    refused(["'x'", "pre_pt_root_id"], "e.parquet", "--columns", "weight=x", "--prefix", "p")
    refused(["cut.parquet"], write("cut.parquet", open(path("e.parquet"), "rb").read()[:300]), "--prefix", "p")
    pq.write_table(pa.table({"pre": pa.array([1.0]), "post": pa.array([2]), "weight": pa.array([None], pa.int64())}), path("f.parquet"))
    refused(["2^53"], "f.parquet", "--prefix", "p")


def test_missing_package():
    """A Python without any package: what needs none works, the rest is one line with the package's name."""
    write("m.txt", "0 -3\n1 0\n")
    for name, package in (("a.parquet", "pyarrow"), ("a.npz", "numpy"), ("a.mtx", "scipy"), ("a.h5", "h5py")):
        write(name, "x")
        refused([f"Python package {package}", f"pip install {package}"], name, "--prefix", "p", flags=("-I", "-S"))
    check("no package", call("m.txt", "--format", "matrix", flags=("-I", "-S")).returncode, 0)


def test_sonata():
    import h5py
    with h5py.File(path("edges.h5"), "w") as file:
        group = file.create_group("edges/v1_v1")
        for end, ids in (("source", [0, 1, 2]), ("target", [1, 2, 0])):
            group[f"{end}_node_id"] = np.array(ids, "u8")
            group[f"{end}_node_id"].attrs["node_population"] = "v1"
        group["edge_type_id"] = np.array([100, 101, 100], "u4")
        group["edge_group_id"] = np.array([0, 1, 0], "u4")
        group["edge_group_index"] = np.array([0, 0, 1], "u8")
        group["0/syn_weight"] = np.array([1.5, -2.5])
        group.create_group("1")
    with h5py.File(path("nodes.h5"), "w") as file:
        group = file.create_group("nodes/v1")
        group["node_id"], group["node_type_id"] = np.arange(3), np.array([7, 7, 8])
        group["node_group_id"], group["node_group_index"] = np.zeros(3, "u4"), np.arange(3)
        group["0/x"] = np.array([0.5, 1.5, 2.5])
    types = write("edge_types.csv", "edge_type_id syn_weight delay\n100 9 2.0\n101 4.0 1.5\n")
    kinds = write("node_types.csv", 'node_type_id pop_name model\n7 "Scnn 1a" a.json\n8 LIF NULL\n')
    words = ("edges.h5", "--edge-types", types, "--scale", 2, "--dt-ms", 0.5)
    graph = imported(*words, "--nodes", "nodes.h5", "--node-types", kinds)
    check("edges", graph.edges(), [(0, 1, 3), (1, 2, 8), (2, 0, -5)])
    check("delays of the types", graph.delay.tolist(), [4, 3, 4])
    check("columns", graph.columns, {"x": ["0.5", "1.5", "2.5"], "pop_name": ["Scnn 1a", "Scnn 1a", "LIF"], "model": ["a.json", "a.json", ""]})
    refused(["in ms", "--dt-ms"], *words[:-2], "--prefix", "p")
    refused(["edge 1", "no syn_weight"], "edges.h5", "--scale", 2, "--prefix", "p")
    refused(["no /edges"], "nodes.h5", "--prefix", "p")
    with h5py.File(path("edges.h5"), "a") as file:
        file["edges/v1_v1/0/nsyns"] = np.array([10, 1])
    check("syn_weight is of one synapse", imported(*words).edges(), [(0, 1, 30), (1, 2, 8), (2, 0, -5)])
    # A graph of ours is a SONATA file too.
    good("--edges", write("own.csv", "pre,post,weight,delay\n5,9,-3,2\n9,5,4,7\n"), "--columns",
         "pre=pre,post=post,weight=weight,delay=delay", output="own.h5")
    graph = imported("own.h5", "--nodes", "own.h5")
    check("ids of the other graph", graph.columns["cell_body_id"], ["5", "9"])
    check("ours", (graph.edges(), graph.delay.tolist()), ([(0, 1, -3), (1, 0, 4)], [2, 7]))


run_tests(globals(), workers=4)
