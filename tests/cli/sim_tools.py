"""Small graphs, runs of `fascicle simulate`, and an independent simulator in plain Python that says what they must give."""
import json
import os
import random
import subprocess
import time

import h5py
import numpy as np

from side_by_side import checks, here, path

fascicle = os.environ["FASCICLE"]
ranks = os.environ["RANKS"]


def check(condition, *what):
    checks.append(1)
    if not condition:
        raise AssertionError(" ".join(str(w) for w in what))


# ---- graphs ----


class Net:
    """Nodes 0 .. n-1 with body ids and types, edges (pre, post, weight, delay); written as graph files."""

    def __init__(self, n, edges, types=None):
        self.n, self.edges = n, edges
        self.body = [1000 + 3 * i for i in range(n)]
        self.types = types or ["AB"[i % 2] for i in range(n)]

    def write(self, name="graph", ordered=False):
        lines = ["pre,post,weight,delay"]
        lines += [f"{self.body[s]},{self.body[t]},{w},{d}" for s, t, w, d in self.edges]
        nodes = ["id,type"] + ['%d,"%s"' % (b, t.replace('"', '""')) for b, t in zip(self.body, self.types)]
        for suffix, rows in (("edges", lines), ("nodes", nodes)):
            with open(path(f"{name}.{suffix}.csv"), "w") as file:
                file.write("\n".join(rows) + "\n")
        words = ["--edges", path(f"{name}.edges.csv"), "--columns", "pre=pre,post=post,weight=weight,delay=delay"]
        words += ["--nodes", path(f"{name}.nodes.csv"), "--node-columns", "id=id,type=type", "--node-rule", "listed"]
        words += ["--duplicates", "keep", "--output", path(name + ".h5"), "--force"]
        words += ["--parts", "8"] if ordered else ["--no-order"]
        done = subprocess.run([fascicle, "convert", *words], capture_output=True, text=True, timeout=600)
        check(done.returncode == 0, "convert:", done.stderr)
        return path(name + ".h5")


def random_net(n, n_edges, delays, seed, most=60):
    draw = random.Random(seed)
    edges = []
    for _ in range(n_edges):
        weight = draw.randint(-most, most * 2)
        edges.append((draw.randrange(n), draw.randrange(n), weight, draw.randint(*delays)))
    return Net(n, edges)


# ---- running ----


def write_json(name, config):
    with open(path(name), "w") as file:
        json.dump(config, file)
    return path(name)


def run(*words, n=1, env=None, timeout=600):
    """Exit code, stdout, stderr of a fascicle command."""
    done = subprocess.run([ranks, str(n), fascicle, *map(str, words)], capture_output=True, text=True, timeout=timeout,
                          env=dict(os.environ, **(env or {})))
    return done.returncode, done.stdout, done.stderr


def simulate(graph, config, steps, output, *words, n=1, code=0, env=None):
    """Run to the end; returns stderr. config is a file or an object."""
    if not isinstance(config, str):
        config = write_json(os.path.basename(output) + ".json", config)
    got, _, err = run("simulate", graph, "--config", config, "--steps", steps, "--output", path(output), *words, n=n, env=env)
    check(got == code, f"simulate on {n} ranks ended with {got}, not {code}:", err)
    return err


def start(graph, config, steps, output, *words, n=1, log="log"):
    """Begin a run; a process. Its stderr goes to a file."""
    command = [ranks, str(n), fascicle, "simulate", graph, "--config", config, "--steps", str(steps), "--output", path(output)]
    with open(path(log), "w") as file:
        process = subprocess.Popen(command + list(map(str, words)), stderr=file, stdout=subprocess.DEVNULL,
                                   start_new_session=True)
    here.started.append(process)
    return process


def children(process):
    """Process ids of the ranks that a launcher has started, or the process itself when it is the only rank."""
    text = subprocess.run(["ps", "-o", "pid=,comm=", "--ppid", str(process.pid)], capture_output=True, text=True).stdout
    return [int(line.split()[0]) for line in text.splitlines() if line.split()[1].startswith("fascicle")] or [process.pid]


def ranks_of(process, n):
    """Process ids of the n ranks; waits until they are there."""
    if n == 1:
        return [process.pid]
    until = time.time() + 600
    while time.time() < until:
        found = children(process)
        if len(found) == n:
            return found
        time.sleep(0.05)
    raise AssertionError(f"{n} ranks did not start")


def wait_for(condition, what, seconds=600, pause=0.02):
    until = time.time() + seconds
    while not condition():
        check(time.time() < until, "waited in vain for", what)
        time.sleep(pause)


def wait_steps(output, step):
    """Until metrics.jsonl speaks of a step."""

    def there():
        try:
            with open(path(output) + "/metrics.jsonl") as file:
                return any(json.loads(line).get("step", -1) >= step for line in file if line.endswith("\n"))
        except FileNotFoundError:
            return False

    wait_for(there, f"step {step}")


# ---- results ----


class Spikes:
    def __init__(self, folder):
        with h5py.File(path(folder) + "/spikes.h5") as file:
            (population,) = file["spikes"]
            group = file["spikes"][population]
            self.population, self.attributes = population, dict(group.attrs)
            self.node, self.step, self.time = group["node_ids"][:], group["step"][:], group["timestamps"][:]
            self.counts = file["step_counts"][:]
            self.body = file["body_id"][:]
            has = "potential" in file
            self.potential_step = file["potential/step"][:] if has else None
            self.potential_node = file["potential/node_ids"][:] if has else None
            self.potential = file["potential/value"][:].reshape(len(self.potential_step), -1) if has else None

    def pairs(self):
        return list(zip(self.step.tolist(), self.node.tolist()))

    def same(self, other, what):
        for name in ("node", "step", "time", "counts", "body", "potential_step", "potential_node", "potential"):
            a, b = getattr(self, name), getattr(other, name)
            check((a is None) == (b is None) and (a is None or (a.dtype == b.dtype and np.array_equal(a, b))), what, name)
        for name in ("first_step", "last_step", "dt_ms", "graph_digest", "spikes_digest", "n_nodes"):
            check(self.attributes[name] == other.attributes[name], what, name)


# ---- the independent simulator: "What a step does" and the keys of jobs/conf/README.md, word by word ----


def philox(key, counter):
    """Philox4x32-10."""
    c, k, mask = list(counter), [key & 0xFFFFFFFF, key >> 32], 0xFFFFFFFF
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(b >> 32) ^ c[1] ^ k[0], b & mask, (a >> 32) ^ c[3] ^ k[1], a & mask]
        k = [(k[0] + 0x9E3779B9) & mask, (k[1] + 0xBB67AE85) & mask]
    return c


def chosen(net, select):
    if select == "all":
        return set(range(net.n))
    nodes = set(select.get("indices", []))
    nodes |= {net.body.index(int(b)) for b in select.get("body_ids", [])}
    nodes |= {i for i in range(net.n) if net.types[i] in select.get("types", [])}
    return nodes


class Truth:
    """Spikes [(step, node)], potentials after each step, counts of spikes in each step."""

    def __init__(self, net, config, steps, trial=0):
        n, dt, seed = net.n, config.get("dt_ms", 1.0), config.get("seed", 1)
        reset, refractory = config.get("reset", 0), config.get("refractory_steps", 0)
        v, counter = [0] * n, [0] * n
        for entry in config.get("initial", []):
            for i in chosen(net, entry["neurons"]):
                v[i], counter[i] = entry.get("potential", 0), entry.get("refractory", 0)
        stimuli = [(k, s, chosen(net, s["neurons"])) for k, s in enumerate(config.get("stimulus", []))]
        muted, removed = set(), set()
        for entry in config.get("silence", []):
            (muted if entry["mode"] == "output" else removed).update(chosen(net, entry["neurons"]))
        out = [[] for _ in range(n)]
        for s, t, w, d in net.edges:
            out[s].append((t, w, d))
        due = {}
        self.spikes, self.potential, self.counts = [], [], []
        for t in range(steps):
            arrivals = due.pop(t, {})
            fired = []
            for i in range(n):
                if i in removed:
                    continue
                current, forced = arrivals.get(i, 0), False
                for k, s, nodes in stimuli:
                    if i not in nodes:
                        continue
                    if s["kind"] == "spikes":
                        forced |= t in s["steps"]
                    elif s.get("first_step", 0) <= t <= s.get("last_step", 1 << 60):
                        if s["kind"] == "current":
                            current += s["value"]
                        else:
                            r = philox(seed, (i, t & 0xFFFFFFFF, k, trial))
                            if ((r[0] << 32 | r[1]) >> 11) * 2.0**-53 < s["rate_hz"] * dt / 1000:
                                current += s["weight"]
                if counter[i] > 0 and not forced:
                    v[i], counter[i] = reset, counter[i] - 1
                    continue
                if not forced:
                    v[i] += current
                    for shift in config["decay_shifts"]:
                        v[i] -= v[i] >> shift
                if forced or v[i] >= config["threshold"]:
                    v[i], counter[i] = reset, refractory
                    fired.append(i)
            for i in fired:
                self.spikes.append((t, i))
                for target, w, d in out[i] if i not in muted else []:
                    slot = due.setdefault(t + d, {})
                    slot[target] = slot.get(target, 0) + w
            self.counts.append(len(fired))
            self.potential.append(list(v))
