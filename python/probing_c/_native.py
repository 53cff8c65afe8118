"""The probe in this process: libprobe.so of this package, or the one that is there already, through ctypes.

Mirrors inject/probe/start.h.  `functions` is None until a probe runs here; writers look at that first, so that a program
with calls of this package in it pays next to nothing without a probe.
"""

import os
import stat
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Optional, Set

VERSION = 1
FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "native")
TEXT_MAX = 65535
LOOK_AGAIN = 1.0  # s between looks for a probe that was injected

functions = None  # type: Optional[Any]
generation = 0  # counts starts and forks: handles of an older one are void
_pid = 0
_next_look = 0.0
_rate, _rate_until = 1.0, 0.0
_structures = None  # type: Optional[Any]


class ProbeError(RuntimeError):
    """The probe or the tool could not do what was asked; the text says why."""


def _loaded_name(address):
    # type: (int) -> Optional[str]
    """What the loader calls the library at an address; dlopen by that name gives it again without opening a file."""
    import ctypes as c

    class Info(c.Structure):  # the start of struct dl_phdr_info, dl_iterate_phdr(3)
        _fields_ = [("addr", c.c_void_p), ("name", c.c_char_p)]

    found = []

    def look_at(info, size, data):
        # type: (Any, int, Any) -> int
        if info.contents.addr == address:
            found.append(os.fsdecode(info.contents.name))
        return len(found)

    c.CDLL(None).dl_iterate_phdr(c.CFUNCTYPE(c.c_int, c.POINTER(Info), c.c_size_t, c.c_void_p)(look_at), None)
    return found[0] if found else None


def _fault_of(descriptor):
    # type: (int) -> Optional[str]
    from struct import unpack_from  # elf(5)

    info = os.fstat(descriptor)
    if not stat.S_ISREG(info.st_mode):
        return "no regular file"
    head = os.pread(descriptor, 64, 0)
    if len(head) < 64 or head[:5] != b"\x7fELF\2":
        return "no ELF file of 64 bits"
    at, sections = unpack_from("=QQ", head, 32)
    size, count, section_size, section_count = unpack_from("=HHHH", head, 54)
    headers = os.pread(descriptor, 56 * count, at)
    if size != 56 or count == 0 or len(headers) < size * count:
        return "cut short"
    tags = set()  # type: Set[int]
    for each in range(count):
        kind, _, offset, _, _, length = unpack_from("=IIQQQQ", headers, each * size)
        if kind in (1, 2) and offset + length > info.st_size:  # PT_LOAD, PT_DYNAMIC
            return "cut short"
        if kind == 2:
            dynamic = os.pread(descriptor, min(length, 4096), offset)
            tags.update(unpack_from("=q", dynamic, tag)[0] for tag in range(0, len(dynamic) - 15, 16))
    # An interrupted copy may have its full length, and zeros at the end, where the section headers are.
    last = os.pread(descriptor, section_size, sections + section_size * (section_count - 1)) if section_count else b"none"
    whole = tags >= {5, 6, 10} and last.strip(b"\0")  # DT_STRTAB, DT_SYMTAB, DT_STRSZ
    return None if whole else "not whole"


def fault(path):
    # type: (str) -> Optional[str]
    """What is wrong with a library that the loader would die of, or wait for; None: it may try.

    The loader maps what the headers say: a page behind the end of a file that was cut short is a SIGBUS.
    """
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):  # opening a device may do something
            return "no regular file"
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            return _fault_of(descriptor)
        finally:
            os.close(descriptor)
    except (OSError, ValueError, OverflowError) as error:
        return str(error)


def library():
    # type: () -> str
    """libprobe.so: the mapped one where there is one (a second copy would be a second probe), else this package's."""
    try:
        with open("/proc/self/maps", errors="surrogateescape") as maps:
            for line in maps:
                words = line.rstrip("\n").split(None, 5)
                if len(words) < 6 or "libprobe.so" not in words[5] or int(words[2], 16):
                    continue
                path, deleted, _ = words[5].partition(" (deleted)")
                if os.path.basename(path) == "libprobe.so" and not deleted and fault(path) is None:
                    return path
                if os.path.basename(path) in ("libprobe.so", "memfd:libprobe.so"):
                    name = _loaded_name(int(words[0].partition("-")[0], 16))
                    if name:
                        return name
    except (OSError, ValueError):
        pass
    path = os.path.join(FOLDER, "libprobe.so")
    wrong = fault(path)
    if wrong is not None:
        raise ProbeError("libprobe.so cannot be loaded: {}: {}".format(path, wrong))
    return path


def _types():
    # type: () -> Any
    """The structures of start.h."""
    global _structures
    if _structures is not None:
        return _structures
    import ctypes as c

    # Short ones keep the GIL; what may wait for a file lets it go.
    def short(result, *args):
        # type: (Any, *Any) -> Any
        return c.PYFUNCTYPE(result, *args)

    class Functions(c.Structure):
        _fields_ = [
            ("version", c.c_uint32),
            ("size", c.c_uint32),
            ("active", short(c.c_int)),
            ("detach", c.CFUNCTYPE(c.c_int)),
            ("config_get", c.CFUNCTYPE(c.c_int, c.c_char_p, c.c_char_p, c.c_size_t)),
            ("config_set", c.CFUNCTYPE(c.c_int, c.c_char_p, c.c_char_p, c.c_char_p, c.c_size_t)),
            ("socket_path", short(c.c_char_p)),
            ("table", c.CFUNCTYPE(c.c_void_p, c.c_char_p, c.c_char_p, c.c_char_p, c.c_size_t)),
            ("row", short(c.c_int, c.c_void_p, c.c_char_p, c.c_size_t)),
            ("config_list", c.CFUNCTYPE(c.c_int, c.c_char_p, c.c_size_t)),
            ("serve", c.CFUNCTYPE(c.c_int, c.c_char_p, c.c_char_p, c.c_char_p, c.c_size_t)),
        ]

    class Call(c.Structure):
        _fields_ = [
            ("version", c.c_uint32),
            ("size", c.c_uint32),
            ("settings", c.c_char_p),
            ("how", c.c_char_p),
            ("error", c.c_char * 256),
            ("functions", c.POINTER(Functions)),
        ]

    _structures = (c, Functions, Call)
    return _structures


def _forked():
    # type: () -> None
    """In the child: the rings and the socket are the parent's."""
    global functions, generation, _pid, _next_look
    functions = None
    generation += 1
    _pid = os.getpid()
    _next_look = 0.0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)

    def same_process():
        # type: () -> bool
        """False in a forked child that has not noticed yet."""
        return True

else:  # CPython 3.6

    def same_process():
        # type: () -> bool
        return _pid == os.getpid()


def _offer_nccl(path):
    # type: (str) -> None
    """NCCL loads a profiler plugin before its first communicator or never; ours does nothing until it is switched on."""
    plugin = os.path.join(os.path.dirname(path), "libprobing-nccl.so")
    if "NCCL_PROFILER_PLUGIN" not in os.environ and os.access(plugin, os.R_OK):
        os.environ["NCCL_PROFILER_PLUGIN"] = plugin


def start(how, settings=None):
    # type: (str, Optional[Dict[str, Any]]) -> None
    """Start the probe here, or find that it runs; ProbeError when that fails."""
    global functions, generation, _pid, _rate_until
    c, _, call_type = _types()
    path = library()
    try:
        entry = c.CDLL(path).prb_probe_start
    except (OSError, AttributeError) as error:
        raise ProbeError("libprobe.so cannot be loaded: {}".format(error))
    lines = "".join("{}={}\n".format(key, value) for key, value in (settings or {}).items())
    call = call_type(VERSION, c.sizeof(call_type), lines.encode("utf-8") if lines else None, how.encode("utf-8", "replace"))
    _offer_nccl(path)
    entry.restype, entry.argtypes = c.c_int, [c.POINTER(call_type)]
    if entry(c.byref(call)) != 0 or not call.functions:
        raise ProbeError(call.error.decode("utf-8", "replace") or "the probe did not start")
    found = call.functions.contents
    if found.version != VERSION or found.size < c.sizeof(type(found)):
        raise ProbeError("the probe {} is of another version (its functions: {}, {} bytes)".format(path, found.version, found.size))
    functions, _pid, _rate_until = found, os.getpid(), 0.0
    generation += 1


def _pid_namespace():
    # type: () -> int
    try:
        return os.stat("/proc/self/ns/pid").st_ino
    except OSError:
        return 0


def _socket_here():
    # type: () -> bool
    """Whether a probe of this process listens (it may have been injected)."""
    from probing_c import _log

    try:
        with open("/proc/self/stat", "rb") as stat:
            started = stat.read().rpartition(b")")[2].split()[19].decode()
        name = "{}-{}-{}.sock".format(os.getpid(), started, _pid_namespace())
        return any(os.path.exists(os.path.join(folder, name)) for folder in _log.folders())
    except (OSError, IndexError):
        return False


def look():
    # type: () -> Optional[Any]
    """The function table, or None.  Now and then finds a probe that somebody injected."""
    global _next_look
    if functions is not None:
        if same_process():
            return functions
        _forked()
    now = time.time()
    if now < _next_look:
        return None
    _next_look = now + LOOK_AGAIN
    if not _socket_here():
        return None
    try:
        start("import")
    except ProbeError:
        return None
    return functions


def sample_rate():
    # type: () -> float
    """probing.sample_rate of the probe that runs, at most LOOK_AGAIN old."""
    global _rate, _rate_until
    now = time.time()
    if now >= _rate_until or now < _rate_until - LOOK_AGAIN:
        _rate_until = now + LOOK_AGAIN
        found = functions
        try:
            text = text_of(lambda out, cap: found.config_get(b"probing.sample_rate", out, cap)) if found is not None else None
            _rate = 1.0 if text is None else float(text)
        except ValueError:
            _rate = 1.0
    return _rate


def need():
    # type: () -> Any
    """The function table of a probe that runs."""
    global _next_look
    _next_look = 0.0
    found = look()
    if found is None or not found.active():
        raise ProbeError("no probe runs in this process; probing.init() starts one")
    return found


def text_of(call):
    # type: (Any) -> Optional[str]
    """The text of call(buffer, size), a function that gives the length that it needs, or -1."""
    import ctypes

    size = 4096
    while True:
        buffer = ctypes.create_string_buffer(size)
        length = call(buffer, size)
        if length < 0:
            return None
        if length < size:
            return buffer.raw[:length].decode("utf-8", "replace")
        size = length + 1


def serve(address, allow):
    # type: (str, Optional[str]) -> str
    """Start a server for this process; its address with the token."""
    import ctypes

    out = ctypes.create_string_buffer(1024)
    done = need().serve(address.encode("utf-8"), None if allow is None else allow.encode("utf-8"), out, len(out)) == 0
    text = out.value.decode("utf-8", "replace")
    if not done:
        raise ProbeError(text)
    return text


def stop():
    # type: () -> bool
    """End the probe; True if there was one."""
    global functions, generation
    found = look()
    if found is None or not found.active():
        return False
    functions = None
    generation += 1
    if found.detach() != 0:
        raise ProbeError("the probe could not be ended")
    return True
