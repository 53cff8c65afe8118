"""A start of Python goes well whatever has happened to the package, its variables and its folders."""

import os

import pytest


def gone(path):
    os.remove(path)


def a_folder(path):
    os.remove(path)
    os.mkdir(path)


def a_pipe(path):
    os.remove(path)
    os.mkfifo(path)


def a_device(path):
    os.remove(path)
    os.symlink("/dev/zero", path)


def a_link_to_itself(path):
    os.remove(path)
    os.symlink(os.path.basename(path), path)


def unreadable(path):
    os.chmod(path, 0)  # nothing to root, who reads it: then it is as whole as it was
    if os.geteuid() == 0:
        gone(path)


def holding(data):
    def write(path):
        with open(path, "wb") as file:
            file.write(data)
    write.__name__ = repr(data[:17])[1:].strip("'")
    return write


def cut_at(share):
    def cut(path):
        os.truncate(path, int(os.path.getsize(path) * share))
    cut.__name__ = "cut_at_{:g}".format(share)
    return cut


def zeros_from(share):
    """What a copy leaves that took its room on the disk first."""
    def blank(path):
        size = os.path.getsize(path)
        os.truncate(path, int(size * share))
        os.truncate(path, size)
    blank.__name__ = "zeros_from_{:g}".format(share)
    return blank


STRANGE = (gone, a_folder, a_pipe, a_link_to_itself, unreadable, holding(b""), holding(b"\0" * 4096), holding(b"raise SystemExit(3)"),
           holding(b"this is no Python"), holding(b"1 / 0"), holding(b"class A(BaseException): pass\nraise A()"))
BROKEN = [("native/libprobe.so", how) for how in STRANGE[:7] + (
    a_device, holding(b"no library"), holding(b"\x7fELF\2"), *map(cut_at, (0.001, 0.1, 0.3, 0.5, 0.8, 0.99)), *map(zeros_from, (0.002, 0.3, 0.9)))]
BROKEN += [(name, how) for name in ("../_probing_hook.py", "../_probing_rules.py", "__init__.py", "_native.py") for how in STRANGE]


@pytest.mark.parametrize("name, how", BROKEN, ids=["{}-{}".format(os.path.basename(name), how.__name__) for name, how in BROKEN])
def test_a_broken_package_stops_nothing(fresh, name, how):
    how(os.path.join(fresh.site, "probing_c", name))
    said, rows = fresh.told("starts.py", "alone", PROBING="2")
    assert rows.pids == [] or name == "__init__.py"  # a folder without it is a package, too
    assert not name.endswith(".so") or "libprobe.so cannot be loaded" in fresh.log()


@pytest.mark.parametrize("share", [0.2, 0.5, 0.9])
def test_a_line_that_was_cut_short_stops_nothing(fresh, share):
    """Python itself says so, of any such file."""
    cut_at(share)(os.path.join(fresh.site, "probing_c.pth"))
    said, rows = fresh.told("starts.py", "alone", PROBING="1", quiet=False)
    assert rows.pids == []


@pytest.mark.parametrize("limit", ["nofile=8", "nproc=1", "fsize=0", "as=200000000"])
def test_want_stops_no_start(fresh, limit):
    """Descriptors, processes, files, memory: a probe may not start, the program does."""
    command = ["prlimit", "--" + limit] + fresh.python.command("-c", "print('goes on')")
    done, _ = fresh.run(command=command, PROBING="2")
    assert done.stdout == "goes on\n"


JUNK = ("\udcff", "x" * 100000, "init:", "init:+", "init:/none+1", "regex:", "regex:[", "regex:(a+)+$", "/", "+", "1;2", "-1")


@pytest.mark.parametrize("value", JUNK, ids=range(len(JUNK)))
def test_no_value_stops_a_start(fresh, value):
    said, _ = fresh.told("starts.py", "alone", PROBING=value)
    assert said["self"]


def test_a_runtime_folder_that_cannot_be_written_stops_no_start(fresh):
    for folder in ("/proc/none", "/dev/null", "relative", ""):
        said, _ = fresh.told("starts.py", "alone", PROBING="1", FAKE_PROBE_FAILS="no", XDG_RUNTIME_DIR=folder)
        assert said["self"]


def test_a_probe_that_refuses_is_a_line_in_the_log(fresh):
    fresh.run("-c", "pass", PROBING="1", FAKE_PROBE_FAILS="no room for it")
    assert "PROBING=1: no probe: no room for it" in fresh.log()
    fresh.run("-c", "pass", PROBING="regex:(")
    assert "regex:(" in fresh.log()
    mode = os.stat(os.path.join(fresh.folder, "run", "probing")).st_mode & 0o777
    assert mode == 0o700


@pytest.mark.parametrize("how", ["a file", "open to all", "a link"])
def test_a_log_folder_that_is_not_ours_is_not_written(fresh, how):
    folder = os.path.join(fresh.folder, "run", "probing")
    other = os.path.join(fresh.folder, "other")
    os.mkdir(other, 0o700)
    if how == "a file":
        open(folder, "w").close()
    elif how == "a link":
        os.symlink(other, folder)
    else:
        os.mkdir(folder)
        os.chmod(folder, 0o777)
    fresh.run("-c", "pass", PROBING="1", FAKE_PROBE_FAILS="no")
    assert os.listdir(other) == [] and (how == "a file" or os.listdir(folder) == [])
