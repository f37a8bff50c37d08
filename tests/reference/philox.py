"""The program's random numbers: Philox4x32-10 (Salmon et al. 2011), key = seed, counter = (node, step, stimulus, trial)."""
import functools
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


MOST_EVENTS, QUANTILES = 64, 4096


def tails(mean):
    """P(more than n events) times 2^53, rounded up, for n = 0, 1, ...; one event at most where that is rare."""
    if mean <= 0.05:
        return [math.ceil(mean * 2.0**53)]
    terms, sum_, bars = [math.exp(-mean)], 0.0, []
    for n in range(1, 2 * MOST_EVENTS):
        terms.append(terms[-1] * mean / n)
    for n in range(2 * MOST_EVENTS - 1, 0, -1):
        sum_ += terms[n]
        if n <= MOST_EVENTS:
            bars.insert(0, math.ceil(sum_ * 2.0**53))
    return [bar for bar in bars if bar > 1]


@functools.cache
def quantiles():
    """Middle values of equal shares of the standard normal, scaled to a variance of 1; integers in 2^-32."""
    values = []
    for k in range(QUANTILES // 2):
        low, high = 0.0, 8.0
        for _ in range(100):
            middle = (low + high) / 2
            low, high = (middle, high) if math.erf(middle * math.sqrt(0.5)) < (k + 0.5) / (QUANTILES // 2) else (low, middle)
        values.append(low)
    scale = 1 / math.sqrt(sum(value * value for value in values) / (QUANTILES // 2))
    positive = [math.floor(value * scale * 2.0**32 + 0.5) for value in values]
    return [-q for q in reversed(positive)] + positive


def words(seed, index, neurons, steps, trial):
    """Blocks of up to 1,000 steps: the steps and the first two words of each step and neuron."""
    neurons = np.asarray(neurons, np.uint64)
    for first in range(steps.start, steps.stop, 1000):
        block = np.arange(first, min(first + 1000, steps.stop), dtype=np.uint64)
        yield block, *philox(seed, (neurons[None, :], block[:, None], index, trial))[:2]


def noise(seed, index, neurons, steps, trial=0):
    """{step: a quantile for each neuron}."""
    return {int(k): [quantiles()[at] for at in row]
            for block, high, _ in words(seed, index, neurons, steps, trial) for k, row in zip(block, (high >> np.uint64(20)).tolist())}


def poisson(seed, index, neurons, steps, mean, trial=0):
    """{step: neurons} with a neuron as often as it has events; steps: a range."""
    table, bars = {}, tails(mean)
    for block, high, low in words(seed, index, neurons, steps, trial):
        u = (high << np.uint64(32) | low) >> np.uint64(11)
        count = sum((u < np.uint64(bar)).astype(int) for bar in bars)
        for at, i in zip(*np.nonzero(count)):
            table.setdefault(int(block[at]), []).extend([int(neurons[i])] * int(count[at, i]))
    return table
