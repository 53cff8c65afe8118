"""The target behind gdb's selected inferior, opened when a command first asks and closed before the program goes on.

Memory is read through gdb.  A reading that Ctrl-C interrupts reports to the library that nothing more can be read, so it
comes back at once, and then raises KeyboardInterrupt, as gdb's own commands do.
"""

import contextlib
import ctypes as c
import os
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

import gdb

from probing_gdb import interrupts, library, model, progress, structs
from probing_gdb.library import ProbingError

PAGE = 4096


def _core_file() -> Optional[str]:
    """The core that gdb has open: before gdb 17, gdb reports it only as text."""
    core = getattr(gdb.selected_inferior(), "corefile", None)
    if core is not None:
        return str(core.filename)
    of_core = False
    for line in gdb.execute("info target", to_string=True).splitlines():
        if of_core and line.startswith("\t`") and "', file type " in line:
            return line[2:line.index("', file type ")]
        of_core = line.startswith("Local core dump file")
    return None


def _kind() -> str:
    """What gdb's connection of the selected inferior is: "native", "core", "remote", … or "".

    Not by Inferior.connection: that object lets gdb 12 and 13 fail an assertion when they quit with it."""
    for line in gdb.execute("info connections", to_string=True).splitlines():
        words = line.split()
        if words[:1] == ["*"] and len(words) > 2:
            return words[2]
    return "native" if gdb.selected_inferior().pid else ""


def _where() -> Tuple[int, Optional[str]]:
    """The process, or the core file."""
    inferior = gdb.selected_inferior()
    kind = _kind()
    if kind == "core":
        core = _core_file()
        if core:
            return 0, core
        raise ProbingError("gdb does not say which core file it has open")
    if not inferior.pid:
        raise ProbingError("there is no process", "attach to one (attach PID), start one (run), or open a core (core FILE)")
    if "remote" in kind:
        raise ProbingError("the process is on the other side of gdbserver", "run gdb or probing on that machine")
    return inferior.pid, None


def other_root(pid: int) -> Optional[str]:
    """The root folder of a process that has its own, when gdb takes the files of its libraries from ours."""
    try:
        root = os.readlink("/proc/{}/root".format(pid))
    except OSError:
        return None
    return root if root != "/" and gdb.parameter("sysroot") in ("", "/", "target:") else None


class Target:
    """One opening of one inferior."""

    def __init__(self) -> None:
        self.inferior = gdb.selected_inferior()
        self.handle = None
        self.closed = False
        self.users = 0
        self.interrupted = False
        self.broken = None  # type: Optional[str]
        self.reads = 0
        self.progress = progress.Progress("read {:,} pieces of memory")
        self._known = {}  # type: Dict[Any, model.Stacks]
        self._library = library.load()
        self.pid, self.core = _where()
        # Saved here, since the library calls them as long as the target is open.
        self._read = structs.READ(self._memory)
        recording = gdb.current_recording() is not None
        self._registers = structs.REGISTERS(self._register_values) if recording else structs.REGISTERS()
        debugger = structs.Debugger(pid=self.pid, core=self.core.encode() if self.core else None, read=self._read, registers=self._registers)
        space = gdb.current_progspace()
        executable = space.filename if self.core and space is not None else None
        options = structs.TargetOptions(exe=executable.encode() if executable else None)
        self.handle = self.call("prb_target_open_debugger", c.byref(debugger), c.byref(options))

    def _memory(self, _context: Any, addr: int, buf: int, length: int) -> int:
        """For the library: must not raise."""
        if self.interrupted:
            return 0
        try:
            self.reads += 1
            self.progress.at(self.reads)
            return self._copy(addr, buf, length)
        except KeyboardInterrupt:
            self.interrupted = True
        except Exception as error:
            self.broken = str(error)
        return 0

    def _copy(self, addr: int, buf: int, length: int) -> int:
        """All, or what comes before the first page that cannot be read."""
        try:
            c.memmove(buf, bytes(self.inferior.read_memory(addr, length)), length)
            return length
        except (gdb.MemoryError, gdb.error, OverflowError, ValueError):
            pass
        done = 0
        while done < length:
            part = min(PAGE - (addr + done) % PAGE, length - done)
            if part == length:
                break
            try:
                c.memmove(buf + done, bytes(self.inferior.read_memory(addr + done, part)), part)
            except (gdb.MemoryError, gdb.error, OverflowError, ValueError):
                break
            done += part
        return done

    def _register_values(self, _context: Any, tid: int, names: Any, count: int, values: Any) -> bool:
        """For the library, while gdb replays a recording: what the kernel says is not what gdb shows.  Must not raise."""
        try:
            with selected_thread(tid):
                frame = gdb.newest_frame()
                for i in range(count):
                    values[i] = int(frame.read_register(names[i].decode())) & 0xFFFFFFFFFFFFFFFF
            return True
        except KeyboardInterrupt:
            self.interrupted = True
        except Exception as error:
            self.broken = str(error)
        return False

    def _interrupt(self) -> None:
        self.interrupted = True

    def call(self, name: str, *arguments: Any) -> Any:
        """Call a function of the library; its failure, and Ctrl-C during it, are exceptions."""
        error = structs.Error()
        self.interrupted = False
        with self.used():
            result = getattr(self._library, name)(*(arguments + (c.byref(error),)))
        if self.interrupted:
            self.interrupted = False
            self._known.clear()
            raise KeyboardInterrupt
        if not result:
            raise library.failed(error)
        return result

    @contextlib.contextmanager
    def used(self) -> Iterator[None]:
        """While the library works for this target, nothing closes it."""
        if self.closed:
            raise ProbingError("the program went on meanwhile")
        self.users += 1
        try:
            with interrupts.noted(self._interrupt):
                yield
        finally:
            self.users -= 1
            self.progress.end()
            if self.closed:
                self.close()

    def close(self) -> None:
        self.closed = True
        if self.handle and not self.users:
            self._library.prb_target_close(self.handle)
            self.handle = None

    def info(self) -> Any:
        with self.used():
            return self._library.prb_target_info(self.handle).contents

    def stacks(self, native: bool = False, local: bool = False, thread: int = 0, limit: int = 0) -> model.Stacks:
        """All stacks, or one thread's; those of one stop are read once."""
        key = (native, local, thread, limit)
        if key not in self._known:
            options = structs.StackOptions(native=native, locals=local, all_interpreters=True, only_thread=thread, repr_limit=limit)
            raw = self.call("prb_stacks_take", self.handle, c.byref(options))
            try:
                self._known[key] = model.Stacks(raw.contents)
            finally:
                self._library.prb_stacks_free(raw)
        return self._known[key]

    def parts(self, addr: int, indexed: bool = False, named: bool = False, start: int = 0, count: int = 0,
              only: Optional[str] = None, limit: int = 0) -> Tuple[model.Part, List[model.Part]]:
        """An object, and parts of it."""
        options = structs.PartsOptions(indexed=indexed, named=named, start=start, count=count, repr_limit=limit,
                                       only=only.encode() if only is not None else None)
        raw = self.call("prb_parts_take", self.handle, addr, c.byref(options))
        try:
            result = raw.contents
            return model.Part(result.whole), [model.Part(result.items[i]) for i in range(result.count)]
        finally:
            self._library.prb_parts_free(raw)


class settings:
    """Settings of gdb's, by name, as long as it lasts."""

    def __init__(self, wanted: Dict[str, str]) -> None:
        self.wanted = wanted
        self.before = {}  # type: Dict[str, Any]

    def _set(self, values: Dict[str, Any]) -> None:
        for name, value in values.items():
            word = ("off", "on")[value] if isinstance(value, bool) else value
            gdb.execute("set {} {}".format(name, word), to_string=True)

    def __enter__(self) -> None:
        self.before = {name: gdb.parameter(name) for name in self.wanted}
        self._set(self.wanted)

    def __exit__(self, *exception: Any) -> None:
        self._set(self.before)


def function_at(name: str) -> Optional[int]:
    """The address of a function of the program, whatever language gdb has set."""
    with settings({"language": "c"}):
        try:
            return int(gdb.parse_and_eval("(long)&" + name)) & 0xFFFFFFFFFFFFFFFF
        except (gdb.error, OverflowError):
            return None


class selected_thread:
    """Select a thread by the kernel's number, and the one before again at the end; other frames are not changed."""

    def __init__(self, tid: int) -> None:
        self.tid = tid

    def __enter__(self) -> None:
        self.thread = gdb.selected_thread()
        try:
            self.frame = gdb.selected_frame()  # type: Optional[Any]
        except gdb.error:
            self.frame = None
        for thread in gdb.selected_inferior().threads():
            if thread.ptid[1] == self.tid:
                thread.switch()
                return
        raise ProbingError("gdb has no thread {}".format(self.tid))

    def __exit__(self, *exception: Any) -> None:
        if self.thread is not None and self.thread.is_valid():
            self.thread.switch()
            if self.frame is not None and self.frame.is_valid() and self.frame.level() > 0:
                self.frame.select()


_open = {}  # type: Dict[int, Target]
_on_close = []  # type: List[Callable[[], None]]


def when_closed(function: Callable[[], None]) -> None:
    """Call a function whenever the program went on, or something else made what was read old."""
    _on_close.append(function)


def close(*_event: Any) -> None:
    for target in _open.values():
        target.close()
    _open.clear()
    for function in _on_close:
        function()


def target() -> Target:
    """The target of the selected inferior; the same one until the program goes on."""
    number = gdb.selected_inferior().num
    found = _open.get(number)
    if found is not None and gdb.parameter("non-stop") and any(thread.is_running() for thread in gdb.selected_inferior().threads()):
        close()  # the others go on while we look
        found = None
    if found is None:
        found = _open[number] = Target()
    return found


def renew() -> None:
    """Forget what was read, in the condition of a breakpoint: gdb does not report when it resumes the thread."""
    thread = gdb.selected_thread()
    if thread is not None and thread.is_running():
        close()


def thread_id() -> int:
    """The kernel's number of gdb's selected thread."""
    thread = gdb.selected_thread()
    if thread is None:
        _where()
        raise ProbingError("no thread is selected", "thread N selects one")
    return int(thread.ptid[1] or thread.ptid[0])


def connect() -> None:
    events = gdb.events
    for name in ("cont", "exited", "memory_changed", "register_changed", "inferior_call", "inferior_deleted", "clear_objfiles",
                 "new_inferior", "stop"):
        if hasattr(events, name):
            getattr(events, name).connect(_safely)


def _safely(event: Any) -> None:
    try:
        close(event)
    except Exception as error:
        gdb.write("probing: {}\n".format(error), gdb.STDERR)


