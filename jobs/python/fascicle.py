"""The recurrence of libfascicle from Python, on NumPy arrays or PyTorch tensors, on CPU or GPU.

    graph = SparseGraph(src, dst, num_nodes=N, input_nodes=nodes)     # src[e] -> dst[e], any order of edges
    window = Window(graph, batch=32, steps=64, microsteps=2)          # NumPy
    out = window.forward(edge_values, leak, bias, drives, state0)     # [T, B, n_outputs]
    gradients = window.backward(d_out)                                # of edge_values, leak, bias, drives, state0

    out = sparse_recurrence(edge_values, leak, bias, drives, state0, graph, microsteps=2)     # PyTorch, differentiable

With SparseGraph(..., device="cuda:0") everything is PyTorch tensors on that GPU, and work is queued on PyTorch's current stream.

edge_values [E] in the order of src and dst, leak [N] in (0, 1), bias [N], drives [T, n_inputs, B], state0 [B, N] or None,
all float32. src/api/fascicle.h says more. The library is found beside this file's install prefix, by the environment variable
LIBFASCICLE, or by the system's loader.
"""

import ctypes
import os
from collections import namedtuple

import numpy as np

Gradients = namedtuple("Gradients", "edge_values leak bias drives state0")


class _Spec(ctypes.Structure):
    _fields_ = [("n_nodes", ctypes.c_int64), ("n_edges", ctypes.c_int64),
                ("source", ctypes.c_void_p), ("target", ctypes.c_void_p),
                ("n_inputs", ctypes.c_int64), ("input_nodes", ctypes.c_void_p),
                ("n_outputs", ctypes.c_int64), ("output_nodes", ctypes.c_void_p),
                ("device", ctypes.c_int), ("device_index", ctypes.c_int)]


class _Shape(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int32) for name in ("batch", "steps", "microsteps", "want_gradient", "n_threads")]


class _Arrays(ctypes.Structure):
    """struct fascicle_inputs and struct fascicle_gradients"""
    _fields_ = [(name, ctypes.c_void_p) for name in Gradients._fields]


def _load():
    here = os.path.dirname(os.path.abspath(__file__))
    prefix, source = os.path.join(here, "..", "..", "..", ".."), os.path.join(here, "..", "..")
    places = [os.environ.get("LIBFASCICLE"), os.path.join(prefix, "lib", "libfascicle.so"),
              os.path.join(prefix, "lib64", "libfascicle.so"), os.path.join(source, "build", "libfascicle.so"),
              "libfascicle.so.0"]
    error = None
    for place in filter(None, places):
        try:
            library = ctypes.CDLL(place)
            break
        except OSError as e:
            error = e
    else:
        raise ImportError(f"libfascicle was not found; set LIBFASCICLE to its path ({error})")
    library.fascicle_last_error.restype = ctypes.c_char_p
    library.fascicle_workspace_bytes.restype = ctypes.c_int64
    library.fascicle_graph_destroy.argtypes = [ctypes.c_void_p]
    library.fascicle_graph_destroy.restype = None
    if library.fascicle_api_version() != 1:
        raise ImportError("libfascicle speaks another version of its interface")
    return library


_library = _load()


class Error(ValueError):
    """What libfascicle refused; `code` is an enum fascicle_result."""

    def __init__(self, code):
        super().__init__(_library.fascicle_last_error().decode())
        self.code = code


def _check(code):
    if code:
        raise Error(code)


def _ids(name, ids):
    ids = np.asarray(ids)
    if ids.ndim != 1 or (ids.size and not np.issubdtype(ids.dtype, np.integer)):
        raise ValueError(f"{name} must be a vector of whole numbers")
    return np.ascontiguousarray(ids, np.int64)


class _Host:
    """NumPy arrays."""
    code, index, stream = 0, 0, None

    def empty(self, shape, dtype=np.float32):
        return np.empty(shape, dtype)

    def floats(self, name, array, shape):
        array = np.ascontiguousarray(array, np.float32)
        if array.shape != shape:
            raise ValueError(f"{name} has shape {array.shape}, not {shape}")
        return array

    def kept(self, array, given):
        """`array` for as long as backward may need it: a copy where it is the caller's own memory."""
        return array.copy() if np.may_share_memory(array, given) else array

    def unchanged(self, inputs):
        pass  # they are copies

    def at(self, array):
        return None if array is None else array.ctypes.data


class _Gpu:
    """PyTorch tensors on one GPU."""
    code = 1

    def __init__(self, device):
        import torch
        self.torch, self.device = torch, torch.device(device)
        if self.device.type != "cuda":
            raise ValueError(f"device {device}: cpu or cuda:N is wanted")
        self.index = torch.cuda.current_device() if self.device.index is None else self.device.index
        self.device = torch.device("cuda", self.index)

    @property
    def stream(self):
        return self.torch.cuda.current_stream(self.device).cuda_stream

    def empty(self, shape, dtype=np.float32):
        kind = self.torch.uint8 if dtype == np.uint8 else self.torch.float32
        return self.torch.empty(shape, dtype=kind, device=self.device)

    def floats(self, name, array, shape):
        if not self.torch.is_tensor(array) or array.device != self.device:
            raise ValueError(f"{name} is not a tensor on {self.device}")
        if tuple(array.shape) != shape:
            raise ValueError(f"{name} has shape {tuple(array.shape)}, not {shape}")
        array = array.detach().to(self.torch.float32).contiguous()
        return array if array.data_ptr() % 16 == 0 else array.clone()

    def kept(self, array, given):
        """`array` itself; its version, which PyTorch raises with every change in place, is noted."""
        array.version_kept = array._version
        return array

    def unchanged(self, inputs):
        """ValueError where a tensor of forward was changed in place since."""
        for name, array in zip(Gradients._fields, inputs):
            if array is not None and array._version != array.version_kept:
                raise ValueError(f"{name} was changed in place between forward and backward; give forward a clone")

    def at(self, array):
        return None if array is None else array.data_ptr()


def _memory(device):
    return _Host() if device is None or str(device) == "cpu" else _Gpu(device)


class SparseGraph:
    """Edges src[e] -> dst[e] of a fixed graph, in the memory of libfascicle.

    It never changes, so that copies, deep ones too, are the graph itself. It cannot be pickled."""

    def __init__(self, src, dst, num_nodes, input_nodes=(), output_nodes=None, device=None):
        self.memory = _memory(device)
        ids = [_ids("src", src), _ids("dst", dst), _ids("input_nodes", input_nodes)]
        if ids[0].shape != ids[1].shape:
            raise ValueError(f"src has {len(ids[0])} edges, dst {len(ids[1])}")
        outputs = None if output_nodes is None else _ids("output_nodes", output_nodes)
        at = _Host().at
        spec = _Spec(num_nodes, len(ids[0]), at(ids[0]), at(ids[1]), len(ids[2]), at(ids[2]),
                     0 if outputs is None else len(outputs), at(outputs), self.memory.code, self.memory.index)
        self.handle = ctypes.c_void_p()
        _check(_library.fascicle_graph_create(ctypes.byref(spec), ctypes.byref(self.handle)))
        self.num_nodes, self.num_edges, self.num_inputs = num_nodes, len(ids[0]), len(ids[2])
        self.num_outputs = num_nodes if outputs is None else len(outputs)

    def __del__(self):
        if getattr(self, "handle", None):
            _library.fascicle_graph_destroy(self.handle)

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def __reduce_ex__(self, protocol):
        raise TypeError("a SparseGraph cannot be pickled; save src, dst and num_nodes, and build it from them again")


class Window:
    """Room for one window of `steps` steps and `batch` sequences.

    backward takes the values that forward was given: NumPy arrays are copied, GPU tensors must not
    be changed in place in between (ValueError). Each call allocates its results besides."""

    def __init__(self, graph, batch, steps, microsteps=2, want_gradient=True, threads=0):
        self.graph, self.memory = graph, graph.memory
        self.shape = _Shape(batch, steps, microsteps, want_gradient, threads)
        self.bytes = _library.fascicle_workspace_bytes(graph.handle, ctypes.byref(self.shape))
        if self.bytes < 0:
            raise Error(1)
        self.workspace = self.memory.empty((self.bytes,), np.uint8)
        self.inputs = None

    def _shapes(self):
        g, s = self.graph, self.shape
        return Gradients((g.num_edges,), (g.num_nodes,), (g.num_nodes,), (s.steps, g.num_inputs, s.batch),
                         (s.batch, g.num_nodes))

    def _out_shape(self):
        return self.shape.steps, self.shape.batch, self.graph.num_outputs

    def _arrays(self, arrays):
        return ctypes.byref(_Arrays(*map(self.memory.at, arrays)))

    def _at(self, array):
        return ctypes.c_void_p(self.memory.at(array))

    def _call(self, function, *middle):
        _check(function(self.graph.handle, ctypes.byref(self.shape), self._arrays(self.inputs), *middle,
                        self._at(self.workspace), ctypes.c_int64(self.bytes), ctypes.c_void_p(self.memory.stream)))

    def forward(self, edge_values, leak, bias, drives, state0=None):
        values = (edge_values, leak, bias, drives, state0)
        inputs = [None if value is None else self.memory.floats(name, value, shape)
                  for name, value, shape in zip(Gradients._fields, values, self._shapes())]
        if self.shape.want_gradient:
            inputs = [None if x is None else self.memory.kept(x, value) for x, value in zip(inputs, values)]
        self.inputs = Gradients(*inputs)
        out = self.memory.empty(self._out_shape())
        self.state_end = self.memory.empty(self._shapes().state0)
        self._call(_library.fascicle_forward, self._at(out), self._at(self.state_end))
        return out

    def backward(self, d_out):
        if self.inputs is None:
            raise ValueError("backward goes back over what forward did: call that first")
        self.memory.unchanged(self.inputs)
        d_out = self.memory.floats("d_out", d_out, self._out_shape())
        gradients = Gradients(*map(self.memory.empty, self._shapes()))
        self._call(_library.fascicle_backward, self._at(d_out), self._arrays(gradients))
        return gradients


def sparse_recurrence(edge_values, leak, bias, drives, state0, graph, microsteps=2):
    """The recurrence as a differentiable operation of PyTorch.

    Parameters
    ----------
    edge_values, leak, bias, drives, state0 : tensors on the graph's device
        [E], [N], [N], [T, n_inputs, B], [B, N] or None. Changed in place between forward and
        backward, they are refused by autograd, as with PyTorch's own operations.

    Returns
    -------
    tensor [T, B, n_outputs], differentiable once with respect to the first five arguments
    """
    import torch
    from torch.autograd.function import once_differentiable

    on_host = isinstance(graph.memory, _Host)

    class Recurrence(torch.autograd.Function):
        @staticmethod
        def forward(context, *inputs):
            arrays = [None if x is None else x.detach().numpy() if on_host else x.detach() for x in inputs]
            steps, _, batch = arrays[3].shape
            context.window = Window(graph, batch, steps, microsteps, any(context.needs_input_grad))
            context.save_for_backward(*inputs)
            return torch.as_tensor(context.window.forward(*arrays))

        @staticmethod
        @once_differentiable
        def backward(context, d_out):
            _ = context.saved_tensors  # autograd raises here if one of them was changed in place
            gradients = context.window.backward(d_out.numpy() if on_host else d_out)
            return tuple(torch.as_tensor(x) if needed else None
                         for x, needed in zip(gradients, context.needs_input_grad))

    return Recurrence.apply(edge_values, leak, bias, drives, state0)
