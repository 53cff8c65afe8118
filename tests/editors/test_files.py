"""Files for other editors that no editor here reads: Zed's debug.json by the fields that Zed documents."""

import ipaddress
import json
import os

HERE = os.path.dirname(os.path.abspath(__file__))
EDITORS = os.path.join(os.environ.get("SRCDIR", os.path.join(HERE, "..", "..")), "editors")
# of an attach by Zed's adapter "Debugpy" (its schema of July 2026), with those that every entry has
ZED = {"label": str, "adapter": str, "request": str, "connect": dict, "justMyCode": bool, "pathMappings": list}


def test_zed():
    with open(os.path.join(EDITORS, "zed", "debug.json"), encoding="utf-8") as text:
        entries = json.load(text)
    assert len({one["label"] for one in entries}) == len(entries) == 2
    for one in entries:
        assert {name: type(value) for name, value in one.items()} == {name: ZED[name] for name in one}
        assert (one["adapter"], one["request"]) == ("Debugpy", "attach")
        assert set(one["connect"]) == {"host", "port"} and 0 < one["connect"]["port"] < 65536
        assert ipaddress.ip_address(one["connect"]["host"]).is_loopback
        for pair in one.get("pathMappings", ()):
            assert set(pair) == {"localRoot", "remoteRoot"}
