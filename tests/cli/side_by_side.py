"""The tests of a module side by side, each in a folder of its own: starting and ending MPI is nearly all of their time, and most of that is
waiting."""
import concurrent.futures
import os
import signal
import subprocess
import tempfile
import threading
import time

here = threading.local()  # .folder: the running test's; .started: its processes, which end with it
checks = []  # one entry for each check that was made


def path(name=""):
    return os.path.join(here.folder, name)


def listens(pid, number):
    """Whether a process has a handler for a signal, or a thread that waits for it."""
    try:
        with open(f"/proc/{pid}/status") as file:
            masks = [line.split()[1] for line in file if line.startswith(("SigCgt", "SigBlk"))]
    except OSError:
        return False
    return any(int(mask, 16) >> (number - 1) & 1 for mask in masks)


def kill_session(process):
    """SIGKILL to the leader of a session and all that it started, as when a host dies."""
    while True:
        text = subprocess.run(["ps", "-o", "pid=,stat=", "-s", str(process.pid)], capture_output=True, text=True).stdout
        living = [int(line.split()[0]) for line in text.splitlines() if not line.split()[1].startswith("Z")]
        if not living:
            break
        for pid in living:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        time.sleep(0.02)
    process.wait(600)


def run_tests(module, workers=4, given=None):
    """All functions test_* of a module; the first failure ends it. Each gets given(its folder), where there is such a function."""

    def one(name):
        with tempfile.TemporaryDirectory() as here.folder:
            started, here.started = time.time(), []
            try:
                module[name](*([given(here.folder)] if given else []))
            except Exception as error:
                raise AssertionError(name) from error
            finally:
                for process in here.started:
                    kill_session(process)
            print(f"{name} passed in {time.time() - started:.1f} s", flush=True)

    names = [name for name in module if name.startswith("test_")]
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        for done in [pool.submit(one, name) for name in names]:
            done.result()
    if not checks:
        raise SystemExit("no check ran")
    print(len(checks), "checks")
