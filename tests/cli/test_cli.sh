#!/bin/bash
# The public face: every verb explains itself with an example, exit codes, one clear line for wrong words.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() {
  echo "test_cli: $*" >&2
  exit 1
}

# wrong CODE TEXT WORDS...: the command ends with CODE, one line on stderr that holds TEXT, nothing on stdout
wrong() {
  local code=$1 text=$2 rc=0
  shift 2
  "$FASCICLE" "$@" >"$work/out" 2>"$work/err" || rc=$?
  [ "$rc" = "$code" ] || fail "'$*' ended with $rc, not $code: $(cat "$work/err")"
  [ "$(wc -l <"$work/err")" = 1 ] || fail "'$*' printed not one line: $(cat "$work/err")"
  grep -qF -- "$text" "$work/err" || fail "'$*' did not say '$text': $(cat "$work/err")"
  [ ! -s "$work/out" ] || fail "'$*' wrote to stdout"
}

mapfile -t verbs < <("$FASCICLE" --help | sed -n '/^Verbs:/,/^$/p' | awk 'NR > 1 && NF { print $1 }')
[ "${#verbs[@]}" -ge 1 ] || fail "no verbs"
for verb in "${verbs[@]}"; do
  "$FASCICLE" "$verb" --help >"$work/help" || fail "$verb --help failed"
  grep -q "^Usage: fascicle $verb" "$work/help" || fail "$verb --help has no usage line"
  sed -n '/^Example/,$p' "$work/help" | grep -q "fascicle $verb" || fail "$verb --help has no example"
  awk 'length > 120 { exit 1 }' "$work/help" || fail "$verb --help has lines over 120 characters"
  if grep -q " $" "$work/help"; then fail "$verb --help has blanks at the end of lines"; fi
  wrong 2 "unknown option --nonsense" "$verb" --nonsense
done
wrong 2 "unknown verb 'nonsense'; \`fascicle --help\` lists them" nonsense
wrong 2 "unknown verb 'simulat'; is 'simulate' meant?" simulat
wrong 2 "is 'train' meant?" trian
wrong 2 "is 'inspect' meant?" help inspcet
wrong 2 "is --output meant?" convert --outptu graph.h5
wrong 2 "is --output meant?" simulate --ouput run
wrong 2 "--output: its value is empty" simulate graph.h5 --output ""
wrong 2 "--output DIR is missing" simulate graph.h5 --config lif.json --steps 1
wrong 2 "usage: fascicle convert --edges FILE" convert edges.csv
wrong 2 "word 1 is empty; FILE is wanted" inspect ""
wrong 2 "word 2, " inspect --header $'\xe9'
"$FASCICLE" simulate -h | cmp - <("$FASCICLE" simulate --help) || fail "-h is not --help"
"$FASCICLE" help simulate | cmp - <("$FASCICLE" simulate --help) || fail "help simulate is not simulate --help"
"$FASCICLE" help | cmp - <("$FASCICLE" --help) || fail "help is not --help"
"$FASCICLE" --version | grep -q '^version' || fail "--version"
if "$FASCICLE" info | grep -q '^[a-z_0-9]* *$'; then fail "info holds an empty line: $("$FASCICLE" info)"; fi
check='import json, sys; facts = json.load(sys.stdin); assert facts["program"] == "fascicle" and facts["ranks"] == int(sys.argv[1])'
"$FASCICLE" info --json | "$PYTHON" -c "$check" 1
"$RANKS" 3 "$FASCICLE" info --json | "$PYTHON" -c "$check" 3

# One clear line and the right code also under mpirun, from all ranks together.
rc=0
"$RANKS" 3 "$FASCICLE" info --nonsense >/dev/null 2>"$work/err" || rc=$?
[ $rc = 2 ] || fail "3 ranks: exit code $rc, not 2"
[ "$(grep -c 'unknown option' "$work/err")" = 1 ] || fail "3 ranks: not one line: $(cat "$work/err")"
"$RANKS" 3 "$FASCICLE" nonsense 2>"$work/err" && fail "3 ranks: an unknown verb"
[ "$(grep -c 'unknown verb' "$work/err")" = 1 ] || fail "3 ranks: not one line: $(cat "$work/err")"
for words in --help "info --help"; do
  # shellcheck disable=SC2086
  [ "$("$RANKS" 3 "$FASCICLE" $words | grep -c ^Usage)" = 1 ] || fail "3 ranks, $words: not one text"
done

# By mpirun -q as the README says: the one line, nothing of mpirun's, for an agreed error and for a fatal one of all ranks.
"$FASCICLE" generate --nodes 9 --edges 20 --output "$work/damaged.h5" >/dev/null 2>&1
"$PYTHON" - "$work/damaged.h5" <<'END'
import sys
with open(sys.argv[1], "r+b") as file:
    data = file.read()
    at = data.index(b"fascicle graph")
    file.seek(at)
    file.write(b"Fascicle")
END
for words in "nothere.h5" "$work/damaged.h5"; do
  rc=0
  # shellcheck source=/dev/null
  (. "$SOURCE/jobs/env.sh" && mpirun -q -n 3 "$FASCICLE" inspect "$words" >/dev/null 2>"$work/err") || rc=$?
  if [ $rc != 65 ] || [ "$(wc -l <"$work/err")" != 1 ]; then fail "mpirun: code $rc, not one line: $(cat "$work/err")"; fi
done

# Wrong launches: N copies of "rank 0 of 1".
rc=0
OMPI_COMM_WORLD_SIZE=4 "$FASCICLE" info >/dev/null 2>"$work/err" || rc=$?
if [ $rc != 69 ] || ! grep -q 'srun --mpi=pmix' "$work/err"; then fail "wrong launch (OMPI): $rc $(cat "$work/err")"; fi
rc=0
SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=2 "$FASCICLE" info >/dev/null 2>"$work/err" || rc=$?
[ $rc = 69 ] || fail "wrong launch (Slurm): $rc $(cat "$work/err")"
SLURM_NTASKS=4 SLURM_JOB_ID=1 "$FASCICLE" info >/dev/null || fail "a plain verb inside a batch script must run"

# The README's first simulation, on a small graph of the same names.
block() { sed -n "/^## A first simulation/,/^## Your own/p" "$SOURCE/README.md" | sed -n "/^\`\`\`$1\$/,/^\`\`\`\$/p" | grep -v '^`'; }
block json >"$work/lif.json"
{ block python && echo '    assert len(times) == len(cells) > 0 and b"ASHL" in cells, cells'; } >"$work/read.py"
printf 'pre,post,weight\nASHL,PVCL,70\nPVCL,ASHR,3\nASHR,ASHL,2\n' >"$work/edges.csv"
(
  cd "$work"
  "$FASCICLE" convert --edges edges.csv --output worm.h5 >/dev/null 2>&1
  "$RANKS" 2 "$FASCICLE" simulate worm.h5 --config lif.json --steps 1000 --output run_worm 2>err || fail "the README's first simulation: $(cat err)"
  "$PYTHON" read.py
)
echo "cli: ${#verbs[@]} verbs"
