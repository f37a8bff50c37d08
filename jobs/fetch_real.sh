#!/bin/bash
# jobs/fetch_real.sh NAME [OUTPUT.h5]: a real connectome with one command. Installs a PyPI package that ships the data, under the licence named
# here, into a scratch environment, and converts its table. Nothing of it is kept but the artifact, whose provenance says where it came from.
#
#   celegans-2019     C. elegans hermaphrodite, chemical synapses (Cook et al., Nature 2019): package cect, MIT
#   celegans-2019-all the same, chemical and electrical merged
#   celegans-1986     C. elegans, chemical synapses (White et al., 1986): package cect, MIT
#
# The fly's connectomes are larger than PyPI packages ship: flybrainer and flybrain (looked at in 2026-11) hold code that downloads MaleCNS,
# not the data. With the release's own tables (CC BY 4.0): fascicle convert --help.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=env.sh
. "$here/env.sh"
name=${1:?"a name is missing; known are celegans-2019, celegans-2019-all, celegans-1986"}
output=$(realpath -m "${2:-$name.h5}")
package=cect==0.3.5
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

case $name in
  celegans-2019) table=herm_full_edgelist.csv words=(--columns "pre=Source,post=Target,weight=Weight,kind=Type" --where Type=chemical) ;;
  celegans-2019-all) table=herm_full_edgelist.csv words=(--columns "pre=Source,post=Target,weight=Weight,kind=Type" --merge-kinds) ;;
  celegans-1986) table=aconnectome_white_1986_whole.csv words=(--columns "pre=pre,post=post,weight=synapses,kind=type" --where type=chemical) ;;
  *)
    echo "fetch_real.sh: unknown name '$name'; known are celegans-2019, celegans-2019-all, celegans-1986" >&2
    exit 2
    ;;
esac
python3 -m pip download -q --disable-pip-version-check --no-deps --only-binary=:all: -d "$scratch" "$package"
python3 -m zipfile -e "$scratch"/*.whl "$scratch/package"
cd "$scratch/package"
"$FASCICLE" convert --edges "cect/data/$table" "${words[@]}" --population celegans --force --output "$output"
"$FASCICLE" inspect "$output"
