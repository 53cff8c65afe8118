#!/bin/sh
# Run one file of pytest tests under `make check`; without pytest it is skipped (status 77), saying so.
# PROBING_PYTEST names a Python that has pytest; else the build's own (made by `./bootstrap check`), else python3.
#
# Nothing here takes for ever.  A test has $test_limit for each of its setup, call and teardown (tests/conftest.py), the file
# $file_limit.  What the tests leave running is named and ended.
set -eu
file=$1
test_limit=300 file_limit=1200 # seconds; the longest test takes some 60, the longest file 280

# Processes that have this run's temporary folder in their environment.
left() {
    grep -lsxzF "TMPDIR=$TMPDIR" /proc/[0-9]*/environ | cut -d / -f 3
}

end_what_is_left() {
    for pid in $(left); do
        # What is about to end is given the time.
        timeout 10 tail -f --pid="$pid" /dev/null || [ ! -e "/proc/$pid/exe" ] || {
            echo "left running: $pid: $(tr '\0' ' ' <"/proc/$pid/cmdline")"
            kill -KILL "$pid"
        } 2>/dev/null
    done
}

for python in ${PROBING_PYTEST:-} "${BUILDDIR:-.}/venv/bin/python3" python3; do
    command -v "$python" >/dev/null 2>&1 || continue
    "$python" -c 'import importlib.util as u, sys; sys.exit(not u.find_spec("pytest"))' 2>/dev/null || continue
    # What tests and their targets leave is gone with this folder: as open as /tmp, its name short enough for a socket's.
    TMPDIR=$(mktemp -d /tmp/prb.XXXXXX)
    export TMPDIR
    trap 'rm -rf --one-file-system "$TMPDIR"' EXIT
    trap 'end_what_is_left; exit 143' INT TERM HUP
    chmod 1777 "$TMPDIR"
    # What happens to be installed beside pytest takes 2 s of processor time to import, and no test needs it as a plugin.
    PYTEST_DISABLE_PLUGIN_AUTOLOAD=1
    export PYTEST_DISABLE_PLUGIN_AUTOLOAD
    # Into a file: the reader of a pipe would wait for what is left running, too.
    status=0
    PROBING_TEST_LIMIT=$test_limit timeout --kill-after=30 $file_limit "$python" -m pytest -p no:cacheprovider -q -rsfE --tb=short \
        --durations=5 --basetemp="$TMPDIR/t" "$file" >"$TMPDIR/said" 2>&1 || status=$?
    cat "$TMPDIR/said"
    [ "$status" -ne 124 ] && [ "$status" -ne 137 ] || echo "FAILED $file - took longer than $file_limit s"
    end_what_is_left
    echo "processor time, user and system: of this script, of all it ran"
    times
    [ "$status" -ne 5 ] || ! grep -q ' skipped in ' "$TMPDIR/said" || exit 77  # a file that skips itself; an empty one fails
    exit "$status"
done
echo "SKIPPED: $file needs pytest (./bootstrap check provides it)"
exit 77
