"""Writes rows and waits: a line "rows" on standard input writes some more, the end of it ends the program."""

import json
import os
import sys

import probing

norms = probing.table("norms", {"layer": str, "norm": float})
if "init" in sys.argv:
    probing.init(max_memory="64MB")
print(json.dumps({"pid": os.getpid(), "active": probing.is_active()}), flush=True)
number = 0
for line in sys.stdin:
    if line.strip() == "fork":
        pid = os.fork()
        if pid == 0:
            print(json.dumps({"pid": os.getpid(), "active": probing.is_active(), "kept": norms.append("child", 0.0)}), flush=True)
            sys.stdin.readline()
            os._exit(0)
        continue
    if line.strip() == "taken":
        print(json.dumps({"kept": probing.Table("Threads", [probing.Column("number", int)]).append(1)}), flush=True)
        continue
    if line.strip() in ("other", "wider"):
        wide = line.strip() == "wider"
        other = probing.table("other", {"b": str, "a": int} if wide else {"a": int})
        print(json.dumps({"kept": other.append("x", 2) if wide else other.append(1)}), flush=True)
        continue
    if line.strip() == "debug":
        print(json.dumps({"where": probing.debug(listen="127.0.0.1:0"), "again": probing.debug()}), flush=True)
        continue
    if line.startswith("serve "):
        print(json.dumps({"url": probing.init(listen=line.split()[1])}), flush=True)
        continue
    if line.startswith("listen "):
        try:
            print(json.dumps({"where": probing.debug(listen=line.split()[1])}), flush=True)
        except probing.ProbeError as error:
            print(json.dumps({"error": str(error)}), flush=True)
        continue
    if line.strip() == "open":
        print(json.dumps({"where": probing.debug(listen="0.0.0.0:0")}), flush=True)
        continue
    if line.strip() == "breakpoint":
        probing.breakpoint()
        print(json.dumps({"went": "on"}), flush=True)
        continue
    kept = []
    for step in range(4):
        number += 1
        probing.step(epoch=step // 2)
        with probing.span("forward", size=8):
            probing.event("here", at=step)
        kept += [probing.log(loss=1.0 / number), norms.append("fc{}".format(number), None if step == 3 else number)]
    print(json.dumps({"kept": all(kept), "active": probing.is_active(), "loss": probing.query("SELECT max(loss) AS m FROM training_logs") if "query" in sys.argv else None}), flush=True)
