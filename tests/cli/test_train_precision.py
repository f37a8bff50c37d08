#!/usr/bin/env python3
"""--precision mixed: near fp32 but not the same, alike on a split graph, written down, and free to change at a resume."""
import json

from train_tools import SMALL, Folder, check, make_graph, make_text, records, run, settings, train

VALUES = {"train_steps": 4, "microsteps": 2}


def losses(folder):
    return [r["loss"] for r in records(folder, "step")]


with Folder() as folder:
    graph, text = make_graph(folder), make_text(folder)
    found = {}
    for name, ranks, parts, word in (("fp32", 1, 1, "fp32"), ("mixed", 1, 1, "mixed"), ("split", 2, 2, "mixed")):
        train(ranks, graph, text, folder / name, VALUES, "--precision", word, parts=parts)
        found[name] = losses(folder / name)
        config = json.loads((folder / name / "config.json").read_text())
        check(word in json.dumps(config), f"{name}: config.json does not say {word}")
    train(1, graph, text, folder / "set", {**VALUES, "precision": "mixed"})
    check(losses(folder / "set") == found["mixed"], "the option and the key of the configuration differ")

    def apart(a, b):
        return max(abs(x - y) / x for x, y in zip(found[a], found[b]))

    check(1e-9 < apart("fp32", "mixed") < 1e-4, f"mixed is {apart('fp32', 'mixed')} from fp32")
    check(apart("mixed", "split") < 1e-5, f"two parts are {apart('mixed', 'split')} from one")

    again = train(1, graph, text, folder / "mixed", {**VALUES, "train_steps": 6}, "--resume", "auto")
    check("precision: \"mixed\" -> \"fp32\"" in again.stdout + again.stderr, "the change was not said")
    bad = run(1, "train", graph, "--text", text, "--output", folder / "bad", "--precision", "half", code=2)
    check("fp32|mixed" in bad.stderr, bad.stderr)
    bad = train(1, graph, text, folder / "bad", {"precision": "half"}, code=2)
    check('"precision" is "half"; it must be one of fp32|mixed' in bad.stderr, bad.stderr)

    plans = [json.loads(run(1, "plan", graph, "--job", "train", "--json", *settings({**SMALL, "precision": word})).stdout)
             for word in ("fp32", "mixed")]
    check(plans[0] == plans[1], "on the CPU mixed precision takes the memory of fp32")
print(f"mixed is within {apart('fp32', 'mixed'):.1e} of fp32, two parts within {apart('mixed', 'split'):.1e} of one")
