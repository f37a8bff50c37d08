#!/bin/bash
# seconds: 400
# Short forms of the endurance scripts (tests/endure): six kills, eight faults, some seconds of soak, models at a small
# size.
set -euo pipefail
endure=$SOURCE/tests/endure
"$PYTHON" "$endure/kills.py" 6 "${SEED:-1}"
"$PYTHON" "$endure/faults.py" 8 "${SEED:-1}"
"$PYTHON" "$endure/soak.py" simulate 3 "${SEED:-1}"
"$PYTHON" "$endure/soak.py" train 3 "${SEED:-1}"
"$PYTHON" "$endure/models.py" 5000 300000 1000
