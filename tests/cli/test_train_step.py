#!/usr/bin/env python3
"""Start values and one whole training step against the definition in float64: windows, drive, recurrence, loss,
all gradients through time, clip, AdamW."""
import math

import h5py
import numpy as np

from train_tools import Folder, arrays, check, checkpoint, distance, make_graph, make_text, records, train

PURPOSE = {"edge": 0x10000001, "embedding": 0x10000002, "projection": 0x10000003, "readout": 0x10000004,
           "readout_bias": 0x10000005, "window": 0x10000006}
CONFIG = {"batch": 5, "steps_per_window": 7, "microsteps": 2, "n_input": 9, "n_output": 14, "embedding": 4, "seed": 11,
          "validation_fraction": 0.25, "checkpoint_every": 1,
          "optimizer.lr_edges": 3e-3, "optimizer.lr_adapters": 1e-2, "optimizer.clip": 0.3,
          "optimizer.schedule": "cosine", "optimizer.warmup": 2, "train_steps": 6, "init_scale": 1.3, "leak_init": 0.4}


def philox(key, counter):
    """Philox4x32-10 in plain integers."""
    mask = 0xFFFFFFFF
    k0, k1 = key & mask, key >> 32 & mask
    c = list(counter)
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(b >> 32) ^ c[1] ^ k0, b & mask, (a >> 32) ^ c[3] ^ k1, a & mask]
        k0, k1 = (k0 + 0x9E3779B9) & mask, (k1 + 0xBB67AE85) & mask
    return c


def unit(high, low):
    return ((high << 32 | low) >> 11) * 2.0**-53


def normal(v):
    return math.sqrt(-2 * math.log(1 - unit(v[0], v[1]))) * math.cos(6.283185307179586 * unit(v[2], v[3]))


def uniform(seed, a, b, purpose, fan_in):
    v = philox(seed, (a, b, 0, PURPOSE[purpose]))
    return (2 * unit(v[0], v[1]) - 1) / math.sqrt(fan_in)


def read_edges(path):
    found = {}

    def visit(name, item):
        for end in ("source_node_id", "target_node_id"):
            if name.endswith(end):
                found[end] = item[()].astype(np.int64)

    with h5py.File(path) as file:
        file.visititems(visit)
        node_of_row = file["order/node_of_row"][()].astype(np.int64)
    return found["source_node_id"], found["target_node_id"], node_of_row


def top(degree, n):
    """The n of highest degree, ties to the smaller id."""
    return set(sorted(range(len(degree)), key=lambda i: (-degree[i], i))[:n])


class Truth:
    """The model in float64, neurons by row."""

    def __init__(self, graph, text, config):
        self.c = config
        source, target, self.node_of_row = read_edges(graph)
        self.source, self.target = source, target
        n = len(self.node_of_row)
        row_of_node = np.argsort(self.node_of_row)
        self.src, self.dst = row_of_node[source], row_of_node[target]
        inputs = top(np.bincount(source, minlength=n), config["n_input"])
        outputs = top(np.bincount(target, minlength=n), config["n_output"])
        self.inputs = np.array([r for r in range(n) if self.node_of_row[r] in inputs])
        self.outputs = np.array([r for r in range(n) if self.node_of_row[r] in outputs])
        self.scale = 1 / np.sqrt(np.bincount(self.dst, minlength=n)[self.dst])
        alphabet = sorted(set(text))
        self.tokens = np.array([alphabet.index(ch) for ch in text])
        self.V = len(alphabet)
        self.n_train = int((1 - config["validation_fraction"]) * len(text) + 1e-6)

    def windows(self, step):
        T, x = self.c["steps_per_window"], []
        for sample in range(self.c["batch"]):
            v = philox(self.c["seed"], (step, 0, sample, PURPOSE["window"]))
            start = (v[0] << 32 | v[1]) * (self.n_train - T - 1) >> 64
            x.append(self.tokens[start:start + T + 1])
        return np.array(x).T  # [T + 1][B]

    def gradient(self, p, step):
        """Loss and gradient of every array, by back-propagation through time, dense."""
        T, M, B, n = self.c["steps_per_window"], self.c["microsteps"], self.c["batch"], len(self.node_of_row)
        x = self.windows(step)
        V = np.zeros((n, n))
        V[self.dst, self.src] = p["edge/theta"] * self.scale
        a = (1 / (1 + np.exp(-p["node/rho"])))[:, None]
        W, wb = p["adapter/projection"][:, :-1], p["adapter/projection"][:, -1:]
        s, states, proposals = np.zeros((n, B)), [np.zeros((n, B))], []
        loss, d_logits = 0, []
        for t in range(T):
            drive = np.zeros((n, B))
            drive[self.inputs] = W @ p["adapter/embedding"][x[t]].T + wb
            for _ in range(M):
                prop = np.tanh(V @ s + drive + p["node/bias"][:, None])
                s = (1 - a) * s + a * prop
                states.append(s), proposals.append(prop)
            logit = p["adapter/readout"].T @ s[self.outputs] + p["adapter/readout_bias"][:, None]
            soft = np.exp(logit - logit.max(0))
            soft /= soft.sum(0)
            loss -= np.log(soft[x[t + 1], np.arange(B)]).sum()
            soft[x[t + 1], np.arange(B)] -= 1
            d_logits.append(soft / (B * T))
        d = {name: np.zeros_like(value) for name, value in p.items()}
        dV, da, g, dd = np.zeros((n, n)), np.zeros(n), np.zeros((n, B)), np.zeros((n, B))
        for k in range(T * M - 1, -1, -1):
            t = k // M
            if (k + 1) % M == 0:
                g[self.outputs] += p["adapter/readout"] @ d_logits[t]
                d["adapter/readout"] += states[k + 1][self.outputs] @ d_logits[t].T
                d["adapter/readout_bias"] += d_logits[t].sum(1)
                dd = np.zeros((n, B))
            q = g * a * (1 - proposals[k]**2)
            d["node/bias"] += q.sum(1)
            da += (g * (proposals[k] - states[k])).sum(1)
            dV += q @ states[k].T
            dd += q
            g = (1 - a) * g + V.T @ q
            if k % M == 0:
                e = p["adapter/embedding"][x[t]]
                d["adapter/projection"][:, :-1] += dd[self.inputs] @ e
                d["adapter/projection"][:, -1] += dd[self.inputs].sum(1)
                np.add.at(d["adapter/embedding"], x[t], dd[self.inputs].T @ W)
        d["edge/theta"] = dV[self.dst, self.src] * self.scale
        d["node/rho"] = da * (a * (1 - a))[:, 0]
        return loss / (B * T), d

    def update(self, p, m, v, step):
        """Step `step` (0 for the first) of clip and AdamW."""
        c = self.c
        loss, d = self.gradient(p, step)
        norm = math.sqrt(sum((x**2).sum() for x in d.values()))
        clip = min(1, c["optimizer.clip"] / norm)
        warm = c["optimizer.warmup"]
        factor = (step + 1) / warm if step < warm else 0.5 * (1 + math.cos(math.pi * (step - warm) / (c["train_steps"] - warm)))
        for name in p:
            rate = factor * (c["optimizer.lr_adapters"] if name.startswith("adapter") else c["optimizer.lr_edges"])
            g = clip * d[name]
            m[name] = 0.9 * m[name] + 0.1 * g
            v[name] = 0.999 * v[name] + 0.001 * g * g
            mhat, vhat = m[name] / (1 - 0.9**(step + 1)), v[name] / (1 - 0.999**(step + 1))
            p[name] = p[name] * (1 - rate * 0.01) - rate * mhat / (np.sqrt(vhat) + 1e-8)
        return loss, norm


def load(path, truth):
    found = arrays(path)
    names = [n for n in found if n.split("/")[0] in ("edge", "node", "adapter") and not n.endswith(("_m", "_v"))]
    pick = lambda end: {n: found[n + end].astype(float).reshape(np.squeeze(found[n]).shape) for n in names}
    return pick(""), pick("_m"), pick("_v")


def check_start(p, truth, c):
    seed, node = c["seed"], truth.node_of_row
    theta = [normal(philox(seed, (int(s), int(t), 0, PURPOSE["edge"]))) * c["init_scale"]
             for s, t in zip(truth.source, truth.target)]
    check(distance(theta, p["edge/theta"]) < 1e-6, "edge values are drawn by (pre, post)")
    embedding = [[normal(philox(seed, (v, w, 0, PURPOSE["embedding"]))) for w in range(c["embedding"])]
                 for v in range(truth.V)]
    check(distance(embedding, p["adapter/embedding"]) < 1e-6, "embedding")
    projection = [[uniform(seed, int(node[i]), w, "projection", c["embedding"]) for w in range(c["embedding"] + 1)]
                  for i in truth.inputs]
    check(distance(projection, p["adapter/projection"]) < 1e-6, "projection")
    readout = [[uniform(seed, int(node[o]), v, "readout", c["n_output"]) for v in range(truth.V)] for o in truth.outputs]
    check(distance(readout, p["adapter/readout"]) < 1e-6, "readout")
    check(np.allclose(1 / (1 + np.exp(-p["node/rho"])), c["leak_init"]) and not p["node/bias"].any(), "leak and bias")


with Folder() as folder:
    graph, text = make_graph(folder, nodes=60, edges=700), make_text(folder, 1500)
    truth = Truth(graph, text.read_text(), CONFIG)
    still = {**CONFIG, "train_steps": 1, "optimizer.lr_edges": 0, "optimizer.lr_adapters": 0}
    train(1, graph, text, folder / "still", still)
    start = load(checkpoint(folder / "still", 1), truth)[0]
    check_start(start, truth, CONFIG)
    train(2, graph, text, folder / "run", CONFIG, "--keep", 10, parts=2)
    # from the start values, six steps on our own
    p = {name: value.copy() for name, value in start.items()}
    m, v = ({name: np.zeros_like(x) for name, x in p.items()} for _ in range(2))
    for step, line in zip(range(6), records(folder / "run", "step")):
        loss, norm = truth.update(p, m, v, step)
        check(abs(loss - line["loss"]) < 1e-5 and abs(norm - line["gradient_norm"]) < 1e-4 * norm,
              f"step {step + 1}: loss {loss} against {line['loss']}, norm {norm} against {line['gradient_norm']}")
    found = load(checkpoint(folder / "run", 6), truth)
    for name in p:
        check(distance(p[name] - start[name], found[0][name] - start[name]) < 2e-3, f"{name} moved alike")
        check(distance(p[name], found[0][name]) < 1e-5 or name in ("node/rho", "node/bias"), name)
        check(distance(m[name], found[1][name]) < 1e-4, f"first moment of {name}")
        check(distance(v[name], found[2][name]) < 1e-4, f"second moment of {name}")
    print("start values and 6 steps agree with float64")
