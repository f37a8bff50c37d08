#!/bin/bash
# seconds: 400
# Short forms of the endurance scripts (tests/endure): ten kills, fifteen faults, some seconds of soak.
set -euo pipefail
endure=$SOURCE/tests/endure
"$PYTHON" "$endure/kills.py" 10 "${SEED:-1}"
"$PYTHON" "$endure/faults.py" 15 "${SEED:-1}"
"$PYTHON" "$endure/soak.py" simulate 4 "${SEED:-1}"
"$PYTHON" "$endure/soak.py" train 4 "${SEED:-1}"
