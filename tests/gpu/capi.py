"""libfascicle on a GPU through PyTorch tensors: against NumPy in float64, the same bits again, on a stream of its own, inside a
captured CUDA graph, several batch sizes on one graph, refusals. Run by tests/run_gpu.sh; skipped (77) without torch and a GPU.
"""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "jobs", "python"))
try:
    import numpy as np
    import torch
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)
if not torch.cuda.is_available():
    print("skipped: PyTorch sees no GPU")
    sys.exit(77)
import fascicle

DEVICE = torch.device("cuda")
checks, worst = 0, 0.0


def check(condition, text):
    global checks
    checks += 1
    if not condition:
        sys.exit(f"check failed: {text}")


def close(name, x, y):
    global worst
    x, size = x.double().cpu().numpy(), np.linalg.norm(y)
    distance = np.linalg.norm(x - y) / (size if size > 0 else 1)
    worst = max(worst, distance)
    check(distance < 1e-6, f"{name}: {distance}")


class Case:
    def __init__(self, N, E, B, T, M, n_in, n_out, seed):
        r = np.random.default_rng(seed)
        self.N, self.B, self.T, self.M = N, B, T, M
        self.src, self.dst = r.integers(0, N, E), r.integers(0, N, E)
        self.inputs, self.outputs = r.permutation(N)[:n_in], r.permutation(N)[:n_out]
        self.values = [x.astype(np.float32).astype(float) for x in (
            r.normal(size=E) / np.sqrt(E / N), r.uniform(0.02, 0.98, N), 0.3 * r.normal(size=N),
            r.normal(size=(T, n_in, B)), 0.5 * r.normal(size=(B, N)))]
        self.d_out = r.normal(size=(T, B, n_out)).astype(np.float32).astype(float)

    def graph(self):
        return fascicle.SparseGraph(self.src, self.dst, self.N, self.inputs, self.outputs, device=DEVICE)

    def tensors(self):
        return [torch.tensor(x, dtype=torch.float32, device=DEVICE) for x in self.values]

    def expected(self):
        """out and gradients in float64, by PyTorch's autograd over a dense matrix."""
        value, leak, bias, drive, s = inputs = [torch.tensor(x, requires_grad=True) for x in self.values]
        V = torch.zeros(self.N, self.N, dtype=torch.float64).index_put((torch.tensor(self.dst), torch.tensor(self.src)), value, True)
        out = []
        for k in range(self.T * self.M):
            z = (s @ V.T + bias).index_add(1, torch.tensor(self.inputs), drive[k // self.M].T)
            s = (1 - leak) * s + leak * torch.tanh(z)
            if (k + 1) % self.M == 0:
                out.append(s[:, self.outputs])
        out = torch.stack(out)
        gradients = torch.autograd.grad((out * torch.tensor(self.d_out)).sum(), inputs)
        return out.detach().numpy(), [g.numpy() for g in gradients]


def against_float64(case):
    want, gradients = case.expected()
    graph, tensors, d_out = case.graph(), case.tensors(), torch.tensor(case.d_out, dtype=torch.float32, device=DEVICE)
    window = fascicle.Window(graph, case.B, case.T, case.M)
    out = window.forward(*tensors)
    close("out", out, want)
    first = window.backward(d_out)
    for name, x, y in zip(first._fields, first, gradients):
        close(f"{name} at B={case.B}", x, y)
    check(all(torch.equal(x, y) for x, y in zip(first, window.backward(d_out))), "a second backward pass gives the same bits")
    quick = fascicle.Window(graph, case.B, case.T, case.M, want_gradient=False)
    check(torch.equal(quick.forward(*tensors), out), "without gradients: the same bits")
    return out, first


def test_stream_and_capture():
    case = Case(400, 12000, 32, 4, 2, 40, 50, 7)
    out, gradients = against_float64(case)
    graph, tensors = case.graph(), case.tensors()
    d_out = torch.tensor(case.d_out, dtype=torch.float32, device=DEVICE)
    window = fascicle.Window(graph, case.B, case.T, case.M)
    torch.cuda.synchronize()
    recorded = torch.cuda.CUDAGraph()
    with torch.cuda.graph(recorded):
        again, back = window.forward(*tensors), window.backward(d_out)
    recorded.replay()
    torch.cuda.synchronize()
    check(torch.equal(again, out) and all(map(torch.equal, back, gradients)), "inside a captured graph")
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        there = fascicle.Window(graph, case.B, case.T, case.M).forward(*tensors)
    stream.synchronize()
    check(torch.equal(there, out), "on another stream")


def test_autograd():
    case = Case(300, 5000, 8, 3, 2, 30, 40, 9)
    want, gradients = case.expected()
    inputs = [x.requires_grad_() for x in case.tensors()]
    out = fascicle.sparse_recurrence(*inputs, case.graph(), case.M)
    close("sparse_recurrence", out.detach(), want)
    (out * torch.tensor(case.d_out, device=DEVICE)).sum().backward()
    for x, y in zip(inputs, gradients):
        close("its gradient", x.grad, y)


def test_refusals():
    case = Case(50, 300, 4, 2, 1, 5, 5, 3)
    window = fascicle.Window(case.graph(), 4, 2, 1)
    for words, call in (("not a tensor on cuda", lambda: window.forward(*[x.cpu() for x in case.tensors()])),
                        ("has shape", lambda: window.forward(*case.tensors()[:4], torch.zeros(3, 50, device=DEVICE))),
                        ("FASCICLE_CUDA", lambda: fascicle.SparseGraph([0], [1], 2, device="cuda:99"))):
        try:
            call()
            check(False, f"not refused: {words}")
        except (ValueError, RuntimeError) as error:
            check(words in str(error) or "invalid device" in str(error).lower(), str(error))


for B in (1, 4, 5, 16, 32, 40, 64):
    against_float64(Case(300, 9000, B, 4, 2, 60, 70, seed=B))
against_float64(Case(1, 3, 2, 2, 1, 1, 1, seed=3))
test_stream_and_capture()
test_autograd()
test_refusals()
print(f"{checks} checks, worst error {worst:.1e}")
