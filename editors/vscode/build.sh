#!/bin/sh
# editors/vscode/build.sh FILE: the extension as FILE, a .vsix.  Needs npm, which takes the compiler that package-lock.json names; it is
# compiled in a copy, the folder vsix.dir beside FILE, so that the source tree stays as it is.
set -eu
file=${1:?usage: editors/vscode/build.sh FILE}
command -v npm >/dev/null || { echo "make vsix: needs npm, which comes with Node.js" >&2; exit 1; }
folder=$(cd "$(dirname "$file")" && pwd)
file=$folder/$(basename "$file")
cd "$(dirname "$0")"
rm -rf "$folder/vsix.dir"
mkdir "$folder/vsix.dir"
cp -r package.json package-lock.json tsconfig.json README.md src media walkthrough ../../LICENSE "$folder/vsix.dir"
pack=$PWD/pack.py
cd "$folder/vsix.dir"
npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
npm run --silent compile
python3 "$pack" . "$file"
