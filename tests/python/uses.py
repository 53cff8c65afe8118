"""Uses everything that `import probing` offers to write; says what it saw as JSON."""

import asyncio
import datetime
import json
import sys
import threading

import probing


class Layer(object):
    """A record without the standard library's help, for CPythons without dataclasses."""

    __annotations__ = {"name": str, "norm": float, "frozen": bool, "count": int, "seen": datetime.datetime}


class Text(object):
    def __str__(self):
        return "a text"


class Bad(object):
    def __str__(self):
        raise RuntimeError("no text")

    __float__ = __int__ = __bool__ = __str__


class Several(object):
    """As a tensor of several elements is, on a device that is not to be waited for."""

    shape = (2, 3)

    def __float__(self):
        raise AssertionError("its values were read")

    __int__ = __float__


class Scalar(object):
    """As a tensor of one element is."""

    shape = ()

    def __float__(self):
        return 0.125

    def __int__(self):
        return 0


MISFITS = [
    lambda: losses.append("x"), lambda: losses.append("x", "y"), lambda: losses.append("x", Several()), lambda: losses.append("x", []),
    lambda: probing.table("counts", {"n": int}).append(2.5), lambda: probing.table("counts", {"n": int}).append(1 << 63),
    lambda: probing.log(loss="low"), lambda: probing.log(loss=Several()), lambda: probing.log(other=[1]), lambda: probing.log(epoch=object()),
    lambda: probing.table(3, {"n": int}), lambda: probing.table("torch_names", {"n": int}),
]


def refused(calls):
    """What each of them says: the same with and without a probe."""
    said = []
    for call in calls:
        try:
            call()
            said.append("nothing")
        except (TypeError, ValueError) as error:
            said.append("{}: {}".format(type(error).__name__, error))
    return said


told = {"before": [probing.is_active(), probing.detach(), probing.log(loss=1.0)]}
losses = probing.table("losses", {"layer": str, "norm": float})
told["without"] = losses.append("none", 1.0)
told["wrong without"] = refused(MISFITS)
with probing.span("without"):
    probing.event("without")

probing.init(**json.loads(sys.argv[1]))
told["active"] = probing.is_active()

# ---- tables ----
told["kept"] = losses("fc1", 0.5)
losses.append(norm=2, layer="fc\u00e9")
losses.append({"layer": None})
losses.append_many([("a", 1.0), {"layer": "b", "norm": None}])
losses.append(Text(), Scalar())
losses.append(Bad(), Bad())
losses.append("x" * 70000 + "\u00e9", float("inf"))
losses.append("\udc80", norm=None)
types = probing.table("python.types", Layer)
types.append("n", 1.5, True, -(1 << 63), datetime.datetime(2026, 1, 2, tzinfo=datetime.timezone.utc))
types.append("n", 2, 0, (1 << 63) - 1, 0)
types.append("n", 2, None, 2.0, None)
told["same"] = probing.table("losses", {"layer": str, "norm": float}) is losses
docs = probing.table("docs", [probing.Column("used", int, "bytes", "of memory: all"), ("time", float)])
docs.append(1, 2.0)
told["wrong"] = refused([lambda: losses.append(1, 2, 3), lambda: losses.append(nothing=1), lambda: losses.append({"no": 1}),
                          lambda: probing.table("no name", {"a": int}), lambda: probing.table("empty", {}), lambda: probing.table("x", {"a b": int}),
                          lambda: probing.table("x", 3), lambda: probing.table("x", {"c%d" % at: int for at in range(64)}),
                          lambda: probing.table("losses", {"layer": str}), lambda: probing.table("Backtrace", {"a": int}), *MISFITS])
told["refused"] = probing.table("refused", {"a": int}).append(1)

# ---- spans, events, steps ----
told["steps"] = [probing.step(), probing.step(epoch=1), probing.step(10)]
with probing.span("outer", batch=3) as outer:
    with probing.span("inner"):
        probing.event("in", where="inner")
    outer.set(late=True)
try:
    with probing.span("fails", bad=Bad(), text=Text()):
        raise KeyError("x")
except KeyError:
    told["raised"] = True


@probing.span("function")
def add(one, two):
    """Adds."""
    return one + two


@probing.span("generator")
def numbers():
    yield 1
    yield 2


@probing.span("coroutine")
async def wait():
    await asyncio.sleep(0)
    return 4


loop = asyncio.new_event_loop()
told["wrapped"] = [add(1, 2), list(numbers()), loop.run_until_complete(wait()), add.__doc__, add.__name__]
loop.close()
thread = threading.Thread(target=add, args=(1, 2))
with probing.span("around"):
    thread.start()
    thread.join()

# ---- metrics ----
probing.log(epoch=1, loss=Scalar(), **{"train/acc": 1, "note": "n"})
probing.log(epoch=2, loss=0.5, later=3, note=None)
probing.log(epoch=2.5, loss=0.5, note=7, **{"train/acc": "high"})
probing.log(loss=0.25, epoch=Bad())

# ---- settings ----
config = probing.config
told["config"] = [config["sample_rate"], config["probing.sample_rate"], config.get("no_such"), sorted(config), len(config), config.list()]
config["sample_rate"] = 0.5
config.set("probing.sample_rate", True)
try:
    config["sample_rat"] = 1
except probing.ProbeError as error:
    told["unknown"] = str(error)

told["end"] = [probing.detach(), probing.is_active(), probing.detach(), losses.append("late", 1.0)]
probing.init()
told["again"] = [probing.is_active(), losses.append("again", 1.0)]
print(json.dumps(told))
