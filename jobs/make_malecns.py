#!/usr/bin/env python3
"""Synthetic tables as the MaleCNS v1.0 release has them, at any scale: for benchmarks and tests.

  jobs/make_malecns.py /tmp/malecns                 the real size: about 1.1 GB
  jobs/make_malecns.py /tmp/small --scale 0.01      a hundredth of all counts

Written are body-annotations.feather, body-neurotransmitters.feather and connectome-weights.feather (Arrow IPC,
LZ4, 65,536 rows a batch) and facts.json, which holds the counts below. The columns, their types and their
nulls are those of the release; so are, at scale 1 and exactly:

  weights       151,856,684 rows, no repeated pair, 123 self-edges, weights 1..2,591 with sum 311,833,243;
                88,384,522 distinct ends, ids 10,001..1,571,863,634
  annotations   211,577 rows; 166,700 with a superclass, 165,122 with status Traced; 19,881 in no edge
  edges between annotated ends 26,028,386, between those with a superclass 25,582,938 (of weight 5 or more
                6,242,118), between traced ones 25,563,197, and the weight sum of each; from an acetylcholine,
                glutamate or gaba source 24,678,466
  transmitters  1,835,518 rows, 187,016 of them for annotated bodies

Everything else is drawn: heavy-tailed in- and out-degrees, 24 regions that hold 70 % of a neuron's partners,
types within a superclass. Names of columns that the program does not read are stand-ins where unknown.
Needs numpy and pyarrow, 2.5 GB of memory and about a minute of processor time. The same seed gives the same tables.
"""
import argparse
import json
import os

import numpy as np
import pyarrow as pa

FIRST_ID, LAST_ID, FIRST_FRAGMENT = 10_001, 1_571_863_634, 400_000
BATCH, CHUNK_ROWS, MAX_WEIGHT = 65_536, 1_500_000, 2_591
TARGET_BITS = 18

FULL = {
    "annotated": 211_577, "superclass": 166_700, "traced": 165_122, "isolated": 217, "unused": 19_881,
    "rows": 151_856_684, "ends": 88_384_522, "weight_sum": 311_833_243, "self_edges": 123,
    "annotated_edges": 26_028_386, "annotated_sum": 125_365_936,
    "superclass_edges": 25_582_938, "superclass_sum": 124_177_617, "superclass_self": 101,
    "superclass_strong": 6_242_118,
    "traced_edges": 25_563_197, "traced_sum": 124_025_046,
    "signed_edges": 24_678_466,
    "transmitters": 1_835_518, "annotated_transmitters": 187_016,
}

SUPERCLASSES = {  # share of the neurons, and whether they take their input from outside
    "ol_intrinsic": 0.530, "cb_intrinsic": 0.190, "vnc_intrinsic": 0.078, "ol_sensory": 0.055,
    "visual_projection": 0.045, "vnc_sensory": 0.038, "cb_sensory": 0.028, "ascending_neuron": 0.012,
    "descending_neuron": 0.008, "visual_centrifugal": 0.006, "vnc_motor": 0.004, "sensory_ascending": 0.003,
    "cb_motor": 0.001, "endocrine": 0.001, "efferent": 0.001,
}
SIGNED = ["acetylcholine", "glutamate", "gaba"]
UNSIGNED = ["unclear", "dopamine", "histamine", "octopamine", "serotonin"]


def scaled(scale):
    return {name: max(1, round(count * scale)) for name, count in FULL.items()}


# ---- writing ----


def schema_of(columns):
    return pa.schema([pa.field(name, kind) for name, kind in columns])


class Feather:
    """Rows in batches of 65,536, whatever pieces they come in."""

    def __init__(self, path, schema):
        self.schema, self.held, self.rows = schema, None, 0
        self.out = pa.ipc.new_file(path, schema, options=pa.ipc.IpcWriteOptions(compression="lz4"))

    def add(self, columns):
        n = len(columns[0])
        if self.held is not None:
            columns = [np.concatenate(pair) for pair in zip(self.held, columns)]
            n += len(self.held[0])
        whole = n // BATCH * BATCH
        self.write([c[:whole] for c in columns])
        self.held = [c[whole:].copy() for c in columns]

    def write(self, columns):
        for at in range(0, len(columns[0]), BATCH):
            arrays = [pa.array(c[at:at + BATCH], f.type) for c, f in zip(columns, self.schema)]
            self.out.write_batch(pa.RecordBatch.from_arrays(arrays, schema=self.schema))
            self.rows += len(arrays[0])

    def close(self):
        if self.held is not None:
            self.write(self.held)
        self.out.close()


def write_table(path, columns):
    """columns: name -> pyarrow array."""
    table = pa.table(columns)
    with pa.ipc.new_file(path, table.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as out:
        out.write_table(table, max_chunksize=BATCH)


# ---- bodies ----


class Bodies:
    """Annotated ids, what each is, and how strongly it takes part."""

    def __init__(self, rng, count):
        n = count["annotated"]
        self.n_fragments = count["ends"] - (n - count["unused"])
        self.stride = (LAST_ID - FIRST_FRAGMENT) // self.n_fragments
        self.id = self.draw_ids(rng, n)
        # Kinds: 0 traced, 1 traced in no edge, 2 superclass but not traced, 3 neither, 4 neither, in no edge.
        isolated = count["isolated"]
        no_class = n - count["superclass"]
        sizes = [count["traced"] - isolated, isolated, count["superclass"] - count["traced"],
                 no_class - (count["unused"] - isolated), count["unused"] - isolated]
        self.kind = rng.permutation(np.repeat(np.arange(5, dtype=np.int8), sizes))
        self.connected = np.flatnonzero(np.isin(self.kind, (0, 2, 3)))
        m = len(self.connected)
        self.of = self.kind[self.connected]
        most = min(9_000, m // 4)
        mean = count["annotated_edges"] / m
        self.out_weight = np.minimum(rng.lognormal(0, 1.25, m), 2.2 * most / mean)
        self.in_weight = np.minimum(rng.lognormal(0, 1.15, m), 2.2 * most / mean)
        self.module = rng.integers(0, max(1, min(24, m // 2_000)), m)

    def draw_ids(self, rng, n):
        """Seven in ten are small numbers; the others lie between fragments, at a remainder no fragment has."""
        low = min(n * 7 // 10, FIRST_FRAGMENT - FIRST_ID - 1)
        small = rng.choice(np.arange(FIRST_ID + 1, FIRST_FRAGMENT), low - 1, replace=False)
        need, large = n - low - 1, np.empty(0, np.int64)
        while len(large) < need:
            place = np.exp(rng.uniform(0, np.log(self.n_fragments), 2 * need)).astype(np.int64)
            large = unique(np.concatenate([large, place]))
        place = rng.permutation(large)[:need]
        large = FIRST_FRAGMENT + place * self.stride + self.stride - 1
        return np.sort(np.concatenate([[FIRST_ID], small, large, [LAST_ID]]))

    def fragment(self, k):
        """The id of fragment k: ascending, distinct, irregular."""
        mixed = (k.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(40)
        jitter = mixed % np.uint64(max(1, self.stride - 1))
        return FIRST_FRAGMENT + k * self.stride + jitter.astype(np.int64)


# ---- edges between annotated bodies ----


def picker(rng, members, weight, module=None):
    """A function that draws members by weight; given modules, from these."""
    order = members if module is None else members[np.argsort(module[members], kind="stable")]
    total = np.concatenate([[0.0], np.cumsum(weight[order])])
    n_modules = 0 if module is None else int(module.max()) + 1
    edge = None if module is None else total[np.searchsorted(module[order], np.arange(n_modules + 1))]

    def pick(n, within=None):
        low, high = (0.0, total[-1]) if within is None else (edge[within], edge[within + 1])
        at = np.searchsorted(total, low + rng.random(n) * (high - low), side="right") - 1
        return order[np.minimum(at, len(order) - 1)]

    return pick


def unique(x):
    """Sorted and distinct. (NumPy's own hashes, which is ten times slower on many millions.)"""
    x = np.sort(x)
    return x[np.concatenate([[True], x[1:] != x[:-1]])] if len(x) else x


def key_of(source, target):
    return source.astype(np.int64) << TARGET_BITS | target


def distinct(rng, total, forced, draw):
    """`total` distinct keys, `forced` among them, the others by draw(n) -> source, target; no self-edges."""
    def fresh(n):
        source, target = draw(n)
        return unique(key_of(source, target)[source != target])

    keys = unique(np.concatenate([forced, fresh(int(1.05 * total))]))
    if len(keys) > total:
        free = np.flatnonzero(~np.isin(keys, forced))
        keys = np.delete(keys, rng.choice(free, len(keys) - total, replace=False))
    while len(keys) < total:
        more = fresh(2 * (total - len(keys)) + 16)
        at = np.minimum(np.searchsorted(keys, more), len(keys) - 1)
        more = rng.permutation(more[keys[at] != more])[:total - len(keys)]
        keys = np.sort(np.concatenate([keys, more]), kind="stable")
    return keys


def annotated_edges(rng, bodies, count):
    """Sorted keys and their weights: three kinds of pairs, each of exact number."""
    traced, untraced, other = (np.flatnonzero(bodies.of == k) for k in (0, 2, 3))
    neurons = np.flatnonzero(bodies.of != 3)
    everyone = np.arange(len(bodies.of))
    out_traced = picker(rng, traced, bodies.out_weight)
    in_traced = picker(rng, traced, bodies.in_weight, bodies.module)

    def draw_traced(n):
        source = out_traced(n)
        target = np.where(rng.random(n) < 0.7, in_traced(n, bodies.module[source]), in_traced(n))
        return source, target

    def draw_touching(some, all_):
        from_some, from_all = picker(rng, some, bodies.out_weight), picker(rng, all_, bodies.in_weight)

        def draw(n):
            a, b, turned = from_some(n), from_all(n), rng.random(n) < 0.5
            return np.where(turned, b, a), np.where(turned, a, b)

        return draw

    def forced(some, all_, n_self):
        partner = all_[rng.integers(0, len(all_), len(some))]
        partner = np.where(partner == some, all_[0] if len(all_) == 1 else all_[-1], partner)
        mine = some[:n_self]
        touch = key_of(some, partner)[some != partner]
        return unique(np.concatenate([touch, key_of(mine, mine)]))

    n_superclass = count["superclass_edges"] - count["traced_edges"]
    n_other = count["annotated_edges"] - count["superclass_edges"]
    strong = round(0.3 * n_superclass)
    parts = [
        (distinct(rng, count["traced_edges"], forced(traced, traced, count["superclass_self"]), draw_traced),
         count["traced_sum"], count["superclass_strong"] - strong),
        (distinct(rng, n_superclass, forced(untraced, neurons, 0), draw_touching(untraced, neurons)),
         count["superclass_sum"] - count["traced_sum"], strong),
        (distinct(rng, n_other, forced(other, everyone, count["self_edges"] - count["superclass_self"]),
                  draw_touching(other, everyone)),
         count["annotated_sum"] - count["superclass_sum"], round(0.12 * n_other)),
    ]
    keys = np.concatenate([p[0] for p in parts])
    weights = np.concatenate([strong_weights(rng, len(k), total, n) for k, total, n in parts])
    weights[np.argmax(weights)] = MAX_WEIGHT
    settle(rng, weights[:len(parts[0][0])], parts[0][1], 5, keep=np.argmax(weights))
    order = np.argsort(keys, kind="stable")
    return keys[order], weights[order]


def settle(rng, weights, total, least, keep=-1):
    """Change weights above `least` by ones until they sum to `total`."""
    while True:
        short = total - int(weights.sum())
        if short == 0:
            return
        may = np.flatnonzero(weights >= least if short > 0 else weights > least)
        may = may[(may != keep) & (weights[may] < MAX_WEIGHT - 1)]
        if not len(may):
            raise SystemExit("the weights cannot reach their sum")
        # Large gaps are spread over all rows at once.
        each = max(1, abs(short) // len(may))
        chosen = rng.permutation(may)[:abs(short)]
        step = np.full(len(chosen), min(each, MAX_WEIGHT), np.int64) * (1 if short > 0 else -1)
        weights[chosen] = np.clip(weights[chosen] + step, least, MAX_WEIGHT - 1)


def strong_weights(rng, n, total, n_strong):
    """n weights of this sum, n_strong of them 5 or more."""
    weights = np.searchsorted([0.50, 0.75, 0.90], rng.random(n)) + 1
    mean = (total - 1.85 * (n - n_strong)) / max(1, n_strong) - 5
    strong = rng.choice(n, n_strong, replace=False)
    tail = (rng.pareto(2.2, n_strong) + 1) * max(0.3, mean) / 1.83
    weights[strong] = np.minimum(5 + tail.astype(np.int64), MAX_WEIGHT - 1)
    settle(rng, weights, total, 5)
    return weights


# ---- the edge table, in the order of its sources ----


class Sources:
    """Every body with out-edges, by id: so many to annotated bodies, so many to fragments."""

    def __init__(self, rng, bodies, keys, count):
        m, n = len(bodies.connected), bodies.n_fragments
        rest = count["rows"] - len(keys)
        fragments = np.arange(0, n, 4)
        from_fragments = max(len(fragments), int(0.30 * rest))
        rows = np.ones(len(fragments), np.int32)
        more = rng.integers(0, len(fragments), from_fragments - len(fragments))
        rows += np.bincount((more * (more / len(fragments)) ** 0.5).astype(np.int64),
                            minlength=len(fragments)).astype(np.int32)
        to_annotated = rng.binomial(rows, 0.79).astype(np.int32)
        share = np.floor(np.cumsum(bodies.out_weight) / bodies.out_weight.sum() * (rest - from_fragments) + 0.5)
        id_ = np.concatenate([bodies.id[bodies.connected], bodies.fragment(fragments)])
        order = np.argsort(id_, kind="stable")
        degree = np.bincount(keys >> TARGET_BITS, minlength=m).astype(np.int32)
        self.id = id_[order]
        self.is_annotated = order < m
        self.to_annotated = np.concatenate([degree, to_annotated])[order]
        self.to_fragments = np.concatenate([np.diff(share, prepend=0).astype(np.int32), rows - to_annotated])[order]
        self.first_row = np.concatenate([[0], np.cumsum(self.to_annotated + self.to_fragments, dtype=np.int64)])
        self.n_fragment_rows = int(self.to_fragments.sum(dtype=np.int64))


def coprime(n):
    a = int(n * 0.6180339887) | 1
    while np.gcd(a, n) != 1:
        a += 2
    return a


class Targets:
    """Fragments that receive: each one that sends nothing comes once, the other rows draw from all."""

    def __init__(self, rng, bodies, n_rows):
        n = bodies.n_fragments
        self.rng, self.bodies, self.n_rows = rng, bodies, n_rows
        self.must = n - len(range(0, n, 4))
        self.step, self.row = coprime(self.must), 0
        if self.must > n_rows:
            raise SystemExit("fewer rows than fragments: is the scale too small?")

    def any(self, n):
        return self.bodies.fragment((self.rng.random(n) ** 1.5 * self.bodies.n_fragments).astype(np.int64))

    def next(self, n):
        j = self.row + np.arange(n, dtype=np.int64)
        self.row += n
        place = j * self.must // self.n_rows
        first = (j + 1) * self.must // self.n_rows > place
        ids = self.any(n)
        at = place[first] * self.step % self.must
        ids[first] = self.bodies.fragment(at // 3 * 4 + 1 + at % 3)
        return ids


def light_weights(rng, n):
    pool = np.searchsorted([0.74, 0.90, 0.955, 0.978, 0.99], rng.random(n)) + 1
    pool[pool == 6] = np.minimum(6 + rng.pareto(1.8, int((pool == 6).sum())).astype(np.int64), 900)
    return pool


def write_edges(path, rng, bodies, keys, weights, count):
    sources = Sources(rng, bodies, keys, count)
    targets = Targets(rng, bodies, sources.n_fragment_rows)
    connected_id = bodies.id[bodies.connected]
    popular = picker(rng, np.arange(len(connected_id)), bodies.in_weight)(1 << 22)
    target = (keys & ((1 << TARGET_BITS) - 1)).astype(np.int32)
    out = Feather(path, schema_of([(c, pa.int64()) for c in ("body_pre", "body_post", "weight")]))
    light_left = count["weight_sum"] - int(weights.sum())
    rows_left, used, at = count["rows"] - len(keys), 0, 0
    while at < len(sources.id):
        end = int(np.searchsorted(sources.first_row, sources.first_row[at] + CHUNK_ROWS, side="right")) - 1
        end = min(max(end, at + 1), len(sources.id))
        part = slice(at, end)
        n_near, n_far = sources.to_annotated[part], sources.to_fragments[part]
        local = np.arange(end - at, dtype=np.int64)
        given = np.repeat(sources.is_annotated[part], n_near)
        n_given = int(given.sum())
        post = connected_id[popular[rng.integers(0, len(popular), len(given))]]
        post[given] = connected_id[target[used:used + n_given]]
        post = np.concatenate([post, targets.next(int(n_far.sum()))])
        n_light = len(post) - n_given
        light = light_weights(rng, n_light)
        goal = light_left if end == len(sources.id) else round(light_left * n_light / max(1, rows_left))
        settle(rng, light, goal, 1)
        weight = np.empty(len(post), np.int64)
        is_given = np.concatenate([given, np.zeros(len(post) - len(given), bool)])
        weight[is_given], weight[~is_given] = weights[used:used + n_given], light
        light_left, rows_left, used = light_left - int(light.sum()), rows_left - n_light, used + n_given
        source = np.concatenate([np.repeat(local, n_near), np.repeat(local, n_far)])
        post, weight = sort_rows(source, post, weight, sources.id[part], is_given, targets)
        pre = np.repeat(sources.id[part], n_near + n_far)
        out.add([pre, post, weight])
        at = end
    out.close()
    return out.rows


def sort_rows(source, post, weight, id_, is_given, targets):
    """By (source, post); repeated pairs and chance self-edges get another fragment."""
    chance = np.flatnonzero((post == id_[source]) & ~is_given)
    post[chance] = targets.any(len(chance))
    key = source.astype(np.uint64) << np.uint64(43) | post.astype(np.uint64) << np.uint64(12)
    key |= weight.astype(np.uint64)
    while True:
        key.sort()
        again = np.flatnonzero((key[1:] ^ key[:-1]) >> np.uint64(12) == 0) + 1
        if not len(again):
            break
        keep = key[again] & ~np.uint64(((1 << 31) - 1) << 12)
        key[again] = keep | targets.any(len(again)).astype(np.uint64) << np.uint64(12)
    mask = np.uint64((1 << 31) - 1)
    return (key >> np.uint64(12) & mask).astype(np.int64), (key & np.uint64(4095)).astype(np.int64)


# ---- annotations ----


def some_null(rng, values, share):
    return pa.array(values, mask=rng.random(len(values)) >= share)


def words(rng, n, stem, kinds, share):
    values = np.array([f"{stem}{k:04d}" for k in range(kinds)], object)[rng.integers(0, kinds, n)]
    return some_null(rng, values, share)


def points(rng, n, share):
    values = rng.integers(0, 100_000, (n, 3)).tolist()
    has = rng.random(n) < share
    return pa.array([v if h else None for v, h in zip(values, has)], pa.list_(pa.int64()))


def write_annotations(path, rng, bodies):
    n = len(bodies.id)
    neuron = bodies.kind <= 2
    names = np.array(list(SUPERCLASSES), object)
    share = np.array(list(SUPERCLASSES.values()))
    which = rng.choice(len(names), n, p=share / share.sum())
    kinds = np.maximum(2, (share * 11_691 * min(1, n / 50_000)).astype(int))
    number = (rng.random(n) ** 2 * kinds[which]).astype(int)
    type_ = np.array([f"{names[w]}_{k:04d}" for w, k in zip(which, number)], object)
    status = np.select([bodies.kind <= 1, bodies.kind == 2], ["Traced", "Anchor"], "").astype(object)
    rest = status == ""
    status[rest] = rng.choice(np.array(["Glia", "Orphan", "Unimportant", "PRT Orphan"], object), int(rest.sum()))
    label = ["0.5assign", "Anchor", "Glia", "Leaves", "Orphan", "Prelim Roughly traced", "Roughly traced", "Traced"]
    side = np.array(["L", "R", "M"], object)[rng.choice(3, n, p=[0.49, 0.49, 0.02])]
    real = lambda share: some_null(rng, rng.integers(FIRST_ID, 900_000, n).astype(float), share)
    columns = {
        "bodyId": pa.array(bodies.id),
        "type": pa.array(type_, mask=~neuron | (rng.random(n) < 0.02)),
        "instance": pa.array(type_ + "_" + side, mask=~neuron),
        "superclass": pa.array(names[which], mask=~neuron),
        "class": words(rng, n, "class", 40, 0.5),
        "subclass": words(rng, n, "subclass", 90, 0.3),
        "supertype": words(rng, n, "st", 2_000, 0.7),
        "status": pa.array(status, mask=rest & (rng.random(n) < 0.1)),
        "statusLabel": pa.DictionaryArray.from_arrays(
            pa.array(rng.integers(0, len(label), n).astype(np.int8), mask=rng.random(n) < 0.05), label, ordered=True),
        "somaSide": pa.array(side, mask=~neuron),
        "rootSide": some_null(rng, side, 0.1),
        "somaNeuromere": words(rng, n, "T", 8, 0.1),
        "group": real(0.6),
        "mancBodyid": real(0.1),
        "mancGroup": real(0.1),
        "mcnsSerial": real(0.05),
        "mancType": words(rng, n, "IN", 3_000, 0.1),
        "flywireType": words(rng, n, "fw", 6_000, 0.6),
        "hemibrainType": words(rng, n, "hb", 5_000, 0.3),
        "itoleeHl": words(rng, n, "hl", 150, 0.2),
        "trumanHl": words(rng, n, "th", 120, 0.1),
        "birthtime": words(rng, n, "bt", 3, 0.2),
        "dimorphism": words(rng, n, "dimorphic", 3, 0.02),
        "fruDsx": words(rng, n, "fru", 3, 0.02),
        "receptorType": words(rng, n, "Or", 60, 0.02),
        "entryNerve": words(rng, n, "nerve", 30, 0.1),
        "exitNerve": words(rng, n, "nerve", 30, 0.01),
        "target": words(rng, n, "muscle", 80, 0.01),
        "serialMotif": words(rng, n, "motif", 6, 0.02),
        "synonyms": words(rng, n, "Synonym 1999: ", 9_000, 0.2),
        "systematicType": words(rng, n, "sys", 4_000, 0.2),
        "vfbId": words(rng, n, "VFB_", 9_999, 0.7),
        "description": words(rng, n, "a cell that was seen, ", 500, 0.05),
        "prefix": words(rng, n, "p", 30, 0.1),
        "somaLocation": points(rng, n, 0.6),
        "tosomaLocation": points(rng, n, 0.2),
    }
    assert len(columns) == 36
    order = rng.permutation(n)
    write_table(path, {name: c.take(pa.array(order)) for name, c in columns.items()})


# ---- transmitters ----


def unsigned_sources(rng, degree, total):
    """Sources whose out-degrees sum to `total`, in random order; exact where small degrees are left."""
    taken, left = [], total
    for i in rng.permutation(len(degree)):
        if 0 < degree[i] <= left:
            taken.append(i)
            left -= int(degree[i])
        if left == 0:
            break
    return np.array(taken, np.int64)


def write_transmitters(path, rng, bodies, keys, count):
    m = len(bodies.connected)
    degree = np.bincount(keys >> TARGET_BITS, minlength=m)
    unsigned = unsigned_sources(rng, degree, count["annotated_edges"] - count["signed_edges"])
    label = np.array(SIGNED, object)[rng.choice(3, len(bodies.id), p=[0.62, 0.21, 0.17])]
    label[bodies.connected[unsigned]] = rng.choice(np.array(UNSIGNED, object), len(unsigned),
                                                   p=[0.45, 0.15, 0.25, 0.05, 0.10])
    # Bodies without a row: some of the unsigned sources, the others among those in no edge.
    n_missing = count["annotated"] - count["annotated_transmitters"]
    unused = np.flatnonzero(np.isin(bodies.kind, (1, 4)))
    few = min(len(unsigned) // 2, max(0, n_missing - len(unused)))
    silent = np.setdiff1d(bodies.connected[degree == 0], bodies.connected[unsigned])
    missing = np.concatenate([bodies.connected[unsigned[:few]], unused, silent])[:n_missing]
    has = np.ones(len(bodies.id), bool)
    has[missing] = False
    n_fragments = count["transmitters"] - int(has.sum())
    fragment = bodies.fragment(np.sort(rng.choice(bodies.n_fragments, n_fragments, replace=False)))
    body = np.concatenate([bodies.id[has], fragment])
    every = np.array(SIGNED + UNSIGNED, object)
    consensus = np.concatenate([label[has], every[rng.choice(8, n_fragments, p=[.4, .15, .15, .2, .03, .03, .02, .02])]])
    n = len(body)
    predicted = np.where(rng.random(n) < 0.9, consensus, "acetylcholine").astype(object)
    order = np.argsort(body, kind="stable")
    columns = {
        "body": pa.array(body),
        "predicted_nt": pa.array(predicted),
        "predicted_nt_confidence": some_null(rng, rng.random(n), 0.95),
        "celltype_predicted_nt": some_null(rng, consensus, 0.12),
        "celltype_predicted_nt_confidence": some_null(rng, rng.random(n), 0.12),
        "consensus_nt": pa.array(consensus),
        "total_nt_predictions": pa.array(rng.integers(1, 5_000, n).astype(np.int32)),
        "celltype_total_nt_predictions": some_null(rng, rng.integers(1, 90_000, n).astype(np.int32), 0.12),
    }
    write_table(path, {name: c.take(pa.array(order)) for name, c in columns.items()})


# ---- all of it ----


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0],
                                     epilog="The account of what is written stands at the top of the script.")
    parser.add_argument("folder")
    parser.add_argument("--scale", type=float, default=1.0, help="of all counts (1)")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    os.makedirs(options.folder, exist_ok=True)
    path = lambda name: os.path.join(options.folder, name)
    count = scaled(options.scale)
    rng = np.random.Generator(np.random.SFC64(options.seed))
    bodies = Bodies(rng, count)
    print(f"{len(bodies.id)} annotated bodies, {bodies.n_fragments} fragments", flush=True)
    write_annotations(path("body-annotations.feather"), rng, bodies)
    keys, weights = annotated_edges(rng, bodies, count)
    print(f"{len(keys)} edges between annotated bodies", flush=True)
    write_transmitters(path("body-neurotransmitters.feather"), rng, bodies, keys, count)
    rows = write_edges(path("connectome-weights.feather"), rng, bodies, keys, weights, count)
    print(f"{rows} rows of weights", flush=True)
    with open(path("facts.json"), "w", encoding="utf-8") as out:
        json.dump({"scale": options.scale, "seed": options.seed, **count}, out, indent=1)
        out.write("\n")


if __name__ == "__main__":
    main()
