#!/bin/bash
# jobs/shiu.sh: the fly experiments of Shiu et al. (Nature 634, 210-219, 2024) with one command, from a release's tables to a
# table beside the published values. `jobs/shiu.sh --help` says how.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=env.sh
. "$here/env.sh"
exec "${PYTHON:-/usr/bin/python3}" "$here/shiu.py" "$@"
