#!/bin/sh
# tests/editors/setup.sh DIR: the real VS Code for tests, in DIR: code-server (its workbench and extension host) and the node
# it wants, both from npm; and ESLint for the extension, axe for the page, and the inspector of MCP.  About a minute and 0.9 GB; a second run does nothing.
# No install script of a package runs: they would download from elsewhere, and what they build is not needed here.
# Status 77, with the reason, when it cannot be made here.
set -eu
dir=${1:?usage: tests/editors/setup.sh DIR}
code_server=4.139.1 # VS Code 1.139.1
node=24.21.0
eslint='eslint@10.15.0 typescript-eslint@8.73.0'
axe='axe-core@4.14.1' # looks at the page of probing serve
inspector='@modelcontextprotocol/inspector-cli@1.0.3' # asks probing mcp
vscode=$(cd "$(dirname "$0")/../../editors/vscode" && pwd)

skip() {
    echo "editors: $*"
    exit 77
}

made="$code_server $node $eslint $axe $inspector"
[ "$(cat "$dir/.ready" 2>/dev/null)" != "$made" ] || exit 0
command -v npm >/dev/null || skip "needs npm"
command -v chromium >/dev/null || skip "needs chromium"
case $(uname -m) in
x86_64) machine=x64 ;;
aarch64) machine=arm64 ;;
*) skip "no node for $(uname -m)" ;;
esac
rm -rf "$dir/.ready" "$dir/node" "$dir/code-server" "$dir/lint"
mkdir -p "$dir/node" "$dir/code-server" "$dir/lint"
dir=$(cd "$dir" && pwd)

install() {
    npm install --ignore-scripts --no-audit --no-fund --omit=dev --loglevel=error "$@"
}

cd "$dir"
npm pack --silent "node-linux-$machine@$node" >/dev/null || skip "npm has no node"
tar xzf "node-linux-$machine-$node.tgz" -C node --strip-components=1
rm -f "node-linux-$machine-$node.tgz"
chmod +x node/bin/node
cd "$dir/code-server"
echo '{"name":"probing-tests","private":true}' >package.json
install "code-server@$code_server" || skip "npm has no code-server"
cd node_modules/code-server/lib/vscode
install
# What the package's own script does besides.
ln -sfn node_modules node_modules.asar
cp "$vscode/package.json" "$vscode/package-lock.json" "$dir/lint/"
cd "$dir/lint"
# shellcheck disable=SC2086
npm install --ignore-scripts --no-audit --no-fund --no-save --loglevel=error $eslint $axe $inspector || skip "npm has no ESLint"
echo '{"name":"inspector","version":"0"}' >node_modules/@modelcontextprotocol/package.json # that of a larger package, which it reads
echo "$made" >"$dir/.ready"
