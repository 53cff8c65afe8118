"""A training loop whose loss seems to lie on a CUDA device: tests/training/fake_cuda.c stands for CUDA.

Each line of its input is evaluated, and the result printed; get and put are for the stand-in's variables, which LD_LIBRARY_PATH has.
"""

import ctypes
import sys
import threading
import time

import torch

torch.set_num_threads(1)
CPU, CUDA, META = 0, 1, 14


def word(address):
    return ctypes.c_uint64.from_address(address).value


def byte(address):
    return ctypes.c_uint8.from_address(address)


def impl(tensor):
    return word(id(tensor) + object.__basicsize__)


def find_device():
    """Where a tensor has its device's type and index, and whether it has one: by those of two devices."""
    one, other = torch.zeros(1), torch.zeros(1, device="meta")
    for at in range(300):
        if (byte(impl(one) + at).value, byte(impl(other) + at).value) == (CPU, META) and byte(impl(one) + at + 2).value == 1:
            return at
    raise SystemExit("no device in a tensor of this PyTorch")


def find_storage():
    """The same of its storage, whose address stands behind the head of both."""
    one = torch.zeros(3)
    for at in (16, 24):
        if word(word(impl(one) + at) + at) == one.data_ptr():
            return at, at + 24
    raise SystemExit("no storage in a tensor of this PyTorch")


driver, fake = ctypes.CDLL("libcuda.so.1"), ctypes.CDLL("libc10_cuda.so")
told = {}
DEVICE, (STORAGE, STORAGE_DEVICE) = find_device(), find_storage()


def get(name):
    return ctypes.c_int.in_dll(fake, "cuda_" + name).value


def put(name, value):
    for library in (driver, fake):  # each has its own
        ctypes.c_int.in_dll(library, "cuda_" + name).value = value


def move(tensor, kind):
    byte(impl(tensor) + DEVICE).value = kind
    byte(impl(tensor) + DEVICE + 1).value = 0 if kind == CUDA else 255
    byte(word(impl(tensor) + STORAGE) + STORAGE_DEVICE).value = kind


def use_allocator(devices):
    """As if CUDA were in use: bytes that are allocated, reserved, and were allocated at most, of each device."""
    def stats(device):
        allocated, reserved, peak = devices[device]
        return {"allocated_bytes": {"all": {"current": allocated, "peak": peak}}, "reserved_bytes": {"all": {"current": reserved, "peak": reserved}}}

    torch.cuda.is_initialized = torch.cuda.memory.is_initialized = lambda: True
    torch.cuda.device_count = lambda: len(devices)
    torch._C._cuda_memoryStats = stats


allocates = False


def init_allocator():
    """As if CUDA were in use: 5 MB of device 0 and 1 of device 1, then 3 MB of each forward that its backward frees."""
    global allocates
    fake.cuda_init()
    fake.cuda_allocate(0, 5)
    fake.cuda_allocate(1, 1)
    allocates = True


class Slow(torch.nn.Linear):
    def forward(self, x):
        time.sleep(0.004)
        if allocates:
            fake.cuda_allocate(0, 2)
            fake.cuda_allocate(0, 1)
        return super().forward(x)


def free(gradient):
    if allocates:
        fake.cuda_allocate(0, -2)
        fake.cuda_allocate(0, -1)


def train():
    model = Slow(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    number = 0
    while True:
        number += 1
        loss = model(torch.ones(2, 4)).sum() * 0 + number
        loss.register_hook(free)
        loss.backward()
        move(loss, CUDA)
        optimizer.step()
        move(loss, CPU)
        optimizer.zero_grad()
        time.sleep(0.002)
        told[number] = (get("error"), get("mode"))
        if number == 3:
            print("ready", flush=True)


threading.Thread(target=lambda: [print(eval(line), flush=True) for line in sys.stdin], daemon=True).start()
train()
