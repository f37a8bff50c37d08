#!/bin/bash
# The recipes that cannot run here are at least well-formed, and agree with the project's version and dependencies.
set -euo pipefail
cd "$SOURCE/jobs/packaging"
"$PYTHON" - <<'PY'
import ast

for path in ("spack/package.py", "easybuild/fascicle-0.1.0-foss-2023a.eb"):
    ast.parse(open(path).read(), path)
PY
version=$(sed -n 's/^project(fascicle VERSION \([0-9.]*\).*/\1/p' "$SOURCE/CMakeLists.txt")
grep -q "version = '$version'" "easybuild/fascicle-$version-foss-2023a.eb"
grep -q "/opt/fascicle/$version" fascicle.lua
for section in files post runscript test; do grep -q "^%$section" apptainer.def; done
for name in jansson metis lz4 zstd; do
  grep -qi "depends_on(\"$name\")" spack/package.py && grep -qi "('$name'," easybuild/*.eb
done
echo "packaging: recipes of version $version are well-formed (not built here)"
