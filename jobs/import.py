#!/usr/bin/env python3
"""Turn what `fascicle convert` does not read into tables that it does, and say the line to run next.

    jobs/import.py FILE [--prefix NAME]             NAME.edges.csv (and NAME.nodes.csv), and the line
    jobs/import.py FILE --output graph.h5           the same, then runs that line

FILE, by its name or --format:
  table     delimited text with comment lines (# or %), plain or packed (.gz, .bz2, .xz)
  parquet   edges by --columns pre=..,post=..,weight=..[,delay=..]; --nodes may be Parquet too (pyarrow)
  graphml   nodes with their attributes, edges; read as a stream (nothing but Python)
  npz       .npz of scipy.sparse or with one square array, .npy (NumPy)
  mtx       MatrixMarket, plain or .gz (SciPy)
  sonata    edges in HDF5; --nodes FILE.h5, --edge-types, --node-types; syn_weight counts nsyns times (h5py)
  matrix    a dense text matrix, blanks, tabs, commas or semicolons (nothing but Python)

In matrices a cell is the signed weight from its row to its column (--rows post: the other way round), and all
neurons are kept, those without edges too. They are numbered from 1 in text and MatrixMarket, from 0 in NumPy's
files, or called as --names says, one line each. Weights become whole numbers: --scale N multiplies, --round rounds.
"""
import argparse
import csv
import gzip
import lzma
import os
import re
import shlex
import shutil
import subprocess
import sys
import zlib
from contextlib import contextmanager

CHUNK = 1 << 20  # edges in memory where a library reads by parts
TAKEN = ("id", "name", "body_id", "model_type", "node_id", "sign", "transmitter", "status")  # names that mean more in a graph
KNOWN = {  # names that edge tables use, first found counts
    "pre": ("pre", "body_pre", "bodyId_pre", "pre_root_id", "pre_pt_root_id", "source"),
    "post": ("post", "body_post", "bodyId_post", "post_root_id", "post_pt_root_id", "target"),
    "weight": ("weight", "syn_count"),
    "delay": ("delay",),
}


class Refused(Exception):
    """One line for the user: the file, the row or option, the value, and what to do."""


def need(module, package, what):
    """The module, or one line that names the package."""
    try:
        __import__(module)
    except ImportError as error:
        raise Refused(f"{what} needs the Python package {package} (python3 -m pip install {package}): {error}") from error
    return sys.modules[module]


# ---- writing ----


class Files:
    """The tables that are made: each under NAME.tmp until all are whole."""

    def __init__(self, options):
        self.options, self.made = options, []

    def path(self, suffix):
        """Where to write the table; its name is taken into the list."""
        name = f"{self.options.prefix}.{suffix}"
        if os.path.exists(name):
            for given in (self.options.file, self.options.nodes, self.options.names, self.options.edge_types,
                          self.options.node_types):
                if given and os.path.exists(given) and os.path.samefile(name, given):
                    raise Refused(f"{name}: this is an input; choose another --prefix")
            if not self.options.force:
                raise Refused(f"{name}: exists; --force replaces it, --prefix chooses another name")
        self.made.append(name)
        return name + ".tmp"

    def publish(self):
        for name in self.made:
            os.replace(name + ".tmp", name)

    def remove(self):
        for name in self.made:
            if os.path.exists(name + ".tmp"):
                os.remove(name + ".tmp")


def whole(value, where, options):
    """`value` x --scale as a whole number of 64 bits; `where` names the row."""
    try:
        scaled = int(value) * options.scale if re.fullmatch(r"[-+]?\d+", str(value)) else float(value) * options.scale
        rounded = round(scaled)
    except (ValueError, OverflowError, TypeError):
        raise Refused(f"{where}: weight '{value}' is not a number") from None
    if rounded != scaled and not options.round:
        raise Refused(f"{where}: weight {value} x {options.scale} is not a whole number; --scale N multiplies, --round rounds")
    if abs(rounded) >= 1 << 63:
        raise Refused(f"{where}: weight {value} x {options.scale} does not fit 64 bits")
    return rounded


def steps(value, where, options):
    """A delay as steps: of --dt-ms milliseconds where that is given, else as it is."""
    try:
        delay = float(value) / (options.dt_ms or 1)
    except (ValueError, TypeError):
        raise Refused(f"{where}: delay '{value}' is not a number") from None
    rounded = round(delay) if abs(delay) < 1e9 else 0
    if rounded < 1 or rounded > 65535 or abs(delay - rounded) > 1e-6 * rounded:
        remedy = "--dt-ms gives the length of a step" if not options.dt_ms else f"--dt-ms is {options.dt_ms:g}"
        raise Refused(f"{where}: delay {value} is not 1 to 65535 whole steps; {remedy}")
    return rounded


class EdgeTable:
    """NAME.edges.csv: pre, post, weight and, where edges have one, delay."""

    def __init__(self, files, options, has_delay):
        self.file = open(files.path("edges.csv"), "w", newline="", encoding="utf-8")
        self.writer, self.options, self.has_delay = csv.writer(self.file, lineterminator="\n"), options, has_delay
        self.rows, self.numbers = 0, True
        self.writer.writerow(["pre", "post", "weight"] + ["delay"] * has_delay)

    def add(self, where, pre, post, weight, delay=None):
        """One edge; `where` names it in messages."""
        self.numbers = self.numbers and is_id(pre) and is_id(post)
        row = [pre, post, whole(weight, where, self.options)]
        if self.has_delay:
            if delay is None:
                raise Refused(f"{where}: no delay, though other edges have one")
            row.append(steps(delay, where, self.options))
        self.writer.writerow(row)
        self.rows += 1

    def words(self):
        """Their part of the line of convert."""
        columns = "pre=pre,post=post,weight=weight" + ",delay=delay" * self.has_delay
        return ["--edges", self.file.name[:-4], "--header", "yes", "--delimiter", "comma", "--columns", columns]

    def close(self):
        self.file.close()


def is_id(value):
    """Is it a number that convert takes for an id? As a name, 007 is not 7."""
    text = str(value)
    return text.isascii() and text.isdigit() and len(text) <= 20 and int(text) < 1 << 64 and str(int(text)) == text


def write_nodes(files, ids, columns):
    """NAME.nodes.csv from ids and {name: values}; returns its words of convert, and whether all ids are numbers."""
    path = files.path("nodes.csv")
    names = {}
    for name in columns:  # plain words, each once
        plain = re.sub(r"\W", "_", name, flags=re.ASCII) or "column"
        plain = "cell_" + plain if plain in TAKEN else plain
        while plain in names.values():
            plain += "_"
        names[name] = plain
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["id", *names.values()])
        writer.writerows(zip(ids, *columns.values()))
    roles = ",".join(["id=id"] + [f"{name}={name}" for name in names.values()])
    words = ["--nodes", path[:-4], "--node-header", "yes", "--node-delimiter", "comma", "--node-columns", roles]
    return words, all(map(is_id, ids))


def ids_word(numbers):
    return ["--ids", "numbers" if numbers else "names"]


# ---- delimited text ----


@contextmanager
def open_text(path):
    """Text in UTF-8, unpacked on the way where its name says so."""
    opener = {".gz": "gzip", ".bz2": "bz2", ".xz": "lzma"}.get(os.path.splitext(path)[1].lower())
    try:
        with (__import__(opener).open(path, "rt", encoding="utf-8-sig", newline="") if opener
              else open(path, encoding="utf-8-sig", newline="")) as file:
            yield file
    except UnicodeDecodeError as error:
        raise Refused(f"{path}: not text in UTF-8 ({error.reason} at byte {error.start})") from error
    except (EOFError, gzip.BadGzipFile, zlib.error, lzma.LZMAError) as error:
        raise Refused(f"{path}: damaged or cut off; fetch it again ({error})") from error


def data_lines(file, dropped):
    """Lines that are neither blank nor a comment; dropped[0] counts comments. Quoted texts may span lines."""
    quoted = False
    for line in file:
        if not quoted and line.lstrip()[:1] in ("#", "%"):
            dropped[0] += 1
        elif quoted or line.strip():
            quoted ^= line.count('"') % 2 == 1
            yield line if line.endswith("\n") else line + "\n"


def delimiter_of(line):
    return next((mark for mark in ",\t;|" if mark in line), None)


def clean_text(path, out, weight=None, header=False):
    """Copy without comments, with a last column `weight` if given. Returns comments dropped, rows, columns."""
    dropped, n, width = [0], 0, 0
    with open_text(path) as file, open(out, "w", newline="", encoding="utf-8") as copy:
        for n, line in enumerate(data_lines(file, dropped), 1):
            if n == 1:
                mark = delimiter_of(line)
                width = len(next(csv.reader([line], delimiter=mark))) if mark else len(line.split())
            if weight is not None:
                line = line.rstrip("\r\n") + (mark or " ") + ("weight" if header and n == 1 else str(weight)) + "\n"
            copy.write(line)
    if n == 0:
        raise Refused(f"{path}: holds no row of data, only {dropped[0]} comment lines")
    return dropped[0], n, width + (weight is not None)


def import_table(options, files):
    if options.weight is not None and options.header == "auto":
        raise Refused(f"{options.file}: --weight on a table wants --header yes or no: is its first row a header?")
    out = files.path("edges.txt")
    dropped, rows, width = clean_text(options.file, out, options.weight, options.header == "yes")
    words = ["--edges", out[:-4]]
    if options.header != "auto":
        words += ["--header", options.header]
    columns = options.columns or ("pre=1,post=2" if options.weight is not None else None)
    if columns and options.weight is not None:
        columns += f",weight={width}"
    if columns:
        words += ["--columns", columns]
    return words + user_nodes(options, files), f"{rows} rows, {dropped} comment lines left out"


def user_nodes(options, files):
    """The node table of --nodes, made plain where it must be."""
    if not options.nodes:
        return []
    if options.nodes.lower().endswith((".parquet", ".pq")):
        path = files.path("nodes.feather")
        parquet_nodes(options.nodes, path)
    else:
        path = files.path("nodes.txt")
        clean_text(options.nodes, path)
    return ["--nodes", path[:-4]]


# ---- Parquet ----


def open_parquet(path):
    parquet = need("pyarrow.parquet", "pyarrow", "Parquet")
    try:
        return parquet.ParquetFile(path)
    except Exception as error:  # pyarrow raises several kinds
        if isinstance(error, FileNotFoundError):
            raise
        raise Refused(f"{path}: not a Parquet file ({str(error).splitlines()[0]})") from error


def batches(path, file, names):
    """Parts of a Parquet file; a damaged page is refused."""
    try:
        yield from file.iter_batches(CHUNK, columns=names)
    except (ValueError, OSError, NotImplementedError) as error:
        raise Refused(f"{path}: cannot be read ({str(error).splitlines()[0]})") from error


def plain_column(pa, array, what):
    """Ids as whole numbers or texts; an empty one is refused."""
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if array.null_count:
        raise Refused(f"{what}: row {array.is_null().index(True).as_py() + 1} of a part has no value")
    if pa.types.is_floating(array.type):
        raise Refused(f"{what}: ids as {array.type} lose digits above 2^53; store them as whole numbers or texts")
    return array


def pick_columns(names, options):
    """{role: column} from --columns or known names."""
    chosen = {}
    for pair in (options.columns or "").split(","):
        role, _, column = pair.partition("=")
        if not pair:
            continue
        if role not in KNOWN or not column:
            raise Refused(f"--columns {pair}: pre=, post=, weight= or delay= and a name is wanted")
        chosen[role] = column
    for role, known in KNOWN.items():
        if role not in chosen and not (role == "weight" and options.weight is not None):
            chosen.update({role: name for name in reversed(known) if name in names and role != "delay"})
    for role in ("pre", "post") + (("weight",) if options.weight is None else ()):
        if role not in chosen:
            more = ", or --weight N for every edge" if role == "weight" else ""
            raise Refused(f"{options.file}: which column is {role}? --columns {role}=NAME{more}; it has {', '.join(names)}")
    for role, column in chosen.items():
        if column not in names:
            raise Refused(f"{options.file}: no column '{column}' ({role}); it has {', '.join(names)}")
    return chosen


def import_parquet(options, files):
    file = open_parquet(options.file)
    import pyarrow as pa

    chosen = pick_columns(file.schema_arrow.names, options)
    table = EdgeTable(files, options, "delay" in chosen)
    with table.file:
        for batch in batches(options.file, file, list(set(chosen.values()))):
            lists = {}
            for role, column in chosen.items():
                array = batch.column(batch.schema.get_field_index(column))
                what = f"{options.file}: column '{column}'"
                lists[role] = (plain_column(pa, array, what) if role in ("pre", "post") else array).to_pylist()
            first = table.rows
            for i in range(len(batch)):
                weight = lists["weight"][i] if "weight" in lists else options.weight
                delay = lists["delay"][i] if "delay" in lists else None
                table.add(f"{options.file}: row {first + i + 1}", lists["pre"][i], lists["post"][i], weight, delay)
    return table.words() + ids_word(table.numbers) + user_nodes(options, files), f"{table.rows} edges"


def parquet_nodes(path, out):
    """A node table as Feather, part by part; columns that are neither text nor number are left out."""
    file = open_parquet(path)
    import pyarrow as pa

    def simple(kind):
        kind = kind.value_type if pa.types.is_dictionary(kind) else kind
        return pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind)

    def decoded(array):
        array = array.dictionary_decode() if pa.types.is_dictionary(array.type) else array
        return array.cast(pa.string()) if pa.types.is_large_string(array.type) else array

    names = [field.name for field in file.schema_arrow if simple(field.type)]
    writer = None
    for batch in batches(path, file, names):
        batch = pa.RecordBatch.from_arrays([decoded(batch.column(i)) for i in range(batch.num_columns)], batch.schema.names)
        writer = writer or pa.ipc.new_file(out, batch.schema)
        writer.write_batch(batch)
    if writer is None:
        raise Refused(f"{path}: holds no row")
    writer.close()


# ---- GraphML ----


def local(tag):
    """A tag without its namespace."""
    return tag.rpartition("}")[2]


def attributes_of(element, keys, defaults, domain):
    """{name: text} of the <data> of a node or edge, on top of the defaults."""
    found = dict(defaults[domain])
    for data in element:
        if local(data.tag) == "data" and data.get("key") in keys:
            found[keys[data.get("key")]] = (data.text or "").strip()
    return found


def graphml_elements(path):
    """(kind, element, keys, defaults) of each node and edge, as a stream."""
    from xml.etree import ElementTree

    keys, defaults, root, graphs = {}, {"node": {}, "edge": {}}, None, 0
    try:
        for event, element in ElementTree.iterparse(path, ("start", "end")):
            kind = local(element.tag)
            if root is None:
                root = element
                if kind != "graphml":
                    raise Refused(f"{path}: <{kind}> at its begin; GraphML is wanted")
            if event == "start" and kind == "graph":
                graphs += 1
                if graphs > 1:
                    raise Refused(f"{path}: holds more than one graph, or a graph within a node; one is wanted")
                top = element
                yield kind, element, keys, defaults
            if event == "start":
                continue
            if kind == "key":
                keys[element.get("id")] = element.get("attr.name") or element.get("id")
                value = element.find("{*}default")
                for domain in defaults if element.get("for") == "all" else [element.get("for")]:
                    if value is not None and domain in defaults:
                        defaults[domain][keys[element.get("id")]] = (value.text or "").strip()
            elif kind == "hyperedge":
                raise Refused(f"{path}: has hyperedges; an edge must have one source and one target")
            elif kind in ("node", "edge"):
                yield kind, element, keys, defaults
                top.clear()
    except ElementTree.ParseError as error:
        raise Refused(f"{path}: not whole XML ({error})") from error


def import_graphml(options, files):
    wanted = dict(pair.partition("=")[::2] for pair in (options.columns or "").split(",") if pair)
    unknown = set(wanted) - {"weight", "delay"}
    if unknown:
        raise Refused(f"--columns {sorted(unknown)[0]}=..: GraphML has ends of its own; weight= and delay= can be chosen")
    weight_name, delay_name = wanted.get("weight", "weight"), wanted.get("delay")
    table, nodes, undirected = EdgeTable(files, options, delay_name is not None), {}, False
    names, ends, edges = {}, {}, 0  # names: columns in order of their first use; ends: ids in edges -> the first such edge
    with table.file:
        for kind, element, keys, defaults in graphml_elements(options.file):
            if kind == "graph":
                undirected = element.get("edgedefault") == "undirected"
            elif kind == "node":
                name = element.get("id")
                if name in nodes or not name:
                    raise Refused(f"{options.file}: node id '{name}' is {'there twice' if name else 'missing'}")
                nodes[name] = attributes_of(element, keys, defaults, "node")
                names.update(dict.fromkeys(nodes[name]))
            else:
                edges += 1
                where = f"{options.file}: edge {edges}"
                found = attributes_of(element, keys, defaults, "edge")
                weight = found.get(weight_name, options.weight)
                if weight is None:
                    raise Refused(f"{where}: no '{weight_name}'; --columns weight=NAME, or --weight N for edges without")
                pair = element.get("source"), element.get("target")
                both = undirected if element.get("directed") is None else element.get("directed") == "false"
                if both and not options.both_ways:
                    raise Refused(f"{where}: is undirected; --both-ways makes two edges of each")
                for pre, post in (pair, pair[::-1])[:1 + (both and pair[0] != pair[1])]:
                    table.add(where, pre, post, weight, found.get(delay_name))
                    ends.setdefault(pre, edges), ends.setdefault(post, edges)
    for end, edge in ends.items():
        if end not in nodes:
            raise Refused(f"{options.file}: edge {edge}: no node '{end}'")
    words, numbers = write_nodes(files, nodes, {n: [a.get(n, "") for a in nodes.values()] for n in names})
    return table.words() + ids_word(numbers and table.numbers) + words, f"{len(nodes)} nodes, {table.rows} edges"


# ---- matrices ----


def read_names(options, n, first):
    """n ids: those of --names, or numbers from `first` on."""
    if not options.names:
        return range(first, first + n)
    with open_text(options.names) as file:
        names = [line.strip() for line in file if line.strip()]
    if len(names) != n:
        raise Refused(f"{options.names}: {len(names)} names for a matrix of {n} rows")
    if len(set(names)) != n:
        twice = next(name for i, name in enumerate(names) if name in names[:i])
        raise Refused(f"{options.names}: '{twice}' is there twice")
    return names


def matrix_edges(options, files, n, first, cells):
    """Edges from (row, column, value), counted from 0; cells of 0 are no edges. Rows as --rows says."""
    ids = read_names(options, n, first)
    words, numbers = write_nodes(files, ids, {})
    table = EdgeTable(files, options, False)
    with table.file:
        for row, column, value in cells:
            if value != 0:
                where = f"{options.file}: row {row + first}, column {column + first}"
                pre, post = (row, column) if options.rows == "pre" else (column, row)
                table.add(where, ids[pre], ids[post], value)
    said = f"{n} nodes, {table.rows} edges; row = {options.rows}, negative = inhibitory"
    return table.words() + ids_word(numbers) + words, said


def square(path, shape):
    if len(shape) != 2 or shape[0] != shape[1] or shape[0] == 0:
        raise Refused(f"{path}: {' x '.join(map(str, shape)) or 'one number'}; a square matrix is wanted")
    return shape[0]


def numpy_cells(np, path, array):
    """Cells other than 0 of a square array, row by row."""
    if array.dtype.kind not in "iufb":
        raise Refused(f"{path}: holds {array.dtype}; numbers are wanted")
    for row, values in enumerate(array):
        for column in np.flatnonzero(values):
            yield row, int(column), values[column].item()


def sparse_cells(path, matrix):
    """Cells of a sparse matrix, repeated ones summed."""
    if matrix.dtype.kind not in "iufb":
        raise Refused(f"{path}: holds {matrix.dtype}; numbers are wanted")
    matrix = matrix.astype("f8" if matrix.dtype.kind == "f" else "i8").tocsr().tocoo()
    return zip(matrix.row.tolist(), matrix.col.tolist(), matrix.data.tolist())


def import_npz(options, files):
    np = need("numpy", "numpy", "NumPy's files")
    try:
        loaded = np.load(options.file, allow_pickle=False)
        arrays = {"": loaded} if isinstance(loaded, np.ndarray) else dict(loaded)
    except (ValueError, EOFError, OSError) as error:
        if isinstance(error, FileNotFoundError):
            raise
        raise Refused(f"{options.file}: not an array of NumPy's ({str(error).splitlines()[0]})") from error
    except Exception as error:  # a damaged zip file, by zipfile or zlib
        raise Refused(f"{options.file}: damaged ({error})") from error
    if {"format", "shape", "data"} <= set(arrays):
        sparse = need("scipy.sparse", "scipy", "a sparse matrix in .npz")
        try:
            matrix = sparse.load_npz(options.file)
        except (ValueError, KeyError, NotImplementedError) as error:
            raise Refused(f"{options.file}: not a whole sparse matrix ({error})") from error
        return matrix_edges(options, files, square(options.file, matrix.shape), 0, sparse_cells(options.file, matrix))
    if options.array and options.array not in arrays or not options.array and len(arrays) != 1:
        raise Refused(f"{options.file}: holds {', '.join(arrays) or 'nothing'}; --array NAME chooses one of these")
    array = arrays[options.array] if options.array else next(iter(arrays.values()))
    return matrix_edges(options, files, square(options.file, array.shape), 0, numpy_cells(np, options.file, array))


def import_mtx(options, files):
    io = need("scipy.io", "scipy", "MatrixMarket")
    try:
        matrix = io.mmread(options.file)
    except (ValueError, TypeError, EOFError, OverflowError, zlib.error, gzip.BadGzipFile) as error:
        raise Refused(f"{options.file}: not a whole MatrixMarket file ({str(error).splitlines()[0]})") from error
    n = square(options.file, matrix.shape)
    cells = sparse_cells(options.file, matrix) if hasattr(matrix, "tocsr") else numpy_cells(sys.modules["numpy"], options.file, matrix)
    return matrix_edges(options, files, n, 1, cells)


def text_cells(path, n):
    """Cells of a text matrix, row by row; every row must have n."""
    with open_text(path) as file:
        for row, line in enumerate(data_lines(file, [0])):
            fields = line.strip().split(delimiter_of(line))
            if len(fields) != n:
                raise Refused(f"{path}: row {row + 1} has {len(fields)} numbers; the matrix has {n} rows")
            for column, field in enumerate(fields):
                field = field.strip()
                try:
                    if float(field):
                        yield row, column, int(field) if re.fullmatch(r"[-+]?\d+", field) else float(field)
                except ValueError:
                    raise Refused(f"{path}: row {row + 1}, column {column + 1}: '{field}' is not a number") from None


def import_matrix(options, files):
    with open_text(options.file) as file:
        n = sum(1 for _ in data_lines(file, [0]))
    if n == 0:
        raise Refused(f"{options.file}: holds no row")
    return matrix_edges(options, files, n, 1, text_cells(options.file, n))


# ---- SONATA ----


def open_hdf5(path):
    h5py = need("h5py", "h5py", "SONATA")
    try:
        return h5py.File(path, "r")
    except FileNotFoundError:
        raise
    except OSError as error:
        raise Refused(f"{path}: not an HDF5 file ({str(error).splitlines()[0]})") from error


def read_types(path, key):
    """{type id: {column: text}} of a table of types: blanks (or commas) between, a header."""
    if not path:
        return {}
    with open_text(path) as file:
        lines = list(file)
    mark = delimiter_of(lines[0]) if lines and delimiter_of(lines[0]) == "," else " "
    rows = list(csv.DictReader(lines, delimiter=mark, skipinitialspace=True))
    if not rows or key not in rows[0]:
        raise Refused(f"{path}: no column '{key}'; a table of types of SONATA is wanted")
    return {int(row[key]): {name: "" if value in (None, "NULL") else value for name, value in row.items()} for row in rows}


def only(group, wanted, what):
    """The member of the name `wanted`, or the only one."""
    names = list(group)
    if wanted is None and len(names) == 1 or wanted in names:
        return group[wanted or names[0]]
    raise Refused(f"{group.file.filename}: {what} {', '.join(names) or '(none)'}; --population NAME chooses one")


def text_of(value):
    return value.decode() if isinstance(value, bytes) else str(value)


class Values:
    """An attribute of edges or nodes: from their group, else from their type."""

    def __init__(self, population, prefix, types):
        self.types, self.prefix = types, prefix
        self.groups = {int(name): group for name, group in population.items() if name.isdigit()}
        self.population = population

    def names(self):
        """All attributes, in order."""
        import h5py

        found = {}
        for group in self.groups.values():
            found.update(dict.fromkeys(name for name, item in group.items() if isinstance(item, h5py.Dataset) and item.ndim == 1))
        for row in self.types.values():
            found.update(dict.fromkeys(row))
        return [name for name in found if name != f"{self.prefix}_type_id"]

    def part(self, name, first, last):
        """Values of [first, last): None where neither group nor type has one."""
        kinds = self.population[f"{self.prefix}_type_id"][first:last].tolist()
        group_of = self.population[f"{self.prefix}_group_id"][first:last].tolist() if self.groups else [None] * (last - first)
        index = self.population[f"{self.prefix}_group_index"][first:last].tolist() if self.groups else group_of
        held = {}
        for k, group in self.groups.items():
            places = [i for i, g in zip(index, group_of) if g == k]
            if places and name in group:
                low = min(places)
                labels = group["@library"][name][:] if "@library" in group and name in group["@library"] else None
                values = group[name][low:max(places) + 1]
                held[k] = low, (labels[values] if labels is not None else values).tolist()
        result = []
        for kind, g, i in zip(kinds, group_of, index):
            value = held[g][1][i - held[g][0]] if g in held else self.types.get(kind, {}).get(name)
            result.append(None if value is None or value == "" else value)
        return result


def sonata_nodes(options, path):
    """Ids and {column: values} of the nodes in a file."""
    with open_hdf5(path) as file:
        if "nodes" not in file:
            raise Refused(f"{path}: no /nodes in it; a nodes file of SONATA is wanted")
        population = only(file["nodes"], options.population, "populations of nodes")
        if "node_type_id" not in population:
            raise Refused(f"{path}: no {population.name}/node_type_id; a nodes file of SONATA is wanted")
        n = len(population["node_type_id"])
        ids = population["node_id"][:].tolist() if "node_id" in population else list(range(n))
        values = Values(population, "node", read_types(options.node_types, "node_type_id"))
        columns = {}
        for name in values.names():
            column = values.part(name, 0, n)
            columns[name] = ["" if v is None else text_of(v) for v in column]
        return os.path.basename(population.name), ids, columns


def sonata_ends(edges):
    """The populations of sources and targets."""
    return [text_of(edges[f"{end}_node_id"].attrs.get("node_population", "")) for end in ("source", "target")]


def sonata_columns(options, values):
    """Which attributes are weight and delay."""
    wanted = dict(pair.partition("=")[::2] for pair in (options.columns or "").split(",") if pair)
    names = values.names()
    weight = wanted.get("weight") or next((n for n in ("syn_weight", "impulse", "nsyns", "weight") if n in names), None)
    delay = wanted.get("delay") or next((n for n in ("delay", "delay_steps") if n in names), None)
    for role, name in (("weight", weight), ("delay", delay)):
        if name and name not in names:
            raise Refused(f"{options.file}: no attribute '{name}' ({role}) of its edges; they have {', '.join(names) or 'none'}")
    if not weight and options.weight is None:
        raise Refused(f"{options.file}: which attribute is the weight? --columns weight=NAME, or --weight N for every edge; "
                      f"they have {', '.join(names) or 'none'} (--edge-types may have more)")
    if delay == "delay" and not options.dt_ms:
        raise Refused(f"{options.file}: delays of SONATA are in ms; --dt-ms says how long a step is")
    return weight, delay


def sonata_weights(values, name, first, last):
    """Weights of edges: syn_weight is that of one synapse, of which an edge has nsyns."""
    weights = values.part(name, first, last)
    if name != "syn_weight" or "nsyns" not in values.names():
        return weights
    return [w if w is None or n is None else float(w) * float(n) for w, n in zip(weights, values.part("nsyns", first, last))]


def import_sonata(options, files):
    with open_hdf5(options.file) as file:
        if "edges" not in file:
            raise Refused(f"{options.file}: no /edges in it; an edges file of SONATA is wanted")
        edges = only(file["edges"], options.population if not options.nodes else None, "populations of edges")
        for name in ("source_node_id", "target_node_id", "edge_type_id"):
            if name not in edges:
                raise Refused(f"{options.file}: no {edges.name}/{name}; an edges file of SONATA is wanted")
        n = len(edges["source_node_id"])
        values = Values(edges, "edge", read_types(options.edge_types, "edge_type_id"))
        weight, delay = sonata_columns(options, values)
        ends = sonata_ends(edges)
        one = ends[0] == ends[1]
        if delay == "delay_steps":
            options.dt_ms = None
        table = EdgeTable(files, options, delay is not None)
        with table.file:
            for first in range(0, n, CHUNK):
                last = min(n, first + CHUNK)
                source, target = (edges[f"{end}_node_id"][first:last].tolist() for end in ("source", "target"))
                weights = sonata_weights(values, weight, first, last) if weight else [options.weight] * (last - first)
                delays = values.part(delay, first, last) if delay else [None] * (last - first)
                for i in range(last - first):
                    where = f"{options.file}: edge {first + i}"
                    if weights[i] is None and options.weight is None:
                        raise Refused(f"{where}: no {weight} in its group or type; --weight N for edges without")
                    pair = (source[i], target[i]) if one else (f"{ends[0]}:{source[i]}", f"{ends[1]}:{target[i]}")
                    table.add(where, *pair, options.weight if weights[i] is None else weights[i], delays[i])
    words = []
    if options.nodes:
        name, ids, columns = sonata_nodes(options, options.nodes)
        if name not in ends:
            raise Refused(f"{options.nodes}: nodes of '{name}', but the edges join '{ends[0]}' and '{ends[1]}'")
        if not one:
            raise Refused(f"{options.nodes}: the edges join '{ends[0]}' and '{ends[1]}'; --nodes is for edges within a population")
        words, _ = write_nodes(files, ids, columns)
    return table.words() + ids_word(table.numbers) + words, f"{table.rows} edges"


# ---- the whole ----

FORMATS = {"table": import_table, "parquet": import_parquet, "graphml": import_graphml, "npz": import_npz, "mtx": import_mtx,
           "sonata": import_sonata, "matrix": import_matrix}
# Which options mean something for which format; the others are refused, not passed over.
USED = {"table": {"columns", "header", "weight", "nodes"},
        "parquet": {"columns", "weight", "scale", "round", "dt_ms", "nodes"},
        "graphml": {"columns", "weight", "scale", "round", "dt_ms", "both_ways"},
        "npz": {"scale", "round", "rows", "names", "array"},
        "mtx": {"scale", "round", "rows", "names"},
        "matrix": {"scale", "round", "rows", "names"},
        "sonata": {"columns", "weight", "scale", "round", "dt_ms", "nodes", "edge_types", "node_types", "population"}}
ALWAYS = {"file", "format", "prefix", "output", "force"}
ENDINGS = {".parquet": "parquet", ".pq": "parquet", ".graphml": "graphml", ".npz": "npz", ".npy": "npz", ".mtx": "mtx",
           ".h5": "sonata", ".hdf5": "sonata"}
PACKED = (".gz", ".bz2", ".xz")


def stem_and_format(path):
    """The name without endings, and the format that they stand for."""
    stem, ending = os.path.splitext(os.path.basename(path))
    if ending.lower() in PACKED:
        stem, ending = os.path.splitext(stem)
    return stem, ENDINGS.get(ending.lower(), "table")


def find_fascicle():
    here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "build", "fascicle")
    found = os.environ.get("FASCICLE") or shutil.which("fascicle") or (here if os.path.exists(here) else None)
    if not found:
        raise Refused("fascicle is not in the PATH; the tables are made, run the line above")
    return found


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", metavar="FILE")
    parser.add_argument("--format", choices=FORMATS, help="what FILE is (by its name; a text matrix only when asked for)")
    parser.add_argument("--prefix", metavar="NAME", help="of the tables (FILE without its ending, in this folder)")
    parser.add_argument("--output", metavar="GRAPH.h5", help="also run `fascicle convert`, with this output")
    parser.add_argument("--columns", metavar="ROLE=NAME,..", help="pre, post, weight, delay")
    parser.add_argument("--header", choices=("auto", "yes", "no"), default="auto", help="table: is its first row a header?")
    parser.add_argument("--weight", metavar="N", type=int, help="of edges that have none")
    parser.add_argument("--scale", metavar="N", type=float, default=1, help="multiply weights (1)")
    parser.add_argument("--round", action="store_true", help="round weights to whole numbers, half to even")
    parser.add_argument("--dt-ms", metavar="MS", type=float, help="delays are in ms; a step is this long")
    parser.add_argument("--both-ways", action="store_true", help="an undirected edge becomes two")
    parser.add_argument("--rows", choices=("pre", "post"), default="pre", help="matrices: which end a row is (pre)")
    parser.add_argument("--names", metavar="FILE", help="matrices: one name a row")
    parser.add_argument("--array", metavar="NAME", help="npz: which of several arrays")
    parser.add_argument("--nodes", metavar="FILE", help="the node table (text, Parquet) or nodes of SONATA")
    parser.add_argument("--edge-types", metavar="CSV", help="sonata: the table of edge types")
    parser.add_argument("--node-types", metavar="CSV", help="sonata: the table of node types")
    parser.add_argument("--population", metavar="NAME", help="sonata: which of several populations")
    parser.add_argument("--force", action="store_true", help="replace tables (and GRAPH.h5) that exist")
    options = parser.parse_args()
    if options.scale == int(options.scale):
        options.scale = int(options.scale)
    if not options.scale > 0 or options.dt_ms is not None and not options.dt_ms > 0:
        raise Refused("--scale and --dt-ms must be above 0")
    stem, by_name = stem_and_format(options.file)
    options.format, options.prefix = options.format or by_name, options.prefix or stem
    for name, value in vars(options).items():
        if name not in ALWAYS | USED[options.format] and value != parser.get_default(name):
            raise Refused(f"--{name.replace('_', '-')}: means nothing for {options.file}, taken as {options.format}; "
                          "leave it out, or give --format")
    return options


def main():
    options = parse()
    files = Files(options)
    try:
        words, said = FORMATS[options.format](options, files)
        files.publish()
    finally:
        files.remove()
    print(f"import.py: {options.file}: {said}; wrote {', '.join(files.made)}", file=sys.stderr)
    words = ["convert", *words, "--output", options.output or options.prefix + ".h5"] + ["--force"] * options.force
    print(shlex.join(["fascicle", *words]), flush=True)
    if options.output:
        sys.exit(subprocess.run([find_fascicle(), *words], check=False).returncode)


if __name__ == "__main__":
    try:
        main()
    except (Refused, OSError) as problem:
        sys.exit(f"import.py: {problem}")
