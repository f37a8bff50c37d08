"""simulate --residency: streamed edges give the spikes of resident ones on any ranks and threads, from a run's start to its end and
across stops and resumes in the other residency; auto takes what fits and says so; what cannot be done is refused in one line."""
import json
import os
import subprocess
import tempfile

fascicle, ranks = os.environ["FASCICLE"], os.environ["RANKS"]


def run(n, *words, code=0, **more):
    done = subprocess.run([ranks, str(n), fascicle, *map(str, words)], capture_output=True, text=True, timeout=600, env={**os.environ, **more})
    assert code in (None, done.returncode), (words, done.returncode, done.stderr)
    if code:
        lines = [line for line in done.stderr.splitlines() if line.startswith("fascicle: ")]
        assert len(lines) == 1, done.stderr
        return lines[0]
    return done


def peak(*words):
    """(largest resident set of the process in bytes, what it said)"""
    with open(os.devnull, "w") as nowhere, tempfile.TemporaryFile("w+") as out:
        child = subprocess.Popen([fascicle, *map(str, words)], stdout=out, stderr=nowhere, env={**os.environ, "OMP_NUM_THREADS": "1"})
        _, status, used = os.wait4(child.pid, 0)
        out.seek(0)
        assert status == 0, words
        return used.ru_maxrss * 1024, json.loads(out.read())


def budget(work, config):
    """What --memory leaves for edges is all that the process holds of them, mapped pages of the file included."""
    graph = f"{work}/larger.h5"
    run(1, "generate", "--nodes", 10000, "--edges", 3000000, "--delays", "1:8", "--streamable", "--no-order", "--output", graph)
    least = json.loads(run(1, "plan", graph, "--job", "simulate", "--memory", 0.0001, "--residency", "streamed", "--json", code=None).stdout)
    words = ("simulate", graph, "--config", config, "--residency", "streamed", "--memory", least["total_bytes"] / 2**30 + 0.0001, "--json", "--output")
    quiet, _ = peak(*words, f"{work}/quiet", "--steps", 1, "--set", "stimulus=[]")
    active, facts = peak(*words, f"{work}/active", "--steps", 20, "--set",
                         'stimulus=[{"neurons": "all", "kind": "spikes", "steps": [3, 11]}]')
    assert facts["spikes"] >= 20000, facts  # each neuron twice: all 24 MB of edges went by
    held = least["bytes"]["edges held at a time"]
    spare = 12e6 if "TEST_SANITIZED" in os.environ else 3e6
    assert held < 5e6 and active - quiet < held + spare, (active, quiet, held)
    disk(graph, words, work)


def long_delay(work, config):
    """One edge of delay 65535: the longest delay is named, and streamed edges, which need as much, are not advised."""
    n, table = 2000, f"{work}/long.csv"
    with open(table, "w") as file:
        file.write("pre,post,weight,delay\n")
        file.writelines(f"{i},{i % n + 1},5,{65535 if i == n else 1}\n" for i in range(1, n + 1))
    for more, words in (([], "with resident edges"), (["--streamable"], "even with streamed edges")):
        graph = f"{work}/long{len(more)}.h5"
        run(1, "convert", "--edges", table, "--columns", "delay=delay", *more, "--output", graph)
        line = run(1, "simulate", graph, "--config", config, "--steps", 1, "--memory", 0.5, "--output", f"{work}/long", code=2)
        assert words in line and "longest delay, 65535 steps" in line and "--residency" not in line, line
        assert "1.465 GiB of this" in line, line  # 2000 x 65534 x (4 + 8) bytes: 1.4648 GiB
    short = 2e-5  # too little for anything: delays of 1 are not to blame
    plain = run(1, "simulate", f"{work}/plain.h5", "--config", config, "--steps", 1, "--memory", short, "--output", f"{work}/long", code=2)
    assert "longest delay" not in plain and "--memory" in plain, plain


def disk(graph, words, work):
    """A disk that fails under several threads that read: one line all the same."""
    library = os.environ.get("FAULTY", os.path.join(os.path.dirname(fascicle), "tests", "libfaulty.so"))
    everyone = 'stimulus=[{"neurons": "all", "kind": "spikes", "steps": [1, 3, 5]}]'
    for nth, threads in ((400, 1), (401, 3), (900, 2)):
        line = run(1, *words, f"{work}/failed_{nth}", "--steps", 20, "--threads", threads, "--set", everyone, code=65, LD_PRELOAD=library,
                   FAULT_CALL="read", FAULT_KIND="EIO", FAULT_NTH=str(nth), FAULT_STICKY="1", FAULT_PATH=graph)
        assert "larger.h5: a part of the file cannot be read any more: Input/output error" in line, line


def main(work):
    graph, plain, empty, config = (f"{work}/{name}" for name in ("g.h5", "plain.h5", "empty.h5", "lif.json"))
    make = ("generate", "--nodes", 2000, "--delays", "1:8")
    run(1, *make, "--edges", 120000, "--streamable", "--output", graph)
    run(1, *make, "--edges", 120000, "--output", plain)
    run(1, *make, "--edges", 0, "--streamable", "--output", empty)
    with open(config, "w") as file:
        json.dump({"threshold": 400, "decay_shifts": [4], "refractory_steps": 3, "stimulus": [
            {"neurons": "all", "kind": "poisson", "rate_hz": 8, "weight": 420}],
            "silence": [{"neurons": {"indices": [5, 6]}, "mode": "output"}, {"neurons": {"indices": [8]}, "mode": "remove"}]}, file)
    outputs = 0

    def simulate(*words, n=1, on=graph, steps=300, code=0):
        nonlocal outputs
        outputs += 1
        words = list(words)
        if "--output" not in words:
            words += ["--output", f"{work}/run_{outputs}"]
        return run(n, "simulate", on, "--config", config, "--steps", steps, "--json", *words, code=code)

    def digest(done):
        return [json.loads(done.stdout)[key] for key in ("spikes_digest", "spikes")]

    resident = simulate("--residency", "resident")
    assert "edges resident" in resident.stderr and digest(resident)[1] > 1000, resident.stderr
    for n, threads in ((1, 1), (1, 3), (2, 1), (4, 1)):
        done = simulate("--residency", "streamed", "--threads", threads, n=n)
        assert digest(done) == digest(resident), (n, threads)
        assert "edges streamed from the file" in done.stderr, done.stderr
    events = [sum(record.get("events", 0) for record in map(json.loads, open(f"{work}/run_{k}/metrics.jsonl"))) for k in (1, 2, 4, 5)]
    assert len(set(events)) == 1 and events[0] > 0, events
    for residency in ("resident", "streamed"):
        assert digest(simulate("--residency", residency, on=empty))[1] > 0

    # Stop and go on in the other residency, there and back.
    for first, second in (("resident", "streamed"), ("streamed", "resident")):
        out = f"{work}/{first}_first"
        for k, steps in enumerate((90, 200, 300)):
            done = simulate("--output", out, "--residency", (first, second)[k % 2], "--resume", "auto", steps=steps, n=1 + k)
        assert digest(done) == digest(resident), first

    # auto: resident where it fits; less memory than that: streamed, if the file can be.
    assert "edges resident" in simulate().stderr
    plan = json.loads(run(1, "plan", graph, "--job", "simulate", "--json").stdout)
    assert plan["residency"] == "resident"
    short = (plan["total_bytes"] - plan["bytes"]["edges by source"] / 2) / 2**30
    done = simulate("--memory", short)
    assert "as they do not fit" in done.stderr and digest(done) == digest(resident), done.stderr
    streamed = json.loads(run(1, "plan", graph, "--job", "simulate", "--memory", short, "--json").stdout)
    assert streamed["fits"] and streamed["residency"] == "streamed" and "edges by source" not in streamed["bytes"], streamed
    own = streamed["total_bytes"] - streamed["bytes"]["recorded spikes"]
    # Nothing beside it but the fixed buffers of any run.
    assert own < json.loads(done.stdout)["peak_bytes"] < own + 2**23, (own, done.stdout)
    assert "streamable" in run(1, "plan", plain, "--job", "simulate", "--residency", "streamed", code=2)
    line = simulate("--memory", short, on=plain, code=2)
    assert "--residency streamed" in line and "--streamable" in line and "it would fit with --memory" in line, line
    assert "it would fit with --memory" in simulate("--memory", short, "--residency", "resident", n=1, code=2)
    simulate("--memory", line.split("--memory ")[1].split(",")[0], on=plain)

    # Refused, with what helps; and that does help.
    line = simulate("--residency", "streamed", on=plain, n=2, code=2)
    assert "fascicle order" in line and "--streamable" in line, line
    run(1, "order", plain, "--streamable", "--output", f"{work}/ordered.h5")
    assert digest(simulate("--residency", "streamed", on=f"{work}/ordered.h5"))[1] > 0
    assert "even with streamed edges" in simulate("--residency", "streamed", "--memory", 0.01, code=2)
    assert "residency" in simulate("--residency", "elsewhere", code=2)

    # The bench measures both, with the same spikes.
    lines = [json.loads(line) for line in run(1, "bench", "lif", "--graph", graph, "--steps", 10, "--device", "cpu", "--json").stdout.splitlines()]
    cases = {line["case"]: line["events_per_step"] for line in lines}
    assert len(cases) == 9 and all(cases[name] == cases[f"{name}_streamed"] for name in ("idle", "active_1pct", "active_10pct")), cases

    budget(work, config)
    long_delay(work, config)

    # A damaged copy is noticed before it does harm, and by its checksum.
    import h5py
    with h5py.File(graph, "r+") as file:
        file["out/edge"][:, 1] = 60000 << 16
    line = simulate("--residency", "streamed", code=65).replace("\n", " ")
    assert "damaged: /out" in line, line
    assert "/out/edge" in run(1, "inspect", graph, "--verify", code=65)
    print("streamed and resident agree")


with tempfile.TemporaryDirectory() as folder:
    main(folder)
