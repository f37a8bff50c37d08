"""An asynchronous error of NCCL on one of two ranks ends the job at once, with one line that names rank, host and phase."""
import os
import re
import socket
import subprocess
import sys
import time

program = os.path.join(os.path.dirname(os.environ["FASCICLE"]), "tests", "nccl_error")
if not os.path.exists(program):
    print("skipped: this build has no CUDA, so no NCCL")
    sys.exit(77)
begun = time.monotonic()
done = subprocess.run([os.environ["RANKS"], "2", program], capture_output=True, text=True, timeout=600)
took = time.monotonic() - begun
said = [line for line in done.stderr.splitlines() if line.startswith("fascicle:")]
host = re.escape(socket.gethostname())
line = rf"fascicle: rank 1 of 2 on {host}: NCCL: an exchange failed in 'the backward pass': unhandled system error \(the cable was pulled\)"
assert done.returncode != 0 and took < 30, (done.returncode, took, done.stderr)
assert len(said) == 1 and re.match(line, said[0]), done.stderr
print(f"ended after {took:.1f} s: {said[0]}")
