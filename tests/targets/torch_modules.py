"""A small torch model, and what torch itself says of its modules and parameters."""

import json
import sys

import torch
from torch import nn


class Mixin(object):
    pass


class Block(Mixin, nn.Module):
    def __init__(self, width):
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(width, width), nn.ReLU())
        self.scale = nn.Parameter(torch.full((width,), 0.5))

    def forward(self, values):
        return self.inner(values) * self.scale


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(11, 8)
        self.blocks = nn.ModuleList([Block(8) for _ in range(3)])
        self.norm = nn.BatchNorm1d(8)
        self.head = nn.Linear(8, 11, bias=False)
        self.head.weight = self.embedding.weight  # shared
        self.again = self.blocks[0]  # a module with two parents
        self.register_parameter("nothing", None)
        self.norm.weight.requires_grad_(False)

    def forward(self, tokens):
        values = self.embedding(tokens).mean(1)
        for block in self.blocks:
            values = block(values)
        return self.head(self.norm(values))


torch.manual_seed(1)
net = Net()
net(torch.randint(11, (5, 3))).pow(2).sum().backward()
net.blocks[1].eval()
for name, module in net.named_modules():
    own, all_ = list(module.parameters(recurse=False)), list(module.parameters())
    kinds = {str(parameter.dtype)[6:] for parameter in all_}
    print(json.dumps({
        "what": "module", "name": name, "address": id(module), "type": type(module).__module__ + "." + type(module).__qualname__,
        "training": int(module.training), "children": len([child for child in module._modules.values() if child is not None]),
        "parameters": sum(parameter.numel() for parameter in own),
        "parameters_total": sum(parameter.numel() for parameter in all_),
        "trainable_total": sum(parameter.numel() for parameter in all_ if parameter.requires_grad),
        "bytes_total": sum(parameter.numel() * parameter.element_size() for parameter in all_),
        "dtype": None if not kinds else kinds.pop() if len(kinds) == 1 else "mixed"}))
for module_name, module in net.named_modules():
    for kind, items in (("parameter", module._parameters), ("buffer", module._buffers)):
        for name, value in items.items():
            if value is None:
                continue
            wide = value.detach().double()
            print(json.dumps({
                "what": "parameter", "name": module_name + "." + name if module_name else name, "kind": kind,
                "address": id(value), "shape": str(list(value.shape)), "dtype": str(value.dtype)[6:],
                "requires_grad": int(value.requires_grad), "has_grad": int(value.grad is not None),
                "nan": int(torch.isnan(wide).sum()), "zero": int((wide == 0).sum()), "min": float(wide.min()),
                "max": float(wide.max()), "mean": float(wide.mean()), "std": float(wide.std()) if wide.numel() > 1 else None,
                "norm": float(wide.norm()), "grad_norm": None if value.grad is None else float(value.grad.double().norm())}))
print("ready", flush=True)
sys.stdin.read()
