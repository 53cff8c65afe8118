"""Reading protocol buffers without their schema."""


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def fields(data):
    """{field number: [numbers and bytes]} of a protocol buffers message; doubles and floats are their 8 and 4 bytes."""
    found, at = {}, 0
    while at < len(data):
        key, at = varint(data, at)
        assert key & 7 in (0, 1, 2, 5)
        if key & 7 == 0:
            value, at = varint(data, at)
        else:
            length, at = {1: (8, at), 5: (4, at)}.get(key & 7) or varint(data, at)
            value, at = data[at:at + length], at + length
            assert len(value) == length
        found.setdefault(key >> 3, []).append(value)
    return found


def packed(data):
    numbers, at = [], 0
    while at < len(data):
        number, at = varint(data, at)
        numbers.append(number)
    return numbers
