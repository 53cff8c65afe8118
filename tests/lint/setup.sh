#!/bin/sh
# setup.sh DIR: a virtual environment with the tools that tests/lint runs, in the versions of requirements.txt.
set -eu
dir=$1
wanted=$(dirname "$0")/requirements.txt
cmp -s "$wanted" "$dir/.ready" && exit
python3 -m venv "$dir"
"$dir/bin/python3" -m pip install -q --disable-pip-version-check -r "$wanted"
cp "$wanted" "$dir/.ready"
