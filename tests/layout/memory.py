"""
Runs inside the interpreter under test: reads its own objects at the offsets of its layout and compares with what the
objects say of themselves.  The layout is JSON, the first argument; prints what disagrees, then "checked N".
"""

import collections
import ctypes
import json
import struct
import sys
import threading

layout = {tuple(key.split(".")): value for key, value in json.loads(sys.argv[1]).items()}
checked = 0


class Address(int):
    """Of a struct that is no object."""


def offset(struct_, field):
    return layout["OFFSET", struct_, field]


def has(struct_, field):
    return offset(struct_, field) is not None


def number(name):
    return layout["NUMBER", name]


def trait(name):
    return layout["TRAIT", name]


UNSIGNED = {1: ctypes.c_uint8, 2: ctypes.c_uint16, 4: ctypes.c_uint32, 8: ctypes.c_uint64}
SIGNED = {1: ctypes.c_int8, 4: ctypes.c_int32, 8: ctypes.c_int64}


def word(address, size=8, signed=False):
    return (SIGNED if signed else UNSIGNED)[size].from_address(address).value


def at(thing, struct_, field, size=8, signed=False):
    """The field of an object, or of the struct at an Address."""
    address = thing if isinstance(thing, Address) else id(thing)
    return word(address + offset(struct_, field), size, signed)


def expect(what, got, wanted):
    global checked
    checked += 1
    if got != wanted:
        print("{}: read {!r}, is {!r}".format(what, got, wanted))


def text_at(address):
    return ctypes.string_at(address).decode()


class Plain(object):
    kind = "plain"

    def __init__(self):
        self.first = 1.5

    def method(self, argument, *, keyword=3):
        return argument, keyword


class Slotted(object):
    __slots__ = ("one", "two")


def outer(captured):
    def inner():
        return captured
    return inner


def scalars():
    for value in (0, 1, -1, 7, -2 ** 29, 2 ** 30, -2 ** 61, 3 ** 100, -3 ** 200):
        digits, magnitude = 0, abs(value)
        while magnitude >> (30 * digits):
            digits += 1
        tag = at(value, "long", "tag", 8, True)
        if trait("int_size") == "TAG":
            expect("int tag %d" % value, (tag >> 3, tag & 3), (digits, 0 if value > 0 else 1 if value == 0 else 2))
        else:
            expect("int size %d" % value, tag, digits if value >= 0 else -digits)
        start = id(value) + offset("long", "digits")
        expect("int digits", sum(word(start + 4 * i, 4) << (30 * i) for i in range(digits)), magnitude)
    expect("float", struct.unpack("d", ctypes.string_at(id(2.5) + offset("float", "value"), 8))[0], 2.5)
    value = complex(1.5, -2)
    expect("complex", [struct.unpack("d", ctypes.string_at(id(value) + offset("complex", part), 8))[0]
                       for part in ("real", "imag")], [1.5, -2.0])
    value = b"some bytes"
    expect("bytes", ctypes.string_at(id(value) + offset("bytes", "data"), at(value, "bytes", "size")), value)
    value = bytearray(b"more bytes")
    expect("bytearray", ctypes.string_at(at(value, "bytearray", "start"), at(value, "bytearray", "size")), value)


def strings():
    for value, kind in (("plain", 1), ("caf\xe9", 1), ("\u4f60\u597d", 2), ("\U0001f600x", 4), ("x" * 300, 1)):
        state = at(value, "str", "state", 4)
        is_ascii = all(ord(character) < 128 for character in value)
        expect("str length", at(value, "str", "length"), len(value))
        expect("str kind", state >> number("str_kind_bit") & 7, kind)
        expect("str compact", state >> number("str_compact_bit") & 1, 1)
        expect("str ascii", state >> number("str_ascii_bit") & 1, int(is_ascii))
        if number("str_ready_bit") is not None:
            expect("str ready", state >> number("str_ready_bit") & 1, 1)
        start = id(value) + offset("str", "ascii_data" if is_ascii else "compact_data")
        data = ctypes.string_at(start, len(value) * kind)
        expect("str data", data.decode({1: "latin-1", 2: "utf-16-le", 4: "utf-32-le"}[kind]), value)
    interned = sys.intern("interned" + str(len(sys.argv)))
    bits = (1 << number("str_interned_bits")) - 1
    expect("str interned", at(interned, "str", "state", 4) & bits != 0, True)
    fresh = "".join(["not ", "interned", str(len(sys.argv))])
    expect("str not interned", at(fresh, "str", "state", 4) & bits, 0)


def containers():
    value = (1.5, "a", None)
    expect("tuple", [word(id(value) + offset("tuple", "items") + 8 * i) for i in range(at(value, "tuple", "size"))],
           [id(item) for item in value])
    value = ["a", 2.5, (), "d"]
    expect("list", [word(at(value, "list", "items") + 8 * i) for i in range(at(value, "list", "size"))],
           [id(item) for item in value])
    value = slice("start", "stop", "step")
    expect("slice", [at(value, "slice", part) for part in ("start", "stop", "step")],
           [id(value.start), id(value.stop), id(value.step)])
    value = range(1000, 2 ** 70, 3000)
    for part in ("start", "stop", "step"):
        expect("range." + part, at(value, "range", part), id(getattr(value, part)))
    value = {"alpha", "beta", ("gamma",)}
    entries = at(value, "set", "table")
    found = [word(entries + 16 * i) for i in range(at(value, "set", "mask") + 1)]
    expect("set used", at(value, "set", "used"), 3)
    expect("set entries", sorted(key for key in found if key), sorted(id(key) for key in value))
    deque()
    dicts()


def deque():
    value = collections.deque((str(i) * 2 for i in range(150)), maxlen=1000)
    for i in range(70):
        value.append(value.popleft())
    expect("deque length", at(value, "deque", "length"), len(value))
    expect("deque maxlen", at(value, "deque", "maxlen"), 1000)
    block, index, items = at(value, "deque", "leftblock"), at(value, "deque", "leftindex"), []
    for i in range(len(value)):
        items.append(word(block + offset("deque", "block_data") + 8 * index))
        index += 1
        if index == number("deque_block_items"):
            block, index = word(block + offset("deque", "block_right")), 0
    expect("deque items", items, [id(item) for item in value])
    expect("deque rightindex", at(value, "deque", "rightindex"), (index or number("deque_block_items")) - 1)


def index_width(keys):
    """(entries in the hash table, bytes of an index)"""
    if trait("dict_keys") == "INDEX_BY_LOG2":
        return (1 << word(keys + offset("dict_keys", "log2_size"), 1),
                (1 << word(keys + offset("dict_keys", "log2_index_bytes"), 1)))
    size = word(keys + offset("dict_keys", "size"))
    return size, size * (1 if size <= 0xff else 2 if size <= 0xffff else 4)


def dict_items(value):
    keys = at(value, "dict", "keys")
    general = not has("dict_keys", "kind") or word(keys + offset("dict_keys", "kind"), 1) == 0
    stride = 24 if general else 16
    start = keys + offset("dict_keys", "indices")
    if trait("dict_keys") == "HASH_TABLE":
        count = word(keys + offset("dict_keys", "size"))
    else:
        start += index_width(keys)[1]
        count = word(keys + offset("dict_keys", "nentries"))
    rows = [(word(start + stride * i + stride - 16), word(start + stride * i + stride - 8)) for i in range(count)]
    values = at(value, "dict", "values")
    if values:
        rows = [(key, word(values + offset("dict_values", "values") + 8 * i if has("dict_values", "values")
                           else values + 8 * i)) for i, (key, _) in enumerate(rows)]
    return [(key, item) for key, item in rows if key and item]


def dicts():
    for value in ({"a": 1.5, "b": "x"}, {1: "x", "b": 2.5, (): 4.5}, {str(i): str(i) for i in range(400)},
                  vars(Plain()), {}):
        expect("dict used", at(value, "dict", "used"), len(value))
        expect("dict items", sorted(dict_items(value)), sorted((id(key), id(value[key])) for key in value))


def types_and_instances():
    heap_flag, size = 1 << 9, at(int, "type", "basicsize")
    expect("object type", at(1.5, "object", "type"), id(float))
    expect("type name", text_at(at(Plain, "type", "name")), "Plain")
    expect("type basicsize", (size, at(tuple, "type", "itemsize")), (int.__basicsize__, tuple.__itemsize__))
    expect("type flags", at(Plain, "type", "flags") & heap_flag, heap_flag)
    expect("type flags", at(Plain, "type", "flags") & 0xffffffff, Plain.__flags__ & 0xffffffff)
    expect("type base", at(bool, "type", "base"), id(int))
    expect("type dictoffset", at(Plain, "type", "dictoffset", 8, True), Plain.__dictoffset__)
    expect("type mro", at(Plain, "type", "mro"), id(Plain.__mro__))
    expect("heap name", at(Plain, "type", "heap_name"), id(Plain.__name__))
    expect("heap qualname", at(Plain, "type", "heap_qualname"), id(Plain.__qualname__))
    expect("type dict", [item for key, item in dict_items_of(at(Plain, "type", "dict")) if key == id("kind")],
           [id(Plain.kind)])
    expect("heap slots", [word(at(Slotted, "type", "heap_slots") + offset("tuple", "items") + 8 * i) for i in (0, 1)],
           [id(name) for name in sorted(Slotted.__slots__)])
    member = Slotted.__dict__["two"]
    definition = at(member, "member_descr", "member")
    expect("member", text_at(word(definition + offset("member_def", "name"))), "two")
    expect("member type", word(definition + offset("member_def", "type"), 4), number("member_object_ex"))
    slotted = Slotted()
    slotted.two = "value of two"
    expect("slot", word(id(slotted) + word(definition + offset("member_def", "offset"))), id(slotted.two))
    expect("descr name", at(member, "descr", "name"), id(member.__name__))
    expect("descr type", at(member, "descr", "type"), id(Slotted))
    instance()


def dict_items_of(address):
    return dict_items(ctypes.cast(address, ctypes.py_object).value) if address else []


def instance():
    value = Plain()
    value.second = "two"
    expected = [id(value.first), id(value.second)]
    flags = at(Plain, "type", "flags")
    if trait("instance") == "DICT_OFFSET":
        held = word(id(value) + at(Plain, "type", "dictoffset"))
        expect("instance dict", held, id(vars(value)))
        return
    expect("managed dict flag", flags >> number("flag_managed_dict_bit") & 1, 1)
    if trait("instance") == "VALUES_AND_DICT":
        values = word(id(value) + offset("managed_dict", "values")) + offset("dict_values", "values")
    elif trait("instance") == "DICT_OR_VALUES":
        tagged = word(id(value) + offset("managed_dict", "dict"))
        expect("values tag", tagged & 1, 1)
        values = tagged + 1 + offset("dict_values", "values")
    else:
        expect("inline values flag", flags >> number("flag_inline_values_bit") & 1, 1)
        inline = id(value) + Plain.__basicsize__
        expect("inline values valid", word(inline + offset("dict_values", "valid"), 1), 1)
        expect("inline values size", word(inline + offset("dict_values", "size"), 1), 2)
        values = inline + offset("dict_values", "values")
    expect("instance values", [word(values), word(values + 8)], expected)
    keys = at(Plain, "type", "heap_cached_keys")
    expect("cached keys", word(keys + offset("dict_keys", "kind"), 1), 2)
    expect("cached key count", word(keys + offset("dict_keys", "nentries")), 2)
    start = keys + offset("dict_keys", "indices") + index_width(keys)[1]
    expect("cached key", word(start), id(sys.intern("first")))
    held = vars(value)
    expect("instance dict", word(id(value) + offset("managed_dict", "dict")), id(held))


def callables():
    function = outer("captured value")
    for field, wanted in (("code", function.__code__), ("name", function.__name__), ("globals", function.__globals__),
                          ("qualname", function.__qualname__), ("closure", function.__closure__),
                          ("module", function.__module__), ("dict", vars(function))):
        expect("function." + field, at(function, "function", field), id(wanted))
    expect("kwdefaults", at(Plain.method, "function", "kwdefaults"), id(Plain.method.__kwdefaults__))
    cell = function.__closure__[0]
    expect("cell", at(cell, "cell", "ref"), id(cell.cell_contents))
    value = Plain()
    method = value.method
    expect("method", [at(method, "method", "func"), at(method, "method", "self")], [id(Plain.method), id(value)])
    expect("builtin self", at(sys.intern, "builtin", "self"), id(sys))
    expect("builtin name", text_at(word(at(sys.intern, "builtin", "def") + offset("method_def", "name"))), "intern")
    expect("builtin module", at(sys.intern, "builtin", "module"), id(sys.intern.__module__))
    expect("module", [at(sys, "module", "dict"), at(sys, "module", "name")], [id(vars(sys)), id(sys.__name__)])
    proxy = vars(Plain)
    mapping = at(proxy, "mapping_proxy", "mapping")
    expect("mapping proxy", mapping, at(Plain, "type", "dict"))
    import weakref
    expect("weakref", at(weakref.ref(Plain), "weakref", "object"), id(Plain))


def codes():
    code = Plain.method.__code__
    expect("code", [at(code, "code", field) for field in ("filename", "name", "consts", "names")],
           [id(code.co_filename), id(code.co_name), id(code.co_consts), id(code.co_names)])
    for field in ("argcount", "kwonlyargcount", "nlocals", "flags", "firstlineno"):
        expect("code." + field, at(code, "code", field, 4), getattr(code, "co_" + field))
    if has("code", "qualname"):
        expect("code.qualname", at(code, "code", "qualname"), id(code.co_qualname))
        expect("code.linetable", at(code, "code", "linetable"), id(code.co_linetable))
        kinds = at(outer.__code__, "code", "localspluskinds")
        kind = word(kinds + offset("bytes", "data"), 1)
        expect("captured argument", (kind >> number("fast_local_bit") & 1, kind >> number("fast_cell_bit") & 1), (1, 1))
        names = at(outer.__code__, "code", "localsplusnames")
        expect("localsplusnames", word(names + offset("tuple", "items")), id(sys.intern("captured")))
        expect("ncellvars", at(outer.__code__, "code", "ncellvars", 4), 1)
        expect("nfreevars", at(outer(1).__code__, "code", "nfreevars", 4), 1)
        expect("nlocalsplus", at(outer.__code__, "code", "nlocalsplus", 4), 2)
        size = at(code, "varobject", "size")
        expect("bytecode units", size * 2, len(code.co_code))
    else:
        expect("code.bytecode", at(code, "code", "bytecode"), id(code.co_code))
        for name in ("varnames", "cellvars", "freevars"):
            expect("code." + name, at(outer.__code__, "code", name), id(getattr(outer.__code__, "co_" + name)))
        arguments = at(outer.__code__, "code", "cell2arg")
        expect("cell2arg", word(arguments, number("cell2arg_bytes")), 0)
        expect("no cell2arg", at(code, "code", "cell2arg"), 0)


def exceptions():
    try:
        try:
            raise KeyError("inner")
        except KeyError as inner:
            inner.note = "x"
            raise ValueError("outer") from inner
    except ValueError as error:
        trace = error.__traceback__
        for field, wanted in (("args", error.args), ("traceback", trace), ("context", error.__context__),
                              ("cause", error.__cause__)):
            expect("exception." + field, at(error, "exception", field), id(wanted))
        expect("exception.dict", at(error.__cause__, "exception", "dict"), id(vars(error.__cause__)))
        expect("traceback.frame", at(trace, "traceback", "frame"), id(trace.tb_frame))
        expect("traceback.lasti", at(trace, "traceback", "lasti", 4), trace.tb_lasti)
        expect("traceback.lineno", at(trace, "traceback", "lineno", 4, True) in (trace.tb_lineno, -1), True)
        expect("traceback.next", at(trace, "traceback", "next"), 0)


def generators():
    def count():
        yield sys._getframe()
        yield 2

    generator = count()
    if has("gen", "name"):
        named = (at(generator, "gen", "name"), at(generator, "gen", "qualname"))
        expect("generator names", named, (id(generator.__name__), id(generator.__qualname__)))
    states = [gen_state(generator)]
    frame = next(generator)
    states.append(gen_state(generator))
    if trait("generator") == "EMBEDDED":
        inner = id(generator) + offset("gen", "frame")
        expect("generator frame", word(id(frame) + offset("frame_object", "frame")), inner)
        expect("generator owner", word(inner + offset("frame", "owner"), 1), number("owner_generator"))
        mask = number("reference_mask") or 0
        expect("generator code", word(inner + offset("frame", "code")) & ~mask, id(count.__code__))
    else:
        expect("generator frame", at(generator, "gen", "frame"), id(frame))
        expect("frame code", at(frame, "frame", "code"), id(count.__code__))
    for _ in generator:
        pass
    states.append(gen_state(generator))
    if number("frame_created") is not None and has("gen", "state"):
        created, suspended, finished = states
        expect("generator created", created, number("frame_created"))
        expect("generator suspended", number("frame_created") < suspended <= number("frame_suspended"), True)
        expect("generator finished", finished >= number("frame_completed"), True)


def gen_state(generator):
    return at(generator, "gen", "state", 1, True) if has("gen", "state") else None


def threads():
    get = ctypes.pythonapi.PyThreadState_Get
    get.restype = ctypes.c_void_p
    thread = Address(get())
    expect("thread_id", at(thread, "thread", "thread_id"), threading.get_ident())
    if has("thread", "native_thread_id"):
        expect("native_thread_id", at(thread, "thread", "native_thread_id"), threading.get_native_id())
    interp = Address(at(thread, "thread", "interp"))
    # Read here, with no Python function called meanwhile, so that this frame is the innermost.
    if trait("frame_chain") == "CFRAME":
        cframe = ctypes.c_uint64.from_address(thread + offset("thread", "cframe")).value
        top = ctypes.c_uint64.from_address(cframe + offset("cframe", "current_frame")).value
    else:
        top = ctypes.c_uint64.from_address(thread + offset("thread", "frame")).value
    mine = sys._getframe()
    expect("innermost frame", top, at(mine, "frame_object", "frame") if has("frame_object", "frame") else id(mine))
    frames(top, mine)
    expect("sys.modules", at(interp, "interp", "modules"), id(sys.modules))
    expect("sys.__dict__", at(interp, "interp", "sysdict"), id(vars(sys)))
    import builtins
    expect("builtins", at(interp, "interp", "builtins"), id(vars(builtins)))
    head = at(interp, "interp", "threads_head")
    chain = []
    while head and len(chain) < 10:
        chain.append(head)
        head = word(head + offset("thread", "next"))
    expect("thread list", thread in chain, True)
    if has("interp", "id"):
        expect("interpreter id", at(interp, "interp", "id"), 0)
    if number("status_active_bit") is not None:
        status = at(thread, "thread", "status", 4)
        expect("status", (status >> number("status_active_bit") & 1, status >> number("status_cleared_bit") & 1), (1, 0))
    runtime(thread, interp)


def frames(frame, frame_object):
    """The chain from a frame on: its code objects without shims, against what the frame objects say."""
    mask, shim = number("reference_mask") or 0, number("owner_interpreter")
    found, expected = [], []
    while frame and len(found) < 100:
        if shim is None or word(frame + offset("frame", "owner"), 1) != shim:
            found.append(word(frame + offset("frame", "code")) & ~mask)
            start = word(frame + offset("frame", "globals"))
        frame = word(frame + offset("frame", "previous"))
    while frame_object:
        expected.append(id(frame_object.f_code))
        frame_object = frame_object.f_back
    expect("frames", found, expected)
    expect("frame.globals", start, id(globals()))


def runtime(thread, interp):
    if not has("runtime", "interpreters_head"):
        return
    start = Address(ctypes.addressof(ctypes.c_char.in_dll(ctypes.pythonapi, "_PyRuntime")))
    for field in ("interpreters_head", "interpreters_main"):
        expect("runtime." + field, at(start, "runtime", field), interp)
    expect("runtime.finalizing", at(start, "runtime", "finalizing"), 0)
    expect("runtime.main_thread", at(start, "runtime", "main_thread"), threading.main_thread().ident)
    if has("runtime", "autotsskey"):
        library = ctypes.CDLL(None)
        library.pthread_getspecific.restype = ctypes.c_void_p
        library.pthread_getspecific.argtypes = [ctypes.c_uint]
        expect("autotsskey", library.pthread_getspecific(at(start, "runtime", "autotsskey", 4)), thread)
    gil = None
    if has("runtime", "gil"):
        gil = start + offset("runtime", "gil")
        expect("tstate_current", at(start, "runtime", "tstate_current"), thread)
    elif has("interp", "gil"):
        gil = at(interp, "interp", "gil")
    if gil and trait("gil") != "NONE":
        # pythonapi keeps the GIL while it calls, so this thread holds it.
        expect("gil", (word(gil + offset("gil", "locked"), 4), word(gil + offset("gil", "last_holder"))), (1, thread))


def own_table():
    """From 3.13 on the interpreter publishes its offsets: each word of it, at the place we have for it."""
    rows = {key: [int(place) for place in value] for key, value in layout.items() if key[0].startswith("DEBUG")}
    rows = {key: value for key, value in rows.items() if len(value) > 1}
    if not rows:
        return
    start = ctypes.addressof(ctypes.c_char.in_dll(ctypes.pythonapi, "_PyRuntime"))
    expect("cookie", ctypes.string_at(start, 8), b"xdebugpy")
    for (kind, struct_, field), (_, first, *second) in rows.items():
        if (struct_, field) in (("runtime", "size"), ("interp", "size")):
            continue  # a build with the JIT has members at the end of the interpreter that its headers leave out
        told = word(start + first)
        if kind == "DEBUG_SUM":
            told += word(start + second[0])
        elif kind == "DEBUG_DIFFERENCE":
            told -= word(start + second[0])
        expect("table: {}.{}".format(struct_, field), told, offset(struct_, field))


for check in (own_table, scalars, strings, containers, types_and_instances, callables, codes, exceptions, generators, threads):
    check()
print("checked", checked)
