# seconds: 300
# alone: yes
"""One rank dies or stalls: the job ends within seconds, nothing that was finished is lost, and the run can go on."""
import os
import random
import re
import signal
import subprocess
import time

from side_by_side import kill_session, path, run_tests
from sim_tools import Spikes, check, random_net, ranks_of, run, simulate, start, wait_for, wait_steps, write_json

LONG = 2000000
CONFIG = {"threshold": 150, "decay_shifts": [4], "refractory_steps": 3, "seed": 12,
          "stimulus": [{"neurons": "all", "kind": "poisson", "rate_hz": 30, "weight": 170}],
          "record": {"spikes": {"indices": list(range(20))}}}


def begin(n, *words, save=False):
    """A run that has a checkpoint: every 4000 steps, or asked for."""
    graph, config = random_net(300, 6000, (2, 6), seed=10).write(), write_json("config.json", CONFIG)
    process = start(graph, config, LONG, "run", "--checkpoint-every", 4000, *words, n=n)
    if save:
        wait_steps("run", 2000)
        os.kill(ranks_of(process, n)[0], signal.SIGUSR2)
    wait_for(lambda: os.path.exists(path("run/checkpoints/latest")), "a checkpoint")
    wait_steps("run", 6000)
    return graph, config, process


def goes_on(graph, config, n, alone):
    """What the dead run left: readable, a lock that is taken over, and the same spikes in the end. A rank that lives on removes the lock."""
    latest = int(open(path("run/checkpoints/latest")).read()[5:13])
    check(run("trace", "merge", path("run"))[0] == 0 and Spikes("run").attributes["last_step"] >= latest - 1,
          "everything up to the checkpoint is there")
    stale = os.path.exists(path("run/lock"))
    err = simulate(graph, config, latest + 500, "run", "--resume", "auto", n=n)
    check((stale or not alone) and ("left behind by a run that is gone" in err) == stale, "the stale lock is named:", err)
    simulate(graph, config, latest + 500, "whole", n=n)
    Spikes("run").same(Spikes("whole"), "after the death")


def test_sigkill_one_rank():
    graph, config, process = begin(3)
    os.kill(ranks_of(process, 3)[1], signal.SIGKILL)
    check(process.wait(120) != 0, "not 0")  # far below the 300 s after which anything ends
    lines = [line for line in open(path("log")) if "is gone: killed, or crashed" in line]
    check(len(lines) == 1 and re.match("fascicle: rank [02] of 3 on ", lines[0]) and "rank 1 (process" in lines[0]
          and "seen during 'simulation step'" in lines[0], open(path("log")).read())
    goes_on(graph, config, 2, alone=False)


def test_sigkill_alone():
    graph, config, process = begin(1)
    process.kill()
    process.wait(120)
    goes_on(graph, config, 1, alone=True)


def test_killed_before_a_checkpoint():
    """Nothing to go on from: --resume auto starts anew, and what the dead run wrote does no harm."""
    graph, config = random_net(300, 6000, (2, 6), seed=11).write(), write_json("config.json", CONFIG)
    process = start(graph, config, LONG, "run", n=1)
    wait_steps("run", 2000)
    process.kill()
    process.wait()
    simulate(graph, config, 300, "run", "--resume", "auto", n=2)
    simulate(graph, config, 300, "whole")
    Spikes("run").same(Spikes("whole"), "started anew")


def test_killed_at_random():
    """Killed again and again, at any time, on changing numbers of ranks: in the end the spikes of an undisturbed run."""
    draw, kills, steps = random.Random(5), 0, 100000
    graph, config = random_net(300, 6000, (2, 6), seed=12).write(), write_json("config.json", CONFIG)
    simulate(graph, config, steps, "whole")
    while kills < 12:
        n = draw.choice((1, 1, 2, 3))
        process = start(graph, config, steps, "run", "--checkpoint-every", 250, "--resume", "auto", n=n)
        try:
            check(process.wait(draw.uniform(0.3, 0.9)) == 0, open(path("log")).read())
            break
        except subprocess.TimeoutExpired:
            kills += 1
            kill_session(process)
    simulate(graph, config, steps, "run", "--resume", "auto", n=2)
    check(kills > 1, "it was killed", kills)
    Spikes("run").same(Spikes("whole"), f"after {kills} kills")
    check(not [name for name in os.listdir(path("run/checkpoints")) if name.endswith(".tmp")], "no unfinished files")


def stall(limit, *words):
    """A stopped process gives no sign of life: the others' watchdog ends the job and says where it was."""
    graph, config, process = begin(3, *words, "--checkpoint-every", 0, save=True)
    wait_steps("run", int(open(path("run/checkpoints/latest")).read()[5:13]) + 4000) # not in a checkpoint
    victim = ranks_of(process, 3)[1]
    os.kill(victim, signal.SIGSTOP)
    try:
        code = process.wait(120)
    finally:
        try:
            os.kill(victim, signal.SIGKILL)
        except ProcessLookupError:
            pass
    log = open(path("log")).read()
    lines = [line for line in log.splitlines() if line.startswith("fascicle: rank")]
    good = lines and f"no progress for {limit} s, last seen in 'simulation step'" in lines[0]
    check(code == 71 and len(lines) == 1 and good and f"(process {victim}) on this host is stopped" in lines[0], code, log)
    goes_on(graph, config, 1, alone=True)


def test_stall():
    stall(5, "--watchdog", 5)


def test_stall_by_default():
    stall(15)


def test_suspended():
    """A scheduler stops all processes of a job for long, and lets them go on."""
    graph, config, process = begin(2, "--watchdog", 5)
    ranks = ranks_of(process, 2)
    for number, pause in ((signal.SIGSTOP, 12), (signal.SIGCONT, 8)):
        for pid in ranks:
            os.kill(pid, number)
        time.sleep(pause)
    os.kill(ranks[0], signal.SIGTERM)
    check(process.wait(600) == 75, "it went on, and stopped when asked to:", open(path("log")).read())


def test_second_run():
    """A second run in the folder of a living one is refused, with and without --resume and --force."""
    graph, config, process = begin(2)
    for words in ([], ["--resume", "auto"], ["--force"]):
        err = simulate(graph, config, 100, "run", *words, code=73)
        check("another run works in this folder" in err and f"process {ranks_of(process, 2)[0]}" in err, err)
    os.kill(ranks_of(process, 2)[0], signal.SIGTERM)
    check(process.wait(600) == 75, "the first one was not disturbed")


def test_no_room():
    """A folder that cannot be written is said so before anything runs."""
    graph, config = random_net(30, 60, (1, 2), seed=10).write(), write_json("config.json", CONFIG)
    err = simulate(graph, config, 10, "config.json", n=2, code=73)
    check("config.json" in err, err)


run_tests(globals(), workers=4)
