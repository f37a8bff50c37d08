"""lif_exp against Brian2: every spike (neuron and step) of random networks of 300 to 2,000 neurons over 1 s.

    python compare_brian2.py [NET]...     one line of JSON per net; exit code 1 if one differs, 77 without Brian2
"""
import sys

import numpy as np

try:
    import brian2 as b
except ImportError:
    print("skipped: brian2 is not installed (pip install brian2)")
    sys.exit(77)

import nets

CASES = [
    lambda: nets.fly("driven_300", 300, 30, 11, driven=10, rate_hz=100),
    lambda: nets.fly("driven_silenced_600", 600, 60, 12, driven=20, rate_hz=150, silenced=40),
    lambda: nets.fly("driven_1000", 1000, 60, 13, driven=20, rate_hz=200, strength=6),
    lambda: nets.fly("kicked_2000", 2000, 50, 14, kicked=0.2, strength=10),
    lambda: nets.fly("currents_1000", 1000, 50, 15, currents=True, strength=5),
    lambda: nets.fly("currents_silenced_1500", 1500, 40, 16, currents=True, silenced=100, strength=5),
    lambda: nets.fly("driven_2000", 2000, 80, 17, driven=40, rate_hz=100, silenced=20, strength=5),
    lambda: nets.fly("adaptation_500", 500, 50, 18, currents=True, strength=5, adaptation={"tau_ms": 200.0, "jump_mv": 1.5}),
    lambda: nets.fly("adaptation_threshold_500", 500, 50, 19, driven=20, rate_hz=150,
                     adaptation={"tau_ms": 100.0, "jump_mv": 0.5, "into": "threshold"}),
]

EQUATIONS = """
dv/dt = (v_0 - v + g - drive_w * w + i_drive) / tau_m : volt (unless refractory)
dg/dt = -g / tau_g : volt (unless refractory)
dw/dt = -w / tau_w : volt
i_drive : volt
rest : second
"""


def brian2_spikes(case):
    """The case in Brian2, in its order of groups, thresholds, synapses, resets; [(step, neuron)] ascending."""
    b.start_scope()
    b.prefs.codegen.target = "numpy"
    b.defaultclock.dt = case.net.dt_ms * b.ms
    net, neuron = case.net, case.net.neurons[0]
    adaptation = neuron.get("adaptation", {"tau_ms": 1.0, "jump_mv": 0.0})
    raises = adaptation.get("into") == "threshold"
    space = {"v_0": neuron["v_rest_mv"] * b.mV, "v_th": neuron["v_threshold_mv"] * b.mV, "v_rst": neuron["v_reset_mv"] * b.mV,
             "tau_m": neuron["tau_m_ms"] * b.ms, "tau_g": neuron["tau_syn_ms"] * b.ms, "tau_w": adaptation["tau_ms"] * b.ms,
             "jump": adaptation["jump_mv"] * b.mV, "raise_w": float(raises), "drive_w": float(not raises)}
    group = b.NeuronGroup(net.n, EQUATIONS, method="exact", threshold="v > v_th + raise_w * w",
                          reset="v = v_rst; g = 0 * mV; w += jump", refractory="rest", namespace=space)
    of_neuron = lambda key: np.array([c.get(key, 0.0) for c in net.neurons])[net.class_of]
    group.v = (case.v_mv if case.v_mv is not None else of_neuron("v_rest_mv")) * b.mV
    group.rest = of_neuron("refractory_ms") * b.ms
    if any("i_e_pa" in c for c in net.neurons):
        group.i_drive = of_neuron("i_e_pa") * of_neuron("tau_m_ms") / of_neuron("c_m_pf") * b.mV
    synapses = b.Synapses(group, group, "weight : volt", on_pre="g += weight", namespace=space)
    synapses.connect(i=net.pre, j=net.post)
    weight = np.where(np.isin(net.pre, net.silenced), 0, net.weight)
    synapses.weight = weight * net.weight_unit * b.mV
    synapses.delay = net.delay * net.dt_ms * b.ms
    monitor = b.SpikeMonitor(group)
    parts = [group, synapses, monitor]
    if case.events:
        steps, who = zip(*[(k, i) for k, [(neurons, _)] in case.events.items() for i in neurons])
        source = b.SpikeGeneratorGroup(net.n, np.array(who), np.array(steps) * net.dt_ms * b.ms)
        drive = b.Synapses(source, group, on_pre="v += 68.75 * mV")
        drive.connect(j="i")
        parts += [source, drive]
    b.Network(parts).run(case.steps * net.dt_ms * b.ms)
    steps = np.round(np.asarray(monitor.t / b.ms) / net.dt_ms).astype(int)
    return sorted(zip(steps.tolist(), np.asarray(monitor.i).tolist()))


def main(names):
    equal = True
    for make in CASES:
        case = make()
        if not names or case.name in names:
            equal &= nets.report(case, brian2_spikes(case), "brian2")
    sys.exit(not equal)


if __name__ == "__main__":
    main(sys.argv[1:])
