#!/usr/bin/env python3
"""record.py COMMIT FILE...: sums lines of tests/fuzz/loop.sh (FILEs) to one line a target and appends them to RESULTS.jsonl.

For runs of several processes or on other machines; tests/fuzz/run.sh with FUZZ_RECORD appends its own lines."""
import datetime
import json
import pathlib
import sys

commit, files = sys.argv[1], sys.argv[2:]
sums = {}
for file in files:
    for line in pathlib.Path(file).read_text().splitlines():
        r = json.loads(line)
        s = sums.setdefault(r["target"], {"processes": 0, "executions": 0, "cpu_seconds": 0, "findings": 0})
        s["processes"] += 1
        for key in ("executions", "cpu_seconds", "findings"):
            s[key] = round(s[key] + r[key], 1)
date = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
with open(pathlib.Path(__file__).with_name("RESULTS.jsonl"), "a") as out:
    for target, s in sums.items():
        out.write(json.dumps({"date": date, "commit": commit, "target": target, **s}) + "\n")
