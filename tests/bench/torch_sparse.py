"""The recurrence against PyTorch on the same cores or the same GPU: `fascicle bench recurrence`, libfascicle called on PyTorch
tensors, and loops over torch.sparse products, forward and backward, on a graph of the same size and kind of degrees, in one run.

    tests/bench/torch_sparse.py --install               # once, for the CPU: torch from PyPI into a scratch environment
    tests/bench/torch_sparse.py [--device cuda] [--fascicle build/fascicle] [--nodes 5000 --edges 524324 --batch 32 ...]

Loops: `autograd_csr` and `autograd_coo` are what a user writes, torch.sparse.mm in a loop and loss.backward(); `by_hand` does
only what the backward pass needs, with states alone saved, V and its transpose kept in CSR, and torch.sparse.sampled_addmm for
the edges. Prints one JSON object: seconds, the ratio of each to fascicle (medians, and of best times), on a GPU peak bytes.
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
    p.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
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
        E, N, B, there = len(self.src), a.nodes, a.batch, a.device
        self.value = torch.randn(E) / (E / N) ** 0.5
        self.V = csr(torch, self.dst, self.src, self.value, N).to(there)
        self.zero = csr(torch, self.dst, self.src, torch.zeros(E), N).to(there)  # the pattern in which gradients are sampled
        back = torch.argsort(self.src * N + self.dst)
        self.VT = csr(torch, self.src[back], self.dst[back], self.value[back], N).to(there)
        self.value = self.value.to(there)
        self.leak, self.bias = (0.5 + 0.05 * torch.randn(N, 1)).to(there), (0.1 * torch.randn(N, 1)).to(there)
        self.n_in, self.n_out = N // 20, N // 10
        self.drive = torch.randn(a.steps, self.n_in, B).to(there)
        self.d_out = torch.randn(a.steps, self.n_out, B).to(there)
        self.start = (0.3 * torch.randn(N, B)).to(there)

    def seconds(self, work):
        """Of one call, to the end of its work."""
        wait = self.torch.cuda.synchronize if self.a.device == "cuda" else lambda: None
        wait()
        start = time.perf_counter()
        work()
        wait()
        return time.perf_counter() - start

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
        d_leak, d_bias, d_drive = torch.zeros_like(g[:, 0]), torch.zeros_like(g[:, 0]), torch.zeros_like(self.drive)
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


    def by_hand(self):
        self.backward(self.forward())

    def autograd(self, layout):
        """What a user writes: torch.sparse.mm under autograd (the gradient of a sparse operand is sampled by the library)."""
        torch, M = self.torch, self.a.microsteps
        value = self.value.clone().requires_grad_()
        leak, bias = self.leak.clone().requires_grad_(), self.bias.clone().requires_grad_()
        if layout == "csr":
            V = torch.sparse_csr_tensor(self.V.crow_indices(), self.V.col_indices(), value, self.V.shape)
        else:
            pairs = torch.stack([self.dst, self.src]).to(value.device)
            V = torch.sparse_coo_tensor(pairs, value, self.V.shape, is_coalesced=True)
        s, loss = self.start, 0
        for k in range(self.a.steps * M):
            z = torch.sparse.mm(V, s) + bias
            z = torch.cat([z[:self.n_in] + self.drive[k // M], z[self.n_in:]])
            s = torch.lerp(s, z.tanh(), leak)
            if (k + 1) % M == 0:
                loss = loss + (s[:self.n_out] * self.d_out[k // M]).sum()
        loss.backward()

    def library(self, fascicle):
        """libfascicle on PyTorch's tensors: (forward, backward) as one call of each."""
        a = self.a
        graph = fascicle.SparseGraph(self.src, self.dst, a.nodes, range(self.n_in), range(self.n_out),
                                     None if a.device == "cpu" else "cuda")
        window = fascicle.Window(graph, a.batch, a.steps, a.microsteps, threads=a.threads if a.device == "cpu" else 0)
        arrays = (self.value, self.leak[:, 0].contiguous(), self.bias[:, 0].contiguous(), self.drive, self.start.T.contiguous())
        d_out = self.d_out.transpose(1, 2).contiguous()

        def work():
            window.forward(*arrays)
            window.backward(d_out)
        return work


def torch_seconds(a, torch):
    loop = Loop(a, torch)
    sys.path.insert(0, os.path.join(HERE, "..", "..", "jobs", "python"))
    os.environ.setdefault("LIBFASCICLE", os.path.join(os.path.dirname(os.path.abspath(a.fascicle)), "libfascicle.so"))
    import fascicle
    cases = {"library": loop.library(fascicle), "by_hand": loop.by_hand, "autograd_csr": lambda: loop.autograd("csr"),
             "autograd_coo": lambda: loop.autograd("coo")}
    if a.device == "cpu":
        del cases["autograd_coo"]  # its gradient of a sparse operand goes through a dense matrix there
    found = {"edges": len(loop.value)}
    for name, work in cases.items():
        if a.device == "cuda":
            torch.cuda.reset_peak_memory_stats()
        seconds = [loop.seconds(work) for _ in range(a.repeat + 1)][1:]
        found[name] = {"seconds": statistics.median(seconds), "best": min(seconds)}
        if a.device == "cuda":
            found[name]["peak_bytes"] = torch.cuda.max_memory_allocated()
    return found


def fascicle_seconds(a):
    command = [a.fascicle, "bench", "recurrence", "--model", "lognormal", "--json", "--device", a.device]
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
    ours, theirs = fascicle_seconds(a)["total"], torch_seconds(a, torch)
    print(json.dumps({"bench": "recurrence_torch", "device": a.device, "torch": torch.__version__, "threads": a.threads,
                      "nodes": a.nodes, "edges": theirs.pop("edges"), "batch": a.batch, "steps": a.steps, "torch_cases": theirs,
                      "fascicle": {"seconds": ours["seconds"], "best": ours["seconds_best"], "peak_bytes": ours["peak_bytes"]},
                      "ratio": {name: case["seconds"] / ours["seconds"] for name, case in theirs.items()},
                      "ratio_best": {name: case["best"] / ours["seconds_best"] for name, case in theirs.items()}}))


if __name__ == "__main__":
    main()
