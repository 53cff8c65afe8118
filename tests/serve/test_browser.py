"""A page of somebody else in a real Chromium, which runs with the user's network: it learns nothing and does nothing."""

import http.server
import json
import os
import queue
import shutil
import subprocess
import tempfile
import threading

import pytest

from serving import Server

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium")
WAIT = 150  # s: on a busy machine a browser takes long to begin

PAGE = """<!doctype html><iframe name="frame"></iframe><script>
const base = "BASE", told = {};
const tried = async (name, what) => { try { told[name] = await what(); } catch (error) { told[name] = "blocked"; } };
const body = '{"code": "open(\\'/tmp/never\\', \\'w\\')"}';
const element = (kind, source) => new Promise(done => {
  const one = document.createElement(kind); one.onload = () => done("loaded"); one.onerror = () => done("blocked");
  one.src = source; document.body.append(one);
});
(async () => {
  await tried("get", async () => (await fetch(base + "/api/v1/processes")).status);
  await tried("credentials", async () => (await fetch(base + "/api/v1/processes", {credentials: "include"})).status);
  await tried("opaque", async () => (await (await fetch(base + "/api/v1/processes", {mode: "no-cors"})).text()).length);
  await tried("header", async () => (await fetch(base + "/api/v1", {headers: {"X-Probing-Token": "x"}})).status);
  await tried("json", async () => (await fetch(base + "/api/v1/p/PID/eval", {method: "POST", body, headers: {"Content-Type": "application/json"}})).status);
  await tried("simple", async () => (await (await fetch(base + "/api/v1/p/PID/eval", {method: "POST", body, mode: "no-cors"})).text()).length);
  await tried("delete", async () => (await fetch(base + "/api/v1/tokens", {method: "DELETE"})).status);
  await tried("script", () => element("script", base + "/api/v1/processes"));
  await tried("image", () => element("img", base + "/api/v1/processes"));
  await tried("socket", () => new Promise(done => {
    const one = new WebSocket(base.replace("http", "ws") + "/api/v1/live"); one.onmessage = found => done("message " + found.data);
    one.onopen = () => one.send('{"id": 1, "op": "sub", "topic": "processes"}'); one.onerror = one.onclose = () => done("closed");
  }));
  const form = document.createElement("form"); form.method = "POST"; form.target = "frame"; form.action = base + "/api/v1/p/PID/detach";
  document.body.append(form); form.submit();
  await new Promise(done => setTimeout(done, 500));
  await fetch("/told", {method: "POST", body: JSON.stringify(told)});
})();
</script>"""


class Attacker:
    """A web server on another port, whose page tells what it got."""

    def __init__(self, page):
        told = self.told = queue.Queue()

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200)
                self.send_header("Content-Type", "text/html")
                self.end_headers()
                self.wfile.write(page.encode())

            def do_POST(self):
                told.put(json.loads(self.rfile.read(int(self.headers["Content-Length"])).decode()))
                self.send_response(204)
                self.end_headers()

            def log_message(self, *words):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = "http://127.0.0.1:{}/".format(self.server.server_address[1])

    def end(self):
        self.server.shutdown()
        self.server.server_close()


def browse(url, *options, dump=False):
    folder = tempfile.mkdtemp()
    words = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--user-data-dir=" + folder, *options,
             *(["--dump-dom"] if dump else ["--remote-debugging-port=0"]), url]
    return subprocess.Popen(words, stdout=subprocess.PIPE if dump else subprocess.DEVNULL, stderr=subprocess.DEVNULL, encoding="utf-8",
                            start_new_session=True), folder


def close(child, folder):
    child.kill()
    child.wait()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.skipif(not CHROMIUM, reason="needs Chromium")
@pytest.mark.parametrize("options", [(), ("--no-token",)], ids=["token", "no token"])
def test_a_page_of_another_port(job, options):
    server = Server(*options)
    base = "http://127.0.0.1:{}".format(server.port)
    attacker = Attacker(PAGE.replace("BASE", base).replace("PID", str(job.pid)))
    child, folder = browse(attacker.url)
    try:
        told = attacker.told.get(timeout=WAIT)
    finally:
        close(child, folder)
        attacker.end()
        log = server.log
        server.end()
        server.remove()
    assert {name: told[name] for name in ("get", "credentials", "header", "json", "delete", "script", "image")} == dict.fromkeys(
        ("get", "credentials", "header", "json", "delete", "script", "image"), "blocked"), told
    assert told["opaque"] in (0, "blocked") and told["simple"] in (0, "blocked") and told["socket"] == "closed", told
    assert "refused" in log and not [line for line in log.splitlines() if "/eval by" in line or "/detach by" in line], log


@pytest.mark.skipif(not CHROMIUM, reason="needs Chromium")
def test_dns_rebinding(job):
    """A foreign name that means this machine: the page would be of our own origin."""
    server = Server("--no-token")
    child, folder = browse("http://evil.example:{}/api/v1/processes".format(server.port), "--host-resolver-rules=MAP evil.example 127.0.0.1",
                           dump=True)
    try:
        text = child.communicate(timeout=WAIT)[0]
    finally:
        close(child, folder)
        server.end()
        server.remove()
    assert "is no name of this server" in text and str(job.pid) not in text, text
