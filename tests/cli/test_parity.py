"""Every spike of the program on random networks equals that of Brian2 and of NEST, where `jobs/setup.sh parity` could install them.
seconds: 1500"""
import os
import subprocess
import sys

source = os.environ["SOURCE"]
python = os.path.join(source, ".venv-parity", "bin", "python")
if not os.path.exists(python):
    print("skipped: no .venv-parity with Brian2 and NEST; jobs/setup.sh parity makes it")
    sys.exit(77)

started = {}
for peer in ("brian2", "nest"):
    script = os.path.join(source, "tests", "reference", f"compare_{peer}.py")
    started[peer] = subprocess.Popen([python, script, "--fascicle", os.environ["FASCICLE"]], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
equal = True
for peer, process in started.items():
    out, err = process.communicate()
    lines = [line for line in out.splitlines() if line.startswith("{")]
    print(*lines, sep="\n")
    if process.returncode or len(lines) < 10:
        print(f"compare_{peer}.py ended with {process.returncode} after {len(lines)} nets\n{err}")
        equal = False
sys.exit(not equal)
