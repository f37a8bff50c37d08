#!/usr/bin/env python3
"""table.py [--check]: makes tests/endure/README.md from results.jsonl here and from tests/fuzz/RESULTS.jsonl; --check: is it up to date?

The lines of both files are written by the scripts themselves (kills.py, faults.py and soak.py with --record; tests/fuzz/run.sh with
FUZZ_RECORD), each with its date and commit. Nothing in the table is typed in."""
import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
README = HERE / "README.md"
HEAD = """# Endurance

What the program has survived. Made by `tests/endure/table.py` from the lines that these scripts wrote; anybody can run them again:

    tests/endure/kills.py 200 1 --record          # SIGKILL of a rank or of all at random moments; then everything is compared
    tests/endure/faults.py 240 3 --record         # a system call fails: no space, no quota, errors, half a transfer, no locks
    tests/endure/soak.py simulate 1800 --record   # two ranks, SIGUSR2 and SIGTERM-and-resume all the time; memory; equal results
    tests/endure/soak.py train 1800 --record
    tests/endure/models.py --record               # neuron models at FlyWire's and MaleCNS' size, 10,000 steps: equal digests
    FUZZ_RECORD=tests/fuzz/RESULTS.jsonl tests/fuzz/run.sh 1200
    tests/endure/table.py                         # this page

They need Python with h5py and numpy (`.venv/bin/python` of `jobs/setup.sh test`) and a build in `build/`. CI runs short forms: `test_endure`,
`test_faults`, `test_launch`, and a few seconds of each fuzz target; also `test_death` (a rank killed, stopped, the whole job suspended and
continued), `test_signals` (SIGTERM and SIGINT to every verb), and `test_watchdog` (what is ended and what is left alone). On GPUs
`tests/gpu/ranks.py R --only deaths,stalls` does the same.

| what | how much | outcome | seed | date | commit |
|---|---|---|---|---|---|
"""
TAIL = """
*Kills*: after each one complete files were complete, no spike was lost or there twice, and runs went on to the undisturbed result on another
number of ranks and threads. "Too late": the verb was over before the signal. "Launcher hung": all ranks had ended, but mpirun waited for
ever for a lock of its own PMIx library. *Faults*: one line and a documented exit code within a minute, or no effect; nothing half-written;
resumed to the undisturbed result. A write of HDF5's own tables that fails on one rank alone may show at the others as silence only: the watchdog ends
the job with 71, and the file never gets its name. *Soak*: resident memory (MiB) of the larger rank at the beginning, at most and at the end of the longest life
of a process, and its slope there by least squares; results equal to those of an undisturbed run.
*Fuzzed*: "found" are inputs that ended a process by a crash, a leak, a hang, undefined behaviour or an exit code that is not documented. Those of
7ff3e22 were three defects, mended since; the inputs that were kept (convert) pass. Those of 436740a: three times numbers that are not finite in a checkpoint
(refused since); memory that the fuzz target itself took, by writing a million tiny chunks (bounded since, and such files are refused); and once, for graph, a
damaged heap that was noticed in a later free: it has not come again, neither with that input nor in 9,304 more with HDF5 itself instrumented
(tests/fuzz/hdf5.sh), and is not explained.
"""


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines() if line.strip()] if path.exists() else []


def counts(values):
    return ", ".join(f"{key} {value}" for key, value in values.items())


def kills(r):
    extra = f"; {r['too_late']} too late" + (f"; launcher hung {r['launcher_hung']}" if r.get("launcher_hung") else "")
    return "kills survived", f"{r['survived']}: {counts(r['by_verb'])}{extra}", "equal"


def faults(r):
    return "faults injected", f"{r['injected']}: {counts(r['outcomes'])}", "as documented" if not r["failed"] else f"{r['failed']} not as documented"


def soak(r):
    made = f"{r['seconds'] / 3600:.2f} h, {r['steps']} steps, {r['saves']} checkpoints asked for, {r['stops']} stops and resumes"
    first, most, last = r["rss_mib"]
    slope = "" if r["slope_mib_per_hour"] is None else f', {r["slope_mib_per_hour"] + 0.0:+.2f} MiB/h'
    return f"soak: {r['verb']}", made, f"equal; memory {first} / {most} / {last} MiB over {r['longest_life_s']} s{slope}"


def models(r):
    made = f"{r['nodes']:,} / {r['edges']:,}, {r['steps']:,} steps, {r['spikes']:,} spikes: {', '.join(r['equal'])}"
    return f"model {r['model']}", made, "equal spikes and states"


def fuzz(target, rows):
    """All runs of a target in one line, and of the findings when they were: COUNT at COMMIT."""
    minutes, found = sum(r["cpu_seconds"] for r in rows) / 60, [f"{r['findings']} at {r.get('commit', '?')}" for r in rows if r["findings"]]
    much = f"{sum(r['executions'] for r in rows)} inputs, {minutes:.1f} CPU-minutes in {len(rows)} runs"
    return f"| fuzzed: {target} | {much} | found {', '.join(found) or 'none'} | | {rows[-1].get('date', '')} | to {rows[-1].get('commit', '')} |\n"


def page():
    text = HEAD
    for r in lines(HERE / "results.jsonl"):
        what, much, outcome = {"kills": kills, "faults": faults, "soak": soak, "models": models}[r["kind"]](r)
        text += f"| {what} | {much} | {outcome} | {r.get('seed', '')} | {r['date']} | {r['commit']} |\n"
    rows = lines(HERE.parent / "fuzz" / "RESULTS.jsonl")
    for target in sorted({r["target"] for r in rows}):
        text += fuzz(target, [r for r in rows if r["target"] == target])
    if rows:
        text += f"| fuzzed, all | {sum(r['executions'] for r in rows)} inputs, {sum(r['cpu_seconds'] for r in rows) / 3600:.1f} CPU-hours | | | | |\n"
    soaked = sum(r["seconds"] for r in lines(HERE / "results.jsonl") if r["kind"] == "soak")
    if soaked:
        text += f"| soaked, all | {soaked / 3600:.2f} h | | | | |\n"
    return text + TAIL


if __name__ == "__main__":
    if "--check" in sys.argv:
        sys.exit(0 if README.exists() and README.read_text() == page() else f"{README}: out of date; run tests/endure/table.py")
    README.write_text(page())
    print(README)
