"""psc_exp, psc_alpha and lif_delta against NEST's iaf_psc_exp, iaf_psc_alpha and iaf_psc_delta: every spike (neuron and step).

    python compare_nest.py [--fascicle PROGRAM] [NET]...     a line of JSON per net; exit code 1 if one differs, 77 without NEST
"""
import sys

import numpy as np

try:
    import nest
except ImportError:
    print("skipped: nest is not installed (pip install nest-simulator)")
    sys.exit(77)

import nets

CASES = [
    lambda: nets.cortex("exp_1000", "psc_exp", 1000, 100, 21),
    lambda: nets.cortex("exp_two_taus_1000", "psc_exp", 1000, 100, 22, taus=(2.0, 5.0), psp=0.3, pulses=True),
    lambda: nets.cortex("exp_equal_taus_1000", "psc_exp", 1000, 100, 23, taus=(10.0, 10.0), psp=0.05),
    lambda: nets.cortex("alpha_1000", "psc_alpha", 1000, 100, 24, taus=(0.5, 0.5)),
    lambda: nets.cortex("alpha_two_taus_1000", "psc_alpha", 1000, 100, 25, taus=(2.0, 3.0), psp=0.3, pulses=True),
    lambda: nets.cortex("alpha_equal_taus_1000", "psc_alpha", 1000, 100, 26, taus=(10.0, 10.0), psp=0.05),
    lambda: nets.cortex("delta_1000", "lif_delta", 1000, 100, 27),
    lambda: nets.cortex("delta_pulses_1000", "lif_delta", 1000, 100, 28, pulses=True, psp=0.7),
    lambda: nets.cortex("exp_classes_1000", "psc_exp", 1000, 100, 29, taus=(1.0, 2.0), psp=0.5, differing=True, pulses=True),
    lambda: nets.cortex("alpha_classes_1000", "psc_alpha", 1000, 100, 30, taus=(1.0, 2.0), psp=0.5, differing=True),
    lambda: nets.cortex("delta_classes_1000", "lif_delta", 1000, 100, 34, differing=True),
    lambda: nets.cortex("exp_half_ms_1000", "psc_exp", 1000, 100, 35, taus=(0.5, 2.0), psp=0.7, h=0.5, steps=2000, delays=(1, 9)),
    lambda: nets.cortex("alpha_half_ms_1000", "psc_alpha", 1000, 100, 36, taus=(0.5, 2.0), psp=0.6, h=0.5, steps=2000, delays=(1, 9)),
    lambda: nets.cortex("exp_fine_1000", "psc_exp", 1000, 100, 37, h=0.02, steps=20000),
    lambda: nets.cortex("exp_poisson_1000", "psc_exp", 1000, 100, 38, psp=0.7, drive_pa=(0, 0), poisson=(9000.0, 87.8)),
]
PEERS = {"psc_exp": "iaf_psc_exp", "psc_alpha": "iaf_psc_alpha", "lif_delta": "iaf_psc_delta"}
KEYS = {"E_L": "v_rest_mv", "V_th": "v_threshold_mv", "V_reset": "v_reset_mv", "tau_m": "tau_m_ms", "C_m": "c_m_pf",
        "t_ref": "refractory_ms", "I_e": "i_e_pa", "tau_syn_ex": "tau_syn_ex_ms", "tau_syn_in": "tau_syn_in_ms"}


def nest_sources(case, nodes):
    """Spike generators in place of neurons that fire at given steps; which neurons those are. Step k ends at (k + 1) dt."""
    trains = {}
    for k, who in case.fires.items():
        for i in who:
            trains.setdefault(i, []).append(round((k + 1) * case.net.dt_ms, 6))
    for i, times in trains.items():
        nodes[i] = nest.Create("spike_generator", params={"spike_times": sorted(times)}).tolist()[0]
    return set(trains)


def nest_currents(case, nodes):
    """A current of our step k is one that NEST delivers at step k - 1: on from time (k - 1) dt with a delay of one step."""
    h = case.net.dt_ms
    of = {}
    for k, rows in case.currents.items():
        for who, pa in rows:
            for i in who:
                of.setdefault(int(i), {})[k] = pa
    for i, by in of.items():
        times, values = [], []
        for k in sorted(by):
            if by.get(k - 1) != by[k]:
                times.append(k), values.append(by[k])
            if k + 1 not in by:
                times.append(k + 1), values.append(0.0)
        generator = nest.Create("step_current_generator", params={
            "amplitude_times": [round((k - 1) * h, 6) for k in times], "amplitude_values": values})
        nest.Connect(generator, nest.NodeCollection([nodes[i]]), syn_spec={"delay": h})


def nest_events(case, nodes):
    """Events into the synapse of our step k: sent at time k dt with a delay of one step."""
    h, times = case.net.dt_ms, {}
    for k, rows in case.synaptic.items():
        for who, weight in rows:
            for i in who:
                times.setdefault((i, weight), []).append(round(k * h, 6))
    for (i, weight), at in times.items():
        generator = nest.Create("spike_generator", params={"spike_times": sorted(at)})
        nest.Connect(generator, nest.NodeCollection([nodes[i]]), syn_spec={"delay": h, "weight": weight})


def build(case, threads=1):
    """The case in NEST; its neurons and the recorder of their spikes."""
    nest.ResetKernel()
    nest.verbosity = nest.VerbosityLevel.ERROR
    net = case.net
    nest.local_num_threads = threads
    nest.resolution = net.dt_ms
    neurons = nest.Create(PEERS[net.model], net.n)
    for c, keys in enumerate(net.neurons):
        mine = neurons[np.flatnonzero(net.class_of == c).tolist()]
        mine.set({theirs: keys[ours] for theirs, ours in KEYS.items() if ours in keys})
    neurons.V_m = (case.v_mv if case.v_mv is not None else np.array([c["v_rest_mv"] for c in net.neurons])[net.class_of]).tolist()
    nodes = neurons.tolist()
    sources = nest_sources(case, nodes)
    nest_currents(case, nodes)
    nest_events(case, nodes)
    nodes = np.array(nodes)
    for from_device in (False, True):
        some = np.flatnonzero((np.isin(net.pre, list(sources)) == from_device) & ~np.isin(net.pre, net.silenced))
        if len(some):
            nest.Connect(nodes[net.pre[some]], nodes[net.post[some]], "one_to_one", {
                "weight": net.weight[some] * net.weight_unit, "delay": np.round(net.delay[some] * net.dt_ms, 6)})
    recorder = nest.Create("spike_recorder")
    nest.Connect(neurons, recorder)
    return neurons, recorder


def recorded(case, neurons, recorder):
    """[(step, neuron)] ascending, the given spikes among them."""
    steps = np.round(recorder.events["times"] / case.net.dt_ms).astype(int) - 1
    index = recorder.events["senders"] - neurons[0].global_id
    given = [(k, i) for k, who in case.fires.items() for i in who if k < case.steps]
    return sorted(given + list(zip(steps.tolist(), index.tolist())))


def nest_spikes(case):
    neurons, recorder = build(case)
    nest.Simulate(case.steps * case.net.dt_ms)
    return recorded(case, neurons, recorder)


if __name__ == "__main__":
    nets.compare_all(CASES, nest_spikes, "nest", sys.argv[1:])
