#!/bin/sh
# Run one file of pytest tests under `make check`; without pytest it is skipped (status 77), saying so.
# PROBING_PYTEST names a Python that has pytest; else the build's own (made by `./bootstrap check`), else python3.
set -eu
file=$1
for python in ${PROBING_PYTEST:-} "${BUILDDIR:-.}/venv/bin/python3" python3; do
    command -v "$python" >/dev/null 2>&1 || continue
    "$python" -c 'import pytest' 2>/dev/null || continue
    exec "$python" -m pytest -p no:cacheprovider -q -rsf --tb=short "$file"
done
echo "SKIPPED: $file needs pytest (./bootstrap check provides it)"
exit 77
