"""openapi.json says what the server does: each path and method, each parameter and key with its kind."""

import json
import re

import pytest

from serving import Server


@pytest.fixture(scope="module")
def document(server):
    return server.ask("/api/v1/openapi.json").json


def operations(document):
    for path, item in document["paths"].items():
        for method, one in item.items():
            yield path, method.upper(), one


def concrete(path, job):
    values = {"t": str(job.pid), "key": "probing.max_memory", "id": "none", "address": "0x10", "name": "python.threads"}
    return re.sub(r"\{(\w+)\}", lambda found: values.get(found[1], "x"), path)


def test_the_form(document):
    assert document["openapi"].startswith("3.1") and document["components"]["schemas"]["Error"]["properties"]["error"]["required"]
    for path, method, one in operations(document):
        named = {parameter["name"] for parameter in one["parameters"] if parameter["in"] == "path"}
        assert named == set(re.findall(r"\{(\w+)\}", path)), path
        assert len({(parameter["in"], parameter["name"]) for parameter in one["parameters"]}) == len(one["parameters"])
        assert one["summary"] and one["x-grant"] in ("look", "control", "eval") and one["responses"]["200"]["content"]
        assert ("requestBody" in one) == (method in ("POST", "PUT")), path


def test_everything_is_named(document):
    """A new parameter or key needs a line in fields.c: without, its kind and meaning are not told."""
    for path, method, one in operations(document):
        told = {parameter["name"]: parameter["description"] for parameter in one["parameters"]}
        body = one.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
        told.update({name: schema["description"] for name, schema in body.get("properties", {}).items()})
        assert all(told.values()), (path, method, told)
        assert set(body.get("required", ())) <= set(body.get("properties", ())), path


def test_methods_are_those_of_the_server(server, document, job):
    """What it lists is answered by its route, what it does not list is 405."""
    for path, item in document["paths"].items():
        for method in ("GET", "POST", "PUT", "DELETE"):
            status = server.ask(concrete(path, job) + "?no_such_parameter=1", method, "{}" if method in ("POST", "PUT") else None).status
            assert status == (400 if method.lower() in item else 405), (path, method, status)


def test_wrong_kinds_are_refused(server, document, job):
    """Each key of a body, with a value of another kind: 400, and nothing is done."""
    for path, method, one in operations(document):
        schema = one.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
        if not schema or path.endswith(("/query", "/profiles")) or "skills" in path:
            continue
        for name in schema["properties"]:
            good = {"string": "x", "integer": 1, "number": 1, "boolean": False, "object": {}, "array": ["list"]}
            body = {key: good[schema["properties"][key]["type"]] for key in schema["required"]}
            body[name] = {"wrong": 1} if schema["properties"][name]["type"] != "object" else "wrong"
            answer = server.ask(concrete(path, job), method, json.dumps(body))
            assert answer.status == 400 and answer.error["message"], (path, name, answer.body)
        answer = server.ask(concrete(path, job), method, json.dumps({"no_such_key": 1}))
        assert answer.status == 400, (path, answer.body)


def test_formats(server, document, job):
    for path, method, one in operations(document):
        if method != "GET" or "profile" in path or "{id}" in path or "{address}" in path or "{other}" in path:
            continue
        formats = [parameter["schema"]["enum"] for parameter in one["parameters"] if parameter["name"] == "format"][0]
        for form in formats:
            more = {"query": "&sql=SELECT+1"}.get(path.rsplit("/", 1)[-1], "")
            answer = server.ask(concrete(path, job) + "?format=" + form + more)
            assert answer.status in (200, 404) or path.endswith("/source"), (path, form, answer.body)
            if answer.status == 200:
                assert answer.headers["content-type"].split(";")[0] in one["responses"]["200"]["content"] or form == "pyspy", (path, form)
        assert server.ask(concrete(path, job) + "?format=none").status == 406, path


def test_it_is_for_who_may_look():
    server = Server()
    try:
        assert server.ask("/api/v1/openapi.json", tcp=True, token="").status == 401
    finally:
        server.end()
        server.remove()
