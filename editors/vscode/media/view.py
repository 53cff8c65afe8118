"""What the tensor view shows of one array, as JSON text: run by the extension in the program that is debugged.

Anything with shape, dtype, slices and tolist() serves: torch.Tensor, numpy.ndarray and their kin.  Nothing is imported, and
nothing is copied but what is shown; large arrays are sampled with equal steps, and the answer says so.
"""

SAMPLE = 65536  # elements for the statistics and the histogram
SIDE = 128  # of the picture
BINS = 48


def plain(value):
    """The array itself, without what would be recorded or cannot be sliced."""
    if hasattr(value, "detach"):
        value = value.detach()
        if getattr(value, "is_quantized", False):
            value = value.dequantize()
        if str(getattr(value, "layout", "torch.strided")) != "torch.strided":
            value = value.to_dense()
        if value.device.type == "meta":
            raise TypeError("a tensor on the device meta has no values")
    elif not hasattr(value, "tolist") and hasattr(value, "to_numpy"):
        value = value.to_numpy()
    if not (hasattr(value, "shape") and hasattr(value, "dtype") and hasattr(value, "tolist")):
        raise TypeError("%s is neither a tensor nor an array" % type(value).__name__)
    return value


def numbers(part):
    """Its elements in one list; complex ones by magnitude, truth values as 0 and 1."""
    part = part.cpu() if hasattr(part, "cpu") else part
    flat = [part.tolist()]
    for _ in range(len(part.shape)):
        flat = [one for row in flat for one in row]
    return [abs(one) if isinstance(one, complex) else one for one in flat]


def finite(value):
    return isinstance(value, (int, float)) and value - value == 0


def text(value):
    """One cell, JSON."""
    if isinstance(value, bool) or not isinstance(value, (int, float, complex)):
        value = str(value)[:32]
    elif isinstance(value, float):
        value = "%.6g" % value
    elif isinstance(value, complex):
        value = "%.4g%+.4gj" % (value.real, value.imag)
    safe = "".join(c if " " <= c < "\x7f" and c not in '"\\' else "?" for c in str(value))
    return '"%s"' % safe


def number(value):
    """A float that JSON can say, else null."""
    return repr(float(value)) if finite(value) else "null"


def plane(array, index):
    """Two dimensions of it: the last two, at index in those before, or as near as it has grown small; fewer become rows of one."""
    lead = len(array.shape) - 2
    if 0 in list(array.shape):
        return array.reshape(0, array.shape[-1])
    if lead > 0:
        wanted = (list(index) + [0] * lead)[:lead]
        array = array[tuple(min(at, side - 1) for at, side in zip(wanted, array.shape))]
    return array if len(array.shape) == 2 else array.reshape(-1, 1)


def table(flat2, row, column, rows, columns):
    part = flat2[row : row + rows, column : column + columns]
    part = part.cpu() if hasattr(part, "cpu") else part
    return "[%s]" % ",".join("[%s]" % ",".join(text(one) for one in line) for line in part.tolist())


def picture(flat2):
    """Bytes 0 to 254 from least to greatest, 255 for what is not finite, as hexadecimal digits."""
    steps = [max(1, -(-side // SIDE)) for side in flat2.shape]
    part = flat2[:: steps[0], :: steps[1]]
    cells = numbers(part)
    known = [one for one in cells if finite(one)]
    low, high = (min(known), max(known)) if known else (None, None)
    scale = 254.0 / (high - low) if known and high > low else 0.0
    digits = "".join("%02x" % (int((one - low) * scale) if finite(one) else 255) for one in cells)
    return '{"rows":%d,"columns":%d,"low":%s,"high":%s,"cells":"%s"}' % (
        part.shape[0],
        part.shape[1],
        number(low),
        number(high),
        digits,
    )


def sample(array):
    """At most SAMPLE elements, from equal steps in each dimension."""
    left = list(array.shape)
    steps = [1] * len(left)
    while True:
        count = 1
        for side in left:
            count *= side
        if count <= SAMPLE:
            return numbers(array[tuple(slice(None, None, step) for step in steps)] if steps else array)
        widest = left.index(max(left))
        steps[widest] *= 2
        left[widest] = -(-array.shape[widest] // steps[widest])


def statistics(array):
    cells = sample(array)
    known = [one for one in cells if finite(one)]
    nan = sum(1 for one in cells if one != one)
    count, bins, mean, deviation, low, high = len(known), [0] * BINS, None, None, None, None
    if known:
        low, high = min(known), max(known)
        mean = sum(known) / count
        deviation = (sum((one - mean) ** 2 for one in known) / count) ** 0.5
        scale = BINS / float(high - low) if high > low else 0.0
        for one in known:
            bins[min(BINS - 1, int((one - low) * scale))] += 1
    return '{"sampled":%d,"nan":%d,"infinite":%d,"low":%s,"high":%s,"mean":%s,"deviation":%s,"bins":%s}' % (
        len(cells),
        nan,
        len(cells) - nan - count,
        number(low),
        number(high),
        number(mean),
        number(deviation),
        str(bins).replace(" ", ""),
    )


def view(value, index, row, column, rows, columns):
    array = plain(value)
    flat2 = plane(array, index)
    row = row if row < flat2.shape[0] else 0
    column = column if column < flat2.shape[1] else 0
    elements = 1
    for side in array.shape:
        elements *= side
    return (
        '{"dtype":%s,"device":%s,"grad":%s,"shape":%s,"elements":%d,"rows":%d,"columns":%d,'
        '"row":%d,"column":%d,"table":%s,"picture":%s,"statistics":%s}'
    ) % (
        text(str(array.dtype).replace("torch.", "")),
        text(getattr(array, "device", "cpu")),
        "true" if getattr(value, "requires_grad", False) is True else "false",
        str([int(side) for side in array.shape]).replace(" ", ""),
        elements,
        flat2.shape[0],
        flat2.shape[1],
        row,
        column,
        table(flat2, row, column, rows, columns),
        picture(flat2),
        statistics(array),
    )
