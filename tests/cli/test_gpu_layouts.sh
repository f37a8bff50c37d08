#!/bin/bash
# seconds: 20
# The layouts that `plan` counts with, in every build, are those of the CUDA kernels.
set -euo pipefail
[ -x "$BUILD/tests/gpu_layouts" ] || { echo "skipped: built without CUDA"; exit 77; }
"$BUILD/tests/gpu_layouts"
