"""probing doctor: what is allowed is found by trying it, and what is not has its reason and its remedy."""

import ctypes
import json
import os
import re
import select
import shutil
import signal
import struct
import subprocess

import pytest

PROBING = os.environ["PROBING"]
CALLS = {"x86_64": {"process_vm_readv": 310, "ptrace": 101}, "aarch64": {"process_vm_readv": 270, "ptrace": 117}}[os.uname().machine]
REMEDY = "pip uninstall probing && pip install --force-reinstall probing-c"
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2


def deny(call):
    """A filter of the calling process that answers EPERM to one system call (seccomp(2))."""
    steps = [(0x20, 0, 0, 0), (0x15, 0, 1, CALLS[call]), (0x06, 0, 0, 0x00050000 | 1), (0x06, 0, 0, 0x7FFF0000)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *step) for step in steps))
    program = ctypes.create_string_buffer(struct.pack("@HP", len(steps), ctypes.addressof(code)))
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl.argtypes = [ctypes.c_int] + [ctypes.c_ulong] * 4
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.addressof(program), 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")


@pytest.fixture
def doctor(probing):
    """doctor(**options of subprocess.run): {check: [(state, text, remedy)]}."""

    def ask(**options):
        told = {}
        for one in json.loads(probing("doctor", "-f", "json", **options).works()):
            assert set(one) == {"check", "state", "text", "remedy"} and one["state"] in ("works", "limited", "fails", "unknown")
            told.setdefault(one["check"], []).append((one["state"], one["text"], one["remedy"] or ""))
        return told

    return ask


def test_everything_is_checked(doctor, start):
    job = start("import sys; print('ready', flush=True); sys.stdin.read()")
    told = doctor()
    assert {"kernel", "looking", "proc", "shared-memory", "library", "probe", "process"} <= set(told)
    assert told["looking"][0][0] == told["injecting"][0][0] == told["probe"][0][0] == "works"
    mine = [state for state, text, _ in told["process"] if text.startswith("{}, CPython ".format(job.pid))]
    assert mine == ["works"]


def test_what_works_is_silent(probing):
    quiet, whole = probing("doctor").works(), probing("doctor", "-v").works()
    assert "works " not in quiet and "works    kernel         Linux " in whole
    assert quiet.startswith("all ") or "limited" in quiet or "fails" in quiet


@pytest.mark.parametrize("call, check", [("process_vm_readv", "looking"), ("ptrace", "injecting")])
def test_a_filter_forbids_a_call(doctor, call, check):
    told = doctor(preexec_fn=lambda: deny(call))
    state, text, remedy = told[check][0]
    assert state == "fails" and "seccomp filter" in remedy, told[check]
    if check == "injecting":
        assert told["looking"][0][0] == "works" and "Operation not permitted" in text


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be another user")
def test_another_users_processes(start, probing):
    job = start("import sys; print('ready', flush=True); sys.stdin.read()")
    if not shutil.which("setpriv") or subprocess.run(["setpriv", "--reuid=65534", "test", "-x", PROBING]).returncode:
        pytest.skip("no setpriv, or that user cannot reach the program")
    done = subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--bounding-set=-all", "--inh-caps=-all", PROBING,
                           "doctor", "-f", "json"], stdout=subprocess.PIPE, timeout=120)
    told = [one for one in json.loads(done.stdout.decode()) if str(job.pid) in one["text"]]
    assert done.returncode == 0 and told == [{"check": "process", "state": "fails", "text": told[0]["text"], "remedy": told[0]["remedy"]}]
    assert "user id 0" in told[0]["text"] and "root" in told[0]["remedy"]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be another user")
def test_many_processes_of_another_user_are_one_line(start):
    jobs = [start("import sys; print('ready', flush=True); sys.stdin.read()") for _ in range(3)]
    if not shutil.which("setpriv") or subprocess.run(["setpriv", "--reuid=65534", "test", "-x", PROBING]).returncode:
        pytest.skip("no setpriv, or that user cannot reach the program")
    done = subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--bounding-set=-all", "--inh-caps=-all", PROBING, "doctor"],
                          stdout=subprocess.PIPE, encoding="utf-8", timeout=120)
    told = [line for line in done.stdout.splitlines() if "belongs to user id 0 " in line]
    more = re.search(r"; the same of (\d+) more: ", told[0])
    assert len(told) == 1 and int(more[1]) >= len(jobs) - 1, done.stdout


def test_the_other_project_of_this_name(doctor, tmp_path):
    """Its command along PATH, and its package in an environment whose command is ours."""
    for name in ("one/bin", "two/bin", "two/lib/python3.11/site-packages"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "one/bin/probing").write_text("#!/usr/bin/python3\nimport sys\nfrom probing.cli.__main__ import main\nsys.exit(main())\n")
    (tmp_path / "two/bin/probing").write_text("#!/usr/bin/python3\nimport sys\nfrom probing._tool import main\nsys.exit(main())\n")
    (tmp_path / "two/lib/python3.11/site-packages/probing_hook.py").write_text("")
    path = "{0}/one/bin:{0}/two/bin:/usr/bin:/bin".format(tmp_path)
    told = doctor(env={**os.environ, "PATH": path})["other-probing"]
    assert len(told) == 2 and all(state == "limited" and REMEDY in remedy for state, _, remedy in told), told
    assert "one/bin/probing is another project's command" in told[0][1] and "two/lib/python3.11" in told[1][1]
    assert doctor(env={**os.environ, "PATH": "/nowhere:relative"})["other-probing"][0][0] == "works"
    # Our command called by its path, of an environment that is not along PATH; or is, too.
    for path in ("/nowhere", str(tmp_path / "two/bin")):
        told = doctor(env={**os.environ, "PATH": path, "PROBING_PYTHON": str(tmp_path / "two/bin/python")})["other-probing"]
        assert [state for state, _, _ in told] == ["limited"] and "two/lib/python3.11" in told[0][1], told


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to mount")
def test_a_small_shared_memory(doctor):
    """As containers have it."""
    mount = ["unshare", "--mount", "sh", "-c", "mount -t tmpfs -o size=1m tmpfs /dev/shm && exec \"$0\" doctor -f json", PROBING]
    done = subprocess.run(mount, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120)
    if done.returncode and b"unshare" in done.stderr:
        pytest.skip("no mount namespace here")
    told = [one for one in json.loads(done.stdout.decode()) if one["check"] == "shared-memory"]
    assert told[0]["state"] == "limited" and "--shm-size" in told[0]["remedy"]


def test_no_children_to_try_it_with(doctor, probing):
    """A check that cannot be made says so, and the status does."""
    def no_children():
        import resource

        resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))
        if os.geteuid() == 0:  # root has no such limit
            os.setgid(65534)
            os.setuid(65534)

    if os.geteuid() == 0 and subprocess.run(["setpriv", "--reuid=65534", "test", "-x", PROBING]).returncode:
        pytest.skip("that user cannot reach the program")
    done = probing("doctor", "-f", "json", preexec_fn=no_children)
    told = [one for one in json.loads(done.out) if one["check"] == "looking"]
    assert done.status == 11 and told[0]["state"] == "unknown"


@pytest.mark.parametrize("killed", [False, True], ids=["ends", "killed"])
def test_nothing_is_left(killed):
    """The children that it tried with end with it: nobody holds the pipe any more that they inherited."""
    reader, writer = os.pipe()
    process = subprocess.Popen([PROBING, "doctor"], stdout=subprocess.DEVNULL, pass_fds=[writer])
    os.close(writer)
    if killed:
        process.kill()
    assert process.wait(120) == (-signal.SIGKILL if killed else 0)
    assert select.select([reader], [], [], 120)[0] and os.read(reader, 1) == b""
    os.close(reader)
