"""Readers that do not read, clients that leave, many at once: workers never wait for a reader."""

import os
import threading
import time

from serving import received, until
from test_text import children


def test_stalled_readers(server, job):
    """Readers of large answers that stall hold no worker."""
    path = "/api/v1/p/{}/query?format=csv&timeout=200&sql=".format(job.pid)
    sql = "WITH+RECURSIVE+n(i)+AS+(SELECT+1+UNION+ALL+SELECT+i%2B1+FROM+n+LIMIT+400000)+SELECT+i,i,i,i+FROM+n"
    stalled = []
    for _ in range(4):
        one = server.connected()
        one.sendall("GET {}{} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\n\r\n".format(path, sql, server.token).encode())
        stalled.append(one)
    for _ in range(5):
        assert server.ask("/api/v1/processes").status == 200
    assert received(stalled[0]).count(b"\n") > 400000
    for one in stalled:
        one.close()
    assert server.alive()


def test_who_leaves_ends_his_work(server, job):
    began_with = set(children(server.pid))
    for tcp in (True, False):
        one = server.connected(tcp)
        one.sendall("GET /api/v1/p/{}/profile?seconds=100 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\n\r\n".format(
            job.pid, server.token).encode())
        until(lambda: set(children(server.pid)) - began_with)
        began = time.monotonic()
        one.close()
        until(lambda: not set(children(server.pid)) - began_with)
        assert time.monotonic() - began < 50  # of the hundred that it would take


def test_a_query_ends_with_its_client(server, job):
    one = server.connected()
    sql = "WITH+RECURSIVE+n(i)+AS+(SELECT+1+UNION+ALL+SELECT+i%2B1+FROM+n)+SELECT+max(i)+FROM+n"
    one.sendall("GET /api/v1/p/{}/query?timeout=200&sql={} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\n\r\n".format(
        job.pid, sql, server.token).encode())
    time.sleep(0.3)  # it runs, or has not begun: both must end
    one.close()
    began = time.monotonic()
    assert server.ask("/api/v1/p/{}/stacks".format(job.pid)).status == 200  # the target was held by it
    assert time.monotonic() - began < 50  # of the two hundred


def test_slow_ones_hold_up_no_quick_one(server, job):
    """More profiles and endless queries than there are workers for them: stacks come at once all the same."""
    base = "/api/v1/p/{}".format(job.pid)
    sql = "WITH+RECURSIVE+n(i)+AS+(SELECT+1+UNION+ALL+SELECT+i%2B1+FROM+n)+SELECT+max(i)+FROM+n"
    slow = []
    for path in [base + "/profile?seconds=100"] * 5 + [base + "/query?timeout=200&sql=" + sql] * 5:
        one = server.connected()
        one.sendall("GET {} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\n\r\n".format(path, server.token).encode())
        slow.append(one)
    until(lambda: children(server.pid))
    for path in (base + "/stacks", base + "/stacks?format=text", "/api/v1/processes", base + "/tables"):
        began = time.monotonic()
        assert server.ask(path).status == 200
        assert time.monotonic() - began < 50  # of the hundred that those take
    for one in slow:
        one.close()
    until(lambda: not children(server.pid))


def test_many_at_once(server, job):
    path = "/api/v1/p/{}/stacks".format(job.pid)
    failed = []

    def client():
        for _ in range(25):
            answer = server.ask(path)
            if answer.status != 200 or not answer.json["threads"]:
                failed.append(answer.status)

    threads = [threading.Thread(target=client) for _ in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert not failed


def memory(pid):
    return int(next(line for line in open("/proc/{}/status".format(pid)) if line.startswith("VmRSS")).split()[1])


def test_memory_is_flat(serve, job):
    server = serve(of=job.pid)  # what else begins and ends on the machine costs it nothing
    path = "/api/v1/p/{}/stacks".format(job.pid)
    until(lambda: server.ask("/api/v1/p/{}/history".format(job.pid)).status == 200)
    for _ in range(50):
        server.ask(path)
    before = memory(server.pid)
    descriptors = len(os.listdir("/proc/{}/fd".format(server.pid)))
    for _ in range(300):
        server.ask(path)
    assert memory(server.pid) < before + 3000  # KiB
    until(lambda: len(os.listdir("/proc/{}/fd".format(server.pid))) <= descriptors)
