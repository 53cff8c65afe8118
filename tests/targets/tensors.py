"""Arrays of numpy or tensors of torch of many kinds, and what the library itself says of each: the argument is its name."""

import json
import math
import sys

KEPT = []


def number(value):
    """As tensor_dump writes it."""
    if isinstance(value, complex):
        return [number(value.real), number(value.imag)]
    if not isinstance(value, (bool, int, float)):
        value = float(value)  # numpy.longdouble
    if isinstance(value, float):
        return "nan" if math.isnan(value) else ("inf" if value > 0 else "-inf") if math.isinf(value) else value
    return "large" if isinstance(value, int) and value >= 1 << 63 else value


def flat(value):
    if isinstance(value, list):
        for item in value:
            for inner in flat(item):
                yield inner
    else:
        yield number(value)


def told(name, value, truth, subscript=""):
    KEPT.append(value)
    truth.update(name=name, address=id(value), subscript=subscript)
    print(json.dumps(truth), flush=True)


def of_numpy():
    import numpy

    print("numpy", numpy.__version__, flush=True)

    def statistics(value):
        kind = value.dtype.kind
        wide = value.astype("complex128" if kind == "c" else "float64").reshape(-1)
        finite = wide[numpy.isfinite(wide)]
        rest = wide[~numpy.isnan(wide)]
        truth = {"count": int(wide.size), "nan": int(numpy.isnan(wide).sum()), "inf": int(numpy.isinf(wide).sum()),
                 "zero": int((wide == 0).sum())}
        if finite.size:
            truth.update(mean=float(finite.mean().real), std=float(finite.std()),
                         norm=float(numpy.sqrt((numpy.abs(finite) ** 2).sum())))
        if rest.size and kind != "c":
            truth.update(min=float(rest.min()), max=float(rest.max()))
            if finite.size:
                counts = numpy.histogram(finite, bins=8)[0]
                truth.update(histogram=[int(count) for count in counts])
        return truth

    def array(name, value, subscript=""):
        part = eval("value[{}]".format(subscript)) if subscript else value
        part = numpy.asarray(part) if not isinstance(part, numpy.ndarray) else part
        truth = {"torch": False, "shape": list(part.shape), "stride": list(part.strides), "numel": int(part.size),
                 "item_size": part.itemsize, "data": part.__array_interface__["data"][0] if part.size else None,
                 "contiguous": bool(part.flags.c_contiguous), "device": "", "layout": "strided", "is_leaf": True,
                 "requires_grad": False, "version": -1}
        if part.dtype.kind in "biufc":
            truth["dtype"] = part.dtype.newbyteorder("=").name if part.dtype.isnative else part.dtype.str
            truth["elements"] = list(flat(part.tolist()))
            truth["statistics"] = statistics(part)
        if subscript:
            truth["data"] = None
        told(name, value, truth, subscript)

    random = numpy.random.RandomState(5)
    for dtype in ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64",
                  "complex64", "complex128", "bool"):
        made = (random.rand(37, 61) * 100 - 50 * (dtype[0] not in "ub")).astype(dtype)
        array(dtype, made)
        array(dtype + "_turned", made.T)
        array(dtype + "_view", made[3::2, ::-3])
        array(dtype + "_part", made, "2:30:3, 5")
        if dtype not in ("bool", "int8", "uint8") and "complex" not in dtype:
            array(dtype + "_swapped", made.astype(made.dtype.newbyteorder()))
    special = numpy.array([1, 0, -0.0, float("nan"), float("inf"), -float("inf"), 1e-45, 3e38], "float32")
    array("special", special)
    array("special_long", numpy.tile(special, 5000))
    array("only_nan", numpy.full(9, float("nan")))
    array("scalar", numpy.array(2.5))
    array("empty", numpy.zeros((0, 3)))
    array("broadcast", numpy.broadcast_to(numpy.arange(5.0), (7, 5)))
    array("many", numpy.arange(2.0 ** 10).reshape((2,) * 10))
    array("one_by_one", numpy.arange(120.0).reshape(2, 3, 4, 5), "1, ..., ::-2")
    array("large", random.rand(1 << 16))
    array("records", numpy.zeros(3, [("a", "i4"), ("b", "f8")]))
    array("texts", numpy.array(["ab", "c"]))
    array("objects", numpy.array([None, "x"], dtype=object))
    array("dates", numpy.array(["2024-01-01"], dtype="datetime64[D]"))
    array("long_double", numpy.array([1.5, -2.25], dtype="longdouble"))
    array("borrowed", numpy.frombuffer(b"0123456789abcdef", dtype="uint16"))


def of_torch():
    import torch

    print("torch", torch.__version__, flush=True)

    def statistics(value):
        wide = value.detach().resolve_conj().resolve_neg().contiguous().view(-1)
        wide = wide.to(torch.complex128) if wide.is_complex() else wide.to(torch.float32 if wide.element_size() == 1 else
                                                                            wide.dtype).double()
        finite = wide[torch.isfinite(wide)]
        rest = wide[~torch.isnan(wide)]
        truth = {"count": wide.numel(), "nan": int(torch.isnan(wide).sum()), "inf": int(torch.isinf(wide).sum()),
                 "zero": int((wide == 0).sum())}
        if finite.numel():
            mean = complex(finite.mean())
            truth.update(mean=mean.real, mean_imag=mean.imag, norm=float(finite.abs().pow(2).sum().sqrt()))
            if finite.numel() > 1:
                truth.update(std=float(finite.std()))
        if rest.numel() and not wide.is_complex():
            truth.update(min=float(rest.min()), max=float(rest.max()))
        return truth

    def tensor(name, value, decoded=True):
        strided = value.layout == torch.strided
        size = value.element_size()
        truth = {"torch": True, "shape": list(value.shape), "numel": value.numel(), "item_size": size,
                 "dtype": str(value.dtype)[6:], "device": str(value.device), "layout": str(value.layout)[6:],
                 "requires_grad": value.requires_grad, "is_leaf": value.is_leaf,
                 "has_grad": value.is_leaf and value.grad is not None}
        try:
            truth["version"] = value._version
        except RuntimeError:
            truth["version"] = -1
        if strided:
            storage = value.untyped_storage()
            truth.update(stride=[step * size for step in value.stride()], contiguous=value.is_contiguous(),
                         storage_size=storage.nbytes(), storage_offset=value.storage_offset() * size)
            if value.device.type == "cpu":
                truth.update(data=value.data_ptr() if value.numel() else None, storage=storage.data_ptr())
        if decoded and strided and value.device.type == "cpu":
            plain = value.detach().resolve_conj().resolve_neg()
            if "float8" in str(value.dtype):
                plain = plain.to(torch.float32)
            truth.update(elements=list(flat(plain.tolist() if plain.dim() else [plain.item()])), statistics=statistics(value))
        told(name, value, truth)

    torch.manual_seed(3)
    for name in ("uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "float16", "bfloat16", "float32", "float64",
                 "complex64", "complex128", "bool", "float8_e5m2", "float8_e4m3fn", "float8_e5m2fnuz", "float8_e4m3fnuz"):
        dtype = getattr(torch, name, None)
        if dtype is None:
            continue
        made = (torch.rand(37, 61) * 100 - (0 if name[0] == "u" else 50)).to(dtype)
        tensor(name, made)
        tensor(name + "_turned", made.t())
        tensor(name + "_view", made[3::2, 5:40:3])
        tensor(name + "_expanded", made[:1].expand(5, 61))
    tensor("special", torch.tensor([1, 0, -0.0, float("nan"), float("inf"), -float("inf"), 1e-45, 3e38]).repeat(3000))
    tensor("scalar", torch.tensor(2.5))
    tensor("empty", torch.zeros(0, 3))
    tensor("dims", torch.arange(2.0 ** 9).view((2,) * 9))
    tensor("large", torch.randn(1 << 16))
    shared = torch.arange(24.0).view(4, 6)
    tensor("shared", shared)
    tensor("shared_view", shared[1:, 2:])
    tensor("as_strided", torch.as_strided(shared, (5, 5), (1, 2)))
    tensor("meta", torch.empty(3, 4, device="meta"))
    leaf = torch.nn.Parameter(torch.randn(5, 4))
    (leaf * 2).sum().backward()
    tensor("parameter", leaf)
    tensor("gradient", leaf.grad)
    tensor("without_gradient", torch.nn.Parameter(torch.randn(3)))
    tensor("made", (leaf * 3).sum())
    tensor("named", torch.ones(3, requires_grad=True))
    tensor("view_of_leaf", leaf.view(20))
    changed = torch.zeros(4)
    for _ in range(7):
        changed.add_(1)
    tensor("changed", changed)
    with torch.inference_mode():
        inferred = torch.ones(2)
    tensor("inference", inferred)
    pairs = torch.tensor([1 + 2j, 3 - 4j, 5j])
    tensor("conjugate", pairs.conj())
    tensor("negative", pairs.conj().imag)
    tensor("half_complex", pairs.to(torch.complex32), decoded=False)
    freed = torch.ones(8)
    freed.untyped_storage().resize_(0)
    tensor("freed", freed, decoded=False)
    tensor("sparse", torch.eye(3).to_sparse())
    tensor("sparse_csr", torch.eye(3).to_sparse_csr())
    tensor("sparse_csc", torch.eye(3).to_sparse_csc())
    tensor("sparse_bsr", torch.eye(4).to_sparse_bsr((2, 2)))
    tensor("quantized", torch.quantize_per_tensor(torch.ones(3), 0.5, 0, torch.qint8), decoded=False)


if __name__ == "__main__":
    import warnings

    warnings.simplefilter("ignore")
    {"numpy": of_numpy, "torch": of_torch}[sys.argv[1]]()
    print("ready", flush=True)
    sys.stdin.read()
