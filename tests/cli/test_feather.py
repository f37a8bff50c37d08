#!/usr/bin/env python3
# seconds: 400
# data: yes
"""The Feather reader against pyarrow: the same values from some hundred generated files of every type, compression,
dictionary and batch layout; damaged files are refused with one line."""
import decimal
import functools
import hashlib
import os
import random
import subprocess
import sys
import tempfile

from real_data import FOLDER, missing

try:
    import numpy as np
    import pyarrow as pa
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(1 if os.environ.get("CI") == "true" else 77)

tool = os.path.join(os.path.dirname(os.environ["FASCICLE"]), "tests", "test_feather")
folder = tempfile.TemporaryDirectory()
draw = random.Random(3)
jobs = []  # (path, wants, expected rows or None, needles of the refusal)

WORDS = ["", "a", "gaba", "acetylcholine", "ünïcode ☃", "exactly12byt", "thirteen byte", "line\nbreak, \"quoted\"", "x" * 300]


def integers(bits, signed, n):
    low, high = (-(2**(bits - 1)), 2**(bits - 1) - 1) if signed else (0, 2**bits - 1)
    return [draw.choice([low, high, 0, 1, draw.randrange(low, high + 1)]) for _ in range(n)]


def holes(values, share):
    return [None if draw.random() < share else v for v in values]


def shown(value, kind):
    """What the tool prints for a Python value."""
    if kind == "text":
        if value is None:
            text = b""
        elif isinstance(value, bool):
            text = b"true" if value else b"false"
        elif isinstance(value, bytes):
            text = value
        else:
            text = str(value).encode()
        return text.hex() + "."
    return str(int(value))


@functools.lru_cache
def awkward_columns(n):
    """Columns that nobody asks for, of every nested or odd type: their nodes and buffers must be counted."""
    strings = pa.array(holes([draw.choice(WORDS) for _ in range(n)], 0.2))
    lists = pa.array([None if i % 7 == 3 else list(range(i % 4)) for i in range(n)], pa.list_(pa.int64()))
    half = (n + 1) // 2
    columns = {
        "list": lists,
        "large_list": lists.cast(pa.large_list(pa.int64())),
        "list_of_struct": pa.array([[{"a": i, "b": draw.choice(WORDS)}] * (i % 3) for i in range(n)],
                                   pa.list_(pa.struct([("a", pa.int32()), ("b", pa.string_view())]))),
        "struct": pa.array([{"s": draw.choice(WORDS), "v": draw.choice(WORDS)} for _ in range(n)],
                           pa.struct([("s", pa.large_string()), ("v", pa.string_view())])),
        "map": pa.array([[("k", i)] * (i % 2) for i in range(n)], pa.map_(pa.string(), pa.int64())),
        "fixed": pa.array([[i, i + 1] for i in range(n)], pa.list_(pa.int32(), 2)),
        "view": strings.cast(pa.string_view()),
        "fixed_binary": pa.array([b"abcd"] * n, pa.binary(4)),
        "decimal": pa.array([decimal.Decimal(i) for i in range(n)], pa.decimal128(20, 2)),
        "time": pa.array(range(n), pa.timestamp("us")),
        "null": pa.nulls(n),
        "bool": pa.array([i % 3 == 0 for i in range(n)]),
        "dictionary_of_list": pa.DictionaryArray.from_arrays(pa.array([0] * n, pa.int8()), pa.array([[1, 2]])),
        "sparse": pa.UnionArray.from_sparse(pa.array([i % 2 for i in range(n)], pa.int8()),
                                            [pa.array(range(n), pa.int32()), pa.array(["x"] * n)]),
        "dense": pa.UnionArray.from_dense(pa.array([i % 2 for i in range(n)], pa.int8()),
                                          pa.array([i // 2 for i in range(n)], pa.int32()),
                                          [pa.array(range(half), pa.int32()), pa.array(["x"] * half)]),
        "run_end": pa.RunEndEncodedArray.from_arrays(pa.array([n], pa.int32()), pa.array(["r"])) if n else None,
        "list_view": pa.array([[i] for i in range(n)], pa.list_view(pa.int64())),
    }
    return {name: column for name, column in columns.items() if column is not None}


def write(name, table, compression=None, batch=None, **options):
    path = os.path.join(folder.name, name)
    with pa.OSFile(path, "wb") as sink:
        with pa.ipc.new_file(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression=compression, **options)) as file:
            file.write_table(table, max_chunksize=batch) if batch else file.write_table(table)
    return path


def decoded(chunk):
    if not pa.types.is_dictionary(chunk.type):
        return chunk.to_pylist()
    words = chunk.dictionary.to_pylist()
    return [None if i is None else words[i] for i in chunk.indices.to_pylist()]


def expect(path, wants):
    """Queue a file; the truth is what pyarrow reads from it."""
    with pa.OSFile(path) as source:
        table = pa.ipc.open_file(source).read_all()
    columns = []
    for name, kind in wants:
        column = table.column(name)
        values = [v for chunk in column.chunks for v in decoded(chunk)]
        columns.append([shown(v, kind) for v in values])
    jobs.append((path, wants, [" ".join(row) for row in zip(*columns)], None))


def refuse(path, wants, *needles):
    jobs.append((path, wants, None, needles))


COMPRESSIONS = (None, "lz4", "zstd")


def make_integers():
    for bits in (8, 16, 32, 64):
        for signed in (True, False):
            kind = getattr(pa, f"{'' if signed else 'u'}int{bits}")()
            for compression in COMPRESSIONS:
                n = draw.choice([1, 9, 1000, 5000])
                values = integers(bits, signed, n)
                ids = [abs(v) if v != -2**63 else 0 for v in values]
                ids = [min(v, 2**(bits - signed) - 1) for v in ids]
                counts = [min(v, 2**63 - 1) for v in values]
                table = pa.table({"id": pa.array(ids, kind), "count": pa.array(counts, kind),
                                  "text": pa.array(holes(values, 0.3), kind)})
                path = write(f"int_{kind}_{compression}", table, compression, draw.choice([None, 7, 512]))
                expect(path, [("text", "text"), ("id", "id"), ("count", "count"), ("id", "text")])
                if signed:
                    bad = pa.table({"id": pa.array(ids + [-1], kind)})
                    refuse(write(f"negative_{kind}_{compression}", bad, compression, 100), [("id", "id")],
                           f"row {n + 1} ", "'id'", "-1", "negative")
                bad = pa.table({"id": pa.array([3] * n + [None, 5], kind)})
                refuse(write(f"null_{kind}_{compression}", bad, compression, 100), [("id", "id")], f"row {n + 1} ", "null")


def make_floats():
    for kind, whole in ((pa.float32(), 2**24), (pa.float64(), 2**53 - 1), (pa.float16(), 2048)):
        for compression in COMPRESSIONS:
            values = [0, 1, whole] + [draw.randrange(whole) for _ in range(500)]
            array = pa.array(np.array(values, kind.to_pandas_dtype()), kind)
            counts = pa.array(np.array([-v for v in values], kind.to_pandas_dtype()), kind)
            path = write(f"float_{kind}_{compression}", pa.table({"id": array, "count": counts}), compression)
            expect(path, [("id", "id"), ("count", "count")])
            for value, word in ((0.5, "whole"), (float("nan"), "whole"), (-1.0, "negative"), (float("inf"), "")):
                bad = pa.array(np.array([1, value], kind.to_pandas_dtype()), kind)
                refuse(write(f"float_{kind}_{compression}_{value}", pa.table({"id": bad}), compression), [("id", "id")],
                       "row 2 ", word)
    refuse(write("float_large", pa.table({"id": [2.0**53]})), [("id", "id")], "row 1 ", "2^53")
    reals = [0.1, 1e300, -2.5, 12345.0, 3.0000000000000004]
    path = write("float_text", pa.table({"x": pa.array(reals + [None])}))
    text = ["0.1", "1e+300", "-2.5", "12345", "3.0000000000000004", ""]
    jobs.append((path, [("x", "text")], [t.encode().hex() + "." for t in text], None))


def texts(n, share):
    return holes([draw.choice(WORDS) for _ in range(n)], share)


def make_texts():
    kinds = [pa.utf8(), pa.large_utf8(), pa.string_view(), pa.binary(), pa.large_binary(), pa.binary_view()]
    for kind in kinds:
        for compression in COMPRESSIONS:
            for share in (0, 0.3, 1):
                n = draw.choice([0, 1, 8, 700, 1500])
                values = texts(n, share)
                if "binary" in str(kind):
                    values = [None if v is None else v.encode() for v in values]
                table = pa.table({**awkward_columns(n), "a": pa.array(values, kind), "b": pa.array(values[::-1], kind)})
                path = write(f"text_{kind}_{compression}_{share}", table, compression, draw.choice([None, 11, 333]))
                expect(path, [("b", "text"), ("a", "text")])
        numbers = pa.array([str(v) if "string" in str(kind) else str(v).encode() for v in (5, 2**63, 7)], kind)
        expect(write(f"number_{kind}", pa.table({"n": numbers})), [("n", "id"), ("n", "text")])
        if "binary" in str(kind):
            latin = pa.array([b"x" * 20, "thirteen byté".encode("latin-1")], kind)
            refuse(write(f"latin_{kind}", pa.table({"t": latin})), [("t", "text")], "row 2 ", "'thirteen byt\\xE9'", "not UTF-8")
        zero = pa.array([b"x", b"a\0b"], pa.binary()).cast(kind)
        refuse(write(f"zero_{kind}", pa.table({"t": zero})), [("t", "text")], "row 2 ", "zero byte")
        wrong = pa.array([b"5", b"x7"], pa.binary()).cast(pa.binary())
        refuse(write("number_wrong", pa.table({"n": wrong})), [("n", "id")], "row 2 ", "'x7'")


def make_dictionaries():
    latin = pa.DictionaryArray.from_arrays(pa.array([0, 0, 1]), pa.array([b"caf\xc3\xa9", b"caf\xe9"]))
    refuse(write("latin_words", pa.table({"t": latin})), [("t", "text")], "dictionary batch 1", "'caf\\xE9'", "not UTF-8")
    indices = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]
    values = [pa.utf8(), pa.large_utf8(), pa.string_view(), pa.int64(), pa.binary()]
    for index in indices:
        for value in values:
            compression = draw.choice(COMPRESSIONS)
            n = draw.choice([1, 50, 2000])
            words = [10, 2**62, 0] if pa.types.is_integer(value) else WORDS
            if "binary" in str(value):
                words = [w.encode() for w in words]
            words = words + [None] * draw.choice([0, 1])
            codes = pa.array(holes([draw.randrange(len(words)) for _ in range(n)], draw.choice([0, 0.2])), index)
            column = pa.DictionaryArray.from_arrays(codes, pa.array(words, value))
            table = pa.table({"x": range(n), "d": column, "e": column, **awkward_columns(n)})
            path = write(f"dictionary_{index}_{value}", table, compression, draw.choice([None, 10, 100]))
            expect(path, [("d", "text"), ("x", "count"), ("e", "text")])
    # A dictionary that grows from batch to batch.
    for compression in COMPRESSIONS:
        schema = pa.schema([("d", pa.dictionary(pa.int32(), pa.utf8())), ("x", pa.int64())])
        path = os.path.join(folder.name, f"delta_{compression}")
        words = [f"word {i}" for i in range(40)]
        options = pa.ipc.IpcWriteOptions(compression=compression, emit_dictionary_deltas=True)
        with pa.OSFile(path, "wb") as sink, pa.ipc.new_file(sink, schema, options=options) as file:
            for size in (1, 7, 8, 40):
                codes = pa.array([draw.randrange(size) for _ in range(100)], pa.int32())
                column = pa.DictionaryArray.from_arrays(codes, pa.array(words[:size]))
                file.write_batch(pa.record_batch([column, pa.array(range(100))], schema=schema))
        expect(path, [("d", "text"), ("x", "id")])
    ids = pa.DictionaryArray.from_arrays(pa.array([0, 1, 0], pa.int8()), pa.array([2**60 + 1, 5]))
    expect(write("dictionary_id", pa.table({"i": ids})), [("i", "id"), ("i", "count"), ("i", "text")])


def make_layouts():
    for compression in COMPRESSIONS:
        n = 140001  # more than one window, not a multiple of 8
        table = pa.table({"pre": np.arange(n) * 7 + 2**40, "w": pa.array(holes(list(range(n)), 0.1)),
                          "t": pa.array(texts(n, 0.1)), "b": pa.array([i % 3 == 0 for i in range(n)]),
                          "v": pa.array(texts(n, 0.1), pa.string_view()), "post": np.arange(n, dtype=np.uint32)})
        for batch in (None, 50000):
            path = write(f"layout_{compression}_{batch}", table, compression, batch)
            expect(path, [("post", "id"), ("t", "text"), ("pre", "id"), ("w", "text"), ("b", "text"), ("v", "text")])
        small = pa.table({"x": pa.array([], pa.int64()), "t": pa.array([], pa.utf8())})
        expect(write(f"empty_{compression}", small, compression), [("x", "id"), ("t", "text")])
        schema = pa.schema([("x", pa.int64()), ("t", pa.utf8())])
        for count in (0, 9):
            path = os.path.join(folder.name, f"batches_{compression}_{count}")
            with pa.OSFile(path, "wb") as sink:
                options = pa.ipc.IpcWriteOptions(compression=compression)
                with pa.ipc.new_file(sink, schema, options=options) as file:
                    for i in range(count):
                        rows = [0, 3, 0, 0, 200, 1][i % 6]
                        file.write_batch(pa.record_batch([pa.array(range(rows), pa.int64()), pa.array(["r"] * rows)],
                                                         schema=schema))
            expect(path, [("x", "id"), ("t", "text")])
        sliced = pa.table({"t": pa.array(texts(5000, 0.2)), "x": pa.array(holes(list(range(5000)), 0.2))}).slice(1234, 2001)
        expect(write(f"slice_{compression}", sliced, compression), [("t", "text"), ("x", "text")])
        legacy = write(f"legacy_{compression}", sliced, None, 100, use_legacy_format=True)
        expect(legacy, [("t", "text"), ("x", "text")])
        v4 = write(f"v4_{compression}", pa.table({"x": [1, 2], "t": ["a", None]}), None,
                   metadata_version=pa.ipc.MetadataVersion.V4)
        expect(v4, [("x", "id"), ("t", "text")])
    expect(write("nothing", pa.table({"n": pa.nulls(20), "x": range(20)})), [("n", "text"), ("x", "id")])
    refuse(write("nested", pa.table(awkward_columns(5))), [("list", "text")], "'list'", "list")
    refuse(write("null_id", pa.table({"n": pa.nulls(3)})), [("n", "id")], "'n'", "null")


def random_column(n):
    """A readable column of any type, and how to ask for it."""
    share = draw.choice([0, 0, 0.1, 0.9])
    which = draw.randrange(6)
    if which == 0:
        bits, signed = draw.choice([8, 16, 32, 64]), draw.choice([True, False])
        values = integers(bits, signed, n)
        kind = getattr(pa, f"{'' if signed else 'u'}int{bits}")()
        if share == 0 and (signed or bits < 64):
            return pa.array(values, kind), draw.choice(["count", "text"])
        return pa.array(holes(values, share), kind), "text"
    if which == 1:
        return pa.array([float(draw.randrange(2**40)) for _ in range(n)], pa.float64()), draw.choice(["id", "count"])
    if which == 2:
        return pa.array(holes([draw.random() < 0.5 for _ in range(n)], share)), "text"
    values = texts(n, share)
    if which == 3:
        return pa.array(values, pa.utf8()).dictionary_encode(), "text"
    return pa.array(values, draw.choice([pa.utf8(), pa.large_utf8(), pa.string_view()])), "text"


def make_mixtures():
    for turn in range(120):
        n = draw.choice([0, 1, 63, 64, 65, 1000, 4097])
        odd = list(awkward_columns(n).items())
        columns, wants = {}, []
        for i in range(draw.randrange(1, 7)):
            if draw.random() < 0.5:
                name, column = draw.choice(odd)
                columns[f"odd{i}_{name}"] = column
            columns[f"c{i}"], kind = random_column(n)
            wants.append((f"c{i}", kind))
        draw.shuffle(wants)
        path = write(f"mixture_{turn}", pa.table(columns), draw.choice(COMPRESSIONS), draw.choice([None, 8, 100, 1000]))
        expect(path, wants)


def real_file():
    """A table of the MaleCNS release, as its makers wrote it."""
    name = "malecns_sensory_layers.feather"
    words = missing(name)
    if words:
        print(f"skipped: {words}")
        return
    copy = os.path.join(folder.name, "real")
    os.symlink(FOLDER / name, copy)
    expect(copy, [("node", "id"), ("layer_min", "count"), ("layer_max", "id")])
    if len(jobs[-1][2]) != 163473:
        raise SystemExit(f"{name}: {len(jobs[-1][2])} rows")



def make_damaged():
    """Any damage is refused with a line that names the file, or gives rows that differ: never a crash."""
    n = 400
    table = pa.table({"pre": range(n), "d": pa.array(texts(n, 0.2)).dictionary_encode(), **awkward_columns(n),
                      "v": pa.array(texts(n, 0.1), pa.string_view())})
    wants = [("pre", "id"), ("d", "text"), ("v", "text")]
    for compression in COMPRESSIONS:
        with open(write(f"whole_{compression}", table, compression, 100), "rb") as file:
            whole = file.read()
        for share in (0.6, 0.99, 0.2, 0.01):
            cut = os.path.join(folder.name, f"cut_{compression}_{share}")
            with open(cut, "wb") as file:
                file.write(whole[:max(8, int(len(whole) * share))])
            refuse(cut, wants, cut, "cut short")
        for turn in range(90):
            damaged = bytearray(whole)
            for _ in range(draw.choice([1, 1, 2, 30])):
                where = draw.choice([draw.randrange(len(damaged)), len(damaged) - 1 - draw.randrange(3000)])
                damaged[where] = draw.choice([0, 255, draw.randrange(256), damaged[where] ^ (1 << draw.randrange(8))])
            path = os.path.join(folder.name, f"damaged_{compression}_{turn}")
            with open(path, "wb") as file:
                file.write(damaged)
            jobs.append((path, wants, None, ()))
    two_frames()


def two_frames():
    """A buffer of two LZ4 or ZSTD frames, and one that says a wrong size."""
    for compression in ("lz4", "zstd"):
        table = pa.table({"x": pa.array([5] * 1000, pa.int64())})
        path = write(f"frames_{compression}", table, compression)
        with open(path, "rb") as file:
            whole = bytearray(file.read())
        with open(path, "wb") as file:
            at = whole.index((8000).to_bytes(8, "little"))
            whole[at:at + 8] = (4000).to_bytes(8, "little")
            file.write(whole)
        refuse(path, [("x", "id")], "record batch 1", "'x'")
        whole[at:at + 8] = (16000).to_bytes(8, "little")
        with open(path + "_long", "wb") as file:
            file.write(whole)
        refuse(path + "_long", [("x", "id")], "record batch 1", "'x'")


def compare():
    listing = os.path.join(folder.name, "list")
    with open(listing, "w") as file:
        for path, wants, _, _ in jobs:
            file.write(f"{path} {path}.out {' '.join(f'{name}:{kind}' for name, kind in wants)}\n")
    # One thread and several take different ways through the reader.
    for threads in ("1", "3"):
        done = subprocess.run([tool, listing], capture_output=True, text=True, timeout=600,
                              env={**os.environ, "OMP_NUM_THREADS": threads})
        if done.returncode:
            raise SystemExit(f"the tool ended with {done.returncode}: {done.stdout} {done.stderr}")
        for path, wants, expected, needles in jobs:
            check_one(path, wants, expected, needles)


def check_one(path, wants, expected, needles):
    with open(path + ".out") as file:
        *rows, last = file.read().splitlines()
    if expected is not None:
        with open(path, "rb") as file:
            sha = hashlib.sha256(file.read()).hexdigest()
        if rows != expected or not last.startswith(f"rows {len(expected)} sha256 {sha} format Feather"):
            bad = [i for i in range(min(len(rows), len(expected))) if rows[i] != expected[i]][:1]
            detail = [(i, rows[i][:200], expected[i][:200]) for i in bad]
            raise SystemExit(f"{path} {wants}: {len(rows)} rows of {len(expected)}, {detail}, {last}")
    elif needles:
        if not last.startswith("failed 65 ") or not all(needle in last for needle in needles):
            raise SystemExit(f"{path}: {last}, wanted {needles}")
    elif last.startswith("failed "):
        if not last.startswith(f"failed 65 {path}"):
            raise SystemExit(f"{path}: {last}")


make_integers()
make_floats()
make_texts()
make_dictionaries()
make_layouts()
make_mixtures()
real_file()
make_damaged()
compare()
equal = sum(expected is not None for _, _, expected, _ in jobs)
refused = sum(bool(needles) for *_, needles in jobs)
print(f"{equal} files equal to pyarrow, {refused} refused by name, {len(jobs) - equal - refused} damaged without a crash")
