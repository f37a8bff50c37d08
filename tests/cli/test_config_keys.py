"""The lists of keys in jobs/conf/README.md are those that the program prints, and the reference
configuration of a training holds every key with its default."""

import json
import os
import subprocess

SOURCE = os.environ["SOURCE"]


def printed(*words):
    done = subprocess.run([os.environ["FASCICLE"], *words], capture_output=True, text=True)
    assert done.returncode == 0 and not done.stderr, (words, done)
    return done.stdout


def tables(text):
    """Runs of lines that begin with a bar."""
    found, lines = [], []
    for line in [*text.splitlines(), ""]:
        if line.startswith("|"):
            lines.append(line)
        elif lines:
            found.append("\n".join(lines))
            lines = []
    return found


with open(f"{SOURCE}/jobs/conf/README.md") as file:
    documented = tables(file.read())

for verb in ["train", "simulate"]:
    markdown = printed(verb, "--help-keys=markdown")
    listed = tables(markdown)
    assert listed, f"{verb} --help-keys=markdown prints no table"
    for table in listed:
        name = table.splitlines()[2]
        assert table in documented, (
            f"jobs/conf/README.md lacks the table of `fascicle {verb} --help-keys=markdown` with {name}"
        )
    text = printed(verb, "--help-keys")
    for table in listed:
        for row in table.splitlines()[2:]:
            key = row.split("`")[1]
            assert f"\n  {key} " in text or f"\n  {key}\n" in text, f"{verb} --help-keys lacks {key}"
    assert "--help-keys" in printed(verb, "--help")

defaults = {}
for row in tables(printed("train", "--help-keys=markdown"))[0].splitlines()[2:]:
    key, value = [cell.strip() for cell in row.split("|")[1:3]]
    *above, name = key.strip("`").split(".")
    at = defaults
    for part in above:
        at = at.setdefault(part, {})
    try:
        at[name] = json.loads(value)
    except json.JSONDecodeError:
        at[name] = value
with open(f"{SOURCE}/jobs/conf/train_reference.json") as file:
    reference = json.load(file)
assert reference == defaults, f"train_reference.json: {reference} is not {defaults}"

refused = subprocess.run([os.environ["FASCICLE"], "info", "--help-keys"], capture_output=True, text=True)
assert refused.returncode == 2 and "unknown option --help-keys" in refused.stderr, refused
print(f"{sum(len(t.splitlines()) - 2 for t in listed)} keys")
