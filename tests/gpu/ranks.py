#!/usr/bin/env python3
"""Several GPUs (or several ranks on one): do they agree with one rank, and do they end when one dies?

Usage: ranks.py RANKS [--transports peer,nccl,mpi] [--only SECTION,SECTION] [--quick]
Sections: rows, rules, train, lif, resume, deaths, stalls. Programs are found on the PATH: fascicle, gpu_test_transport,
gpu_test_lif_ranks. With more ranks than GPUs only the transport mpi is possible. One check after the other: two jobs on the same GPUs would take
turns there, and a rank that waits for its peer would wait for the peer's turn. A check that fails ends it with 1; what did not fit is counted."""
import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("ranks", type=int)
parser.add_argument("--transports", default="peer,nccl,mpi")
parser.add_argument("--only", default="rows,rules,train,lif,resume,deaths,stalls")
parser.add_argument("--seconds", type=float, default=540, help="what no longer fits is named and left out")
parser.add_argument("--quick", action="store_true", help="a small graph for LIF")
options = parser.parse_args()
R, transports, sections, failures, left_out = options.ranks, options.transports.split(","), options.only.split(","), [], []
environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMP_NUM_THREADS="4",
                   OMPI_MCA_rmaps_base_oversubscribe="1", OMPI_MCA_btl_vader_single_copy_mechanism="none")
LIMIT = 30  # seconds from a death to the job's end
BEGIN = 40  # seconds in which a run is well under way
WATCHDOG = 4  # of the jobs that are suspended; ranks die under the watchdog as it comes
STOPPED = 25  # seconds that a job with a stopped rank may take, its start included
started = time.monotonic()


def check(good, *what):
    print("ok     " if good else "FAILED ", *what, flush=True)
    if not good:
        failures.append(" ".join(map(str, what)))


def left():
    return options.seconds - (time.monotonic() - started)


def fits(seconds, what):
    if left() >= seconds:
        return True
    print(f"left out: {what}: {left():.0f} s remain", flush=True)
    left_out.append(what)
    return False


def draw(path, nodes, edges, *words):
    if not os.path.exists(path):
        run(1, "fascicle", "generate", "--nodes", nodes, "--edges", edges, *words, "--output", path)


def launch(n, words):
    return words if n == 1 else ["mpirun", "-q", "--bind-to", "none", "-n", str(n), *words]


def end(process):
    """A job that should have ended: the launcher ends its ranks, stopped ones too. Returns what it said."""
    process.terminate()
    try:
        return process.communicate(timeout=10)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.communicate()


def finish(n, words, seconds, **variables):
    """The job when it has ended, and how."""
    process = subprocess.Popen(launch(n, list(map(str, words))), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               env=dict(environment, **variables))
    seconds = max(5, min(seconds, left()))
    try:
        out, err = process.communicate(timeout=seconds)
        ended = f"code {process.returncode}"
    except subprocess.TimeoutExpired:
        out, err = end(process)
        ended = f"not over after {seconds:.0f} s"
    return subprocess.CompletedProcess(words, process.returncode, out, err), ended


def run(n, *words, seconds=90):
    start = time.monotonic()
    done, ended = finish(n, words, seconds)
    if ended != "code 0":
        check(False, f"{n} x {' '.join(map(str, words))[:150]}: {ended}: {done.stderr.strip()[-600:]}")
    print(f"  {time.monotonic() - start:5.1f} s  {n} x {' '.join(map(str, words))[:110]}", flush=True)
    return done


def records(folder, kind):
    try:
        with open(f"{folder}/metrics.jsonl") as file:
            return [r for r in map(json.loads, filter(lambda line: line.endswith("\n"), file)) if r["record"] == kind]
    except FileNotFoundError:
        return []


# ---- training ----

CORE = ["--set", "log_every=1", "--set", "eval_every=0", "--set", "train_steps=50", "--set", "checkpoint_every=25"]


def train_words(folder, *words):
    return ["fascicle", "train", "train.h5", "--text", "text.txt", "--output", folder, "--device", "cuda", *CORE, *words]


def train(folder, n, *words):
    run(n, *train_words(folder, *words))
    return [r["loss"] for r in records(folder, "step")]


def losses_agree(a, b, what):
    worst = max((abs(x - y) for x, y in zip(a, b)), default=9)
    check(len(a) == len(b) == 50 and worst <= 1e-5, f"{what}: losses of 50 steps within {worst:.1e} of one GPU")


def shapes():
    """How R ranks can share the work, by name: words of the command."""
    found = [(f"{R} parts, {t}", ["--parts", R, "--transport", t]) for t in transports]
    found += [(f"{R} replicas, {t}", ["--parts", 1, "--transport", t]) for t in transports]
    if R >= 4 and R % 2 == 0:
        found += [(f"{R // 2} parts x 2 replicas, {t}", ["--parts", R // 2, "--transport", t]) for t in transports]
    return found


def training(one):
    for number, (name, words) in enumerate(shapes()):
        if not fits(6, name):
            continue
        losses_agree(one, train(f"train_{number}", R, *words), "train, " + name)


# ---- simulation ----


def simulate_words(folder, graph, steps, *words):
    return ["fascicle", "simulate", graph, "--config", "lif.json", "--steps", steps, "--output", folder, "--device", "cuda", "--json", *words]


def simulate(folder, n, graph, steps, *words):
    done = run(n, *simulate_words(folder, graph, steps, *words))
    facts = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return facts[-1] if facts else {"spikes_digest": folder, "spikes": 0}


def simulation(one, steps):
    for t in transports:
        if not fits(8, f"LIF, {t}"):
            continue
        many = simulate(f"lif_{t}", R, "lif.h5", steps, "--transport", t, "--parts", R)
        check(one["spikes_digest"] == many["spikes_digest"] and one["spikes"] > 1000,
              f"LIF, {R} parts, {t}: {many['spikes']} spikes of {steps} steps are those of one GPU")


# ---- resume ----


def resume_train(folder, n, what, one, words=()):
    """A finished run as it was after step 25, with the rest made on n ranks."""
    copy = f"{folder}_resumed"
    shutil.copytree(folder, copy)
    for name in ("step_00000050.h5", "latest"):
        os.remove(f"{copy}/checkpoints/{name}")
    losses_agree(one, train(copy, n, *words, "--resume", "auto"), what)


def resume_lif(first, second, steps, one):
    folder = f"lif_{first}_{second}"
    simulate(folder, first, "lif.h5", steps // 2, *(["--parts", R] if first > 1 else []))
    done = simulate(folder, second, "lif.h5", steps, "--resume", "auto", *(["--parts", R] if second > 1 else []))
    check(done["spikes_digest"] == one["spikes_digest"], f"LIF from {first} to {second} GPUs at half time: {done['spikes']} spikes")


# ---- deaths ----


def ranks_of(process):
    """Process of each rank."""
    found = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            if int(open(f"/proc/{name}/stat").read().rsplit(")", 1)[1].split()[1]) != process.pid:
                continue
            words = open(f"/proc/{name}/environ").read().split("\0")
        except OSError:
            continue
        rank = [w.split("=")[1] for w in words if w.startswith("OMPI_COMM_WORLD_RANK=")]
        if rank:
            found[int(rank[0])] = int(name)
    return found


def begin(folder, verb, transport, watchdog):
    """A run of R ranks that is well under way, and the processes of its ranks; it may be over, when it fails."""
    words = ["--transport", transport, "--parts", R, *(["--watchdog", watchdog] if watchdog else [])]
    words = (train_words(folder, *words, "--set", "train_steps=1000000") if verb == "train"
             else simulate_words(folder, "small.h5", 10**7, *words))  # a line of metrics every 10,000 steps
    with open(f"{folder}.err", "w") as err:
        process = subprocess.Popen(launch(R, list(map(str, words))), stdout=subprocess.DEVNULL, stderr=err, env=environment)
    until = time.monotonic() + BEGIN
    kind = "step" if verb == "train" else "steps"
    while len(records(folder, kind)) < 3 and time.monotonic() < until and process.poll() is None:
        time.sleep(0.1)
    ranks = ranks_of(process)
    if len(ranks) < R or process.poll() is not None:
        end(process)
        check(False, folder, "did not run:", open(f"{folder}.err").read()[-600:])
        return process, None
    return process, ranks


def death(verb, transport, how):
    folder = f"death_{verb}_{transport}_{how.name}"
    process, ranks = begin(folder, verb, transport, None)
    if not ranks:
        return
    victim = ranks[1]
    what = f"{verb}, {transport}, rank 1 {'killed' if how == signal.SIGKILL else 'stopped'}"
    os.kill(victim, how)
    start = time.monotonic()
    try:
        code = process.wait(LIMIT)
    except subprocess.TimeoutExpired:
        code = "none"
    took = time.monotonic() - start
    if code == "none":
        end(process)
    try:
        os.kill(victim, signal.SIGKILL)
    except ProcessLookupError:
        pass
    said = [line for line in open(f"{folder}.err").read().splitlines() if "fascicle: rank " in line and "NCCL says" not in line]
    word = "is gone" if how == signal.SIGKILL else "is stopped"
    good = took < LIMIT and code not in (0, "none") and len(said) == 1 and f"rank 1 (process {victim}) on this host {word}" in said[0]
    check(good, f"{what}: ended after {took:.1f} s, code {code}, saying:", " | ".join(said))


def suspended(verb, transport):
    """A scheduler stops the whole job for longer than the watchdog waits, and lets it go on."""
    process, ranks = begin(f"suspended_{verb}_{transport}", verb, transport, WATCHDOG)
    if not ranks:
        return
    for number, pause in ((signal.SIGSTOP, 1.5 * WATCHDOG), (signal.SIGCONT, 1.5 * WATCHDOG)):
        for pid in ranks.values():
            os.kill(pid, number)
        time.sleep(pause)
    goes_on = process.poll() is None
    if goes_on:
        os.kill(ranks[0], signal.SIGTERM)
    try:
        code = process.wait(LIMIT)
    except subprocess.TimeoutExpired:
        code = "none"
        end(process)
    said = open(f"suspended_{verb}_{transport}.err").read()
    check(goes_on and code == 75, f"{verb}, {transport}, suspended and continued: goes on, code {code}", "" if goes_on else said[-600:])


def refused():
    """NCCL cannot start: one line that names rank, host and phase, beside NCCL's own."""
    words = train_words("refused", "--transport", "nccl", "--parts", R)
    started_here = time.monotonic()
    done, ended = finish(R, words, LIMIT, NCCL_SOCKET_IFNAME="=nosuch0")
    said = [line for line in done.stderr.splitlines() if "fascicle: rank " in line and "NCCL says" not in line]
    check(ended.startswith("code") and done.returncode not in (0, 71) and len(said) == 1 and "joining the GPUs by NCCL" in said[0],
          f"NCCL without a network: ended after {time.monotonic() - started_here:.1f} s, {ended}, saying:", " | ".join(said),
          "" if said else done.stderr[-600:])


# ---- all ----


def check_lif():
    """Returns what resumes lif when there is time."""
    nodes, edges, steps = (20000, 1000000, 2000) if options.quick else (211577, 24680000, 10000)
    draw("lif.h5", nodes, edges, "--delays", "1:8", "--no-order")
    one = simulate("lif_one", 1, "lif.h5", steps)
    if "lif" in sections:
        simulation(one, steps)

    def resume():
        for first, second in ((1, R), (R, 1)):
            if fits(8, f"LIF from {first} to {second} GPUs"):
                resume_lif(first, second, steps, one)

    return resume


def check_train():
    """Returns what resumes training when there is time."""
    one = train("train_one", 1)
    training(one)

    def resume():
        if fits(10, "training from one rank count to another"):
            resume_train("train_one", R, f"train from one GPU to {R} parts", one, ["--parts", R])
            resume_train("train_0", 1, f"train from {R} parts to one GPU", one)

    return resume


def check_deaths():
    """What matters most first: the roads between GPUs, one of each way to go."""
    kill, stop = signal.SIGKILL, signal.SIGSTOP
    cases = [(verb, t, how) for t in transports for verb in ("simulate", "train") for how in (kill, stop)]
    first = [c for c in (("simulate", "peer", kill), ("train", "peer", stop), ("simulate", "peer", stop), ("train", "nccl", kill),
                         ("train", "nccl", stop)) if c in cases]
    for verb, t, how in first + [c for c in cases if c not in first]:
        stopped = how == stop
        if fits(STOPPED if stopped else 9, f"{verb}, {t}, a rank {'stopped' if stopped else 'killed'}"):
            death(verb, t, how)


def check_stalls():
    if "nccl" in transports and fits(6, "NCCL without a network"):
        refused()
    for t in transports:
        for verb in ("simulate", "train"):
            if fits(25, f"{verb}, {t}, suspended"):
                suspended(verb, t)


def check_programs():
    for t in transports:
        if "rows" in sections and fits(5, f"rows, gradients, sums: {t}"):
            check("all checks pass" in run(R, "gpu_test_transport", t, seconds=40).stdout, f"rows, gradients, sums: {t}")
        if "rules" in sections and fits(10, f"LIF against one CPU rank: {t}"):
            done = run(R, "gpu_test_lif_ranks", t, seconds=60)
            check(": 0 of " in done.stdout, f"LIF against one CPU rank: {t}:", *done.stdout.splitlines()[-1:])
    if "rules" in sections and "peer" in transports and fits(8, "LIF as on GPUs with the shared memory of an A100"):
        done = run(R, "env", "FASCICLE_SHARED_BYTES=166912", "gpu_test_lif_ranks", "peer", seconds=60)
        check(": 0 of " in done.stdout, "LIF as on GPUs with the shared memory of an A100:", *done.stdout.splitlines()[-1:])


def guarded(part):
    try:
        return part()
    except Exception as error:  # a part that breaks is a failure, and the others still go
        check(False, f"{part.__name__}: {error!r}")


def check_agreement():
    resumes = []
    if {"lif", "resume"} & set(sections) and fits(20, "LIF"):
        resumes.append(guarded(check_lif))
    if {"train", "resume"} & set(sections) and fits(15, "training"):
        resumes.append(guarded(check_train))
    for resume in filter(None, resumes):
        if "resume" in sections:
            guarded(resume)


def main():
    with open("text.txt", "w") as file:
        file.write("the quick brown fox jumps over the lazy dog, and back again. " * 3000)
    with open("lif.json", "w") as file:
        json.dump({"threshold": 2000, "decay_shifts": [4], "refractory_steps": 5, "seed": 3, "stimulus": [
            {"neurons": "all", "kind": "poisson", "rate_hz": 4, "weight": 2100}]}, file)
    draw("train.h5", 5000, 524324, "--parts", 8)
    draw("small.h5", 20000, 1000000, "--delays", "1:8", "--no-order")
    check_agreement()
    check_programs()
    for section, part in (("deaths", check_deaths), ("stalls", check_stalls)):
        if section in sections:
            guarded(part)


with tempfile.TemporaryDirectory() as work:
    os.chdir(work)
    main()
    os.chdir("/")
print(f"{'ALL PASS' if not failures else str(len(failures)) + ' FAILURES'} on {R} ranks, transports {', '.join(transports)}"
      f"{f', {len(left_out)} checks left out' if left_out else ''}")
sys.exit(bool(failures))
