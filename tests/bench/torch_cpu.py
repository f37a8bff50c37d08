"""The recurrence against PyTorch on the same cores: `fascicle bench recurrence` and a loop over torch.sparse CSR products,
forward and backward, on a graph of the same size and kind of degrees, in one run.

    tests/bench/torch_cpu.py --install                  # once: torch from PyPI into a scratch environment
    tests/bench/torch_cpu.py [--fascicle build/fascicle] [--nodes 5000 --edges 524324 --batch 32 --steps 64 --microsteps 2]

Two loops over torch.sparse CSR: `autograd` is what a user writes, torch.sparse.mm in a loop and loss.backward(); `by_hand` does
only what the backward pass needs, with states alone saved, V and its transpose kept in CSR, and torch.sparse.sampled_addmm for
the edges. Prints one JSON object with the ratio of each to fascicle, of medians and of best times.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
SCRATCH = os.path.join(os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache")), "fascicle", "torch")


def parse():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--install", action="store_true", help="make the scratch environment and leave")
    p.add_argument("--environment", default=SCRATCH, help="where it is (%(default)s)")
    p.add_argument("--fascicle", default=os.path.join(HERE, "..", "..", "build", "fascicle"))
    for name, value in (("nodes", 5000), ("edges", 524324), ("batch", 32), ("steps", 64), ("microsteps", 2),
                        ("threads", len(os.sched_getaffinity(0))), ("repeat", 5)):
        p.add_argument("--" + name, type=int, default=value)
    return p.parse_args()


def install(folder):
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    subprocess.run([os.path.join(folder, "bin", "pip"), "install", "--quiet", "torch", "numpy"], check=True)
    print(f"torch is in {folder}")


def enter(folder):
    """Go on in the environment that has torch."""
    try:
        import torch  # noqa: F401
        return
    except ImportError:
        python = os.path.join(folder, "bin", "python")
    if not os.path.exists(python) or os.path.samefile(python, sys.executable) and sys.prefix == folder:
        sys.exit(f"torch is not here; run {sys.argv[0]} --install (about 3 GB into {folder})")
    os.execv(python, [python] + sys.argv)


def make_graph(a, torch):
    """Lognormal in-degrees, sources by lognormal chances, no pair twice; rows sorted. As many draws as leave a.edges."""
    g = torch.Generator().manual_seed(1)
    weight = torch.exp(0.63 * torch.randn(a.nodes, generator=g).double())
    chance = torch.exp(0.8 * torch.randn(a.nodes, generator=g))
    wanted = a.edges
    for _ in range(4):
        dst = torch.repeat_interleave(torch.arange(a.nodes), torch.round(weight / weight.sum() * wanted).long())
        src = torch.multinomial(chance, len(dst), replacement=True, generator=g)
        pair = torch.unique(dst * a.nodes + src)
        wanted = int(wanted * a.edges / len(pair))
    return pair % a.nodes, pair // a.nodes


def csr(torch, rows, cols, values, n):
    ptr = torch.zeros(n + 1, dtype=torch.long)
    ptr[1:] = torch.cumsum(torch.bincount(rows, minlength=n), 0)
    return torch.sparse_csr_tensor(ptr, cols, values, (n, n))


class Loop:
    def __init__(self, a, torch):
        self.a, self.torch = a, torch
        self.src, self.dst = make_graph(a, torch)
        E, N, B = len(self.src), a.nodes, a.batch
        self.value = torch.randn(E) / (E / N) ** 0.5
        self.V = csr(torch, self.dst, self.src, self.value, N)
        self.zero = csr(torch, self.dst, self.src, torch.zeros(E), N)  # the pattern in which gradients are sampled
        back = torch.argsort(self.src * N + self.dst)
        self.VT = csr(torch, self.src[back], self.dst[back], self.value[back], N)
        self.leak, self.bias = 0.5 + 0.05 * torch.randn(N, 1), 0.1 * torch.randn(N, 1)
        self.n_in, self.n_out = N // 20, N // 10
        self.drive, self.d_out = torch.randn(a.steps, self.n_in, B), torch.randn(a.steps, self.n_out, B)
        self.start = 0.3 * torch.randn(N, B)

    def forward(self):
        torch, states = self.torch, [self.start]
        for k in range(self.a.steps * self.a.microsteps):
            s = states[-1]
            z = torch.sparse.mm(self.V, s).add_(self.bias)
            z[:self.n_in] += self.drive[k // self.a.microsteps]
            states.append(torch.lerp(s, z.tanh_(), self.leak))
        return states

    def backward(self, states):
        torch, M = self.torch, self.a.microsteps
        g, d_value = torch.zeros_like(self.start), torch.zeros_like(self.value)
        d_leak, d_bias, d_drive = torch.zeros(len(g)), torch.zeros(len(g)), torch.zeros_like(self.drive)
        for k in reversed(range(self.a.steps * M)):
            s, after = states[k], states[k + 1]
            if (k + 1) % M == 0:
                g[:self.n_out] += self.d_out[k // M]
            p = (after - (1 - self.leak) * s) / self.leak
            q = g * self.leak * (1 - p * p)
            d_bias += q.sum(1)
            d_leak += (g * (p - s)).sum(1)
            d_drive[k // M] += q[:self.n_in]
            d_value += torch.sparse.sampled_addmm(self.zero, q, s.T).values()
            g = (1 - self.leak) * g + torch.sparse.mm(self.VT, q)
        return d_value, d_leak, d_bias, d_drive, g


def autograd_seconds(loop, torch):
    """What a user writes: torch.sparse.mm under autograd (the gradient of a sparse operand is sampled by the library)."""
    value = loop.value.clone().requires_grad_()
    leak, bias = loop.leak.clone().requires_grad_(), loop.bias.clone().requires_grad_()
    V = torch.sparse_csr_tensor(loop.V.crow_indices(), loop.V.col_indices(), value, loop.V.shape)
    start = time.perf_counter()
    s, loss = loop.start, 0
    for k in range(loop.a.steps * loop.a.microsteps):
        z = torch.sparse.mm(V, s) + bias
        z = torch.cat([z[:loop.n_in] + loop.drive[k // loop.a.microsteps], z[loop.n_in:]])
        s = torch.lerp(s, z.tanh(), leak)
        if (k + 1) % loop.a.microsteps == 0:
            loss = loss + (s[:loop.n_out] * loop.d_out[k // loop.a.microsteps]).sum()
    loss.backward()
    return time.perf_counter() - start


def torch_seconds(a, torch):
    loop, forward, backward, autograd = Loop(a, torch), [], [], []
    for _ in range(a.repeat + 1):
        t = time.perf_counter()
        states = loop.forward()
        middle = time.perf_counter()
        loop.backward(states)
        forward.append(middle - t)
        backward.append(time.perf_counter() - middle)
        autograd.append(autograd_seconds(loop, torch))
    total = [f + b for f, b in zip(forward[1:], backward[1:])]
    return {"edges": len(loop.value), "forward": statistics.median(forward[1:]),
            "backward": statistics.median(backward[1:]), "by_hand": statistics.median(total), "by_hand_best": min(total),
            "autograd": statistics.median(autograd[1:]), "autograd_best": min(autograd[1:])}


def fascicle_seconds(a):
    command = [a.fascicle, "bench", "recurrence", "--model", "lognormal", "--json", "--device", "cpu"]
    for name in ("nodes", "edges", "batch", "steps", "microsteps", "threads"):
        command += ["--" + name, str(getattr(a, name))]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    return {line["case"]: line for line in map(json.loads, lines)}


def main():
    a = parse()
    if a.install:
        return install(a.environment)
    enter(a.environment)
    import warnings

    import torch
    warnings.filterwarnings("ignore", "Sparse")
    torch.set_num_threads(a.threads)
    ours, theirs = fascicle_seconds(a), torch_seconds(a, torch)
    print(json.dumps({"bench": "recurrence_torch", "torch": torch.__version__, "threads": a.threads, "nodes": a.nodes,
                      "edges": a.edges, "batch": a.batch, "torch_seconds": theirs,
                      "fascicle_seconds": {c: line["seconds"] for c, line in ours.items()},
                      "ratio": {name: theirs[name] / ours["total"]["seconds"] for name in ("autograd", "by_hand")},
                      "ratio_best": {name: theirs[name + "_best"] / ours["total"]["seconds_best"]
                                     for name in ("autograd", "by_hand")}}))


if __name__ == "__main__":
    main()
