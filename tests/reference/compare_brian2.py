"""The models against Brian2: every spike (neuron and step) of random networks of 300 to 2,000 neurons over 1 s.

    python compare_brian2.py [--fascicle PROGRAM] [NET]...     a line of JSON per net; exit code 1 if one differs, 77 without Brian2

lif_exp runs in Brian2's own order of a step. So do psc_exp and psc_alpha, since NEST's refractory time ends one step later.
lif_delta needs arrivals before thresholds, another order of Brian2's slots, in which a spike enters its queue one step later.
"""
import sys

import numpy as np

try:
    import brian2 as b
except ImportError:
    print("skipped: brian2 is not installed (pip install brian2)")
    sys.exit(77)

import nets

DRIVE = {"tau_ms": 200.0, "jump_mv": 1.5}
RAISE = {"tau_ms": 100.0, "jump_mv": 0.5, "into": "threshold"}

CASES = [
    lambda: nets.fly("driven_300", 300, 30, 11, driven=10, rate_hz=100),
    lambda: nets.fly("driven_silenced_600", 600, 60, 12, driven=20, rate_hz=150, silenced=40),
    lambda: nets.fly("driven_1000", 1000, 60, 13, driven=20, rate_hz=200, strength=6),
    lambda: nets.fly("driven_rest_1000", 1000, 60, 20, driven=40, rate_hz=250, driven_rest=True),
    lambda: nets.fly("kicked_2000", 2000, 50, 14, kicked=0.2, strength=10),
    lambda: nets.fly("currents_1000", 1000, 50, 15, currents=True, strength=5),
    lambda: nets.fly("currents_silenced_1500", 1500, 40, 16, currents=True, silenced=100, strength=5),
    lambda: nets.fly("driven_2000", 2000, 80, 17, driven=40, rate_hz=100, silenced=20, strength=5),
    lambda: nets.fly("adaptation_500", 500, 50, 18, currents=True, strength=5, adaptation=DRIVE),
    lambda: nets.fly("adaptation_threshold_500", 500, 50, 19, driven=20, rate_hz=150, adaptation=RAISE),
    lambda: nets.cortex("exp_adaptation_500", "psc_exp", 500, 60, 31, taus=(1.0, 2.0), psp=0.5, adaptation=DRIVE),
    lambda: nets.cortex("alpha_adaptation_500", "psc_alpha", 500, 60, 32, taus=(1.0, 2.0), psp=0.5, adaptation=RAISE, pulses=True),
    lambda: nets.cortex("delta_adaptation_500", "lif_delta", 500, 60, 33, adaptation=DRIVE, pulses=True),
]

SYNAPSES = {
    "lif_delta": "i_syn = 0 * amp : amp",
    "lif_exp": "dg/dt = -g / tau_g : volt (unless refractory)",
    "psc_exp": "di_ex/dt = -i_ex / tau_ex : amp\n di_in/dt = -i_in / tau_in : amp",
    "psc_alpha": """di_ex/dt = (a_ex * e_1 - i_ex) / tau_ex : amp
                    da_ex/dt = -a_ex / tau_ex : amp
                    di_in/dt = (a_in * e_1 - i_in) / tau_in : amp
                    da_in/dt = -a_in / tau_in : amp""",
}
DRIVES = {"lif_delta": "0 * volt", "lif_exp": "g", "psc_exp": "(i_ex + i_in) * tau_m / c_m",
          "psc_alpha": "(i_ex + i_in) * tau_m / c_m"}
ARRIVALS = {"lif_delta": "v += weight", "lif_exp": "g += weight", "psc_exp": "i_ex += clip(weight, 0 * amp, inf * amp)\n"
            "i_in += clip(weight, -inf * amp, 0 * amp)", "psc_alpha": "a_ex += clip(weight, 0 * amp, inf * amp)\n"
            "a_in += clip(weight, -inf * amp, 0 * amp)"}


def namespace_of(neuron, adaptation):
    raises = adaptation.get("into") == "threshold"
    space = {"v_0": neuron["v_rest_mv"] * b.mV, "v_th": neuron["v_threshold_mv"] * b.mV, "v_rst": neuron["v_reset_mv"] * b.mV,
             "tau_m": neuron["tau_m_ms"] * b.ms, "tau_w": adaptation["tau_ms"] * b.ms, "e_1": np.e,
             "jump": adaptation["jump_mv"] * b.mV, "raise_w": float(raises), "drive_w": float(not raises)}
    for name, key, unit in (("tau_g", "tau_syn_ms", b.ms), ("tau_ex", "tau_syn_ex_ms", b.ms), ("tau_in", "tau_syn_in_ms", b.ms),
                            ("c_m", "c_m_pf", b.pF)):
        if key in neuron:
            space[name] = neuron[key] * unit
    return space


def neurons_of(case):
    """The group; parameters are those of the first class, but for refractory times and constant currents."""
    net, neuron = case.net, case.net.neurons[0]
    model, fly = net.model, net.model == "lif_exp"
    adapts = bool(neuron.get("adaptation"))
    space = namespace_of(neuron, neuron.get("adaptation") or {"tau_ms": 1.0, "jump_mv": 0.0})
    equations = f"""dv/dt = (v_0 - v + {DRIVES[model]} {"- drive_w * w" * adapts} + i_drive) / tau_m : volt (unless refractory)
        {SYNAPSES[model]}
        {"dw/dt = -w / tau_w : volt" * adapts}
        i_drive : volt
        rest : second"""
    group = b.NeuronGroup(
        net.n, equations, method="exact", refractory="rest", namespace=space,
        threshold=f"v {'>' if fly else '>='} v_th {'+ raise_w * w' * adapts}",
        reset="v = v_rst" + "\ng = 0 * mV" * fly + "\nw += jump" * adapts)
    of_neuron = lambda key: np.array([c.get(key, 0.0) for c in net.neurons])[net.class_of]
    group.v = (case.v_mv if case.v_mv is not None else of_neuron("v_rest_mv")) * b.mV
    group.rest = of_neuron("refractory_ms") * b.ms + (0 if fly else net.dt_ms) * b.ms
    return group, of_neuron


def currents_of(case, group, of_neuron):
    """Constant currents and pulses, as mV of drive; a list of what must run besides."""
    net = case.net
    if "c_m_pf" not in net.neurons[0]:
        return []
    to_mv = of_neuron("tau_m_ms") / of_neuron("c_m_pf")
    constant = of_neuron("i_e_pa") * to_mv
    group.i_drive = constant * b.mV
    if not case.currents:
        return []
    table = np.tile(constant, (case.steps, 1))
    for k, rows in case.currents.items():
        for who, pa in rows:
            table[k, who] += pa * to_mv[who]
    group.namespace["pulses"] = b.TimedArray(table * b.mV, dt=net.dt_ms * b.ms)
    return [group.run_regularly("i_drive = pulses(t, i)", when="start")]


def edges_of(case, group, source, some):
    """The synapses of the edges in `some`, which start at source."""
    net, unit = case.net, b.mV if case.net.model.startswith("lif_") else b.pA
    delay = net.delay - (net.model == "lif_delta")
    one = bool(len(some)) and bool((delay == delay[0]).all())
    synapses = b.Synapses(source, group, "weight : " + ("volt" if unit is b.mV else "amp"), on_pre=ARRIVALS[net.model],
                          delay=delay[0] * net.dt_ms * b.ms if one else None)
    synapses.connect(i=net.pre[some], j=net.post[some])
    signed = np.where(np.isin(net.pre, net.silenced), 0, net.weight)[some]
    synapses.weight = signed * net.weight_unit * unit
    if not one:
        synapses.delay = delay[some] * net.dt_ms * b.ms
    return synapses


def listed(table, n, dt_ms):
    """A source that fires as {step: neurons} says."""
    steps, who = zip(*[(k, i) for k, neurons in table.items() for i in neurons])
    return b.SpikeGeneratorGroup(n, np.array(who), np.array(steps) * dt_ms * b.ms)


def given_spikes(case):
    return sorted((k, i) for k, who in case.fires.items() for i in who if k < case.steps)


def network_of(case):
    """The case as a Brian2 network and the monitor of its spikes."""
    b.start_scope()
    net = case.net
    b.defaultclock.dt = net.dt_ms * b.ms
    group, of_neuron = neurons_of(case)
    from_source = np.isin(net.pre, list({i for _, i in given_spikes(case)}))
    parts = [group, *currents_of(case, group, of_neuron), edges_of(case, group, group, np.flatnonzero(~from_source))]
    if case.fires:
        source = listed(case.fires, net.n, net.dt_ms)
        parts += [source, edges_of(case, group, source, np.flatnonzero(from_source))]
    if case.events:
        source = listed({k: neurons for k, [(neurons, _)] in case.events.items()}, net.n, net.dt_ms)
        drive = b.Synapses(source, group, on_pre="v += 68.75 * mV")
        driven = sorted({i for [(neurons, _)] in case.events.values() for i in neurons})
        drive.connect(i=driven, j=driven)
        parts += [source, drive]
    monitor = b.SpikeMonitor(group)
    network = b.Network(parts + [monitor])
    if net.model == "lif_delta":
        network.schedule = ["start", "groups", "synapses", "thresholds", "resets", "end"]
    return network, monitor


def monitored(case, monitor):
    """[(step, neuron)] ascending, the given spikes among them."""
    steps = np.round(np.asarray(monitor.t / b.ms) / case.net.dt_ms).astype(int)
    return sorted(given_spikes(case) + list(zip(steps.tolist(), np.asarray(monitor.i).tolist())))


def brian2_spikes(case):
    b.prefs.codegen.target = "numpy"
    network, monitor = network_of(case)
    network.run(case.steps * case.net.dt_ms * b.ms)
    return monitored(case, monitor)


if __name__ == "__main__":
    nets.compare_all(CASES, brian2_spikes, "brian2", sys.argv[1:])
