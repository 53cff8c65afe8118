# Arrays of numpy and tensors of torch: shape, type and device first; numbers are only looked at when somebody opens a row.
# Nothing here waits for a device unless it must: the text of a tensor on a GPU has no values.
import sys

values = probe.part("values")
Child = values.Child
DIMENSIONS_MAX = 64
SCALAR_ROOM = 200


def short_type(kind):
    """float32 of torch.float32."""
    return str(kind).rpartition(".")[2]


class Array(object):
    """What is common; a subclass knows its library."""

    STATISTICS = ("min", "max", "mean", "std", "norm", "NaN count", "Inf count")

    def count(self, value):
        shape = self.shape(value)
        return shape[0] if shape else 0

    def items(self, value, expression, start, count):
        rows = []
        with self.quiet():
            for number in range(start, min(start + count, self.count(value))):
                rows.append(Child(str(number), value[number], values.indexed(expression, number), key=(number,)))
        return rows

    def named(self, value, expression):
        rows = [Child("shape", tuple(self.shape(value)), values.joined(expression, "shape"), attributes=("readOnly",))]
        rows += self.facts(value, expression)
        for name in self.STATISTICS:
            rows.append(Child(name, kind="virtual", make=lambda name=name: self.statistic(value, name)))
        rows.append(Child("first values", kind="virtual", make=lambda: self.first(value)))
        own = [Child(name, one, values.joined(expression, name), key=name) for name, one in values.space_of(value).items()
               if type(name) is str]
        return rows, {"attributes": own}


class Numpy(Array):
    def __init__(self, numpy):
        self.numpy = numpy

    def quiet(self):
        return self.numpy.errstate(all="ignore")

    def fits(self, value):
        return isinstance(value, self.numpy.ndarray)

    def shape(self, value):
        return self.numpy.ndarray.shape.__get__(value)

    def text(self, value):
        text = "{} {} {}".format(values.type_name(value), value.dtype, list(value.shape))
        if not value.shape and value.dtype.kind in "biufc":
            text += " = {}".format(value.item())
        return text

    def facts(self, value, expression):
        return [Child(name, one, values.joined(expression, name), attributes=("readOnly",)) for name, one in (
            ("dtype", str(value.dtype)), ("strides", value.strides), ("nbytes", value.nbytes), ("base", value.base is not None),
            ("contiguous", bool(value.flags.c_contiguous)))]

    def statistic(self, value, name):
        numpy = self.numpy
        with self.quiet():
            flat = numpy.asarray(value).reshape(-1)
            if name in ("NaN count", "Inf count"):
                test = numpy.isnan if name == "NaN count" else numpy.isinf
                return int(test(flat).sum()) if flat.dtype.kind in "fc" else 0
            if not flat.size:
                raise ValueError("it is empty")
            if name == "norm":
                return float(numpy.sqrt((numpy.abs(flat).astype("float64") ** 2).sum()))
            if name in ("mean", "std"):
                return getattr(flat, name)(dtype="complex128" if flat.dtype.kind == "c" else "float64").item()
            return getattr(flat, name)().item()

    def first(self, value):
        return value.flat[:20].tolist()


class Torch(Array):
    def __init__(self, torch):
        self.torch = torch

    def quiet(self):
        return self.torch.no_grad()

    def fits(self, value):
        return isinstance(value, self.torch.Tensor)

    def shape(self, value):
        return tuple(value.shape)

    def text(self, value):
        text = "{} {} {} {}".format(values.type_name(value), short_type(value.dtype), list(value.shape), value.device)
        if value.requires_grad:
            text += " grad"
        return text if len(value.shape) or value.device.type != "cpu" else text + self.number(value)

    def number(self, value):
        """Of a tensor without dimensions; a fake one has none."""
        try:
            return " = {}".format(value.detach().item())
        except Exception as error:
            probe.engine.keep_pending(error)
            return ""

    def facts(self, value, expression):
        found = [("dtype", short_type(value.dtype)), ("device", str(value.device)), ("layout", short_type(value.layout)),
                 ("requires_grad", value.requires_grad), ("is_leaf", value.is_leaf)]
        if str(value.layout) == "torch.strided":
            found += [("stride", tuple(value.stride())), ("contiguous", value.is_contiguous())]
        rows = [Child(name, one, None if name in ("layout", "contiguous") else values.joined(expression, name),
                      attributes=("readOnly",)) for name, one in found]
        rows.append(Child("storage", self.storage(value), attributes=("readOnly",)))
        if value.requires_grad and value.is_leaf:
            rows.append(Child("grad", value.grad, values.joined(expression, "grad"), key="grad"))
        elif value.grad_fn is not None:
            rows.append(Child("grad_fn", value.grad_fn, values.joined(expression, "grad_fn")))
        return rows

    def storage(self, value):
        """{bytes, offset, address, shared}, or why there is none."""
        try:
            whole = value.untyped_storage() if hasattr(value, "untyped_storage") else value.storage()
            return {"bytes": whole.nbytes(), "offset": value.storage_offset(), "address": hex(value.data_ptr()),
                    "views": value._is_view() if hasattr(value, "_is_view") else None}
        except Exception as error:
            return probe.caught(error)

    def statistic(self, value, name):
        torch = self.torch
        with self.quiet():
            flat = value.detach()
            if flat.layout != torch.strided:
                flat = flat.coalesce().values() if flat.layout == torch.sparse_coo else flat.to_dense()
            if flat.is_complex() and name not in ("mean", "NaN count", "Inf count"):
                flat = flat.abs()
            if name in ("NaN count", "Inf count"):
                test = torch.isnan if name == "NaN count" else torch.isinf
                return int(test(flat).sum().item())
            if not flat.numel():
                raise ValueError("it is empty")
            if name in ("min", "max"):
                return getattr(flat, name)().item()
            if not (flat.is_floating_point() or flat.is_complex()):
                flat = flat.to(torch.float64)
            elif flat.dtype not in (torch.float32, torch.float64) and not flat.is_complex():
                flat = flat.to(torch.float32)
            return getattr(flat, name)().item()

    def first(self, value):
        with self.quiet():
            flat = value.detach()
            return (flat.to_dense() if flat.layout != self.torch.strided else flat).reshape(-1)[:20].tolist()


def provider(value):
    """The one that knows a value, or None."""
    if isinstance(value, type) or type(value) in values.SIMPLE:
        return None
    for one in known():
        if one.fits(value):
            return one
    return None


def known(made={}):  # noqa: B006
    """Providers of the libraries that are loaded: as they are loaded, complete, and never imported by us."""
    for name, attribute, make in (("numpy", "ndarray", lambda library: [Numpy(library)]),
                                  ("torch", "no_grad", lambda library: [Torch(library)] + probe.part("modules").of(library))):
        library = sys.modules.get(name)
        if name not in made and library is not None and hasattr(library, attribute):
            if name == "numpy" or hasattr(library, "optim") and hasattr(library, "nn"):
                made[name] = make(library)
    return [one for many in made.values() for one in many]
