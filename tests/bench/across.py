"""Figures of SQL over the rows of 10,000 ranks, at the asker: the ranks' answers are made beforehand."""

import json
import os
import subprocess

ROWS = os.path.join(os.environ.get("BUILDDIR", "."), "tests", "bench", "fleet_rows")


def fleet_sql(figures, options):
    for line in subprocess.run([ROWS], check=True, stdout=subprocess.PIPE, encoding="utf-8").stdout.splitlines():
        told = json.loads(line)
        bar = 1 if told["rows"] <= 300000 else 4
        figures.add("SQL over 10,000 ranks, {:,} rows: {}".format(told["rows"], told["name"]), told["seconds"],
                    "s (CPU {:.2f} s, {:.1f} MB, {} MiB at most)".format(told["cpu"], told["bytes"] / 1e6, told["peak_mib"]),
                    "≤ {} s".format(bar), told["seconds"] <= bar)


PARTS = [fleet_sql]
