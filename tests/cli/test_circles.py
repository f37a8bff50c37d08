"""The files of a room call each other without circles, and those of io/hdf5 only files above them in the list of io/hdf5/inside.h: by the
symbols of the built libraries."""
import collections
import glob
import os
import re
import subprocess

BUILD, SOURCE = os.environ["BUILD"], os.environ["SOURCE"]
# rooms that still hold a circle; none may join them
WITH_CIRCLES = {"bench", "convert", "io_table", "simulate"}


def calls(library):
    """{file: {file: symbols}} within a library."""
    text = subprocess.run(["nm", "-A", library], capture_output=True, text=True, check=True).stdout
    defined, needs = {}, collections.defaultdict(set)
    for line in text.splitlines():
        words = line.split()
        file, kind, symbol = words[0].split(":")[1].removesuffix(".o"), words[-2], words[-1]
        needs[file] |= {symbol} if kind == "U" else set()
        if kind in "TDBRVW":
            defined[symbol] = file
    found = {file: collections.defaultdict(set) for file in needs}
    for file, symbols in needs.items():
        for symbol in symbols:
            if defined.get(symbol, file) != file:
                found[file][defined[symbol]].add(symbol)
    return found


def reached(edges, file):
    seen, todo = set(), [file]
    while todo:
        for other in edges[todo.pop()]:
            if other not in seen:
                seen.add(other)
                todo.append(other)
    return seen


def check_circles(name, edges):
    members = sorted(file for file in edges if file in reached(edges, file))
    assert not members or name in WITH_CIRCLES, f"{name}: a circle of {members}: {[(a, b, sorted(edges[a][b])) for a in members for b in edges[a]]}"
    return bool(members)


def check_layers(edges):
    with open(f"{SOURCE}/io/hdf5/inside.h") as file:
        listed = re.findall(r"(\w+\.c)\s", file.read().split("*/")[0])
    assert sorted(listed) == sorted(edges), f"inside.h lists {sorted(listed)}, the room holds {sorted(edges)}"
    for file, others in edges.items():
        for other, symbols in others.items():
            assert listed.index(other) < listed.index(file), f"io/hdf5/{file} calls {symbols} of {other}, which is not above it in inside.h"


# the test can fail
assert reached({"a": {"b"}, "b": {"c"}, "c": {"a"}}, "a") == {"a", "b", "c"} and reached({"a": {"b"}, "b": {}}, "a") == {"b"}
libraries = {os.path.basename(path)[3:-2]: calls(path) for path in glob.glob(f"{BUILD}/lib*.a")}
assert {"core", "io_hdf5", "run", "plan", "inspect"} <= set(libraries), sorted(libraries)
assert any(libraries["core"].values()), "no calls found: is nm at hand?"
circles = {name for name, edges in libraries.items() if check_circles(name, edges)}
check_layers(libraries["io_hdf5"])
print(f"circles: {len(libraries)} rooms, none but in {sorted(circles)}")
