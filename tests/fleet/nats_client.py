"""A client of a NATS server, of the standard library alone: TLS, nkeys, headers.  Tests see the bus with it as others do."""

import base64
import hashlib
import json
import queue
import select
import socket
import ssl
import threading

DEADLINE = 60
P = 2 ** 255 - 19
Q = 2 ** 252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P


def _add(a, b):
    x = (a[1] - a[0]) * (b[1] - b[0]) % P
    y = (a[1] + a[0]) * (b[1] + b[0]) % P
    t, z = 2 * a[3] * b[3] * D % P, 2 * a[2] * b[2] % P
    e, f, g, h = y - x, z - t, z + t, y + x
    return e * f % P, g * h % P, f * g % P, e * h % P


def _times(number, point):
    result = (0, 1, 1, 0)
    while number:
        if number & 1:
            result = _add(result, point)
        point, number = _add(point, point), number >> 1
    return result


def _base():
    y = 4 * pow(5, P - 2, P) % P
    xx = (y * y - 1) * pow(D * y * y + 1, P - 2, P)
    x = pow(xx, (P + 3) // 8, P)
    if (x * x - xx) % P:
        x = x * pow(2, (P - 1) // 4, P) % P
    x = P - x if x & 1 else x
    return x, y, 1, x * y % P


BASE = _base()


def x25519(secret, point=b"\x09" + bytes(31)):
    """RFC 7748; of the base point: the public key of a secret."""
    number = (int.from_bytes(secret, "little") & ~7 & ~(1 << 255)) | 1 << 254
    x1 = int.from_bytes(point, "little") & ~(1 << 255)
    x2, z2, x3, z3 = 1, 0, x1, 1
    for bit in range(254, -1, -1):
        if number >> bit & 1:
            x2, z2, x3, z3 = x3, z3, x2, z2
        a, b, c, d = x2 + z2, x2 - z2, x3 + z3, x3 - z3
        x3, z3 = (d * a + c * b) ** 2 % P, x1 * (d * a - c * b) ** 2 % P
        e = (a * a - b * b) % P
        x2, z2 = a * a * b * b % P, e * (a * a + 121665 * e) % P
        if number >> bit & 1:
            x2, z2, x3, z3 = x3, z3, x2, z2
    return (x2 * pow(z2, P - 2, P) % P).to_bytes(32, "little")


def _pack(point):
    inverse = pow(point[2], P - 2, P)
    x, y = point[0] * inverse % P, point[1] * inverse % P
    return (y | (x & 1) << 255).to_bytes(32, "little")


def _sum(*parts):
    return int.from_bytes(hashlib.sha512(b"".join(parts)).digest(), "little") % Q


def _text(raw):
    """Of an nkey."""
    crc = 0
    for byte in raw:
        crc ^= byte << 8
        for _ in range(8):
            crc = (crc << 1 ^ 0x1021 if crc & 0x8000 else crc << 1) & 0xffff
    return base64.b32encode(raw + crc.to_bytes(2, "little")).decode().rstrip("=")


class Key:
    """An Ed25519 key from 32 secret bytes (RFC 8032), or from the text of an nkey."""

    def __init__(self, secret):
        if isinstance(secret, str):
            secret = base64.b32decode(secret + "=" * (-len(secret) % 8))[2:34]
        self.secret = secret
        digest = hashlib.sha512(secret).digest()
        self.scalar = int.from_bytes(digest[:32], "little") & ~7 & (1 << 255) - 1 | 1 << 254
        self.prefix = digest[32:]
        self.public = _pack(_times(self.scalar, BASE))

    def sign(self, data):
        number = _sum(self.prefix, data)
        point = _pack(_times(number, BASE))
        return point + ((number + _sum(point, self.public, data) * self.scalar) % Q).to_bytes(32, "little")

    @property
    def text(self):
        return _text(b"\xa0" + self.public)

    @property
    def seed(self):
        return _text(b"\x95\0" + self.secret)


class Refused(Exception):
    pass


class Message:
    def __init__(self, subject, reply, headers, body):
        self.subject, self.reply, self.headers, self.body = subject, reply, headers, body

    @property
    def json(self):
        return json.loads(self.body.decode())


class Client:
    """Of a bus file, as a dictionary."""

    def __init__(self, bus, key=None, ca=None, name="probing-bus"):
        host, port = bus["servers"][0].rpartition("//")[2].rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)), DEADLINE)
        self.errors, self.messages, self.pongs = queue.Queue(), queue.Queue(), queue.Queue()
        self.info = json.loads(self._line().split(b" ", 1)[1].decode())
        context = ssl.create_default_context(cadata=ca or bus["ca"])
        self.socket = context.wrap_socket(self.socket, server_hostname=name)
        self.socket.setblocking(False)
        self.lock = threading.Lock()  # a TLS connection serves one thread at a time
        self.held = b""
        key = key or Key(bus["nkey"])
        signature = base64.urlsafe_b64encode(key.sign(self.info["nonce"].encode())).decode().rstrip("=")
        self._send("CONNECT " + json.dumps({"verbose": False, "pedantic": False, "tls_required": True, "headers": True, "no_responders": True,
                                            "nkey": key.text, "sig": signature, "lang": "test", "version": "1", "protocol": 1}))
        self._send("PING")
        first = self._take_line()
        while first.startswith(b"INFO"):
            first = self._take_line()
        if not first.startswith(b"PONG"):
            raise Refused(first.decode().strip())
        self.number = 0
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def _line(self):
        line = b""
        while not line.endswith(b"\n"):
            more = self.socket.recv(1)
            if not more:
                raise OSError("the connection ended")
            line += more
        return line

    def _send(self, line, body=None):
        left = line.encode() + b"\r\n" + (b"" if body is None else body + b"\r\n")
        while left:
            try:
                with self.lock:
                    left = left[self.socket.send(left):]
            except (ssl.SSLWantWriteError, ssl.SSLWantReadError):
                assert select.select([], [self.socket], [], DEADLINE)[1], "the server takes nothing"

    def _fill(self):
        """More bytes; false at the end."""
        while True:
            try:
                with self.lock:
                    more = self.socket.recv(1 << 20)
                self.held += more
                return bool(more)
            except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
                select.select([self.socket], [], [], 1)

    def _take(self, count):
        while len(self.held) < count:
            if not self._fill():
                raise OSError("the connection ended")
        taken, self.held = self.held[:count], self.held[count:]
        return taken

    def _take_line(self):
        while b"\n" not in self.held:
            if not self._fill():
                return b""
        return self._take(self.held.index(b"\n") + 1)

    def _read(self):
        try:
            for line in iter(self._take_line, b""):
                words = line.decode().split()
                if words[0] == "PING":
                    self._send("PONG")
                elif words[0] == "PONG":
                    self.pongs.put(True)
                elif words[0] == "-ERR":
                    self.errors.put(line.decode().strip())
                elif words[0] in ("MSG", "HMSG"):
                    head = int(words[-2]) if words[0] == "HMSG" else 0
                    data = self._take(int(words[-1]) + 2)[:-2]
                    reply = words[3] if len(words) == (5 if words[0] == "MSG" else 6) else None
                    headers = dict(part.split(": ", 1) for part in data[:head].decode().split("\r\n")[1:] if ": " in part)
                    if data[:head].startswith(b"NATS/1.0 "):
                        headers["status"] = data[9:12].decode()
                    self.messages.put(Message(words[1], reply, headers, data[head:]))
        except (OSError, ValueError):
            pass

    def subscribe(self, subject):
        self.number += 1
        self._send("SUB {} {}".format(subject, self.number))

    def publish(self, subject, body=b"", reply="", headers=None):
        body = body if isinstance(body, bytes) else json.dumps(body).encode()
        if headers:
            head = "NATS/1.0\r\n" + "".join("{}: {}\r\n".format(*pair) for pair in headers.items()) + "\r\n"
            self._send("HPUB {} {} {} {}".format(subject, reply, len(head), len(head) + len(body)), head.encode() + body)
            return
        self._send("PUB {} {} {}".format(subject, reply, len(body)), body)

    def refused(self):
        """What the server said against what was sent so far."""
        self._send("PING")
        self.pongs.get(timeout=DEADLINE)
        found = []
        while not self.errors.empty():
            found.append(self.errors.get())
        return found

    def next(self, seconds=DEADLINE):
        return self.messages.get(timeout=seconds)

    def close(self):
        with self.lock:
            try:
                self.socket.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # the server was first
        self.thread.join(DEADLINE)  # else it may read from whoever gets the descriptor next
        self.socket.close()
