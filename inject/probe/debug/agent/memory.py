# Memory of bytes, arrays and CPU tensors, read and written through /proc/self/mem, so that what is not there is an error.
import binascii
import os
import sys

codes = probe.part("codes")
COUNT_MAX = 8 << 20
BASE64 = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
HEAD = bytes.__basicsize__ - 1  # Include/bytesobject.h: ob_sval is the last of it


class Range(object):
    def __init__(self, owner, address, size, writable):
        self.owner = owner  # keeps it alive
        self.address = address
        self.size = size
        self.writable = writable


def range_of(value):
    """Where a value's bytes lie, or None."""
    kind = type(value)
    if kind is bytes:
        return Range(value, id(value) + HEAD, len(value), False)
    torch = sys.modules.get("torch")
    if torch is not None and hasattr(torch, "Tensor") and isinstance(value, torch.Tensor):
        return range_of_tensor(value)
    numpy = sys.modules.get("numpy")
    if numpy is not None and hasattr(numpy, "ndarray") and isinstance(value, numpy.ndarray):
        if not value.flags.c_contiguous:
            return None
        return Range(value, value.__array_interface__["data"][0], value.nbytes, value.flags.writeable)
    if kind in (bytearray, memoryview):
        return range_of_buffer(value)
    return None


def range_of_tensor(value):
    if value.device.type != "cpu" or not value.is_contiguous() or str(value.layout) != "torch.strided":
        return None
    address = value.data_ptr()
    return Range(value, address, value.numel() * value.element_size(), True) if address else None


def range_of_buffer(value):
    view = memoryview(value)
    return Range(value, None, view.nbytes, not view.readonly) if view.contiguous else None


def reference(session, value):
    """The memoryReference of a value, or None."""
    if type(value) in (int, str, float, bool, list, dict, tuple, type(None)):
        return None
    if type(value) is codes.Function:
        value = value.__code__
    if type(value) is codes.Code:  # for disassemble
        session.handles.memory[hex(id(value))] = value
        return hex(id(value))
    try:
        found = range_of(value)
    except Exception:
        return None
    if found is None or not found.size:
        return None
    name = hex(found.address or id(value))
    session.handles.memory[name] = found
    return name


def range_at(session, given):
    found = session.handles.memory.get(given.get("memoryReference"))
    if not isinstance(found, Range):
        raise probe.Failed("this memory is of an earlier stop, or of no object", "NOT_FOUND")
    return found, given.get("offset") or 0


def read_memory(session, given):
    found, offset = range_at(session, given)
    count = min(max(given.get("count") or 0, 0), COUNT_MAX)
    base = found.address or id(found.owner)
    first = min(max(offset, 0), found.size)
    last = min(max(offset + count, first), found.size)
    if offset < 0 or offset > found.size:
        return {"address": hex(max(base + offset, 0)), "unreadableBytes": count}
    data = bytes_of(found, first, last)
    answer = {"address": hex(base + first), "data": binascii.b2a_base64(data).decode("ascii").strip()}
    if len(data) < count:
        answer["unreadableBytes"] = count - len(data)
    return answer


def bytes_of(found, first, last):
    if found.address is None:
        return bytes(memoryview(found.owner).cast("B")[first:last])
    descriptor = os.open("/proc/self/mem", os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.pread(descriptor, last - first, found.address + first)
    except OSError as error:
        raise probe.Failed("cannot read there: {}".format(error.strerror))
    finally:
        os.close(descriptor)


def decoded(text):
    """binascii skips characters that are not base64."""
    digits = text.rstrip("=")
    if len(text) % 4 or len(text) - len(digits) > 2 or not BASE64.issuperset(digits):
        raise probe.Failed("data must be base64")
    return binascii.a2b_base64(text)


def write_memory(session, given):
    found, offset = range_at(session, given)
    data = decoded(given.get("data") or "")
    if not found.writable:
        raise probe.Failed("this memory cannot be changed", "UNSUPPORTED")
    room = max(found.size - offset, 0) if offset >= 0 else 0
    if len(data) > room and not given.get("allowPartial"):
        raise probe.Failed("only {} bytes can be written there".format(room))
    data = data[:room]
    if data and found.address is None:
        memoryview(found.owner).cast("B")[offset:offset + len(data)] = data
    elif data:
        written_to(found.address + offset, data)
    return {"offset": offset, "bytesWritten": len(data)}


def written_to(address, data):
    descriptor = os.open("/proc/self/mem", os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.pwrite(descriptor, data, address)
    except OSError as error:
        raise probe.Failed("cannot write there: {}".format(error.strerror))
    finally:
        os.close(descriptor)
