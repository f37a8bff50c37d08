#!/bin/bash
# The recipes that cannot run here are at least well-formed, and agree with the project's version and dependencies.
set -euo pipefail
cd "$SOURCE/jobs/packaging"
"$PYTHON" - <<'PY'
import ast

for path in ("spack/package.py", "easybuild/fascicle-0.1.0-foss-2023a.eb"):
    ast.parse(open(path).read(), path)
PY
# The manual page knows the verbs and exit codes that the program and the README know.
diff <("$FASCICLE" --help | sed -n '/^Verbs:/,/^$/p' | awk 'NR > 1 && NF { print $1 }') \
  <(sed -n '/^.SH VERBS/,/^.SH EXIT/p' fascicle.1 | sed -n 's/^\.B //p')
diff <(sed -n 's/^| \([0-9]*\) |.*/\1/p' "$SOURCE/README.md") <(sed -n '/^.SH EXIT/,/^.SH SIGNALS/p' fascicle.1 | sed -n 's/^\.B \([0-9]*\)$/\1/p')
version=$(sed -n 's/^project(fascicle VERSION \([0-9.]*\).*/\1/p' "$SOURCE/CMakeLists.txt")
grep -q "version = '$version'" "easybuild/fascicle-$version-foss-2023a.eb"
grep -q "/opt/fascicle/$version" fascicle.lua
for section in files post runscript test; do grep -q "^%$section" apptainer.def; done
for name in jansson metis lz4 zstd; do
  grep -qi "depends_on(\"$name\")" spack/package.py
  grep -qi "('$name'," easybuild/*.eb
done
# Scripts explain themselves and do nothing else; job files say what they are for.
for script in quickstart setup build fetch_real; do
  "$SOURCE/jobs/$script.sh" --help | head -n 1 | grep -q "^jobs/$script.sh" || { echo "packaging: $script.sh --help"; exit 1; }
done
for job in "$SOURCE"/jobs/*.sbatch; do
  if said=$(env -u SLURM_SUBMIT_DIR -u FASCICLE_JOBS bash "$job" 2>&1); then echo "packaging: $job ran without Slurm"; exit 1; fi
  [[ $said == *"submit this file with sbatch"* ]] || { echo "packaging: $job: $said"; exit 1; }
done
echo "packaging: recipes of version $version are well-formed (not built here)"
