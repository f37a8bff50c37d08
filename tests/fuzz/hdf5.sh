#!/bin/bash
# tests/fuzz/hdf5.sh SOURCE FOLDER: the HDF5 source in SOURCE (of the version that the program was built with) with
# AddressSanitizer and without its free lists, into FOLDER. Fuzz targets started with LD_LIBRARY_PATH=FOLDER then also see the
# library write past its memory, or use what it freed: otherwise that shows only later, or never, and at another input.
set -euo pipefail
source=$(realpath "$1")
mkdir -p "$2/build" && cd "$2/build"
export OMPI_CC=clang CC=mpicc CFLAGS="-O1 -g -fsanitize=address -fno-omit-frame-pointer -w -fPIC" ASAN_OPTIONS=detect_leaks=0
"$source"/configure --enable-parallel --disable-tests --disable-tools --disable-hl --enable-using-memchecker --disable-static \
  --with-zlib --disable-symbols >configure.log 2>&1
make -j"$(nproc)" -C src >make.log 2>&1
cp src/.libs/libhdf5.so.*.*.* ../libhdf5_openmpi.so.103 # by the name that programs ask for
echo "LD_LIBRARY_PATH=$(realpath ..)"
