# seconds: 400
"""Bad disks, stalls and clocks: a disk that is full at each kind of write, a folder that cannot be written, a rank that stops in the
middle of a file, an HDF5 call that fails on one rank, a clock that jumps. Each ends or goes on as documented, in time, with one line."""
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.environ["SOURCE"], "tests", "endure"))
from endure_tools import check, program
from faults import OUTPUT, VERBS, WATCHDOG, Faults, contents



def on_small_disk(faults, name, size, act):
    """Work in a file system of `size` bytes; False where nothing may be mounted."""
    folder = faults.folder / name
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={max(size // 4096, 1) * 4096}", "tmpfs", str(folder)], capture_output=True)
    if mounted.returncode:
        return False
    try:
        act(folder)
    finally:
        subprocess.run(["umount", str(folder)], check=True)
    return True


def full_disk(faults, index, name, size):
    def act(folder):
        try:
            work = faults.work(name, index)
        except OSError:
            return # not even room for what was there before
        done = faults.run(index, work, {})
        faults.judge(index, work, ("write", "ENOSPC"), done, True,
                     lambda: subprocess.run(["mount", "-o", "remount,size=64m", str(folder)], check=True))
        if done.returncode:
            check(done.returncode == OUTPUT and ("No space left" in done.stderr or "are free in" in done.stderr), done.stderr)

    return on_small_disk(faults, name, size, act)


def read_only(faults, index):
    def act(folder):
        work = faults.work(folder.name, index)
        subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
        done = faults.run(index, work, {})
        said = [line for line in done.stderr.splitlines() if line.startswith("fascicle:") and "warning" not in line]
        check(done.returncode == OUTPUT and len(said) == 1 and "Read-only" in said[0], VERBS[index].name, done.returncode, done.stderr)

    return on_small_disk(faults, f"ro{index}", 8 << 20, act)


def disks(faults, draw):
    """Sizes over all that a verb writes, and over the room that it asks for beforehand."""
    closed = draw.sample(range(len(VERBS)), 5)
    for index, verb in enumerate(VERBS):
        faults.reference(index)
        written = sum(path.stat().st_size for path in (faults.folder / f"plain{index}").rglob("*") if path.is_file())
        for k in range(2 if verb.resumes and verb.ranks > 1 else 1):
            size = int(draw.uniform(0, written + (1 << 20))) + (written if verb.prepare else 0)
            if not full_disk(faults, index, f"full{index}_{k}", size):
                return False
        if index in closed:
            read_only(faults, index)
    return True


SIMULATE, TRAIN = 7, 9 # of VERBS, on two ranks


def start(faults, index, name, trouble, part, *words):
    """A verb on two ranks with trouble at files whose path holds `part`."""
    work = faults.work(name, index)
    call, kind, rank, sticky = trouble
    env = {**faults.environment(work, (call, kind), 1, rank, sticky), "FAULT_PATH": part}
    return work, program(*VERBS[index].command(faults.base, work), *words, n=2, code=None, timeout=600, env=env)


def stalls(faults):
    """Rank 1 is stopped within a checkpoint, rank 0 within the merge: the other one sees that and ends the job, with one line."""
    for index, part, call, rank in ((SIMULATE, "checkpoints/step", "open", 1), (TRAIN, "checkpoints/step", "fsync", 1),
                                    (SIMULATE, "spikes.h5", "write", 0)):
        work, done = start(faults, index, f"stall{index}{rank}", (call, "STALL", rank, False), part, "--watchdog", 5)
        check(done.returncode == WATCHDOG, "stalled in", part, done.returncode, done.stderr)
        check(done.stderr.count("fascicle: ") == 1 and "on this host is stopped" in done.stderr, done.stderr)
        program(*VERBS[index].command(faults.base, work), "--resume", "auto", n=2)
        for name in VERBS[index].files:
            check(contents(work / name) == faults.reference(index)[name], name, "after a stall")


def one_rank(faults):
    """One rank's writes into a checkpoint fail: all end."""
    for index in (SIMULATE, TRAIN):
        for rank in (0, 1):
            work, done = start(faults, index, f"one{index}{rank}", ("write", "EIO", rank, True), "checkpoints/step")
            faults.judge(index, work, ("write", "EIO"), done, True)


def clocks(faults):
    """The wall clock jumps by weeks, forth or back: no watchdog, no end of time, the same results."""
    for index in (SIMULATE, TRAIN):
        for jump in (2000000, -2000000):
            work = faults.work(f"clock{index}{jump}", index)
            done = program(*VERBS[index].command(faults.base, work), "--watchdog", 20, "--max-time", 100, n=2,
                           env={**faults.environment(work, ("none", "none"), 0, 0, False), "CLOCK_JUMP": str(jump), "CLOCK_NTH": "5"})
            check("fascicle:" not in done.stderr, done.stderr)
            for name in VERBS[index].files:
                check(contents(work / name) == faults.reference(index)[name], name, "after a jump of the clock")


with tempfile.TemporaryDirectory(prefix="fascicle_faults_") as name:
    check(VERBS[SIMULATE].name == "simulate" and VERBS[TRAIN].name == "train", "the order of the verbs")
    faults, draw = Faults(pathlib.Path(name)), random.Random(8)
    if not disks(faults, draw):
        print("full and read-only disks are left out: this account may not mount a file system")
    for part in (stalls, one_rank, clocks):
        started = time.time()
        part(faults)
        print(f"{part.__name__}: fine in {time.time() - started:.0f} s", flush=True)
