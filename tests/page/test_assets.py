"""The page's files over HTTP: without a token, compressed, kept for a year, under a strict policy; what the first load weighs."""

import re
import zlib

import pytest


@pytest.fixture
def server(serve):
    return serve()


def ask(server, path, **more):
    return server.ask(path, tcp=True, token="", **more)


def names(index):
    return re.findall(r'(?:href|src)="(assets/[^"]+)"', index)


def content(answer):
    assert answer.headers["content-encoding"] == "gzip"
    return zlib.decompress(answer.body, 31).decode()


def test_index(server):
    index = ask(server, "/")
    assert index.status == 200 and index.headers["content-type"] == "text/html; charset=utf-8"
    assert index.headers["cache-control"] == "no-cache" and "content-encoding" not in index.headers
    policy = index.headers["content-security-policy"]
    assert "default-src 'none'; script-src 'self'; style-src 'self';" in policy and "unsafe" not in policy
    assert "frame-ancestors 'self'" in policy and index.headers["referrer-policy"] == "no-referrer"
    again = ask(server, "/", If_None_Match=index.headers["etag"])
    assert (again.status, again.body) == (304, b"")
    assert ask(server, "/", method="HEAD").body == b""
    assert ask(server, "/", method="POST", body="{}").status == 401


def test_assets(server):
    for name in names(ask(server, "/").text):
        one = ask(server, "/" + name)
        assert one.status == 200 and "immutable" in one.headers["cache-control"], name
        assert one.headers["x-content-type-options"] == "nosniff"
        assert content(one)
    assert ask(server, "/assets/0000000000000000/main.js").status == 401
    assert ask(server, "/assets/" + name.split("/")[1] + "/../../serve.sock").status in (400, 401, 403, 404)


def test_list(server):
    """The folder says what is in it, for who shows the page elsewhere."""
    folder = "/" + names(ask(server, "/").text)[0].rsplit("/", 1)[0] + "/"
    listed = ask(server, folder)
    assert listed.status == 200 and listed.headers["content-type"] == "application/json" and "immutable" in listed.headers["cache-control"]
    assert {"main.js", "page.css", "stacks.js", "uPlot.js", "icon.svg"} <= set(listed.json)
    for name in listed.json:
        assert content(ask(server, folder + name)), name
    for other in (folder[:-1], "/assets/", "/assets/0000000000000000/", folder + "x"):
        assert ask(server, other).status == 401


def test_weight(server):
    """The first load: what the index names, and what those import; at most 80 KB as sent, 200 KB with all the rest."""
    index = ask(server, "/")
    first = set(names(index.text))
    folder = next(iter(first)).rsplit("/", 1)[0] + "/"
    texts = {}

    def load(name):
        if name not in texts:
            answer = ask(server, "/" + name)
            texts[name] = (len(answer.body), content(answer))
            if name.endswith(".js"):
                for more in re.findall(r'from ?"\./([^"]+)"', texts[name][1]):
                    load(folder + more)

    for name in first:
        load(name)
    assert set(texts) == first, "index.html should name what the first screen imports"
    assert len(index.body) + sum(size for size, _ in texts.values()) <= 80 * 1024
    for name in list(texts):
        for more in re.findall(r'import\("\./([^"]+)"\)', texts[name][1]):
            load(folder + more)
    assert sum(size for size, _ in texts.values()) <= 200 * 1024
