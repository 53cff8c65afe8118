"""What changes something: the probe, its settings, code in the target; who may, and what the log says of it."""

import json
import os
import socket
import threading

import pytest

from serving import DEADLINE, received_until, until
from support.target import probing

ALL = {"inject": ("POST", "/inject", {}), "detach": ("POST", "/detach", {}), "setting": ("PUT", "/config/probing.max_memory", {"value": "64MB"}),
       "crash": ("PUT", "/crash", {"on": True}), "eval": ("POST", "/eval", {"code": "1"}), "complete": ("POST", "/complete", {"text": "imp"})}


def base(job):
    return "/api/v1/p/{}".format(job.pid)


def ask(server, job, name, value=None, **more):
    method, path, body = ALL[name]
    return server.send(base(job) + path, body if value is None else value, method, **more)


@pytest.fixture
def probed(server, job):
    assert ask(server, job, "inject").status == 200
    return job


def test_the_probe_comes_and_goes(server, job):
    first = ask(server, job, "inject")
    assert first.status == 200 and first.json["message"].startswith("loaded in")
    assert ask(server, job, "inject", {"settings": {"probing.max_memory": "64MB"}}).json["message"].startswith("a probe was there already")
    assert probing("-t", job.pid, "config", "probing.max_memory").stdout == server.ask(base(job) + "/config/probing.max_memory?format=text").text
    assert server.ask(base(job) + "/config/probing.max_memory").json == {"key": "probing.max_memory", "value": "64MB"}
    assert ask(server, job, "detach").json["message"] == "the probe of process {} ended".format(job.pid)
    again = ask(server, job, "detach")
    assert again.status == 404 and "no probe" in again.error["message"]


def test_settings(server, probed):
    told = ask(server, probed, "setting", {"value": "100MB"})
    assert told.status == 200 and told.json["message"] == "probing.max_memory = 100MB"
    rows = {row["key"]: row for row in server.ask(base(probed) + "/config").json}
    assert rows["probing.max_memory"]["value"] == "100MB" and rows["probing.max_memory"]["meaning"]
    assert server.ask(base(probed) + "/config?format=text").text == probing("-t", probed.pid, "config").stdout
    assert ask(server, probed, "setting", {"value": "much"}).status == 400
    assert server.send(base(probed) + "/config/probing.nothing", {"value": "1"}, "PUT").status == 404
    assert server.ask(base(probed) + "/config/probing.nothing").status == 404
    assert server.send(base(probed) + "/config/probing.max_memory=1MB", {"value": "1"}, "PUT").status == 404
    assert server.ask(base(probed) + "/config/probing.max_memory=1MB").status == 404  # GET changes nothing
    assert server.ask(base(probed) + "/config/probing.max_memory").json["value"] == "100MB"


def test_the_crash_switch(server, probed):
    assert ask(server, probed, "crash", {"on": True, "hold": 5}).status == 200
    assert server.ask(base(probed) + "/config/probing.crash").json["value"] == "on"
    assert ask(server, probed, "crash", {"on": False}).status == 200
    assert server.ask(base(probed) + "/config/probing.crash").json["value"] == "off"


def test_eval(server, probed):
    told = ask(server, probed, "eval", {"code": "print('seen')\n6 * 7"})
    assert told.status == 200 and told.json["value"] == "42" and told.json["output"] == "seen\n" and told.json["raised"] is None
    told = ask(server, probed, "eval", {"code": "x = 1"}).json
    assert told["value"] is None and told["output"] == ""
    told = ask(server, probed, "eval", {"code": "print('first')\n1 / 0"})
    assert told.status == 200 and "ZeroDivisionError" in told.json["raised"] and told.json["output"] == "first\n" and told.json["value"] is None
    assert ask(server, probed, "eval", {"code": "y = 5", "namespace": "mine"}).status == 200
    assert ask(server, probed, "eval", {"code": "y", "namespace": "mine"}).json["value"] == "5"
    assert "NameError" in ask(server, probed, "eval", {"code": "y", "namespace": "other"}).json["raised"]


def test_eval_loads_the_probe(server, job):
    assert ask(server, job, "eval", {"code": "1 + 1"}).json["value"] == "2"


def test_a_great_output_is_cut(server, probed):
    told = ask(server, probed, "eval", {"code": "for i in range(10): print('x' * 1000000)\n'done'"}).json
    assert told["truncated"] and len(told["output"]) == 8 << 20 and told["value"] == "'done'"


def test_an_evaluation_is_interrupted(server, probed):
    told = []
    one = threading.Thread(target=lambda: told.append(ask(server, probed, "eval", {"code": "import time\nwhile True: time.sleep(0.01)", "id": "mine"})))
    one.start()
    path = base(probed) + "/eval/mine"
    until(lambda: server.ask(path, "DELETE").status == 200)
    one.join()
    assert told[0].status == 200 and "KeyboardInterrupt" in told[0].json["raised"]
    assert server.ask(path, "DELETE").status == 404


def test_who_leaves_ends_his_evaluation(server, probed):
    code = "try:\n sys.left = False\n while True: time.sleep(0.01)\nexcept KeyboardInterrupt:\n sys.left = True"
    one = server.connected(False)
    body = '{"timeout": 250, "code": "import sys, time\\n%s"}' % code.replace("\n", "\\n")
    one.sendall("POST {}/eval HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{}".format(base(probed), len(body), body).encode())
    left = {"code": "import sys; getattr(sys, 'left', None)"}
    until(lambda: ask(server, probed, "eval", left).json["value"] == "False")  # it runs
    one.close()
    until(lambda: ask(server, probed, "eval", left).json["value"] == "True")


def test_complete(server, probed):
    assert "import" in " ".join(ask(server, probed, "complete", {"text": "impor"}).json["completions"])
    assert ask(server, probed, "complete", {"text": "x", "cursor": 2}).status == 400


# ---- who may ----


def test_tcp_may_look_alone(server, job):
    for name in ALL:
        answer = ask(server, job, name, tcp=True)
        grant = "eval" if name in ("eval", "complete") else "control"
        assert answer.status == 403 and grant in answer.error["message"] and "--allow " + grant in answer.error["remedy"], name
        assert "needs the grant " + grant in server.log
    assert server.ask(base(job) + "/eval/x", "DELETE", tcp=True).status == 403
    assert server.ask(base(job) + "/config", tcp=True).status == 200
    assert "no probe" in ask(server, job, "detach").error["message"]  # nothing was loaded


def test_a_browser_at_the_socket_may_look_alone(server, job):
    for name in ALL:
        assert ask(server, job, name, Origin="http://localhost", Host="localhost").status == 403, name


def test_control_is_not_eval(serve, job):
    server = serve("--allow", "control")
    assert ask(server, job, "inject", tcp=True).status == 200
    assert ask(server, job, "eval", tcp=True).status == 403
    assert ask(server, job, "detach", tcp=True).status == 200


def test_a_program_is_code(serve, job):
    """A setting that names a program of the probe's runs it: control is not enough."""
    for allow, status in (("control", 403), ("control,eval", 200)):
        server = serve("--allow", allow)
        for name in ("probing.crash_program", "Probing.Serve_Program"):
            told = server.send("/api/v1/p/{}/config/{}".format(job.pid, name), {"value": "/bin/true"}, "PUT", tcp=True)
            assert told.status == status, told.text
            told = server.post("/api/v1/p/{}/inject".format(job.pid), {"settings": {name: "/bin/true"}}, tcp=True)
            assert told.status == status, told.text
        server.end()


def test_eval_when_granted(serve, job):
    server = serve("--allow", "eval")
    assert ask(server, job, "eval", {"code": "'secret of the job'"}, tcp=True).json["value"] == "'secret of the job'"
    line = [line for line in server.log.splitlines() if "/eval by 127.0.0.1" in line]
    assert len(line) == 1 and "process {}".format(job.pid) in line[0] and "secret of the job" in line[0] and line[0].endswith(": done")
    assert server.token not in server.log


def test_the_log_has_what_was_done(serve, job):
    server = serve()
    ask(server, job, "inject", {"settings": {"probing.max_memory": "64MB"}})
    ask(server, job, "setting", {"value": "much"})
    ask(server, job, "eval", {"code": "'" + "x" * 1000 + "'"})
    lines = server.log.splitlines()
    assert any("/inject by uid " in line and "probing.max_memory" in line and line.endswith(": done") for line in lines)
    assert any("probing.max_memory=much" in line and not line.endswith(": done") for line in lines)
    assert max(len(line) for line in lines) < 400


# ---- bodies ----


@pytest.mark.parametrize("name, body", [
    ("eval", {}), ("eval", {"code": 1}), ("eval", {"code": "1", "other": 1}), ("eval", {"code": None}), ("eval", {"code": "1", "thread": -1}),
    ("eval", {"code": "1", "frame": 1.5}), ("eval", {"code": "1", "timeout": "long"}), ("setting", {}), ("setting", {"value": 5}),
    ("crash", {}), ("crash", {"on": 1}), ("inject", {"settings": []}), ("inject", {"settings": {"a": 1}}), ("inject", {"library": "/tmp/x.so"}),
    ("inject", {"settings": {"probing.nothing": "1"}}), ("detach", {"x": 1}), ("complete", {"text": []})])
def test_wrong_bodies(server, job, name, body):
    answer = ask(server, job, name, body)
    assert answer.status in (400, 404) and answer.error["message"], answer.body
    assert "no probe" in ask(server, job, "detach").error["message"]  # it was refused before anything was loaded


@pytest.mark.parametrize("body", ["", "[]", "1", "{", '{"code": "1", "code": "2"}', '{"code": "\ud800"}', "\0"])
def test_what_is_no_object(server, job, body):
    assert server.ask(base(job) + "/eval", "POST", body.encode("utf-8", "surrogatepass")).status == 400


def test_files_and_ended_ones(server, start, any_python):
    job = start(any_python, "threads.py").settle()
    row = {row["pid"]: row for row in server.ask("/api/v1/processes").json["processes"]}[job.pid]
    job.child.kill()
    job.child.wait()
    for name, (method, path, body) in ALL.items():
        assert server.send(base(job) + path, body, method).status == 404, name
        assert server.send("/api/v1/p/" + row["id"] + path, body, method).status == 410, name
        assert server.send("/api/v1/p/file:x.snap" + path, body, method).status == 422, name


# ---- a debugger ----

DAP = "Content-Length: {}\r\n\r\n{}"


def connect(address):
    return socket.create_connection(address.rsplit(":", 1), DEADLINE)


def attach(address, words):
    """The answer to `attach`, of a client that speaks the Debug Adapter Protocol."""
    with connect(address) as one:
        for seq, (command, arguments) in enumerate([("initialize", {"adapterID": "x"}), ("attach", words)], 1):
            text = json.dumps({"seq": seq, "type": "request", "command": command, "arguments": arguments})
            one.sendall(DAP.format(len(text), text).encode())
        told = received_until(one, b'"initialized"' if "token" in words else b'"command":"attach"')
        return told.decode()


def test_a_debugger_is_let_in(serve, job):
    server = serve("--allow", "eval")
    path = base(job) + "/debug"
    told = server.send(path, {}, tcp=True)
    assert told.status == 201 and not told.json["paused"]
    address, launch = told.json["address"], told.json["launch"]
    assert launch["connect"] == {"host": "127.0.0.1", "port": int(address.rsplit(":", 1)[1])} and launch["token"] == told.json["token"]
    assert "initialized" in attach(address, {"token": told.json["token"]})
    again = server.send(path, {}, tcp=True)
    assert again.status == 200 and again.json == told.json
    assert "/debug by" in server.log and address in server.log and told.json["token"] not in server.log
    assert server.ask(path, "DELETE").json == {"ended": True}
    with pytest.raises(ConnectionRefusedError):
        connect(address).close()
    assert server.ask(path, "DELETE").status == 404


def test_a_debugger_ends_with_the_server(serve, job):
    server = serve()
    address = server.send(base(job) + "/debug", {}).json["address"]
    connect(address).close()
    assert server.end() == 0
    with pytest.raises(ConnectionRefusedError):
        connect(address).close()


@pytest.mark.parametrize("body, status", [({"address": "0.0.0.0:0"}, 400), ({"address": "/tmp/x.sock"}, 400), ({"address": "nonsense"}, 400),
                                          ({"pause": 1}, 400), ({"port": 1}, 400)])
def test_a_debugger_is_for_loopback(server, job, body, status):
    """Who connects runs code: it is never opened to a network from here."""
    answer = server.send(base(job) + "/debug", body)
    assert answer.status == status and answer.error["message"], answer.body


def test_a_debuggers_port_that_is_taken(server, job):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        answer = server.send(base(job) + "/debug", {"address": "127.0.0.1:{}".format(taken.getsockname()[1])})
    assert answer.status == 500 and "listening on" in answer.error["message"], answer.body


def test_a_debugger_needs_eval(serve, job):
    server = serve("--allow", "control")
    refused = server.send(base(job) + "/debug", {}, tcp=True)
    assert refused.status == 403 and "--allow eval" in refused.error["remedy"] and "needs the grant eval" in server.log
    assert os.path.exists("/proc/{}".format(job.pid))
