#!/bin/bash
# Sources are formatted by .clang-format, scripts pass shellcheck, no file is over 500 lines.
set -euo pipefail
cd "$SOURCE"
mapfile -t sources < <(git ls-files 'src/*.[ch]' 'io/*.[ch]' 'partition/*.[ch]' 'kernels/*.[ch]' 'kernels/*.cu' 'kernels/*.cuh' 'tests/*.[ch]')
mapfile -t scripts < <(git ls-files '*.sh' '.ci/run')
[ "${#sources[@]}" -gt 20 ] || {
  echo "only ${#sources[@]} sources found"
  exit 1
}
bad=0
for file in "${sources[@]}"; do
  clang-format --dry-run --Werror "$file" >/dev/null 2>&1 || {
    echo "$file: run clang-format -i on it"
    bad=1
  }
  lines=$(wc -l <"$file")
  [ "$lines" -le 500 ] || {
    echo "$file: $lines lines; split it"
    bad=1
  }
done
shellcheck -S warning "${scripts[@]}" || bad=1
[ $bad = 0 ] && echo "format: ${#sources[@]} sources, ${#scripts[@]} scripts"
exit $bad
