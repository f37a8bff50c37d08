"""The program's random numbers: Philox4x32-10 (Salmon et al. 2011), key = seed, counter = (node, step, stimulus, trial)."""
import math

import numpy as np


def philox(key, counter):
    """Four words of 32 bits (uint64 arrays) of each counter, itself four words that broadcast."""
    mask, shift = np.uint64(0xffffffff), np.uint64(32)
    c = [np.asarray(word, np.uint64) for word in counter]
    k = [key & 0xffffffff, key >> 32]
    for _ in range(10):
        a, b = np.uint64(0xD2511F53) * c[0], np.uint64(0xCD9E8D57) * c[2]
        c = [(b >> shift) ^ c[1] ^ np.uint64(k[0]), b & mask, (a >> shift) ^ c[3] ^ np.uint64(k[1]), a & mask]
        k = [(k[0] + 0x9E3779B9) & 0xffffffff, (k[1] + 0xBB67AE85) & 0xffffffff]
    return c


def tails(mean):
    """P(more than n events) times 2^53 for n = 0, 1, ...; one event at most where that is rare."""
    if mean <= 0.05:
        return [math.ceil(mean * 2.0**53)]
    bars, term, below = [], math.exp(-mean), 0.0
    for n in range(1000):
        below += term
        bar = math.ceil((1.0 - below) * 2.0**53)
        if bar <= 0:
            break
        bars.append(bar)
        term *= mean / (n + 1)
    return bars


def poisson(seed, index, neurons, steps, mean, trial=0):
    """{step: neurons} with a neuron as often as it has events; steps: a range."""
    neurons = np.asarray(neurons, np.uint64)
    table = {}
    bars = tails(mean)
    for first in range(steps.start, steps.stop, 1000):
        block = np.arange(first, min(first + 1000, steps.stop), dtype=np.uint64)
        high, low, _, _ = philox(seed, (neurons[None, :], block[:, None], index, trial))
        u = (high << np.uint64(32) | low) >> np.uint64(11)
        count = sum((u < np.uint64(bar)).astype(int) for bar in bars)
        for at, i in zip(*np.nonzero(count)):
            table.setdefault(int(block[at]), []).extend([int(neurons[i])] * int(count[at, i]))
    return table
