"""A probe that answers as a test wants it: the other side of inject/probe/server/protocol.h, on a socket of its own."""

import os
import socket
import struct
import threading

HELLO, STATUS, EVAL, COMPLETE, CANCEL, CONFIG_LIST, CONFIG_GET, CONFIG_SET, DETACH = range(1, 10)
PART, END, FAILED = 64, 65, 66
VERSION, TEXT, REMEDY, CODE, REQUEST, STREAM, OUTPUT, ITEM = range(1, 9)
VALUE, RAISED, INCOMPLETE, NONE = 18, 19, 20, 21


def fields(values):
    body = b""
    for key, value in values.items():
        data = struct.pack("<Q", value) if isinstance(value, int) else value
        body += struct.pack("<HHI", key, 0, len(data)) + data
    return body


def message(kind, request, values=None):
    body = fields(values or {})
    return struct.pack("<IIHH", len(body), request, kind, 0) + body


class FakeProbe:
    """answers: {request type: function(request number) that gives the bytes to send, or None to hang up}."""

    def __init__(self, folder, answers):
        self.path = os.path.join(str(folder), "fake.sock")
        self.answers = {HELLO: lambda number: message(END, number, {VERSION: 1}), **answers}
        self.taken = []
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        os.chmod(self.path, 0o600)
        self.listener.listen(8)
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def serve(self, client):
        with client:
            try:
                while True:
                    head = client.recv(12, socket.MSG_WAITALL)
                    if len(head) < 12:
                        return
                    length, number, kind, _ = struct.unpack("<IIHH", head)
                    self.taken.append((kind, client.recv(length, socket.MSG_WAITALL) if length else b""))
                    answer = self.answers.get(kind)
                    data = answer(number) if answer else b""
                    if data is None:
                        return
                    client.sendall(data)
            except OSError:
                pass

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)  # accept() in the other thread would keep it open
        self.listener.close()
