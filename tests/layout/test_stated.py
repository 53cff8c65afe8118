"""
Structs that stand in CPython's .c files are stated by hand in mk/objects.h: here they are held against the debug
information of every interpreter that has it.
"""

import functools
import os
import shutil
import subprocess

import pytest

import layouts

# (struct, field) → (type, member) as gdb knows them; a type of several names is tried in turn.
STATED = {
    ("module", "dict"): ("PyModuleObject", "md_dict"),
    ("module", "name"): ("PyModuleObject", "md_name"),
    ("range", "start"): ("rangeobject", "start"),
    ("range", "stop"): ("rangeobject", "stop"),
    ("range", "step"): ("rangeobject", "step"),
    ("mapping_proxy", "mapping"): ("mappingproxyobject", "mapping"),
    ("deque", "leftblock"): ("dequeobject", "leftblock"),
    ("deque", "leftindex"): ("dequeobject", "leftindex"),
    ("deque", "rightindex"): ("dequeobject", "rightindex"),
    ("deque", "maxlen"): ("dequeobject", "maxlen"),
    ("deque", "block_data"): ("struct BLOCK", "data"),
    ("deque", "block_right"): ("struct BLOCK", "rightlink"),
    ("dict_keys", "size"): ("struct _dictkeysobject", "dk_size"),
    ("dict_keys", "nentries"): ("struct _dictkeysobject", "dk_nentries"),
    ("dict_keys", "indices"): ("struct _dictkeysobject", "dk_indices"),
    # And some that the headers give, so that a wrong pyconfig.h would show.
    ("frame", "localsplus"): ("PyFrameObject|struct _PyInterpreterFrame", "localsplus|f_localsplus"),
    ("thread", "thread_id"): ("PyThreadState", "thread_id"),
    ("interp", "builtins"): ("PyInterpreterState", "builtins"),
    ("code", "filename"): ("PyCodeObject", "co_filename"),
    ("type", "heap_cached_keys"): ("PyHeapTypeObject", "ht_cached_keys"),
    ("gil", "last_holder"): ("struct _gil_runtime_state", "last_holder"),
}


def library_of(python):
    """The file that holds the interpreter: libpython or the executable."""
    if python.root:
        return os.path.realpath(python.root + python.executable)  # static; /proc need not be mounted there
    script = ("import sys\nfor line in open('/proc/self/maps'):\n"
              " path = line.split()[-1]\n if 'libpython' in path: print(path); break\nelse: print(sys.executable)")
    told = subprocess.run(python.command("-c", script), stdout=subprocess.PIPE, check=True, universal_newlines=True)
    return os.path.realpath(told.stdout.strip())


@functools.lru_cache(maxsize=None)
def has_debug_info(path):
    sections = subprocess.run(["readelf", "-SW", path], stdout=subprocess.PIPE, universal_newlines=True).stdout
    return ".debug_info" in sections


def ask_gdb(path, questions):
    """{question: number or None}, from one gdb."""
    command = ["gdb", "-nx", "-batch"]
    for question in questions:
        command += ["-ex", "output " + question, "-ex", "echo \\n@\\n"]
    done = subprocess.run(command + [path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, universal_newlines=True,
                          timeout=240)
    answers = [answer.strip() for answer in done.stdout.split("\n@\n")]
    return {question: int(answer) if answer.lstrip("-").isdigit() else None
            for question, answer in zip(questions, answers)}


@pytest.mark.skipif(not (shutil.which("gdb") and shutil.which("readelf")), reason="needs gdb and readelf")
@pytest.mark.parametrize("python", layouts.interpreters(), ids=lambda python: python.id)
def test_debug_information(python):
    path = library_of(python)
    if not has_debug_info(path):
        pytest.skip("no debug information")
    questions, asked = [], {}
    for field, (types, members) in STATED.items():
        asked[field] = ["(long)&(({} *)0)->{}".format(type_, member)
                        for type_ in types.split("|") for member in members.split("|")]
        questions += asked[field]
    items = "(long)sizeof(((struct BLOCK *)0)->data) / 8"
    answers = ask_gdb(path, questions + [items])
    layout = layouts.of_python(python)
    checked = 0
    for field, ways in asked.items():
        told = [answers[way] for way in ways if answers[way] is not None]
        expected = layout[("OFFSET", *field)]
        if told and expected is not None:
            assert expected in told, field
            checked += 1
    assert checked >= 18
    assert answers[items] == layout["NUMBER", "deque_block_items"]


# Of _asyncio's TaskObj: our field → its member.
ASYNCIO = {"loop": "task_loop", "callback0": "task_callback0", "callbacks": "task_callbacks", "state": "task_state",
           "awaited_by": "task_awaited_by", "awaited_by_is_set": "task_awaited_by_is_set",
           "fut_waiter": "task_fut_waiter", "coro": "task_coro", "name": "task_name", "node": "task_node",
           "cancels": "task_num_cancels_requested"}


@pytest.mark.skipif(not (shutil.which("gdb") and shutil.which("readelf")), reason="needs gdb and readelf")
@pytest.mark.parametrize("python", layouts.interpreters(), ids=lambda python: python.id)
def test_asyncio(python):
    script = "import _asyncio; print(getattr(_asyncio, '__file__', ''))"
    told = subprocess.run(python.command("-c", script), stdout=subprocess.PIPE, check=True, universal_newlines=True)
    path = (python.root or "") + told.stdout.strip()
    if not told.stdout.strip() or not has_debug_info(path):
        pytest.skip("no debug information")
    layout = layouts.of_python(python)
    questions = {field: "(long)&((TaskObj *)0)->" + member for field, member in ASYNCIO.items()}
    answers = ask_gdb(path, [*questions.values(), "(long)sizeof(TaskObj)"])
    assert answers["(long)sizeof(TaskObj)"] == layout["OFFSET", "asyncio_task", "size"]
    for field, question in questions.items():
        assert answers[question] == layout["OFFSET", "asyncio_task", field], field
