#!/usr/bin/env python3
"""Every spike of the cortical microcircuit with constant currents is NEST's: the same synapses, delays and initial potentials; where
`jobs/setup.sh parity` could install NEST."""
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

with tempfile.TemporaryDirectory() as work:
    graph, config, run, peer = (os.path.join(work, name) for name in ("graph.h5", "config.json", "run", "nest.h5"))
    graph_tools.run("generate", "--kind", "microcircuit", "--scale", 0.1, "--background", "dc", "--output", graph, "--config-output", config)
    graph_tools.run("simulate", graph, "--config", config, "--steps", 3000, "--output", run)
    script = os.path.join(source, "tests", "reference", "microcircuit_nest.py")
    subprocess.run([python, script, graph, config, "--ms", "300", "--output", peer], check=True)
    compare = os.path.join(source, "jobs", "analysis", "compare.py")
    done = subprocess.run([os.environ["PYTHON"], compare, run, peer], capture_output=True, text=True)
    print(done.stdout, done.stderr)
    assert done.returncode == 0
    assert int(done.stdout.split("the same ")[1].split()[0]) > 5000, "too few spikes to say much"
