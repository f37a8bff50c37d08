#!/bin/bash
# jobs/setup.sh [run|test|parity|slurm]...: install what a fresh Debian or Ubuntu machine lacks. Safe to run again.
#   run    (always)  compiler, CMake, Open MPI, parallel HDF5, METIS and the other libraries; Python with matplotlib
#   test             also clang, clang-format, shellcheck and a Python environment in .venv (libsonata, bmtk, pyarrow, pandas ...)
#   parity           also Brian2 and NEST in .venv-parity, to compare spikes with theirs (400 MB; skipped where there are no wheels)
#   slurm            also Slurm and munge, for jobs/local-slurm
# Without root it says what it would do and fails if something is missing. CUDA and NCCL are not installed: where the CUDA
# Toolkit is found, the GPU backend is built.
set -euo pipefail
case ${1:-} in -h | --help) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0" && exit ;; esac
cd "$(dirname "${BASH_SOURCE[0]}")/.."

packages=(gcc make cmake ninja-build pkg-config git ca-certificates openmpi-bin libopenmpi-dev libhdf5-openmpi-dev
  libmetis-dev libjansson-dev libssl-dev liblz4-dev libzstd-dev zlib1g-dev
  python3 python3-h5py python3-numpy python3-matplotlib)
wanted_venv=false wanted_parity=false
for what in "$@"; do
  case $what in
    run) ;;
    test) packages+=(clang clang-format libclang-rt-dev libomp-dev shellcheck python3-venv hdf5-tools); wanted_venv=true ;;
    parity) packages+=(python3-venv); wanted_parity=true ;;
    slurm) packages+=(slurm-wlm munge libpmix-dev util-linux) ;;
    *) echo "setup.sh: unknown word '$what'; known are run, test, parity, slurm" >&2; exit 2 ;;
  esac
done

command -v dpkg-query >/dev/null || {
  echo "setup.sh: this script knows Debian and Ubuntu; elsewhere install the equivalents of: ${packages[*]}" >&2
  exit 1
}
missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing+=("$package")
done
# A gcc, make, cmake or python3 of the user's own will do.
kept=()
for package in "${missing[@]}"; do
  case $package in
    gcc | make | cmake | git | python3 | shellcheck | clang | clang-format) command -v "$package" >/dev/null && continue ;;
  esac
  kept+=("$package")
done
missing=("${kept[@]}")

if ((${#missing[@]})); then
  if [ "$(id -u)" != 0 ]; then
    echo "setup.sh: missing packages; as root this script would run:" >&2
    echo "  apt-get update && apt-get install -y --no-install-recommends ${missing[*]}" >&2
    exit 1
  fi
  echo "setup.sh: installing ${missing[*]}"
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq
  apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi

if $wanted_venv; then
  venv=$PWD/.venv modules=(numpy h5py pandas scipy matplotlib libsonata pyarrow six)
  if ! "$venv/bin/python" -c 'import numpy, h5py, pandas, scipy, matplotlib, libsonata, pyarrow, six, bmtk' 2>/dev/null; then
    echo "setup.sh: making .venv with ${modules[*]} bmtk"
    /usr/bin/python3 -m venv "$venv"
    "$venv/bin/pip" install -q --disable-pip-version-check "${modules[@]}"
    # Its readers need nothing beyond these; its simulators' packages (200 MB) stay out.
    "$venv/bin/pip" install -q --disable-pip-version-check --no-deps bmtk
  fi
fi

if $wanted_parity; then
  venv=$PWD/.venv-parity modules=(brian2==2.9.0 nest-simulator==3.10.0 "numpy<2.4" h5py)
  if ! "$venv/bin/python" -c 'import brian2, nest, h5py' >/dev/null 2>&1; then
    echo "setup.sh: making .venv-parity with ${modules[*]}"
    /usr/bin/python3 -m venv "$venv"
    if ! "$venv/bin/pip" install -q --disable-pip-version-check --only-binary :all: "${modules[@]}"; then
      rm -rf "$venv"
      echo "setup.sh: pip has no ready-made Brian2 or NEST for this machine: the test that compares with them will be skipped"
    fi
  fi
fi
echo "setup.sh: everything is installed"
