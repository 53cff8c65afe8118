"""A dict of values of every kind, and what the interpreter itself says of each.

Prints a line of JSON for each: its name and "text", what must be shown, or "begins", what a cut text begins with;
without either anything goes that is not a failure.  Then "ready", and reads standard input.
Works on every CPython from 3.6; keep it so.
"""

import _pydecimal
import argparse
import array
import collections
import ctypes
import datetime
import decimal
import enum
import fractions
import functools
import json
import math
import multiprocessing
import os
import pathlib
import sys
import threading
import time
import types
import uuid
import weakref

VALUES = {}
TEXTS = {}
LITERALS = []  # names whose text reads back


def literal(name, value):
    """Shown as repr() shows it; reads back."""
    VALUES[name] = value
    TEXTS[name] = {"text": repr(value)}
    LITERALS.append(name)


def same(name, value):
    """Shown as repr() shows it."""
    VALUES[name] = value
    TEXTS[name] = {"text": repr(value)}


def shown(name, value, text):
    """Shown in our own way; {id} is its address."""
    VALUES[name] = value
    TEXTS[name] = {"text": text.replace("{id}", hex(id(value)))}


def cut(name, value, begins):
    VALUES[name] = value
    TEXTS[name] = {"begins": begins}


def anything(name, value):
    VALUES[name] = value
    TEXTS[name] = {}


# ---- scalars ----

literal("none", None)
literal("true", True)
literal("false", False)
same("ellipsis", ...)
same("not_implemented", NotImplemented)
for power in (0, 1, 15, 29, 30, 31, 59, 60, 61, 62, 63, 64, 65, 89, 90, 91, 150, 1000):
    for offset in (-1, 0, 1):
        literal("int_{}_{}".format(power, offset), 2**power + offset)
        literal("int_minus_{}_{}".format(power, offset), -(2**power) + offset)
for zeros in (0, 1, 8, 9, 10, 17, 18, 19, 100, 1000, 4094):
    literal("int_ten_{}".format(zeros), 10**zeros)
literal("int_full", 10**4095 + 7)
literal("int_minus_full", -(10**4094) - 7)
literal("bool_in_list", [True, False, 0, 1])
if hasattr(sys, "set_int_max_str_digits"):
    sys.set_int_max_str_digits(0)
cut("int_9000", 7 * 10**9000 + 1, "7" + "0" * 4094)
cut("int_1e5", 3**209590, hex(3**209590)[: 4095])
cut("int_minus_1e5", -(3**209590), hex(-(3**209590))[: 4095])
for bits in range(30750, 30781):
    cut("int_hex_{}".format(bits), 5 << bits, hex(5 << bits)[: 4095])
for number, value in enumerate([0.0, -0.0, 1.0, -1.5, 0.1, 1e15, 1e16, 1e17, 123456789012345678.0, 1e22, 1e23, 1e-4, 1e-5,
                                0.00012, 1e100, 5e-324, 2.2250738585072014e-308, 1.7976931348623157e308, 1 / 3, math.pi,
                                2.0**-44, 2.0**-1021, 2.0**1000, 9007199254740993.0, 1234567.0, 100.0]):
    literal("float_{}".format(number), value)
same("inf", float("inf"))
same("minus_inf", float("-inf"))
same("nan", float("nan"))
for number, value in enumerate([0j, 1j, -1j, 1 + 2j, -1.5 - 2.5j, complex(-0.0, 1), complex(0, -0.0), complex(1e20, 1e-7),
                                complex("nan+nanj"), complex("inf-infj"), 1e16j]):
    same("complex_{}".format(number), value)

# ---- text ----

for number, value in enumerate([
        "", "a", "abc", "it's", 'say "hi"', "it's \"both\"", "back\\slash", "tab\tline\nreturn\r", "\0\x01\x1f\x7f", "\x80\x9f\xa0\xad",
        "é", "ÿ", "naïve café", "Ω", "日本語", "\u200b\u2028\ufeff", "\ud800", "a\udc80b", "\udfff", "😀", "a😀\n", "\U0001f600\U00020000",
        "\U000e0001\U0010ffff", "\ue000", "\u0378", "é'\"", "x" * 300, "é" * 300, "日" * 300, "😀" * 300, "'" * 5, '"' * 5]):
    literal("str_{}".format(number), value)
literal("str_fits", "x" * 4094)
cut("str_longer", "x" * 4095, "'" + "x" * 4094)
cut("str_10mb", "y" * 10000000, "'" + "y" * 4094)
cut("str_10mb_wide", "日" * 3000000, "'" + "日" * 4094)
cut("str_escapes", "\n" * 4000, "'" + ("\\n" * 4000)[:4094])
literal("bytes_empty", b"")
literal("bytes", bytes(range(256)))
literal("bytes_quote", b"it's")
literal("bytes_quotes", b"it's \"both\"")
cut("bytes_long", b"z" * 5000, "b'" + "z" * 4093)
same("bytearray", bytearray(b"abc\xff"))
shown("bytearray_quote", bytearray(b"it's"), 'bytearray(b"it\'s")')  # as 3.15 shows it
same("bytearray_empty", bytearray())
moved = bytearray(b"0123456789")
del moved[:3]
same("bytearray_moved", moved)


def legacy(text):
    """A string that is not ready: only its wchar_t text is there (until 3.11)."""
    new = ctypes.pythonapi.PyUnicode_FromUnicode
    new.restype = ctypes.py_object
    new.argtypes = [ctypes.c_void_p, ctypes.c_ssize_t]
    made = new(None, len(text))
    pointer = ctypes.cast(id(made) + 40, ctypes.POINTER(ctypes.c_void_p))[0]
    ctypes.memmove(pointer, ctypes.create_unicode_buffer(text), 4 * len(text))
    return made


if sys.version_info < (3, 12):
    text = "legacy 'é' 日😀\n"
    VALUES["str_legacy"] = legacy(text)
    TEXTS["str_legacy"] = {"text": repr(text)}

# ---- containers ----

literal("list_empty", [])
literal("list", [1, "two", 3.0, None, [4, [5]]])
literal("list_long", [1] * 1300)
cut("list_longer", list(range(100000)), "[0, 1, 2, 3, ")
literal("tuple_empty", ())
literal("tuple_one", (1,))
literal("tuple_nested_one", ((1,),))
literal("tuple", (1, (2, 3), [4]))
literal("dict_empty", {})
literal("dict", {"a": 1, 2: "b", (3, 4): [5], None: {}})
literal("dict_strings", {"k{}".format(i): i for i in range(100)})
literal("dict_ints", {i: i for i in range(300)})
deleted = {"d{}".format(i): i for i in range(50)}
for i in range(0, 50, 3):
    del deleted["d{}".format(i)]
deleted["new"] = "last"
literal("dict_deleted", deleted)
holes = {i: None for i in range(70000)}
for i in range(69990):
    del holes[i]
literal("dict_holes", holes)
cut("dict_70000", {i: None for i in range(70000)}, "{0: None, 1: None, ")
same("set_empty", set())
literal("set", {3})
same("set_many", set(range(100)))
removed = set(range(1000))
for i in range(0, 990):
    removed.discard(i)
same("set_removed", removed)
same("set_strings", {"a", "b", "c", ("d",)})
same("frozenset_empty", frozenset())
same("frozenset", frozenset([1, 2, 3]))
same("deque_empty", collections.deque())
same("deque", collections.deque([1, "a"], maxlen=7))
rotated = collections.deque(range(200))
rotated.rotate(70)
for _ in range(30):
    rotated.popleft()
same("deque_blocks", rotated)
same("range", range(10))
same("range_step", range(10, 0, -2))
same("range_big", range(0, 10**30))
same("slice", slice(1, None, 2))
same("mapping_proxy", types.MappingProxyType({"a": 1}))

# ---- the standard library's usual types ----

zone = datetime.timezone(datetime.timedelta(hours=-3, minutes=30), "somewhere")
for number, value in enumerate([
        datetime.date(2024, 2, 29), datetime.time(3, 4), datetime.time(0, 0, 5), datetime.time(1, 2, 3, 4, datetime.timezone.utc, fold=1),
        datetime.datetime(2024, 1, 2, 3, 4), datetime.datetime(1, 1, 1), datetime.datetime(9999, 12, 31, 23, 59, 59, 999999),
        datetime.datetime(2024, 1, 2, 0, 0, 0, 7, datetime.timezone.utc, fold=1), datetime.datetime(2024, 1, 2, 3, 4, 5),
        datetime.timezone.utc, array.array("i"), array.array("b", [-1, 2]), array.array("H", [65535]), array.array("q", [-2**63]),
        array.array("Q", [2**64 - 1]), array.array("d", [0.1, 2]), array.array("f", [0.5]), memoryview(b"abc"), {"a": [1], 2: "b"}.keys(),
        {"a": [1]}.values(), {"a": [1], 2: "b"}.items(), ctypes.c_int(-5), ctypes.c_ubyte(250), ctypes.c_longlong(-2**40),
        ctypes.c_double(2.5), ctypes.c_float(0.5), ctypes.c_bool(True), ctypes.c_char(b"x"), ctypes.c_char(b"\0"), ctypes.c_void_p(),
        ctypes.c_void_p(4096), uuid.UUID(int=0), uuid.UUID("12345678-1234-5678-9234-567812345678"), fractions.Fraction(-1, 3),
        fractions.Fraction(10**30)]):
    same("standard_{}".format(number), value)
for number, text in enumerate([
        "0", "-0", "1", "-1.50", "0.1", "1E+3", "1E-7", "0.000001", "0E-10", "123456789012345678901234567890.12345678901234567890",
        "1.5E+400", "Infinity", "-Infinity", "NaN", "sNaN123", "1" + "0" * 60, "0.000000123", "10000000000000000000"]):
    same("decimal_{}".format(number), decimal.Decimal(text))
    same("python_decimal_{}".format(number), _pydecimal.Decimal(text))
same("array_text", array.array("u", "it's 日😀\n"))
same("array_text_empty", array.array("u"))
if sys.version_info >= (3, 13):
    same("array_text_w", array.array("w", "a😀"))
cut("array_text_long", array.array("u", "x" * 5000), "array('u', '" + "x" * 4083)
buffer = ctypes.create_string_buffer(b"abc", 8)
itself = ctypes.py_object()
itself.value = itself
for number, value in enumerate([
        ctypes.c_char_p(b"it's \xff"), ctypes.c_char_p(b""), ctypes.c_char_p(), ctypes.c_wchar_p("é日😀\n"), ctypes.c_wchar_p(""),
        ctypes.c_wchar_p(), ctypes.c_wchar("日"), ctypes.c_char(b"'"), ctypes.c_char(b"\n"), buffer, ctypes.create_unicode_buffer("x"),
        ctypes.py_object([1]), ctypes.py_object(), (ctypes.c_int * 3)(1, 2, 3)]):
    same("c_text_{}".format(number), value)
shown("c_itself", itself, "py_object(...)")


class MyDate(datetime.date):
    pass


class MyTime(datetime.time):
    pass


class MyDatetime(datetime.datetime):
    def __init__(self, *args):
        self.attribute = 1


class MyDelta(datetime.timedelta):
    pass


class MyDecimal(decimal.Decimal):
    pass


class MyArray(array.array):
    pass


same("my_date", MyDate(2024, 2, 29))
same("my_time", MyTime(3, 4, 5))
same("my_datetime", MyDatetime(2024, 1, 2, 3, 4))
shown("my_delta", MyDelta(1), "MyDelta(days=1)")
same("my_decimal", MyDecimal("-1.50"))
shown("my_array", MyArray("i", [1, 2]), "MyArray('i', [1, 2])")
for number, parts in enumerate([(".",), ("/",), ("//host/a",), ("a", "b/../c"), ("/x", "y"), ("a", "/b"), ("a//b/./c/",), ("it's",),
                                ("back\\slash",), ("é",)]):
    same("path_{}".format(number), pathlib.PurePosixPath(*parts))
same("path_here", pathlib.Path("here"))
looked = pathlib.Path("a//b")
str(looked)
same("path_looked", looked)
for number, (value, text) in enumerate([
        (datetime.timedelta(), "0"), (datetime.timedelta(1, 2, 3), "days=1, seconds=2, microseconds=3"),
        (datetime.timedelta(seconds=-1), "days=-1, seconds=86399")]):
    shown("timedelta_{}".format(number), value, "datetime.timedelta({})".format(text))
shown("zone", zone, "datetime.timezone(datetime.timedelta(days=-1, seconds=77400), 'somewhere')")
lock = threading.Lock()
same("lock_free", lock)
taken = threading.Lock()
taken.acquire()
same("lock_taken", taken)
rlock = threading.RLock()
same("rlock_free", rlock)
owned = threading.RLock()
owned.acquire()
owned.acquire()
same("rlock_owned", owned)
same("condition", threading.Condition(owned))
idle = threading.Thread(name="it's idle", daemon=True)
same("thread_initial", idle)
main = threading.main_thread()
if sys.version_info < (3, 13):
    same("thread", main)
    ended = threading.Thread()
    ended.start()
    ended.join()
    same("thread_stopped", ended)
else:
    shown("thread", main, "<_MainThread(MainThread, {})>".format(main.ident))
shown("authkey", multiprocessing.current_process().authkey, "<AuthenticationString ***>")
event = threading.Event()
shown("event", event, "<threading.Event at {id}: unset>")
event = threading.Event()
event.set()
shown("event_set", event, "<threading.Event at {id}: set>")
shown("semaphore", threading.BoundedSemaphore(3), "<threading.BoundedSemaphore at {id}: value=3>")
if sys.version_info >= (3, 15):
    same("frozendict", frozendict({"a": [1]}))  # noqa: F821
cycle = [1]
cycle.append(cycle)
same("cycle_list", cycle)
cycle_dict = {"a": {}}
cycle_dict["a"]["self"] = cycle_dict
same("cycle_dict", cycle_dict)
cycle_tuple = ([],)
cycle_tuple[0].append(cycle_tuple)
same("cycle_tuple", cycle_tuple)
cycle_deque = collections.deque([1])
cycle_deque.append(cycle_deque)
same("cycle_deque", cycle_deque)
shared = [1]
literal("shared", [shared, shared, {"a": shared}])
nested = 1
for i in range(60):
    nested = [nested]
literal("nested_60", nested)
for i in range(10000):
    nested = [nested]
cut("nested_10000", nested, "[" * 60)
wide = []
for i in range(40):
    wide = [wide, wide]
cut("exponential", wide, "[[[[[[[[[[")


# ---- subclasses of builtins ----

class MyInt(int):
    pass


class MyStr(str):
    pass


class MyList(list):
    pass


class MyDict(dict):
    def __init__(self, *args):
        super().__init__(*args)
        self.attribute = 1


class MyTuple(tuple):
    pass


class MySet(set):
    pass


class MyFloat(float):
    __slots__ = ()


class list_(list):
    pass


list_.__name__ = list_.__qualname__ = "list"
Point = collections.namedtuple("Point", "x y")
shown("my_int", MyInt(5), "MyInt(5)")
shown("my_str", MyStr("x"), "MyStr('x')")
shown("my_list", MyList([1]), "MyList([1])")
shown("my_dict", MyDict({"a": 1}), "MyDict({'a': 1})")
shown("my_tuple", MyTuple((1,)), "MyTuple((1,))")
shown("my_set", MySet({1}), "MySet({1})")
shown("my_float", MyFloat(1.5), "MyFloat(1.5)")
shown("fake_list", list_([1]), "list([1])")
same("namedtuple", Point(1, "y"))
shown("ordered_dict", collections.OrderedDict([("a", 1)]), "OrderedDict({'a': 1})")
same("counter", collections.Counter("aab"))
same("defaultdict", collections.defaultdict(list, a=[1]))
struct_time = time.gmtime(0)
same("struct_time", struct_time)


class Color(enum.Enum):
    RED = 1
    GREEN = "g"


class Level(enum.IntEnum):
    LOW = 1


same("enum", Color.RED)
same("enum_str", Color.GREEN)
same("enum_class", Color)
shown("int_enum", Level.LOW, "<Level.LOW: 1>")


# ---- instances ----

class Plain:
    pass


class WithDict:
    def __init__(self):
        self.first = 1
        self.second = [2, 3]


class Slots:
    __slots__ = ("one", "two", "__private")

    def __init__(self):
        self.one = 1
        self.__private = 3


class SlotsAndDict(Slots):
    def __init__(self):
        super().__init__()
        self.extra = "x"


class Outer:
    class Inner:
        def __init__(self):
            self.x = 1


class Node:
    def __init__(self, child=None):
        self.child = child


class Meta(type):
    pass


class WithMeta(metaclass=Meta):
    pass


same("plain", Plain())
shown("with_dict", WithDict(), "<__main__.WithDict first=1, second=[2, 3] at {id}>")
looked = WithDict()
looked.__dict__
shown("with_dict_looked", looked, "<__main__.WithDict first=1, second=[2, 3] at {id}>")
looked = WithDict()
del looked.__dict__["first"]
shown("with_dict_deleted", looked, "<__main__.WithDict second=[2, 3] at {id}>")
looked = WithDict()
del looked.first
shown("values_deleted", looked, "<__main__.WithDict second=[2, 3] at {id}>")
looked = WithDict()
looked.__dict__ = {"other": 1}
shown("dict_replaced", looked, "<__main__.WithDict other=1 at {id}>")
reordered = WithDict.__new__(WithDict)
reordered.second = 1
reordered.first = 2
shown("reordered", reordered, "<__main__.WithDict second=1, first=2 at {id}>" if sys.version_info >= (3, 11) or
      list(reordered.__dict__) == ["second", "first"] else "<__main__.WithDict first=2, second=1 at {id}>")
if sys.version_info >= (3, 11):
    literal("reordered_dict", reordered.__dict__)
crowded = WithDict()
for i in range(100):
    setattr(crowded, "a{}".format(i), i)
shown("crowded", crowded, "<__main__.WithDict first=1, second=[2, 3], {} at {{id}}>".format(
    ", ".join("a{0}={0}".format(i) for i in range(100))))
shown("slots", Slots(), "<__main__.Slots _Slots__private=3, one=1 at {id}>")
shown("slots_and_dict", SlotsAndDict(), "<__main__.SlotsAndDict _Slots__private=3, one=1, extra='x' at {id}>")
shown("inner", Outer.Inner(), "<__main__.Outer.Inner x=1 at {id}>")
ring = Node()
ring.child = ring
shown("ring", ring, "<__main__.Node child=<__main__.Node object at {id}> at {id}>")
leaf = Node()
middle = Node(leaf)
shown("nodes", Node(middle), "<__main__.Node child=<__main__.Node child=<__main__.Node object at {}> at {}> at {{id}}>".format(
    hex(id(leaf)), hex(id(middle))))
same("meta_class", WithMeta)
same("class", Outer.Inner)
same("builtin_class", int)
same("type", type)
error = ValueError("bad", 1)
error.note = "attribute"
same("exception", error)
shown("exception_one", KeyError("k"), "KeyError('k')")  # without the comma that 3.6 writes
same("exception_none", RuntimeError())
same("exception_os", OSError(2, "No such file"))
shown("partial", functools.partial(int, base=2),
      "<functools.partial func=<class 'int'>, args=(), keywords={'base': 2} at {id}>")


class Target:
    def method(self):
        yield 1

    @classmethod
    def of_class(cls):
        pass


target = Target()
same("module", os)
same("module_builtin", sys)
same("function", literal)
same("lambda", lambda: 1)
same("builtin", len)
same("builtin_method", [].append)
same("builtin_module_function", time.sleep)
same("bound", target.method)
same("bound_class", Target.of_class)
same("generator", target.method())


async def coroutine():
    pass


async def async_generator():
    yield 1


made = coroutine()
same("coroutine", made)
same("async_generator", async_generator())
same("code", literal.__code__)
same("weakref", weakref.ref(target))
dead = weakref.ref(Target())
same("weakref_dead", dead)


def closure(value, empty):
    def inner():
        return value, later

    if not empty:
        later = 1
    return inner.__closure__


content = [1, "in a cell"]
shown("cell", closure(content, True)[1], "[1, 'in a cell']")
shown("cell_empty", closure(content, True)[0], "<cell at {id}: empty>")
anything("lock", threading.Lock())
anything("property", property(len))
anything("local", threading.local())
anything("thread", threading.current_thread())
same("namespace", types.SimpleNamespace(a=1, b="two"))
same("namespace_empty", types.SimpleNamespace())
same("arguments", argparse.Namespace(batch=8, lr=0.003, name="one"))
anything("type_any", type("a.b", (), {})())
anything("everything", VALUES)

try:
    import dataclasses
except ImportError:
    dataclasses = None
if dataclasses:

    @dataclasses.dataclass
    class Config:
        name: str
        size: int = 3
        hidden: int = dataclasses.field(default=1, repr=False)
        items: list = dataclasses.field(default_factory=list)
        later: int = dataclasses.field(default=9, init=False)

    @dataclasses.dataclass
    class Derived(Config):
        more: object = None

    class Child(Derived):
        pass

    same("dataclass", Config("a"))
    same("dataclass_derived", Derived("a", more=Config("b")))
    same("dataclass_child", Child("c"))
    dataclass_ring = Derived("r")
    dataclass_ring.more = dataclass_ring
    same("dataclass_cycle", dataclass_ring)
    if sys.version_info >= (3, 10):

        @dataclasses.dataclass(slots=True)
        class Slotted:
            zebra: int
            apple: str = "x"

        same("dataclass_slots", Slotted(1))

# ---- numpy, torch ----

if "numpy" in sys.argv:
    import numpy

    def array(name, value):
        shown(name, value, "numpy.ndarray(shape={}, dtype={})".format(value.shape, value.dtype))

    for dtype in ("bool", "int8", "uint16", "int64", "float16", "float32", "float64", "complex64", "complex128", "object", "S3",
                  "U5", "V6", ">i4", ">f8", "longdouble", "int32"):
        array("numpy_" + dtype, numpy.zeros((2, 3), dtype))
    shown("numpy_scalar_array", numpy.array(1.0), "numpy.ndarray(shape=(), dtype=float64) = 1.0")
    array("numpy_one", numpy.zeros(5))
    array("numpy_empty", numpy.zeros((0, 4)))
    array("numpy_view", numpy.zeros((8, 9))[::2, 1:4].T)
    shown("numpy_dims", numpy.zeros((1,) * 30), "numpy.ndarray(shape={}, dtype=float64)".format((1,) * 30))
    for number, value in enumerate([numpy.float32(0.1), numpy.float32(1e20), numpy.float64(0.1), numpy.int64(-5), numpy.uint8(200),
                                    numpy.bool_(True), numpy.float16(0.1), numpy.int16(-1), numpy.float64(1e300),
                                    numpy.float16(1 / 3)]):
        shown("numpy_scalar_{}".format(number), value,
              "{}.{}({})".format(type(value).__module__, type(value).__name__, value.item() if value.dtype.kind in "iub" else str(value)))
    for dtype in ("float32", ">i4", "S3", "bool", "U2"):
        same("numpy_dtype_" + dtype, numpy.dtype(dtype))
    shown("numpy_float16_max", numpy.float16(65504), "numpy.float16(65500.0)")
    shown("numpy_complex64", numpy.complex64(1.5 - 2j), "numpy.complex64(1.5-2j)")
    shown("numpy_complex128", numpy.complex128(0.1 + 2j), "numpy.complex128(0.1+2j)")
    shown("numpy_str", numpy.str_("x"), "numpy.str_('x')")

if "torch" in sys.argv:
    import torch

    def tensor(name, value):
        kind = type(value)
        shown(name, value, "{}.{}(shape={}, dtype={}, device={})".format(
            kind.__module__, kind.__qualname__, tuple(value.shape), str(value.dtype)[6:], value.device))

    for dtype in ("uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64", "complex64", "complex128", "bool",
                  "bfloat16"):
        tensor("torch_" + dtype, torch.zeros((2, 3), dtype=getattr(torch, dtype)))
    shown("torch_scalar", torch.tensor(1.0), "torch.Tensor(shape=(), dtype=float32, device=cpu) = 1.0")
    tensor("torch_one", torch.zeros(7))
    tensor("torch_empty", torch.zeros((0, 2)))
    tensor("torch_dims_5", torch.zeros((1, 2, 3, 4, 5)))
    tensor("torch_dims_6", torch.zeros((1, 2, 3, 4, 5, 6)))
    tensor("torch_dims_20", torch.zeros((1,) * 20))
    tensor("torch_meta", torch.zeros((1 << 20, 1 << 20), device="meta"))
    tensor("torch_view", torch.zeros((8, 8)).t()[1:3])
    tensor("torch_parameter", torch.nn.Parameter(torch.zeros(3, 4)))
    tensor("torch_grad", torch.zeros(3, requires_grad=True) * 2)
    same("torch_dtype", torch.float32)
    same("torch_device", torch.device("cuda", 1))
    same("torch_device_cpu", torch.device("cpu"))
    same("torch_size", torch.zeros(2, 3).shape)
    anything("torch_module", torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU()))
    anything("torch_sparse", torch.eye(3).to_sparse())
    anything("torch_optimizer", torch.optim.AdamW([torch.nn.Parameter(torch.zeros(3))]))

for name in LITERALS:
    assert len(TEXTS[name]["text"]) <= 4096, name
MUTATED = {}
VALUES["mutated"] = MUTATED


def mutate():
    for i in range(1 << 62):
        MUTATED[i % 1000] = [i]
        if i % 1000 > 500:
            MUTATED.pop(i % 500, None)


for name, told in TEXTS.items():
    print(json.dumps(dict(told, name=name, literal=name in LITERALS)), flush=False)
sys.stdout.flush()
if "mutate" in sys.argv:
    threading.Thread(target=mutate, daemon=True).start()
os.write(1, b"ready\n")
os.read(0, 1)
