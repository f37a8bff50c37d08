"""What the endurance scripts share: where the program is, runs that are disturbed, and the record of figures.

Each script runs alone from anywhere (`tests/endure/kills.py 200 1`); FASCICLE and RANKS may name another program or
launcher. With --record it appends its figures to tests/endure/results.jsonl, from which table.py makes README.md."""
import datetime
import json
import os
import pathlib
import subprocess
import sys
import time

SOURCE = pathlib.Path(__file__).resolve().parents[2]
os.environ.setdefault("SOURCE", str(SOURCE))
os.environ.setdefault("FASCICLE", str(SOURCE / "build" / "fascicle"))
os.environ.setdefault("RANKS", str(SOURCE / "tests" / "ranks.sh"))
os.environ.setdefault("TEST_DATA", str(SOURCE / "tests" / "data"))
sys.path.insert(0, str(SOURCE / "tests" / "cli"))
FASCICLE, RANKS = os.environ["FASCICLE"], os.environ["RANKS"]
RESULTS = SOURCE / "tests" / "endure" / "results.jsonl"


def fail(*words):
    raise AssertionError(" ".join(map(str, words)))


def check(condition, *words):
    if not condition:
        fail(*words)


def record(kind, **figures):
    """One line of results.jsonl when --record was given; always printed."""
    facts = json.loads(program("info", "--json").stdout)
    line = json.dumps({"kind": kind, **figures, "date": datetime.date.today().isoformat(), "commit": facts["commit"]})
    print(line, flush=True)
    if "--record" in sys.argv:
        with open(RESULTS, "a") as file:
            file.write(line + "\n")


def numbers():
    """The words of the command line that are no options."""
    return [word for word in sys.argv[1:] if not word.startswith("--")]


def program(*words, n=1, threads=1, code=0, timeout=600, env=None):
    """Run to the end; the code must be `code` (None: any)."""
    environment = dict(os.environ, OMP_NUM_THREADS=str(threads), **(env or {}))
    done = subprocess.run([RANKS, str(n), FASCICLE, *map(str, words)], capture_output=True, text=True, timeout=timeout, env=environment)
    check(code is None or done.returncode == code, *words, "ended with", done.returncode, done.stderr)
    return done


def begin(*words, n=1, threads=1, log, env=None):
    """Start in a session of its own; stdout and stderr go to the file `log`."""
    environment = dict(os.environ, OMP_NUM_THREADS=str(threads), **(env or {}))
    with open(log, "a") as file:
        return subprocess.Popen([RANKS, str(n), FASCICLE, *map(str, words)], stdout=subprocess.DEVNULL, stderr=file,
                                start_new_session=True, env=environment)


def ranks_of(process, n, seconds=60):
    """Process ids of its ranks, those that are there yet after `seconds`."""
    if n == 1:
        return [process.pid]
    until = time.time() + seconds
    while True:
        text = subprocess.run(["ps", "-o", "pid=,stat=,comm=", "--ppid", str(process.pid)], capture_output=True, text=True).stdout
        rows = [line.split() for line in text.splitlines()]
        found = [int(row[0]) for row in rows if not row[1].startswith("Z") and row[2].startswith("fascicle")]
        if len(found) == n or time.time() > until or process.poll() is not None:
            return found
        time.sleep(0.05)


def send(pid, number):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def rss_kib(pid):
    """Resident memory of a process; None when it is gone."""
    try:
        with open(f"/proc/{pid}/status") as file:
            return next((int(line.split()[1]) for line in file if line.startswith("VmRSS")), None)
    except (FileNotFoundError, ProcessLookupError):
        return None
