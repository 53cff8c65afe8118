#!/bin/sh
# Run one file of pytest tests under `make check`; without pytest it is skipped (status 77), saying so.
# PROBING_PYTEST names a Python that has pytest; else the build's own (made by `./bootstrap check`), else python3.
set -eu
file=$1
for python in ${PROBING_PYTEST:-} "${BUILDDIR:-.}/venv/bin/python3" python3; do
    command -v "$python" >/dev/null 2>&1 || continue
    "$python" -c 'import importlib.util as u, sys; sys.exit(not u.find_spec("pytest"))' 2>/dev/null || continue
    # What tests and their targets leave is gone with this folder: as open as /tmp, its name short enough for a socket's.
    TMPDIR=$(mktemp -d /tmp/prb.XXXXXX)
    export TMPDIR
    trap 'rm -rf --one-file-system "$TMPDIR"' EXIT
    trap 'exit 143' INT TERM HUP
    chmod 1777 "$TMPDIR"
    # What happens to be installed beside pytest takes 2 s of processor time to import, and no test needs it as a plugin.
    PYTEST_DISABLE_PLUGIN_AUTOLOAD=1
    export PYTEST_DISABLE_PLUGIN_AUTOLOAD
    { "$python" -m pytest -p no:cacheprovider -q -rsf --tb=short --durations=5 --basetemp="$TMPDIR/t" "$file" && status=0 || status=$?
      echo $status >"$TMPDIR/status"; } | tee "$TMPDIR/said"
    status=$(cat "$TMPDIR/status")
    echo "processor time, user and system: of this script, of all it ran"
    times
    [ "$status" -ne 5 ] || ! grep -q ' skipped in ' "$TMPDIR/said" || exit 77  # a file that skips itself; an empty one fails
    exit "$status"
done
echo "SKIPPED: $file needs pytest (./bootstrap check provides it)"
exit 77
