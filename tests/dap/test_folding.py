"""Pages of a stack that begins with many rows of libraries: a client that shows those as one row sees the program's, too."""

import pytest

from debuggee import stopped

LAYERS = 40


def name_of(frame):
    return frame["name"].split(".")[-1]


def is_folded(frame):
    return (frame.get("presentationHint") or (frame.get("source") or {}).get("presentationHint")) in ("subtle", "deemphasize")


@pytest.fixture(params=[{}, {"showNativeFrames": False}, {"justMyCode": False}, {"look": True}], ids=lambda given: "".join(given) or "live")
def paused(request, start, any_python, client):
    """paused(clientID): the pages of the main thread, which stands within the library: page(first, how many)."""
    def begin(identity):
        target = start(any_python, "layered.py", LAYERS).settle(only=True)
        session = client()
        session.initialize(clientID=identity)
        session.attach(target.pid, **request.param)
        session.request("pause", {"threadId": target.pid})
        thread = stopped(session, "pause")["threadId"]
        return lambda first, count: session.request("stackTrace", {"threadId": thread, "startFrame": first, "levels": count})

    return begin


def test_vscode_sees_the_programs_own(paused):
    """It asks for one row, then for 19, then for 20 whenever somebody clicks."""
    page = paused("vscode")
    whole = page(0, 0)
    names = [name_of(frame) for frame in whole["stackFrames"]]
    first = names.index("train")
    assert whole["totalFrames"] == len(names) and LAYERS <= first <= len(names) - 3, names
    assert all(map(is_folded, whole["stackFrames"][:first])) and not is_folded(whole["stackFrames"][first])
    assert len(page(0, 1)["stackFrames"]) == 1
    for at, count in ((1, 19), (0, 20), (1, 2), (first, 2), (first + 1, 2)):
        told = page(at, count)
        end = max(at, first) + count
        assert [name_of(frame) for frame in told["stackFrames"]] == names[at:end], (at, count)
        assert told["totalFrames"] == len(names)


def test_others_get_what_they_ask_for(paused):
    page = paused("tests")
    assert len(page(0, 20)["stackFrames"]) == 20 and len(page(1, 19)["stackFrames"]) == 19

