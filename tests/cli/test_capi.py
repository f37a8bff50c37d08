"""libfascicle through its C interface: against NumPy in float64, that against finite differences; refusals; a program in
C and one in C++ build with the header and run."""

import copy
import os
import pickle
import subprocess
import sys
import tempfile

os.environ["LIBFASCICLE"] = os.path.join(os.path.dirname(os.environ["FASCICLE"]), "libfascicle.so")
sys.path.insert(0, os.path.join(os.environ["SOURCE"], "jobs", "python"))
try:
    import numpy as np
except ImportError:
    print("skipped: this Python has no numpy")
    sys.exit(77)
import fascicle

checks = 0


def check(condition, text):
    global checks
    checks += 1
    if not condition:
        sys.exit(f"check failed: {text}")


class Case:
    """Edges in random order, with self-loops and parallel edges; inputs and outputs in random order."""

    def __init__(self, N, E, B, T, M, n_in, n_out, seed):
        r = np.random.default_rng(seed)
        self.N, self.E, self.B, self.T, self.M = N, E, B, T, M
        self.src, self.dst = r.integers(0, N, E), r.integers(0, max(N - 1, 1), E)  # the last node is nobody's target
        self.inputs = r.permutation(N)[:n_in]
        self.outputs = None if n_out is None else r.permutation(N)[:n_out]
        self.values = [x.astype(np.float32).astype(float) for x in (
            r.normal(size=E) / np.sqrt(max(E / N, 1)), r.uniform(0.02, 0.98, N), 0.3 * r.normal(size=N),
            r.normal(size=(T, n_in, B)), 0.5 * r.normal(size=(B, N)))]
        self.d_out = r.normal(size=(T, B, N if n_out is None else n_out)).astype(np.float32).astype(float)

    def graph(self):
        return fascicle.SparseGraph(self.src, self.dst, self.N, self.inputs, self.outputs)


def matrix(case, value):
    V = np.zeros((case.N, case.N))
    np.add.at(V, (case.dst, case.src), value)
    return V


def model_forward(case, value, leak, bias, drive, state0):
    V, s, states, proposals = matrix(case, value), state0, [state0], []
    for k in range(case.T * case.M):
        z = s @ V.T + bias
        z[:, case.inputs] += drive[k // case.M].T
        proposals.append(np.tanh(z))
        s = (1 - leak) * s + leak * proposals[-1]
        states.append(s)
    out = np.stack([states[(t + 1) * case.M] for t in range(case.T)])
    return out if case.outputs is None else out[:, :, case.outputs], states, proposals


def model_backward(case, states, proposals):
    value, leak, _, drive, state0 = case.values
    V, g = matrix(case, value), np.zeros_like(state0)
    grad = [np.zeros_like(x) for x in case.values]
    for k in reversed(range(case.T * case.M)):
        if (k + 1) % case.M == 0:
            if case.outputs is None:
                g = g + case.d_out[k // case.M]
            else:
                g[:, case.outputs] += case.d_out[k // case.M]
        q = g * leak * (1 - proposals[k] ** 2)
        grad[0] += np.einsum("be,be->e", q[:, case.dst], states[k][:, case.src])
        grad[1] += (g * (proposals[k] - states[k])).sum(0)
        grad[2] += q.sum(0)
        grad[3][k // case.M] += q[:, case.inputs].T
        g = (1 - leak) * g + q @ V
    grad[4] = g
    return grad


def distance(x, y):
    size = np.linalg.norm(y)
    return np.linalg.norm(x - y) / (size if size > 0 else 1)


def against_model(case):
    want, states, proposals = model_forward(case, *case.values)
    gradients = model_backward(case, states, proposals)
    window = fascicle.Window(case.graph(), case.B, case.T, case.M)
    out = window.forward(*case.values)
    check(distance(out, want) < 1e-6, f"out: {distance(out, want)}")
    check(distance(window.state_end, states[-1]) < 1e-6, "state_end")
    first = window.backward(case.d_out)
    for name, x, y in zip(first._fields, first, gradients):
        check(distance(x, y) < 1e-6, f"{name}: {distance(x, y)} at B={case.B} M={case.M}")
    again = window.backward(case.d_out)
    check(all(np.array_equal(x, y) for x, y in zip(first, again)), "a second backward pass gives the same bits")
    for threads in (1, 3):
        other = fascicle.Window(case.graph(), case.B, case.T, case.M, threads=threads)
        check(np.array_equal(other.forward(*case.values), out), "out does not depend on threads")
        check(all(np.array_equal(x, y) for x, y in zip(first, other.backward(case.d_out))), "nor do gradients")


def finite_differences(case):
    """The NumPy model, which the library is held against, is right."""
    want, states, proposals = model_forward(case, *case.values)
    gradients = model_backward(case, states, proposals)
    r, h = np.random.default_rng(1), 1e-5
    for which, gradient in enumerate(gradients):
        for at in r.choice(gradient.size, min(gradient.size, 60), replace=False):
            loss = []
            for step in (h, -h):
                moved = [x.copy() for x in case.values]
                moved[which].flat[at] += step
                loss.append((model_forward(case, *moved)[0] * case.d_out).sum())
            check(abs((loss[0] - loss[1]) / (2 * h) - gradient.flat[at]) < 1e-6 * (1 + abs(gradient.flat[at])),
                  f"finite difference {which}")


def refused(code, words, call):
    try:
        call()
    except fascicle.Error as error:
        check(error.code == code and all(word in str(error) for word in words), f"{error} (code {error.code})")
        return
    check(False, f"not refused: {words}")


def test_refusals():
    G = fascicle.SparseGraph
    refused(1, ["edge 1", "7"], lambda: G([0, 7], [1, 1], 3))
    refused(1, ["edge 0", "target", "-1"], lambda: G([0], [-1], 3))
    refused(1, ["input_nodes[1]", "twice"], lambda: G([0], [1], 3, [2, 2]))
    refused(1, ["output_nodes[0]", "3"], lambda: G([0], [1], 3, [2], [3]))
    refused(1, ["n_nodes"], lambda: G([], [], 0))
    graph = G([0], [1], 3)
    refused(1, ["batch 0"], lambda: fascicle.Window(graph, 0, 1))
    refused(1, ["size"], lambda: fascicle.Window(graph, 2**31 - 1, 2**31 - 1, 1))
    window = fascicle.Window(graph, 2, 3, 1, want_gradient=False)
    one = [1.0], [0.5] * 3, [0] * 3, np.zeros((3, 0, 2)), None
    window.forward(*one)
    refused(1, ["want_gradient"], lambda: window.backward(np.zeros((3, 2, 3))))
    window.bytes -= 64
    refused(3, [str(window.bytes)], lambda: window.forward(*one))


def test_python_refusals():
    """What would be cut to whole numbers or fail without a word of why."""
    graph = fascicle.SparseGraph([0], [1], 3)
    for words, call in (("src", lambda: fascicle.SparseGraph([0.5], [1], 3)),
                        ("src has 1", lambda: fascicle.SparseGraph([0], [1, 2], 3)),
                        ("forward", lambda: fascicle.Window(graph, 1, 1).backward(np.zeros((1, 1, 3))))):
        try:
            call()
            check(False, f"not refused: {words}")
        except ValueError as error:
            check(words in str(error), str(error))


def test_no_gpu():
    """A graph on a GPU that is not there is refused, whether the library was built with CUDA or not."""
    spec = fascicle._Spec(2, 0, None, None, 0, None, 0, None, 1, 99)
    handle = fascicle.ctypes.c_void_p()
    code = fascicle._library.fascicle_graph_create(fascicle.ctypes.byref(spec), fascicle.ctypes.byref(handle))
    check(code == 4 and not handle and b"CUDA" in fascicle._library.fascicle_last_error(), f"code {code}")


def gradients_agree(case, change, call):
    """call(window) after `change` has been made to the caller's arrays gives the gradients of forward's values."""
    want = model_backward(case, *model_forward(case, *case.values)[1:])
    given = [np.ascontiguousarray(x, np.float32) for x in case.values]
    window = fascicle.Window(case.graph(), case.B, case.T, case.M)
    window.forward(*given)
    change(given)
    for name, x, y in zip(fascicle.Gradients._fields, call(window), want):
        check(distance(x, y) < 1e-6, f"{name} after a change in place: {distance(x, y)}")


def test_changed_arrays():
    """What the caller writes into the arrays between forward and backward does not reach the gradients."""
    case = Case(40, 200, 3, 4, 2, 5, None, seed=3)

    def scale(arrays):
        for array in arrays:
            array *= 0.8

    gradients_agree(case, scale, lambda window: window.backward(case.d_out))


def test_copies():
    """A graph never changes: its copies are itself. Pickle is refused in one line."""
    graph = fascicle.SparseGraph([0], [1], 3)
    check(copy.copy(graph) is graph and copy.deepcopy({"graph": graph})["graph"] is graph, "copies of a graph")
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        try:
            pickle.dumps(graph, protocol)
            check(False, "a graph was pickled")
        except TypeError as error:
            check("src, dst and num_nodes" in str(error) and "\n" not in str(error), str(error))


def torch_case(torch):
    case = Case(40, 200, 3, 4, 2, 5, 7, seed=4)
    tensors = [torch.tensor(x, dtype=torch.float32, requires_grad=True) for x in case.values]
    want = model_backward(case, *model_forward(case, *case.values)[1:])
    return case, tensors, want, torch.tensor(case.d_out, dtype=torch.float32)


def test_torch():
    """Gradients through autograd; a tensor that was changed in place is refused, whichever it is."""
    try:
        import torch
    except ImportError:
        print("without PyTorch: its part is skipped")
        return
    case, tensors, want, d_out = torch_case(torch)
    fascicle.sparse_recurrence(*tensors, case.graph(), case.M).backward(d_out)
    for name, x, y in zip(fascicle.Gradients._fields, tensors, want):
        check(distance(x.grad.numpy(), y) < 1e-6, f"torch: {name}")
    for which, name in enumerate(fascicle.Gradients._fields):
        case, tensors, _, d_out = torch_case(torch)
        out = fascicle.sparse_recurrence(*tensors, case.graph(), case.M)
        with torch.no_grad():
            tensors[which].mul_(0.8)
        try:
            out.backward(d_out)
            check(False, f"{name} was changed in place, and nothing said so")
        except RuntimeError as error:
            check("inplace" in str(error), str(error))
    model = torch.nn.Module()
    model.graph = case.graph()
    check(copy.deepcopy(model).graph is model.graph, "deepcopy of a module")


def test_no_edges():
    window = fascicle.Window(fascicle.SparseGraph([], [], 4), 2, 50, 1)
    bias = np.array([0.1, -0.4, 0.9, 0])
    out = window.forward([], [0.5] * 4, bias, np.zeros((50, 0, 2)), np.ones((2, 4)))
    check(np.abs(out[-1] - np.tanh(bias)).max() < 1e-6, "nodes without edges decay to tanh(b)")
    check(all(not x.any() for x in window.backward(np.zeros((50, 2, 4)))), "no gradient in, none out")


PROGRAM = """
#include <fascicle.h>
#include <stdio.h>
#include <stdlib.h>
int main(void) {
  int64_t source[] = {0}, target[] = {1};
  struct fascicle_graph_spec spec = {0};
  struct fascicle_shape shape = {1, 1, 1, 0, 1};
  struct fascicle_graph *graph;
  float v[] = {2}, a[] = {.5f, .5f}, b[] = {0, 0}, s[] = {1, 0}, out[2];
  spec.n_nodes = 2, spec.n_edges = 1, spec.source = source, spec.target = target;
  if (fascicle_graph_create(&spec, &graph)) return puts(fascicle_last_error());
  int64_t bytes = fascicle_workspace_bytes(graph, &shape);
  void *workspace = malloc((size_t)bytes);
  struct fascicle_inputs inputs = {v, a, b, 0, s};
  int code = fascicle_forward(graph, &shape, &inputs, out, 0, workspace, bytes, 0);
  printf("%d %.6f %.6f\\n", code, out[0], out[1]);
  free(workspace);
  fascicle_graph_destroy(graph);
  return 0;
}
"""


def test_program():
    with tempfile.TemporaryDirectory() as folder:
        build = os.path.dirname(os.environ["FASCICLE"])
        for compiler, name in (("cc", "p.c"), ("c++", "p.cc")):
            source = os.path.join(folder, name)
            with open(source, "w") as file:
                file.write(PROGRAM)
            subprocess.run([compiler, "-Wall", "-Werror", "-I" + os.path.join(os.environ["SOURCE"], "src", "api"), source,
                            "-L" + build, "-lfascicle", "-Wl,-rpath," + build, "-o", folder + "/p"], check=True)
            said = subprocess.run([folder + "/p"], capture_output=True, text=True, check=True).stdout
            check(said == f"0 0.500000 {0.5 * np.tanh(2):.6f}\n", said)


finite_differences(Case(50, 300, 3, 3, 2, 10, 12, seed=1))
for B in (1, 4, 32, 40):
    for M in (1, 2, 3):
        against_model(Case(300, 9000, B, 4, M, 60, 70, seed=10 * B + M))
against_model(Case(64, 500, 5, 3, 2, 0, None, seed=2))
against_model(Case(1, 3, 2, 2, 1, 1, 1, seed=3))
test_refusals()
test_python_refusals()
test_no_gpu()
test_no_edges()
test_changed_arrays()
test_copies()
test_torch()
test_program()
print(f"{checks} checks")
