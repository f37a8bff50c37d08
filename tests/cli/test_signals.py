# seconds: 200
"""Verbs that cannot go on later end at once when asked to: with one line and code 1, and nothing unfinished is left. A rank
of convert that is stopped is seen by the others."""
import os
import random
import signal
import subprocess
import time

from side_by_side import here, path, run_tests
from sim_tools import check, fascicle, ranks, ranks_of, run, simulate, wait_for

EDGES = 600000


def start(words, n):
    with open(path("log"), "w") as log:
        process = subprocess.Popen([ranks, str(n), fascicle, *map(str, words)], stderr=log, stdout=subprocess.DEVNULL, start_new_session=True,
                                   preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)) # a shell's background ignores it
    here.started.append(process)
    return process


def good(*words):
    code, out, err = run(*words)
    check(code == 0, words, err)


def make_tables():
    good("generate", "--nodes", 30000, "--edges", EDGES, "--no-order", "--output", path("g.h5"))
    good("export", path("g.h5"), "--format", "csv", "--output", path("e.csv"))


def names():
    return {os.path.join(folder, name) for folder, folders, files in os.walk(path()) for name in folders + files} - {path("log")}


def clear(before):
    for name in sorted(names() - before, reverse=True):
        os.rmdir(name) if os.path.isdir(name) else os.remove(name)


def ends(words, n, draw, whole):
    """Whether the signal came in time: when the verb listened and was not over."""
    before = names()
    process = start(words, n)
    pids = ranks_of(process, n)
    time.sleep(draw.uniform(0.05, 0.6) * whole)
    number, heard = draw.choice((signal.SIGTERM, signal.SIGINT)), draw.choice((pids, pids[:1], pids[-1:]))
    for pid in heard:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            return False
    code = process.wait(120)
    if code == 0:
        clear(before)
        return False
    what = f"{words[:4]} on {n} ranks, signal {number} to {len(heard)}:"
    said = [line for line in open(path("log")) if line.startswith("fascicle:") and "warning" not in line]
    if code in (-number, 128 + number) and not said and names() == before:
        return False  # it came before the program had begun to listen
    check(code == 1, what, "code", code, "saying", said)
    check(len(said) == 1 and "stopped on request" in said[0], what, said)
    check(names() == before, what, names() - before)
    return True


def reads(pid, name):
    """Whether a process has a file open."""
    folder = f"/proc/{pid}/fd"
    try:
        numbers = os.listdir(folder)
    except FileNotFoundError:  # the process has ended
        return False
    for number in numbers:
        try:
            if os.readlink(f"{folder}/{number}") == os.path.realpath(name):
                return True
        except FileNotFoundError:  # closed since
            pass
    return False


def disturb(times, *words, seed=1):
    draw, before, begun = random.Random(seed), names(), time.time()
    good(*words)
    whole = time.time() - begun
    clear(before)
    in_time = [ends(words, n, draw, whole) for n in (1, 2) for _ in range(times)]
    tries = 8
    while not any(in_time) and tries:  # a quick verb is over, or has not begun to listen, when the signal comes
        tries -= 1
        in_time.append(ends(words, 1, draw, whole))
    check(any(in_time), words, "was over before each signal")


def test_convert():
    make_tables()
    words = ["convert", "--edges", path("e.csv"), "--columns", "pre=body_pre,post=body_post,weight=weight", "--output", path("c.h5")]
    disturb(2, *words)
    for _ in range(8):  # a rank that was quicker than the look at it is tried again
        process = start([*words[:1], "--watchdog", 5, *words[1:], "--force"], 2)
        victim = ranks_of(process, 2)[0]
        wait_for(lambda: process.poll() is not None or reads(victim, path("e.csv")), "rank 0 reading the table", pause=0.001)
        try:
            os.kill(victim, signal.SIGSTOP)
        except ProcessLookupError:
            continue
        if process.poll() is None and reads(victim, path("e.csv")):
            break
        os.kill(victim, signal.SIGCONT)
        process.wait(600)
    code, log = process.wait(600), open(path("log")).read()
    check(code == 71 and log.count("fascicle:") == 1 and f"(process {victim}) on this host is stopped" in log, code, log)


def test_generate_and_order():
    disturb(1, "generate", "--nodes", 30000, "--edges", EDGES, "--output", path("h.h5"))
    make_tables()
    disturb(1, "order", path("g.h5"), "--output", path("o.h5"))


def test_export_and_inspect():
    make_tables()
    disturb(1, "export", path("g.h5"), "--format", "csv", "--output", path("x.csv"))
    disturb(1, "export", path("g.h5"), "--format", "scx", "--block-size", 16, "--output", path("x.scx"))
    disturb(1, "inspect", "--verify", path("g.h5"))


def test_trace():
    good("generate", "--nodes", 4000, "--edges", 8000, "--no-order", "--output", path("g.h5"))
    config = {"threshold": 100, "decay_shifts": [4], "stimulus": [{"neurons": "all", "kind": "poisson", "rate_hz": 100, "weight": 200}]}
    simulate(path("g.h5"), config, 10000, "run")
    os.remove(path("run/spikes.h5"))
    disturb(1, "trace", "merge", path("run"))


run_tests(globals(), workers=2)
