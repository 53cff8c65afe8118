"""python.objects_diff: which types grow, and what keeps their objects."""

from support.target import probing, query

KEPT = {"__main__.Sample": "list in Trainer.history", "__main__.Entry": "dict in __main__.kept", "__main__.Node": "Node.before"}


def test_what_grows(start, python):
    target = start(python, "growing.py")
    for seconds in (0.5, 3, 12):  # on a busy machine it makes few
        rows = query(target.pid, "SELECT * FROM python.objects_diff({}) WHERE type LIKE '__main__.%'".format(seconds))
        told = {row["type"]: row for row in rows}
        if all(told[name]["delta_count"] >= 50 for name in KEPT):
            break
    for name, referrer in KEPT.items():
        row = told[name]
        assert row["top_referrer"] == referrer, row
        assert row["delta_count"] >= 50, row
        each = row["bytes"] / row["count"]
        assert row["delta_bytes"] == round(each * row["delta_count"]), row
    assert told["__main__.Trainer"]["delta_count"] == 0 and told["__main__.Trainer"]["top_referrer"] is None


def test_what_stands_still(start, any_python):
    target = start(any_python, "threads.py").settle()
    assert query(target.pid, "SELECT type FROM python.objects_diff(0.1) WHERE delta_count != 0") == []


def test_it_takes_the_time_that_is_asked_for(start, any_python):
    target = start(any_python, "steady.py")
    done = probing("-t", target.pid, "query", "SELECT * FROM python.objects_diff(-1)", check=False)
    assert "must be a number above 0" in done.stderr
