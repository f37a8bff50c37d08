#!/usr/bin/env python3
"""Every mutation of a good .scx is refused with one clear line; the reference's own artifacts come back byte for byte."""
import filecmp
import glob
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile

data = os.path.join(os.environ["TEST_DATA"], "scx")
copier = os.path.join(os.path.dirname(os.environ["FASCICLE"]), "tests", "test_scx")
# Stricter than the reference: it never looks at these, or turns a string into a number.
harmless = {"untouched", "manifest_no_format_id", "manifest_no_conversion_license_scope"}


def copy(source, target):
    done = subprocess.run([copier, source, target], capture_output=True, text=True, timeout=600)
    return done.returncode, done.stderr


def read_manifest(root):
    with open(os.path.join(root, "manifest.json")) as file:
        return json.load(file)


def write_manifest(root, manifest):
    with open(os.path.join(root, "manifest.json"), "w") as file:
        json.dump(manifest, file, indent=2, sort_keys=True)
        file.write("\n")


def parent(manifest, path):
    for key in path[:-1]:
        manifest = manifest[key]
    return manifest


def apply(root, op):
    kind, where = op[0], op[1]
    path = os.path.join(root, where) if isinstance(where, str) else None
    if kind == "bytes":
        with open(path, "r+b") as file:
            file.seek(op[2])
            file.write(bytes.fromhex(op[3]))
    elif kind == "truncate":
        os.truncate(path, op[2])
    elif kind == "append":
        with open(path, "ab") as file:
            file.write(bytes.fromhex(op[2]))
    elif kind == "delete":
        os.remove(path)
    elif kind == "manifest_text":
        with open(os.path.join(root, "manifest.json"), "w") as file:
            file.write(where)
    else:
        manifest = read_manifest(root)
        if kind == "manifest":
            parent(manifest, where)[where[-1]] = op[2]
        elif kind == "manifest_del":
            del parent(manifest, where)[where[-1]]
        else:
            sys.exit(f"unknown mutation {kind}")
        write_manifest(root, manifest)


def reseal(root):
    manifest = read_manifest(root)
    entries = [(manifest, "neurons.bin", "neurons_byte_size", "neurons_sha256")]
    entries += [(block, block["filename"], "byte_size", "sha256") for block in manifest["blocks"]]
    for holder, name, size, digest in entries:
        with open(os.path.join(root, name), "rb") as file:
            content = file.read()
        holder[size], holder[digest] = len(content), hashlib.sha256(content).hexdigest()
    write_manifest(root, manifest)


def same_tree(a, b):
    difference = filecmp.dircmp(a, b)
    names = difference.left_only + difference.right_only
    return not names and all(
        filecmp.cmp(os.path.join(a, n), os.path.join(b, n), shallow=False) for n in difference.common_files
    ) and all(same_tree(os.path.join(a, n), os.path.join(b, n)) for n in difference.common_dirs)


def fascicle(*words):
    done = subprocess.run([os.environ["FASCICLE"], *words], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, (words, done.stderr)


def round_trip(work):
    """Into the artifact (ordered, ordered again, not ordered) and out: the same bytes."""
    for name in ("example", "r05", "noedges5", "empty0"):
        graph, again = f"{work}/{name}.h5", f"{work}/{name}_2.h5"
        for words in ([], ["--no-order"]):
            fascicle("convert", "--edges", f"{data}/{name}.scx", "--output", graph, "--force", *words)
            fascicle("order", graph, "--output", again, "--parts", "4", "--force")
            for file in (graph, again):
                fascicle("export", file, "--format", "scx", "--output", f"{work}/back")
                assert same_tree(f"{data}/{name}.scx", f"{work}/back"), (name, words, file)
                shutil.rmtree(f"{work}/back")
    # A graph of another origin: out, in, and out again are equal.
    edges = f"{work}/edges.csv"
    with open(edges, "w") as file:
        file.write("pre,post,weight,delay\n9,5,3,2\n5,9,-2,1\n5,5,7,1\n9,7,1,3\n")
    fascicle("convert", "--edges", edges, "--columns", "pre=pre,post=post,weight=weight,delay=delay", "--output", f"{work}/g.h5")
    fascicle("export", f"{work}/g.h5", "--format", "scx", "--block-size", "2", "--output", f"{work}/first")
    fascicle("convert", "--edges", f"{work}/first", "--output", f"{work}/g2.h5")
    fascicle("export", f"{work}/g2.h5", "--format", "scx", "--output", f"{work}/second")
    assert same_tree(f"{work}/first", f"{work}/second")
    code, _ = copy(f"{work}/first", f"{work}/third")
    assert code == 0


def main():
    work = tempfile.mkdtemp()
    try:
        for name in ("example", "r05", "noedges5", "empty0"):
            code, line = copy(f"{data}/{name}.scx", f"{work}/{name}")
            assert code == 0 and same_tree(f"{data}/{name}.scx", f"{work}/{name}"), (name, line)
        cases = json.load(open(f"{data}/mutations.json"))["cases"]
        for case in cases:
            root, out = f"{work}/{case['name']}", f"{work}/out"
            shutil.copytree(f"{data}/example.scx", root)
            for op in case["ops"]:
                apply(root, op)
            if case["reseal"]:
                reseal(root)
            code, line = copy(root, out)
            accepted = code == 0
            assert accepted == (case["name"] in harmless), (case["name"], code, line)
            assert accepted <= case["reference_accepts"], case["name"]
            if not accepted:
                assert code == 65 and line.count("\n") == 1 and root in line, (case["name"], code, line)
                assert not glob.glob(out + "*"), case["name"]
            shutil.rmtree(out, ignore_errors=True)
        link = f"{work}/link"
        shutil.copytree(f"{data}/example.scx", link)
        os.remove(f"{link}/blocks/block_00001.scb")
        os.symlink(f"{data}/example.scx/blocks/block_00001.scb", f"{link}/blocks/block_00001.scb")
        code, line = copy(link, f"{work}/out")
        assert code == 65 and "leaves the folder" in line, line
        round_trip(work)
        print(f"scx: {len(cases)} mutations, {len(cases) - len(harmless)} refused")
    finally:
        shutil.rmtree(work)


main()
