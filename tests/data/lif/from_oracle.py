"""Writes the vectors of this folder from the reference's JSON files: python from_oracle.py ../../../../shared/oracle/lif

vectors.txt holds simulations that the reference made: parameters, edges, start, spikes, end, and every step where it
kept them. overflow.txt holds runs at the edge of int32, with what is asked of sums that leave int32 (refused, never wrapped, in no
order of summation): worked out here by exact integers, and held against the reference's verdict wherever the two rules agree. Numbers only; test_lif_oracle.c reads
them word by word.
"""
import json
import sys
from pathlib import Path

NAMES = """example r01_n20_d1 r02_n37_d8_two_shifts r04_n100_parallel_self r05_n128_mixed r07_n60_initial_refractory
r09_n45_threshold_negative r10_n30_reset_above_threshold r12_n50_long_delay r14_n33_no_edges leak_ladder_shift2
leak_ladder_shift31 refractory_drops_input threshold_equality zero_steps""".split()
LOW, HIGH = -(2**31), 2**31 - 1
# Where our rule differs from the reference's: exact sums accept what only a partial sum broke.
ACCEPTED_BY_US = {"bucket_order_positive_first"}


def numbers(word, values):
    return f"{word} {len(values)} " + " ".join(map(str, values)) + "\n"


def head(case, n_edges):
    c = case["config"]
    n = case["n_neurons"]
    return (f"case {case['name']} {n} {n_edges} {case['timesteps']}\n"
            f"params {c['threshold']} {c['reset']} {c['refractory_steps']}\n" + numbers("shifts", c["decay_shifts"])
            + numbers("potential", case["initial_potentials"] or [0] * n)
            + numbers("refractory", case["initial_refractory"] or [0] * n))


def flat(rows):
    return [x for row in rows for x in row]


def vector(case):
    text = head(case, len(case["edges"])) + numbers("edges", flat([e + [1] for e in case["edges"]]))
    text += "spikes\n" + "".join(numbers("", s).lstrip() for s in case["spikes"])
    text += numbers("final_potential", case["final_potentials"]) + numbers("final_refractory", case["final_refractory"])
    text += numbers("final_pending", flat(case["final_delay_line"]))
    text += f"digests {case['spike_digest_sha256']} {case['potentials_all_steps_sha256_i32le']} "
    text += f"{case['refractory_all_steps_sha256_u32le']}\n"
    steps = case.get("steps") or []
    text += f"steps {len(steps)}\n"
    for s in steps:
        text += numbers("v", s["potentials"]) + numbers("c", s["refractory"]) + numbers("p", flat(s["delay_line_after"]))
    return text


def exact(case):
    """Our rule: spikes of the steps before a fault, the fault (step, phase, neuron, sum) or None, V and counters."""
    c, n = case["config"], case["n_neurons"]
    v = list(case["initial_potentials"] or [0] * n)
    rest = list(case["initial_refractory"] or [0] * n)
    due, spikes = {}, []
    for t in range(case["timesteps"]):
        inputs = [due.pop((t, i), 0) for i in range(n)]
        for phase in (0, 1):
            for i in range(n):
                x = inputs[i] if phase == 0 else v[i] + inputs[i] if rest[i] == 0 else 0
                if not LOW <= x <= HIGH:
                    return spikes, (t, phase, i, x), [], []
        fired = []
        for i in range(n):
            if rest[i] > 0:
                v[i], rest[i] = c["reset"], rest[i] - 1
                continue
            v[i] += inputs[i]
            for k in c["decay_shifts"]:
                v[i] -= v[i] >> k
            if v[i] >= c["threshold"]:
                fired.append(i)
                v[i], rest[i] = c["reset"], c["refractory_steps"]
        spikes.append(fired)
        for source, target, weight, delay, count in case["edges_rle"]:
            if source in fired:
                due[t + delay, target] = due.get((t + delay, target), 0) + weight * count
    bad = [(t, 0, i, x) for (t, i), x in due.items() if not LOW <= x <= HIGH]
    return spikes, min(bad) if bad else None, v, rest


def overflow(case):
    n = case["n_neurons"]
    start = (case["initial_potentials"] or [0] * n), (case["initial_refractory"] or [0] * n)
    refused = any(not LOW <= x <= HIGH for x in start[0]) or any(not 0 <= x <= 65535 for x in start[1])
    spikes, fault, v, rest = ([], None, [], []) if refused else exact(case)
    if not refused and case["name"] not in ACCEPTED_BY_US:
        assert bool(fault) == case["rejected"], case["name"]
        if fault and case["failure"]["phase"] == "integrate":
            assert (fault[0], fault[2]) == (case["failure"]["timestep"], case["failure"]["neuron"]), case["name"]
            assert str(fault[3]) in case["failure"]["message"], case["name"]
        if not fault:
            assert (v, rest) == (case["final_potentials"], case["final_refractory"]), case["name"]
    text = head(case, sum(e[4] for e in case["edges_rle"])) + numbers("edges", flat(case["edges_rle"]))
    text += f"refused {int(refused)}\n" + f"spikes {len(spikes)}\n" + "".join(numbers("", s).lstrip() for s in spikes)
    text += "fault " + " ".join(map(str, fault or (-1, 0, 0, 0))) + "\n"
    return text + numbers("final_potential", v) + numbers("final_refractory", rest)


def main():
    here, oracle = Path(__file__).parent, Path(sys.argv[1])
    load = lambda name: json.loads((oracle / f"{name}.json").read_text())
    (here / "vectors.txt").write_text("".join(vector(load(name)) for name in NAMES) + "end\n")
    (here / "overflow.txt").write_text("".join(map(overflow, load("overflow_cases")["cases"])) + "end\n")
    integers = lambda c: all(type(x) is int for x in [c[k] for k in ("threshold", "reset", "refractory_steps")])
    rows = [c for c in load("validation")["simulation_config"]
            if {"threshold", "reset", "decay_shifts", "refractory_steps"} == set(c["input"]) and integers(c["input"])]
    text = ""
    for c in rows:
        i = c["input"]
        text += f"{int(c['accepted'])} {i['threshold']} {i['reset']} {i['refractory_steps']} "
        text += f"{len(i['decay_shifts'])} {' '.join(map(str, i['decay_shifts']))}".rstrip() + "\n"
    (here / "params.txt").write_text(f"{len(rows)}\n" + text)


main()
