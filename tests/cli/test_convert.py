#!/usr/bin/env python3
# seconds: 300
"""convert on small tables: every case in which such tools went wrong without a word, then the others."""
import hashlib
import json
import os
import random
import subprocess

import h5py

from convert_tools import check, dropped, fascicle, good, ranks, refused, run, write
from side_by_side import path, run_tests

USAGE, INPUT, OUTPUT = 2, 65, 73
HEAD = "body_pre,body_post,weight\n"


def edges(*rows, name="edges.csv", head=HEAD):
    return write(name, head + "".join(",".join(map(str, row)) + "\n" for row in rows))


def test_matrix_recipe():
    """README and the help text give one recipe for a dense matrix; it keeps negative cells, row = pre."""
    recipe = "awk '{for(j=1;j<=NF;j++) if($j) print NR, j, $j}' matrix.txt > edges.txt"
    with open(os.path.join(os.environ["SOURCE"], "README.md"), encoding="utf-8") as file:
        readme = file.read()
    text = subprocess.run([fascicle, "convert", "--help"], capture_output=True, text=True, check=True).stdout
    for name, document in (("README.md", readme), ("convert --help", text)):
        check(f"{name} has the recipe, and no other", [line.count("awk") for line in document.splitlines() if recipe in line],
              [document.count("awk '{")])
        check(f"{name} says which end a row is", "row = pre" in document and "negative = inhibitory" in document, True)
    write("matrix.txt", "0 -3 2\n0 0 5\n-1 0 0\n")
    subprocess.run(["bash", "-c", recipe], cwd=path(), check=True)
    _, graph, _ = good("--edges", path("edges.txt"))
    check("signed edges", graph.edges(), [(1, 2, -3), (1, 3, 2), (2, 3, 5), (3, 1, -1)])


def test_ids_above_2_53():
    a, b = 2**53, 2**53 + 1
    _, graph, _ = good("--edges", edges((a, b, 1), (b, 2**64 - 1, 2)))
    check("ids", [int(i) for i in graph.body_id], [a, b, 2**64 - 1])
    check("edges", graph.edges(), [(a, b, 1), (b, 2**64 - 1, 2)])
    _, graph, _ = good("--edges", edges(("7.0", "12.0", 1)))
    check("whole doubles", graph.edges(), [(7, 12, 1)])
    refused(INPUT, ["row 2", "body_pre", "9007199254740993.0", "2^53"], "--edges",
            edges((1, 2, 1), ("9007199254740993.0", 2, 1)))
    refused(INPUT, ["row 1", "2^64"], "--edges", edges((2**64, 1, 1)))
    refused(INPUT, ["row 1", "negative"], "--edges", edges((-3, 1, 1)))
    refused(INPUT, ["row 2", "missing"], "--edges", edges((1, 2, 1), ("", 2, 1)))
    refused(INPUT, ["row 1", "whole number"], "--edges", edges((1.5, 2, 1)))
    refused(INPUT, ["xxx...", "1001 bytes"], "--ids", "names", "--edges", edges(("x" * 1001, "y", 1)))


def test_repeated_pairs():
    table = edges((1, 2, 3), (1, 2, 4), (2, 1, 5))
    facts, graph, _ = good("--edges", table)
    check("summed", graph.edges(), [(1, 2, 7), (2, 1, 5)])
    check("pairs", (facts["result"]["merged_pairs"], facts["result"]["merged_rows"]), (1, 1))
    facts, graph, _ = good("--edges", table, "--duplicates", "keep")
    check("kept", graph.edges(), [(1, 2, 3), (1, 2, 4), (2, 1, 5)])
    check("parallel", facts["result"]["parallel_edges"], 1)
    refused(INPUT, ["1 -> 2", "--duplicates"], "--edges", table, "--duplicates", "refuse")
    table = edges((1, 2, 3, 1), (1, 2, 4, 2), (1, 2, 5, 1), head="body_pre,body_post,weight,d\n")
    _, graph, _ = good("--edges", table, "--columns", "delay=d")
    check("summed by delay", (graph.edges(), graph.delay.tolist()), ([(1, 2, 8), (1, 2, 4)], [1, 2]))


def test_self_loops():
    table = edges((7, 7, 5), (7, 8, 1))
    facts, graph, _ = good("--edges", table)
    check("kept", (graph.edges(), facts["result"]["self_loops"]), ([(7, 7, 5), (7, 8, 1)], 1))
    facts, graph, _ = good("--edges", table, "--self-loops", "drop")
    check("dropped", (graph.edges(), dropped(facts)), ([(7, 8, 1)], {"self-loop": 1}))


NODES = "bodyId,type,somaSide,superclass,status\n" \
        "5,A,L,x,Traced\n3,B,R,,Glia\n4,,,x_tbc,\n9,C,,y,Traced\n"


def test_node_rules():
    nodes, table = write("nodes.csv", NODES), edges((5, 4, 1), (3, 5, 2), (5, 99, 3), (98, 5, 4), (97, 96, 5),
                                                    (9, 5, 6))
    ends = {"the source is not a node": 1, "the target is not a node": 1, "neither source nor target is a node": 1}
    facts, graph, _ = good("--edges", table, "--nodes", nodes)
    check("listed", (graph.body_id.tolist(), dropped(facts)), ([3, 4, 5, 9], ends))
    check("types", graph.columns["type"], ["B", "", "A", "C"])
    check("rule", graph.provenance["rules"]["node_rule"], "listed")
    facts, graph, _ = good("--edges", table, "--nodes", nodes, "--node-rule", "superclass")
    check("superclass", graph.edges(), [(5, 4, 1), (9, 5, 6)])
    check("account", (dropped(facts, "nodes"), dropped(facts)["the source is not a node"]), ({"no superclass": 1}, 2))
    facts, graph, _ = good("--edges", table, "--nodes", nodes, "--node-rule", "traced")
    check("traced", (graph.body_id.tolist(), dropped(facts, "nodes")), ([5, 9], {"status is not Traced": 2}))
    facts, graph, _ = good("--edges", table, "--nodes", nodes, "--node-rule", "endpoints")
    check("endpoints", (graph.body_id.tolist(), dropped(facts)), ([3, 4, 5, 9, 96, 97, 98, 99], {}))
    refused(INPUT, ["all 2 rows were dropped"], "--edges", edges((1, 2, 3), (2, 1, 3)), "--nodes", nodes)
    refused(USAGE, ["superclass", "--nodes"], "--edges", table, "--node-rule", "superclass")
    for taken in ("name", "sign", "body_id", "a/b"):
        refused(USAGE, [taken, "taken"], "--edges", table, "--nodes", nodes, "--node-columns", f"{taken}=type")
    refused(USAGE, ["'status'", "--node-columns"], "--edges", table, "--nodes", write("n2.csv", "bodyId\n5\n"),
            "--node-rule", "traced")


def test_isolated():
    nodes, table = write("nodes.csv", "bodyId\n1\n2\n3\n"), edges((1, 3, 1))
    facts, graph, _ = good("--edges", table, "--nodes", nodes)
    check("kept", (graph.body_id.tolist(), facts["result"]["isolated_nodes"]), ([1, 2, 3], 1))
    facts, graph, _ = good("--edges", table, "--nodes", nodes, "--isolated", "drop")
    check("dropped", (graph.body_id.tolist(), graph.edges()), ([1, 3], [(1, 3, 1)]))


SIGNS = '{"signs": {"acetylcholine": 1, "gaba": -1, "histamine": -1%s}}'


def test_transmitters():
    nodes = write("nodes.csv", "bodyId\n1\n2\n3\n4\n5\n")
    table = edges((1, 5, 10), (2, 5, 20), (3, 5, 30), (4, 5, 40), (5, 1, 50))
    labels = write("nt.csv", "body,consensus_nt,predicted_nt\n1,gaba,x\n2,unclear,gaba\n3,,gaba\n5,acetylcholine,\n77,gaba,\n")
    words = ["--edges", table, "--nodes", nodes, "--transmitters", labels]
    refused(INPUT, ["'unclear'", "entry"], *words, "--signs", write("s.json", SIGNS % ""))
    refused(INPUT, ["'missing'", "entry", "id 3"], *words, "--signs", write("s.json", SIGNS % ', "unclear": 1'))
    signs = write("s.json", SIGNS % ', "unclear": 1, "missing": "exclude"')
    facts, graph, _ = good(*words, "--signs", signs)
    check("signed", graph.edges(), [(1, 5, -10), (2, 5, 20), (5, 1, 50)])
    check("account", dropped(facts), {"the sign table excludes its source (missing)": 2})
    check("labels", dropped(facts, "transmitters"), {"no such node": 1})
    check("nodes", facts["result"]["nodes_by_transmitter"],
          {"missing": 2, "acetylcholine": 1, "gaba": 1, "unclear": 1})
    check("stored", (graph.columns["sign"], graph.columns["transmitter"]),
          ([-1, 1, 0, 0, 1], ["gaba", "unclear", "", "", "acetylcholine"]))
    check("table", graph.provenance["rules"]["signs"]["signs"]["unclear"], 1)
    # "unclear" is an answer and does not fall through; an empty label does.
    _, graph, _ = good(*words, "--signs", signs, "--transmitter-columns", "label2=predicted_nt")
    check("second label", graph.edges(), [(1, 5, -10), (2, 5, 20), (3, 5, -30), (5, 1, 50)])
    facts, graph, _ = good(*words[:4], "--transmitters", write("nt2.csv", "body,consensus_nt\n1,glutamate\n5,acetylcholine\n"))
    check("default", (graph.edges(), "doi" in facts["rules"]["signs"]["citation"]), ([(1, 5, -10), (5, 1, 50)], True))
    _, graph, _ = good(*words[:4], "--transmitters", path("nt2.csv"), "--signs", "soup")
    check("soup", graph.edges(), [(1, 5, 10), (5, 1, 50)])
    for text, part in [('{"signs": {"gaba": 0}}', "gaba"), ('{"signs": {}}', "entry"), ("{", "s.json"),
                       ('{"signs": {"gaba": 1, "gaba": -1}}', "s.json")]:
        code, _, error = run(*words, "--signs", write("s.json", text))
        check(error, (code in (USAGE, INPUT), part in error), (True, True))
    refused(USAGE, ["--signs nowhere"], *words, "--signs", "nowhere")
    refused(USAGE, ["--signs", "--transmitters"], *words[:4], "--signs", signs)
    _, graph, _ = good("--edges", table, "--nodes", write("n.csv", "bodyId,nt\n1,gaba\n5,gaba\n"), "--node-columns",
                       "transmitter=nt")
    check("label in the node table", graph.edges(), [(1, 5, -10), (5, 1, -50)])


def test_repeated_ids():
    table = edges((5, 6, 1))
    same = write("same.csv", "bodyId,type,other\n5,A,x\n5,A,y\n6,C,z\n")
    facts, graph, _ = good("--edges", table, "--nodes", same, "--labels", "named")
    check("same", (graph.body_id.tolist(), dropped(facts, "nodes")), ([5, 6], {"identical repeat of an id": 1}))
    for policy, kept in (("refuse", "first"), ("first", "first"), ("last", "last")):
        facts, graph, _ = good("--edges", table, "--nodes", same, "--repeated-ids", policy)
        reason = f"repeat of an id that differs only in labels that were not chosen; the {kept} row was taken"
        check("similar", (dropped(facts, "nodes"), graph.columns["other"]), ({reason: 1}, ["x" if kept == "first" else "y", "z"]))
    differ = write("differ.csv", "bodyId,type\n5,A\n6,C\n5,B\n")
    refused(INPUT, ["row 3", "id 5", "'B'", "'A'", "--repeated-ids"], "--edges", table, "--nodes", differ)
    for policy, kind in (("first", "A"), ("last", "B")):
        facts, graph, _ = good("--edges", table, "--nodes", differ, "--repeated-ids", policy)
        check(policy, (graph.columns["type"], graph.edges()), ([kind, "C"], [(5, 6, 1)]))
        check(policy, sum(dropped(facts, "nodes").values()), 1)
    nt = write("nt.csv", "body,consensus_nt\n5,gaba\n5,acetylcholine\n")
    refused(INPUT, ["row 2", "id 5", "gaba"], "--edges", table, "--transmitters", nt)


def test_names():
    table = write("names.csv", "a,b,n\nA , B ,1\nB,A ,2\n\"C, \"\"x\"\"\",A,3\n")
    _, graph, error = good("--edges", table, "--columns", "pre=a,post=b,weight=n")
    check("trimmed", graph.edges(), [("A", "B", 1), ("B", "A", 2), ('C, "x"', "A", 3)])
    check("warned", "2 names occur with different outer blanks" in error, True)
    refused(INPUT, ["row 2", "empty"], "--edges", write("names.csv", "a,b,n\nA,B,1\n ,B,1\n"), "--columns",
            "pre=a,post=b,weight=n")
    refused(INPUT, ["row 2", "--ids names"], "--edges", edges((1, 2, 3), (1, "x2", 3)))
    _, graph, _ = good("--edges", edges((10, 9, 3), (9, "x", 3)), "--ids", "names")
    check("byte order", graph.names, ["10", "9", "x"])


def test_kinds():
    table = write("kinds.csv", "Source,Target,Weight,Type\nA,B,3,chemical\nA,B,2,electrical\n")
    columns = ["--columns", "pre=Source,post=Target,weight=Weight"]
    refused(INPUT, ["'Type'", "chemical", "electrical", "--where", "--merge-kinds"], "--edges", table, *columns)
    refused(INPUT, ["'Type'"], "--edges", table, "--columns", columns[1] + ",kind=Type")
    facts, graph, _ = good("--edges", table, *columns, "--where", "Type=electrical")
    check("where", (graph.edges(), dropped(facts)), ([("A", "B", 2)], {"Type is not as --where asks": 1}))
    _, graph, _ = good("--edges", table, *columns, "--merge-kinds")
    check("merged", graph.edges(), [("A", "B", 5)])
    _, graph, _ = good("--edges", table, *columns, "--where", "Type=electrical", "--where", "Type=chemical")
    check("either", graph.edges(), [("A", "B", 5)])
    refused(INPUT, ["all 2 rows"], "--edges", table, *columns, "--where", "Type=x")
    refused(INPUT, ["'Nope'", "'Type'"], "--edges", table, *columns, "--where", "Nope=x")


def test_layouts():
    wanted = [(1, 2, 3), (2, 1, 4)]
    rows = "1{0}2{0}3{1}2{0}1{0}4{1}"
    for delimiter in ",\t;| ":
        for end in ("\n", "\r\n"):
            _, graph, _ = good("--edges", write("t", rows.format(delimiter, end)))
            check(repr((delimiter, end)), graph.edges(), wanted)
            head = delimiter.join(["body_pre", "body_post", "weight"]) + end
            _, graph, _ = good("--edges", write("t", "\ufeff" + head + end + rows.format(delimiter, end).rstrip()))
            check(repr((delimiter, end)), graph.edges(), wanted)
    _, graph, _ = good("--edges", write("t", "  1   2\t3 \n\n 2 1  4"))
    check("runs of blanks", graph.edges(), wanted)
    _, graph, _ = good("--edges", write("t", 'note,body_post,"body\npre",weight\n"a\n""b"",",2,1,"3"\n"",1, "2" ,4\n'),
                       "--columns", "pre=3")
    check("quotes", graph.edges(), wanted)
    _, graph, _ = good("--edges", write("t", ",body_post,weight\n1,2,3\n2,1,4\n"), "--columns", "pre=1")
    check("an empty name by position", graph.edges(), wanted)
    _, graph, _ = good("--edges", write("t", "1x2x3\n2x1x4\n"), "--delimiter", "x")
    check("any delimiter", graph.edges(), wanted)
    _, graph, _ = good("--edges", write("t", "3,x,2,1\n4,y,1,2\n"), "--header", "no", "--columns", "pre=4,post=3,weight=1")
    check("by number", graph.edges(), wanted)
    tabs = write("t.csv", "von\tnach\tsynapses\n1\t2\t3\n")
    refused(INPUT, ["only one column", "von\\tnach\\tsynapses", "--delimiter"], "--edges", tabs, "--delimiter", "comma")
    refused(INPUT, ["'kind' (--where)", "'synapses'"], "--edges", tabs, "--columns",
            "pre=von,post=nach,weight=synapses", "--where", "kind=x")
    refused(INPUT, ["all 1 rows were dropped; first reason: synapses is not as --where asks"],
            "--edges", tabs, "--columns", "pre=von,post=nach,weight=synapses", "--where", "synapses=4")
    refused(INPUT, ["'body_pre', 'bodyId_pre', 'pre', 'pre_root_id' or 'pre_pt_root_id' (pre)", "'von'", "'synapses'", "--columns"], "--edges", tabs)
    refused(INPUT, ["row 2", "line 3", "2 fields", "3"], "--edges", edges((1, 2, 3), (1, 2)))
    refused(INPUT, ["row 1", "quote"], "--edges", write("t", HEAD + '"1,2,3\n'))
    refused(INPUT, ["row 1", "after a closing quote"], "--edges", write("t", HEAD + '"1"2,2,3\n'))
    refused(INPUT, ["more than once", "position"], "--edges", write("t", "body_pre,body_pre,weight\n1,2,3\n"))


def test_shipped_signs():
    """Every word of both releases has the sign that the tables state."""
    none = ["dopamine", "histamine", "octopamine", "serotonin", "tyramine", "unclear", "missing", "DA", "OCT", "SER"]
    for name, glutamate in (("shiu", -1), ("soup", 1)):
        with open(os.path.join(os.environ["SOURCE"], "jobs", "conf", f"signs_{name}.json")) as file:
            table = json.load(file)
        check(name, table["name"], name)
        check(name, table["signs"], {"acetylcholine": 1, "ACH": 1, "gaba": -1, "GABA": -1, "glutamate": glutamate,
                                     "GLUT": glutamate, **{word: "exclude" for word in none}})


def test_encodings():
    """Texts in use must be UTF-8: another encoding is refused by row, never guessed, never dropped."""
    edges = write("u.csv", "pre,post,weight\n1,2,3\n2,1,4\n")
    with open(path("latin.csv"), "wb") as file:
        file.write("bodyId,type,class\n1,x,y\n2,Purkinjé,z\n".encode("latin-1"))
    refused(INPUT, ["latin.csv: row 2 (line 3): column 'type' is 'Purkinj\\xE9'", "not UTF-8", "iconv"],
            "--edges", edges, "--nodes", path("latin.csv"))
    good("--edges", edges, "--nodes", path("latin.csv"), "--node-columns", "type=class")  # it is not looked at
    with open(path("head.csv"), "wb") as file:
        file.write("bodyId,größe\n1,x\n".encode("latin-1"))
    refused(INPUT, ["the name of column 2 is 'gr\\xF6\\xDFe'", "not UTF-8"], "--edges", edges, "--nodes", path("head.csv"))
    with open(path("names.csv"), "wb") as file:
        file.write("pre,post,weight\na,b,1\nb,café,1\n".encode("latin-1"))
    refused(INPUT, ["row 2 (line 3): column 'post' is 'caf\\xE9'"], "--edges", path("names.csv"))
    text = write("utf8.csv", "bodyId,type\n1,Purkinjé\n2,錐体\n")
    check("kept", good("--edges", edges, "--nodes", text)[1].columns["type"], ["Purkinjé", "錐体"])


def test_names_of_columns():
    """FlyWire's tables are taken as they come; among several known names the first wins, whatever its place."""
    a, b, c = 720575940596125868, 720575940608552405, 720575940611348834
    edges = write("connections.csv", "pre_root_id,post_root_id,neuropil,syn_count,nt_type\n"
                  f"{a},{b},LOP_R,5,ACH\n{a},{c},LOP_R,7,ACH\n{a},{c},LO_R,3,ACH\n{b},{a},LO_R,3,GABA\n{c},{b},LO_R,4,DA\n")
    nodes = write("classification.csv", "root_id,flow,super_class,side\n" + "".join(
        f"{i},intrinsic,optic,right\n" for i in (a, b, c)))
    labels = write("neurons.csv", f"root_id,group,nt_type,nt_type_score\n{a},LO,ACH,0.6\n{b},LO,GABA,0.6\n{c},LO,DA,0.6\n")
    facts, graph, _ = good("--edges", edges, "--nodes", nodes, "--transmitters", labels)
    check("flywire", sorted(graph.edges()), [(a, b, 5), (a, c, 10), (b, a, -3)])
    check("flywire labels", (graph.columns["side"], graph.columns["superclass"]), (["right"] * 3, ["optic"] * 3))
    check("columns", facts["inputs"][-1]["columns"], {"pre": "pre_root_id", "post": "post_root_id", "weight": "syn_count"})
    below = write("below.csv", f"pre,post,weight\n{b},{a},-3\n{a},{b},-2\n{c},{a},-1\n")
    _, graph, error = good("--edges", below, "--nodes", nodes, "--transmitters", labels)
    check("negative", sorted(graph.edges()), [(a, b, -2), (b, a, 3)])
    check("warned", "2 weights are below 0" in error, True)
    check("not warned", "below 0" in good("--edges", below)[2], False)
    other = write("other.csv", "bodyId_pre,bodyId_post,roi,weight\n1,2,LO,3\n1,2,LOP,4\n")
    check("neuprint", good("--edges", other)[1].edges(), [(1, 2, 7)])
    both = write("both.csv", "pre,body_pre,post,body_post,weight\n1,10,2,20,3\n")
    check("first", good("--edges", both)[1].edges(), [(10, 20, 3)])
    check("chosen", good("--edges", both, "--columns", "pre=pre,post=post")[1].edges(), [(1, 2, 3)])


def test_numbers():
    _, graph, _ = good("--edges", edges((1, 2, "9.0"), (2, 1, 0), (2, 3, -2), (3, 1, "1e3"), (3, 2, "+4")))
    check("counts", graph.edges(), [(1, 2, 9), (2, 1, 0), (2, 3, -2), (3, 1, 1000), (3, 2, 4)])
    check("synapses", graph.count.tolist(), [9, 0, 2, 1000, 4])
    facts, _, _ = good("--edges", edges((1, 2, 9), (2, 1, 0)), "--zero-weights", "drop")
    check("zero", dropped(facts), {"weight 0": 1})
    for value in ("0.5", "", "NaN", "x", "0x10", "1e400", "9223372036854775808"):
        refused(INPUT, ["row 2", "'weight'"], "--edges", edges((1, 2, 1), (2, 1, value)))
    refused(INPUT, ["row 1", "32-bit"], "--edges", edges((1, 2, 2**31)))
    refused(INPUT, ["1 -> 2", "32-bit"], "--edges", edges((1, 2, 2**31 - 1), (1, 2, 1)))
    table = edges((1, 2, 7), (1, 3, 5), (1, 4, 1), (1, 5, -7), (1, 6, -5))
    refused(INPUT, ["1 -> 4", "--underflow"], "--edges", table, "--scale", "1/2")
    facts, graph, error = good("--edges", table, "--scale", "1/2", "--underflow", "keep")
    check("half to even", graph.impulse.tolist(), [4, 2, 0, -4, -2])
    check("lost", (facts["result"]["scaled_to_zero"], "scaled to 0" in error), (1, True))
    refused(INPUT, ["1 -> 2", "70000", "--overflow"], "--edges", table, "--scale", "10000")
    facts, graph, _ = good("--edges", table, "--scale", "10000", "--overflow", "saturate")
    check("saturated", (graph.impulse.tolist(), facts["result"]["saturated"]), ([32767, 32767, 10000, -32768, -32768], 4))
    for text in ("0", "1/0", "-1", "1/", "x", "1/2/3", "4294967296"):
        refused(USAGE, ["--scale"], "--edges", table, "--scale", text)
    _, graph, _ = good("--edges", table, "--delay", "65535")
    check("delay", set(graph.delay.tolist()), {65535})
    refused(USAGE, ["--delay"], "--edges", table, "--delay", "0")
    refused(INPUT, ["row 1", "65536"], "--edges", edges((1, 2, 3, 65536), head="body_pre,body_post,weight,d\n"),
            "--columns", "delay=d")


def test_releases_and_files():
    nodes = write("old.csv", "bodyId,type,class\n5,A,x\n")
    refused(INPUT, ["'superclass'", "'class'"], "--edges", edges((5, 5, 1)), "--nodes", nodes, "--node-columns",
            "superclass=superclass")
    facts, graph, _ = good("--edges", edges((5, 5, 1)), "--nodes", nodes, "--node-columns", "superclass=class")
    with open(path("edges.csv"), "rb") as file:
        text = file.read()
    (table,) = [t for t in graph.provenance["inputs"] if t["role"] == "edges"]
    check("provenance", (table["sha256"], table["bytes"], table["rows"]), (hashlib.sha256(text).hexdigest(), len(text), 1))
    check("same facts", facts["inputs"], graph.provenance["inputs"])
    refused(INPUT, ["missing.csv", "No such file"], "--edges", path("missing.csv"))
    for content, part in [(b"", "empty"), (b"PAR1xxxx", "Parquet"), (b"FEA1xxxx", "Feather version 1"),
                          (b"\x1f\x8b\x08\x00", "gzip"), (b"\xff\xfea\x00", "UTF-16"), (b"a,b\n1,\x002\n", "text"),
                          (b"\n\n", "no row")]:
        refused(INPUT, [part], "--edges", write("odd", content))
    code, _, error = run("--edges", edges((1, 2, 3)), output="no/such/folder.h5")
    check(error, code, OUTPUT)
    facts, graph, error = good("--edges", write("t", HEAD))
    check("no edges", (facts["result"]["edges"], facts["result"]["nodes"], "no edges" in error), (0, 0, True))


def names_without_header(rows, *words):
    """The edges of a table by position, and what became of its first row."""
    facts, graph, _ = good("--edges", write("t.tsv", "".join("\t".join(map(str, row)) + "\n" for row in rows)), *words)
    return graph.edges(), facts["inputs"][0]["rows"]


def test_columns_by_position():
    """A first row is data where the columns given by position hold numbers; where nothing tells, it is asked for."""
    rows = [("ADAL", "ADAR", "gap", "JSH", 2), ("ADAL", "AIBL", "send", "N2U", 1), ("AIBL", "RIBL", "send", "JSH", 7)]
    wanted = [("ADAL", "ADAR", 2), ("ADAL", "AIBL", 1), ("AIBL", "RIBL", 7)]
    columns = ("--columns", "pre=1,post=2,weight=5")
    check("guessed", names_without_header(rows, *columns), (wanted, 3))
    check("said", names_without_header(rows, *columns, "--header", "no"), (wanted, 3))
    head = [("from", "to", "how", "where", "n")]
    check("header", names_without_header(head + rows, *columns), (wanted, 3))
    check("empty header", names_without_header([("", "", "", "", "")] + rows, *columns), (wanted, 3))
    check("one name", names_without_header(head + rows, "--columns", "pre=1,post=2,weight=n"), (wanted, 3))
    check("numbers", names_without_header([("a", "b", "c"), (1, 2, 3)], "--columns", "pre=1,post=2,weight=3"), ([(1, 2, 3)], 1))
    table = write("s.csv", "A,B,3\nB,C,4\nC,A,5\n")
    _, graph, _ = good("--edges", table, "--columns", "pre=1,post=2,weight=3")
    check("three edges", graph.edges(), [("A", "B", 3), ("B", "C", 4), ("C", "A", 5)])
    refused(INPUT, ["'A', 'B', '3'", "--header no"], "--edges", table)
    refused(USAGE, ["'A'", "--header yes", "--header no"], "--edges", write("p.csv", "A,B\nB,C\n"), "--columns", "pre=1,post=2")
    for header, edges_found in (("no", [("A", "B", 1), ("B", "C", 1)]), ("yes", [("B", "C", 1)])):
        _, graph, _ = good("--edges", path("p.csv"), "--columns", "pre=1,post=2", "--header", header)
        check(header, graph.edges(), edges_found)
    nodes = write("nodes.csv", "A,x\nB,y\nC,x\n")
    words = ("--edges", table, "--columns", "pre=1,post=2,weight=3", "--nodes", nodes, "--node-columns", "id=1,type=2")
    refused(USAGE, ["nodes.csv", "--node-header yes"], *words)
    _, graph, _ = good(*words, "--node-header", "no")
    check("types", graph.columns["type"], ["x", "y", "x"])
    _, graph, _ = good("--edges", edges((5, 6, 1)), "--nodes", write("numbers.csv", "5,x\n6,y\n"), "--node-columns", "id=1,type=2")
    check("ids that must be numbers", graph.columns["type"], ["x", "y"])
    refused(USAGE, ["nodes.csv", "--transmitter-header"], *words[:4], "--transmitters", nodes, "--transmitter-columns", "id=1,label=2")


def test_numbers_as_names():
    """A number that names one column and is the position of another is refused; #N is always a position."""
    table = write("t.csv", "pre,2,1,n\nA,B,C,5\n")
    refused(INPUT, ["'1' (post)", "#N"], "--edges", table, "--columns", "pre=pre,post=1,weight=n")
    refused(INPUT, ["'1'", "--where", "#1"], "--edges", table, "--columns", "pre=pre,post=2,weight=n", "--where", "1=C")
    _, graph, _ = good("--edges", table, "--columns", "pre=pre,post=#3,weight=n", "--where", "#2=B")
    check("by position", graph.edges(), [("A", "C", 5)])
    _, graph, _ = good("--edges", table, "--columns", "pre=#1,post=2,weight=4")
    check("its own position", graph.edges(), [("A", "B", 5)])


def test_rows_that_where_drops():
    """Whatever is wrong in a row that --where drops, it stops nothing."""
    table = write("fw.csv", "pre,post,weight,d,kind\nA,B,3,1,chem\nB,C,0.5,1,elec\nC,A,,1,elec\nA,C,4,2,chem\nA,B,1,x,elec\n")
    words = ("--edges", table, "--columns", "delay=d")
    for n in (1, 3):
        facts, graph, _ = good(*words, "--where", "kind=chem", n=n)
        check("kept", (graph.edges(), graph.delay.tolist(), dropped(facts)),
              ([("A", "B", 3), ("A", "C", 4)], [1, 2], {"kind is not as --where asks": 3}))
    refused(INPUT, ["row 2", "'weight'", "'0.5'", "--scale"], *words, "--where", "kind=elec")
    refused(INPUT, ["row 1", "'d'", "'x'"], "--edges", write("d.csv", "pre,post,weight,d,k\nA,B,1,x,e\n"), "--columns", "delay=d", "--where", "k=e")
    numbers = write("n.csv", "pre,post,weight,kind\n1,2,3,chem\n,2,1,elec\n-7,2,1,elec\n2,1,99999999999,elec\n")
    _, graph, _ = good("--edges", numbers, "--where", "kind=chem", "--ids", "numbers")
    check("ids", graph.edges(), [(1, 2, 3)])
    refused(INPUT, ["row 2", "'pre'", "missing"], "--edges", numbers, "--where", "kind=elec")
    try:
        import pyarrow
        from pyarrow import feather
    except ImportError as missing:
        print("skipped Feather:", missing)
        return
    feather.write_feather(pyarrow.table({"pre": [1, None, 2, 3], "post": [2, 1, 1, 1], "weight": [3, 0.5, None, 2.0],
                                         "kind": ["chem", "elec", "elec", "chem"]}), path("fw.feather"))
    facts, graph, _ = good("--edges", path("fw.feather"), "--where", "kind=chem")
    check("Feather", (graph.edges(), dropped(facts)), ([(1, 2, 3), (3, 1, 2)], {"kind is not as --where asks": 2}))
    refused(INPUT, ["row 2", "'pre'"], "--edges", path("fw.feather"), "--where", "kind=elec")


def test_tables_without_weights():
    """One row per synapse: rows are counted, on request or where there are just two columns."""
    facts, graph, _ = good("--edges", write("u.txt", "1 2\n2 3\n1 2\n"))
    check("two columns", (graph.edges(), graph.count.tolist()), ([(1, 2, 2), (2, 3, 1)], [2, 1]))
    check("said", (facts["rules"]["weight_of_a_row"], facts["inputs"][0]["columns"]), (1, {"pre": "1", "post": "2"}))
    table = write("cave.csv", "id,pre_pt_root_id,post_pt_root_id,size\n1,7,8,0.5\n2,7,8,0.25\n3,8,7,1\n")
    refused(INPUT, ["'weight' or 'syn_count'", "--weight 1"], "--edges", table)
    for n in (1, 4):
        _, graph, _ = good("--edges", table, "--weight", "1", n=n)
        check("rows", graph.edges(), [(7, 8, 2), (8, 7, 1)])
    _, graph, _ = good("--edges", edges((1, 2, 9), (1, 2, 9)), "--weight", "3")
    check("in place of the column", graph.edges(), [(1, 2, 6)])
    refused(USAGE, ["--weight", "'size'"], "--edges", table, "--weight", "1", "--columns", "weight=size")


def test_min_weight():
    """The sum of a pair decides, whatever its sign; what is left out is counted, and nodes may lose their last edge."""
    table = edges((1, 2, 3), (1, 2, 3), (2, 3, 4), (3, 1, -5), (4, 4, 1))
    facts, graph, _ = good("--edges", table, "--min-weight", "5")
    check("edges", graph.edges(), [(1, 2, 6), (3, 1, -5)])
    result = facts["result"]
    check("account", (result["below_min_weight"], result["below_min_weight_sum"], result["weight_sum"], result["isolated_nodes"],
                      result["self_loops"], facts["rules"]["min_weight"]), (2, 5, 11, 1, 0, 5))
    check("all nodes", graph.body_id.tolist(), [1, 2, 3, 4])
    _, graph, _ = good("--edges", table, "--min-weight", "5", "--isolated", "drop", "--scale", "2")
    check("before the scale, and nodes", (graph.edges(), graph.body_id.tolist()), ([(1, 2, 12), (3, 1, -10)], [1, 2, 3]))
    refused(INPUT, ["all 4 edges", "--min-weight 7"], "--edges", table, "--min-weight", "7")


def test_fractions():
    rows = [(1, 2, "0.5"), (1, 2, "0.25"), (2, 1, "-1.25"), (2, 3, 3), (3, 1, "4e-1")]
    table = edges(*rows)
    refused(INPUT, ["row 1", "'0.5'", "--scale"], "--edges", table)
    for n in (1, 3):
        facts, graph, _ = good("--edges", table, "--scale", "10", n=n)
        check("sums, then half to even", graph.edges(), [(1, 2, 8), (2, 1, -12), (2, 3, 30), (3, 1, 4)])
        check("sum", (facts["result"]["weight_sum"], facts["rules"]["decimal_places"], len(graph.count)), (5.4, 5, 0))
    facts, graph, _ = good("--edges", table, "--scale", "10", "--min-weight", "1")
    check("at least 1", (graph.edges(), facts["result"]["below_min_weight_sum"]), ([(2, 1, -12), (2, 3, 30)], 1.15))
    refused(INPUT, ["3 -> 1", "weight 0.4", "loses"], "--edges", table, "--scale", "1/2")
    refused(INPUT, ["row 2", "21474"], "--edges", edges((1, 2, "0.5"), (1, 2, 30000)), "--scale", "10", "--overflow", "saturate")
    refused(INPUT, ["row 1", "'x'", "number"], "--edges", edges((1, 2, "x")), "--scale", "10")
    _, graph, _ = good("--edges", edges((1, 2, 30000)), "--scale", "10", "--overflow", "saturate")
    check("whole numbers as ever", graph.edges(), [(1, 2, 32767)])


def test_signs_are_counted():
    def split(*words):
        facts, _, _ = good(*words)
        result = facts["result"]
        return [result[key] for key in ("excitatory_edges", "inhibitory_edges", "zero_edges", "signs_from")]
    check("unsigned", split("--edges", edges((1, 2, 3), (2, 1, 4), (2, 3, 0))), [2, 0, 1, "none"])
    check("by weights", split("--edges", edges((1, 2, 3), (2, 1, -4))), [1, 1, 0, "weights"])
    labels = write("nt.csv", "body,consensus_nt\n1,gaba\n2,acetylcholine\n")
    check("by labels", split("--edges", edges((1, 2, 3), (2, 1, 4), (2, 3, 1)), "--transmitters", labels), [2, 1, 0, "transmitters"])


def test_missing_signs_are_named_at_once():
    labels = write("nt.csv", "body,consensus_nt\n1,gaba\n2,octopamine\n3,serotonin\n4,\n")
    signs = write("s.json", '{"signs": {"gaba": -1}}')
    words = ("--edges", edges((1, 2, 3), (2, 3, 1), (3, 4, 1), (4, 1, 1)), "--transmitters", labels, "--signs", signs)
    refused(INPUT, ["transmitters 'octopamine', 'serotonin', 'missing'", '"octopamine": .., "serotonin": .., "missing": ..'], *words)
    write("s.json", '{"signs": {"gaba": -1, "missing": 1}}')
    refused(INPUT, ["transmitters 'octopamine', 'serotonin';"], *words)
    write("s.json", '{"signs": {"gaba": -1, "octopamine": 1, "serotonin": "exclude"}}')
    refused(INPUT, ["'missing'", "id 4"], *words)
    many = write("many.csv", "body,consensus_nt\n" + "".join(f"{i},label number {i}\n" for i in range(200)))
    nodes = write("nodes.csv", "bodyId\n" + "".join(f"{i}\n" for i in range(200)))
    refused(INPUT, ["'label number 0'", " ...;"], *words[:2], "--nodes", nodes, "--transmitters", many, "--signs", signs)


def test_labels_are_kept():
    """Every column of labels is a column of the graph, as are numbers; texts that hardly repeat are not."""
    head = "root_id,class,nerve,x,flow,sign,a/b,note,empty,transmitter\n"
    rows = [f"{i},{'AB'[i % 2]},n{i % 3},{i * 0.5},in,1,u,note {i},,gaba\n" for i in range(1200)]
    nodes, table = write("nodes.csv", head + "".join(rows)), edges((1, 2, 3), (2, 1, 4))
    for n in (1, 2):
        facts, graph, _ = good("--edges", table, "--nodes", nodes, n=n)
        check("kept", sorted(graph.columns), ["class", "flow", "nerve", "x"])
        check("values", (graph.columns["class"][:3], graph.columns["nerve"][:3]), (["A", "B", "A"], ["n0", "n1", "n2"]))
        (said,) = [t for t in facts["inputs"] if t["role"] == "nodes"]
        check("said", (said["columns_left_out"], said["columns"]),
              (["note", "empty"], {"id": "root_id", "class": "class", "nerve": "nerve", "x": "x", "flow": "flow"}))
    _, graph, _ = good("--edges", table, "--nodes", nodes, "--labels", "named", "--node-columns", "kind=class,note=note")
    check("named", sorted(graph.columns), ["kind", "note"])
    _, graph, _ = good("--edges", table, "--nodes", nodes, "--node-columns", "superclass=class")
    check("named and all", sorted(graph.columns), ["flow", "nerve", "superclass", "x"])
    refused(USAGE, ["--labels named", "--nodes"], "--edges", table, "--labels", "named")


def same_numbers(what, got, wanted):
    """Equal doubles; None is no number."""
    check(what, [None if x != x else x for x in got], wanted)


def test_numbers_are_kept():
    """Columns of numbers are columns of doubles of the graph, exactly as written; integers that a double cannot hold are left out."""
    values = {"a": ["0.1", "", "-2.5e-3", "7"], "b": ["1", "2", "9007199254740992", "NaN"], "c": ["9007199254740993", "1", "2", "3"],
              "d": ["1", "2", "x", "3"], "e": ["", "", "", ""]}
    head = ",".join(["root_id", *values]) + "\n"
    nodes = write("nodes.csv", head + "".join(",".join([str(i), *(v[i] for v in values.values())]) + "\n" for i in range(4)))
    table = edges((1, 2, 3), (2, 1, 4), (1, 77, 4))
    for words in ((), ("--no-order",)):
        facts, graph, _ = good("--edges", table, "--nodes", nodes, "--node-rule", "endpoints", *words, n=2)
        check("kept", sorted(graph.columns), ["a", "b", "d"])
        check("not only numbers: labels", graph.columns["d"], ["1", "2", "x", "3", ""])
        check("ids", graph.body_id.tolist(), [0, 1, 2, 3, 77])
        same_numbers("a", graph.columns["a"], [0.1, None, -2.5e-3, 7.0, None])
        same_numbers("b", graph.columns["b"], [1.0, 2.0, 2.0**53, None, None])
        check("left out", facts["inputs"][0]["columns_left_out"], ["c", "e"])
    _, graph, _ = good("--edges", table, "--nodes", nodes, "--labels", "named", "--node-columns", "a=a")
    check("chosen: labels, as they stand", graph.columns["a"], ["0.1", "", "-2.5e-3", "7"])
    try:
        import pyarrow
        from pyarrow import feather
    except ImportError:
        print("passed over: Feather, without pyarrow")
        return
    columns = {"root_id": range(4), "x": pyarrow.array([0.1, None, 1 / 3, 1e300]), "i": pyarrow.array([1, -2, None, 4], pyarrow.int32()),
               "f": pyarrow.array([0.1, 2, 3, 4], pyarrow.float32()), "big": pyarrow.array([2**60 + 1, 1, 2, 3])}
    feather.write_feather(pyarrow.table(columns), path("nodes.feather"))
    _, graph, _ = good("--edges", table, "--nodes", path("nodes.feather"), "--node-rule", "listed")
    check("kept", sorted(graph.columns), ["f", "i", "x"])
    same_numbers("x", graph.columns["x"], [0.1, None, 1 / 3, 1e300])
    same_numbers("i", graph.columns["i"], [1.0, -2.0, None, 4.0])
    same_numbers("f", graph.columns["f"], [0.1, 2.0, 3.0, 4.0])


def simulated(neurons, code=0):
    """Standard error of a simulation of graph.h5, in which these neurons are driven, and the ids of those that fired."""
    config = write("config.json", json.dumps({"threshold": 10, "decay_shifts": [3], "stimulus": [
        {"neurons": neurons, "kind": "spikes", "steps": [3]}]}))
    words = ("simulate", path("graph.h5"), "--config", config, "--steps", "5", "--force", "--output", path("run"))
    done = subprocess.run([ranks, "2", fascicle, *words], capture_output=True, text=True, timeout=100)
    check(done.stderr, done.returncode, code)
    if code:
        return done.stderr, None
    with h5py.File(path("run/spikes.h5")) as file:
        return done.stderr, file["body_id"][:][next(iter(file["spikes"].values()))["node_ids"][:]].tolist()


def test_flywire_as_it_is():
    """The classes of FlyWire's neurons choose neurons; a column that is not there is named, with those that are."""
    classes = write("classification.csv", "root_id,flow,super_class,class,side\n7,efferent,motor,,left\n8,intrinsic,central,CX,left\n"
                                          "9,efferent,motor,,right\n")
    table = write("connections.csv", "pre_root_id,post_root_id,neuropil,syn_count,nt_type\n7,8,FB,5,ACH\n7,8,EB,2,ACH\n8,9,FB,1,GABA\n")
    facts, graph, _ = good("--edges", table, "--nodes", classes)
    check("columns", sorted(graph.columns), ["class", "flow", "side", "superclass"])
    check("edges", graph.edges(), [(7, 8, 7), (8, 9, 1)])
    error, fired = simulated({"superclass": ["motor"]})
    check("motor neurons", (fired, "every edge is excitatory" in error), ([7, 9], True))
    check("union", simulated({"class": ["CX"], "body_ids": [9]})[1], [8, 9])
    for neurons, parts in (({"types": ["motor"]}, ['no column "type"', "class, flow, side, superclass"]),
                           ({"klass": ["motor"]}, ['"klass"', "class, flow, side, superclass"]),
                           ({"superclass": ["motr"]}, ['superclass "motr"'])):
        error, _ = simulated(neurons, USAGE)
        for part in parts:
            check(error, part in error, True)
    good("--edges", table, "--nodes", write("x.csv", "root_id,side,x\n7,left,1\n8,left,2\n9,right,0.5\n"))
    error, _ = simulated({"x": ["1"]}, USAGE)
    check(error, 'column "x" of the graph holds numbers' in error and error.rstrip().endswith("it has: side"), True)
    labels = write("neurons.csv", "root_id,group,nt_type\n7,a,GABA\n8,b,ACH\n9,c,ACH\n")
    signs = write("s.json", '{"signs": {"GABA": -1, "ACH": 1}}')
    good("--edges", table, "--nodes", classes, "--transmitters", labels, "--signs", signs)
    check("signs are known", "every edge is excitatory" in simulated("all")[0], False)


def test_files_of_other_formats():
    for content, parts in [(b"%%MatrixMarket matrix coordinate\n3 3 1\n1 2 3\n", ["MatrixMarket", "jobs/import.py"]),
                           (b"<?xml version='1.0'?><graphml/>", ["GraphML", "jobs/import.py"]),
                           (b"PK\x03\x04....", [".npz", "jobs/import.py"]), (b"\x93NUMPY..", ["NumPy", "jobs/import.py"]),
                           (b"PAR1xxxx", ["Parquet", "jobs/import.py"]), (b"\x1f\x8b\x08\x00", ["gunzip"]),
                           (b"# FromNodeId ToNodeId\n1 2\n", ["comment", "'#", "grep -v"]),
                           (b"% asym weighted\n1 2 3\n", ["comment", "'%", "grep -v"]), (b'{"edges": []}', ["JSON"])]:
        refused(INPUT, parts, "--edges", write("odd", content))
    _, graph, _ = good("--edges", write("odd", "#pre,post,n\n1,2,3\n"), "--header", "yes", "--columns", "pre=#pre,post=post,weight=n")
    check("a header that begins so", graph.edges(), [(1, 2, 3)])


def resident_peak(*words):
    """KiB that a conversion held at most, libraries included."""
    child = subprocess.Popen([fascicle, "convert", *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                             env={**os.environ, "OMP_NUM_THREADS": "2"})
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = status
    check("exit code", status, 0)
    return usage.ru_maxrss


def test_memory():
    """A table of 140 MB whose rows are dropped but one: memory does not grow with the file."""
    nodes, table, small = write("nodes.csv", "bodyId\n5\n6\n"), path("large.csv"), edges((5, 6, 7))
    with open(table, "wb") as file:
        file.write(HEAD.encode())
        for _ in range(100):
            file.write(b"1,99,3\n" * 200000)
        file.write(b"5,6,7\n")
    least = resident_peak("--edges", small, "--nodes", nodes, "--output", path("small.h5"))
    most = resident_peak("--edges", table, "--nodes", nodes, "--output", path("graph.h5"))
    os.remove(table)
    check(f"peak memory {most} KiB, {least} KiB for one row", most - least < (130000 if "TEST_SANITIZED" in os.environ else 60000), True)


def test_any_order():
    draw = random.Random(1)
    rows = [(draw.randrange(200), draw.randrange(200), draw.randrange(1, 50), draw.randrange(1, 4)) for _ in range(3000)]
    digests, contents = set(), set()
    for turn in range(3):
        draw.shuffle(rows)
        table = edges(*rows, head="body_pre,body_post,weight,d\n")
        for words in (["--duplicates", "keep"], []):
            _, graph, _ = good("--edges", table, "--columns", "delay=d", *words, n=1 + turn % 2)
            digests.add(graph.digest)
            contents.add(datasets("graph.h5"))
    check("orders of rows", (len(digests), len(contents)), (2, 2))
    names = [(f"n{a}", f"n{b} ", w) for a, b, w, _ in rows]
    contents = set()
    for _ in range(2):
        draw.shuffle(names)
        good("--edges", edges(*names))
        contents.add(datasets("graph.h5"))
    check("orders of names", len(contents), 1)


def datasets(name):
    """A hash of all datasets: names, types, values."""
    import h5py
    total = hashlib.sha256()

    def add(where, item):
        if isinstance(item, h5py.Dataset):
            total.update(f"{where} {item.dtype} {item.shape}".encode())
            total.update(repr(item[:].tolist()).encode())
    with h5py.File(path(name)) as file:
        file.visititems(add)
    return total.hexdigest()


run_tests(globals(), workers=8)
