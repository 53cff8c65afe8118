"""A client of WebSockets, RFC 6455, of raw frames: what is sent is what a test says."""

import base64
import json
import os
import struct

from serving import DEADLINE, received_until


class Closed(Exception):
    """With the code that the server gave, or None: it just closed."""

    def __init__(self, code=None):
        super().__init__(code)
        self.code = code


def frame(payload, opcode=1, final=True, reserved=0, masked=True, length=None, size=None):
    """Its bytes.  length: the one it claims; size: 7, 16 or 64 bits for it, the fewest if not given."""
    length = len(payload) if length is None else length
    size = size or (7 if length < 126 else 16 if length < 65536 else 64)
    bit = 0x80 if masked else 0
    head = struct.pack("!B", (0x80 if final else 0) | reserved << 4 | opcode)
    head += (struct.pack("!B", bit | length) if size == 7 else struct.pack("!BH", bit | 126, length) if size == 16
             else struct.pack("!BQ", bit | 127, length))
    if not masked:
        return head + payload
    mask = os.urandom(4)
    whole = (mask * (len(payload) // 4 + 1))[:len(payload)]
    return head + mask + (int.from_bytes(payload, "big") ^ int.from_bytes(whole, "big")).to_bytes(len(payload), "big")


class WebSocket:
    def __init__(self, server, tcp=True, path="/api/v1/live", token="", deadline=DEADLINE, **headers):
        """token: sent as the first message; "" is the server's over TCP, None: none is sent."""
        self.socket = server.connected(tcp)
        self.socket.settimeout(deadline)
        self.data = b""
        self.number = 0
        wanted = {"Host": "127.0.0.1", "Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13",
                  "Sec-WebSocket-Key": base64.b64encode(os.urandom(16)).decode()}
        wanted.update({name.replace("_", "-"): value for name, value in headers.items()})
        lines = ["GET {} HTTP/1.1".format(path)] + ["{}: {}".format(*pair) for pair in wanted.items() if pair[1] is not None]
        self.socket.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
        head, self.data = received_until(self.socket, b"\r\n\r\n").split(b"\r\n\r\n", 1)
        self.status = int(head.split()[1])
        if self.status == 101 and tcp and token is not None:
            assert self.ask(op="token", token=token or server.token)["ok"]

    def close(self):
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def send_frame(self, payload, opcode=1, final=True, **more):
        self.socket.sendall(frame(payload, opcode, final, **more))

    def send(self, **message):
        self.send_frame(json.dumps(message).encode())

    def _bytes(self, count):
        while len(self.data) < count:
            piece = self.socket.recv(65536)
            if not piece:
                raise Closed()
            self.data += piece
        taken, self.data = self.data[:count], self.data[count:]
        return taken

    def frame(self):
        """(opcode, final, payload)"""
        first, length = self._bytes(2)
        assert not length & 0x80  # a server's frames are not masked
        if length == 126:
            length = struct.unpack("!H", self._bytes(2))[0]
        elif length == 127:
            length = struct.unpack("!Q", self._bytes(8))[0]
        return first & 15, bool(first & 0x80), self._bytes(length)

    def text(self):
        """The next message; pings and pongs are left out."""
        whole = b""
        try:
            while True:
                opcode, final, payload = self.frame()
                if opcode == 8:
                    raise Closed(struct.unpack("!H", payload[:2])[0] if payload else None)
                if opcode in (9, 10):
                    continue
                whole += payload
                if final:
                    return whole.decode()
        except ConnectionError:
            raise Closed() from None

    def next(self, number=None):
        """The next message, or the next one of this id."""
        while True:
            message = json.loads(self.text())
            if number is None or message.get("id") == number:
                return message

    def ask(self, **message):
        """The answer to one message of a new id."""
        self.number += 1
        self.send(id=self.number, **message)
        return self.next(self.number)

    def subscribe(self, topic, **more):
        """The id of a new subscription."""
        assert self.ask(op="sub", topic=topic, **more).get("ok"), (topic, more)
        return self.number

    def value(self, number):
        """The next value of a subscription."""
        message = self.next(number)
        assert "error" not in message, message
        return message
