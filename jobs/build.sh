#!/bin/bash
# jobs/build.sh [FOLDER [CMAKE-OPTION...]]: configure and build in FOLDER (default: build). Set FASCICLE_CUDA=on|off|auto.
set -euo pipefail
case ${1:-} in -h | --help) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0" && exit ;; esac
cd "$(dirname "${BASH_SOURCE[0]}")/.."
folder=${1:-build}
shift || true
mkdir -p "$folder"
{
  cmake -S . -B "$folder" -G Ninja -DFASCICLE_CUDA="${FASCICLE_CUDA:-auto}" "$@" && ninja -C "$folder"
} >"$folder/build.log" 2>&1 || {
  tail -n 40 "$folder/build.log" >&2
  echo "build.sh: the build in $folder failed; the whole log is $folder/build.log" >&2
  exit 1
}
echo "build.sh: built $folder/fascicle ($(grep -m1 'CUDA backend' "$folder/build.log" | sed 's/^-- //'))"
