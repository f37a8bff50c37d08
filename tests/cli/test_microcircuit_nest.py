#!/usr/bin/env python3
"""Every spike of the cortical microcircuit is NEST's, with constant currents and with Poisson background: the same synapses, delays, initial
potentials and events; where `jobs/setup.sh parity` could install NEST."""
# seconds: 60
import os
import subprocess
import sys
import tempfile

import graph_tools

source = os.environ["SOURCE"]
python = os.path.join(source, ".venv-parity", "bin", "python")
if not os.path.exists(python):
    print("skipped: no .venv-parity with NEST; jobs/setup.sh parity makes it")
    sys.exit(77)



def check(background, scale, ms, least):
    """Draws, simulates in both, and compares."""
    graph, config, run, peer = (os.path.join(work, f"{background}.{name}") for name in ("graph.h5", "config.json", "run", "nest.h5"))
    graph_tools.run("generate", "--kind", "microcircuit", "--scale", scale, "--background", background, "--output", graph,
                    "--config-output", config)
    graph_tools.run("simulate", graph, "--config", config, "--steps", 10 * ms, "--output", run)
    script = os.path.join(source, "tests", "reference", "microcircuit_nest.py")
    subprocess.run([python, script, graph, config, "--ms", str(ms), "--output", peer], check=True)
    compare = os.path.join(source, "jobs", "analysis", "compare.py")
    done = subprocess.run([os.environ["PYTHON"], compare, run, peer], capture_output=True, text=True)
    print(done.stdout, done.stderr)
    assert done.returncode == 0, background
    assert int(done.stdout.split("the same ")[1].split()[0]) > least, "too few spikes to say much"


with tempfile.TemporaryDirectory() as work:
    check("dc", 0.1, 300, 5000)
    check("poisson", 0.05, 200, 2000)
