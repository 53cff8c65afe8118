# Time-outs that a pause may trip: those of torch's process groups, of NCCL's heartbeat, and alarms.
import os
import sys

DEFAULT_HEARTBEAT = 480  # s, TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC (ProcessGroupNCCL.hpp; from 2.2 on)


def seconds_of(value):
    """Of a timedelta or a number, or None."""
    found = value.total_seconds() if hasattr(value, "total_seconds") else value
    return float(found) if isinstance(found, (int, float)) else None


def group_seconds(group):
    """[(back end, seconds)] of a process group."""
    found = []
    for device in ("cuda", "cpu"):
        try:
            backend = group._get_backend(sys.modules["torch"].device(device))
        except Exception:
            continue
        for holder in (getattr(backend, "options", None), getattr(backend, "_options", None)):
            seconds = seconds_of(getattr(holder, "_timeout", None)) if holder is not None else None
            if seconds is not None:
                found.append((str(backend.name()) if hasattr(backend, "name") else device, seconds))
                break
    return found


def groups():
    """[(name, group)] of torch.distributed, when it is in use."""
    module = sys.modules.get("torch.distributed.distributed_c10d")
    world = getattr(module, "_world", None)
    known = getattr(world, "pg_map", None) or getattr(module, "_pg_map", None) or {}
    names = getattr(world, "pg_names", None) or {}
    return [(str(names.get(group, "default")), group, entry) for group, entry in list(known.items())]


def time_outs(session, given):
    found, seen = [], set()
    nccl = False
    for name, group, entry in groups():
        kinds = group_seconds(group)
        if not kinds:
            kinds = [(str(entry[0]) if isinstance(entry, tuple) and entry else "", default_seconds(entry))]
        for kind, seconds in kinds:
            nccl = nccl or "nccl" in kind.lower()
            if seconds is not None and (name, kind, seconds) not in seen:
                seen.add((name, kind, seconds))
                found.append({"name": "process group {} ({})".format(name, kind), "seconds": seconds})
    if nccl and os.environ.get("TORCH_NCCL_ENABLE_MONITORING", "1") != "0":
        text = os.environ.get("TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC", "")
        found.append({"name": "NCCL's heartbeat", "seconds": float(text) if text.isdigit() else float(DEFAULT_HEARTBEAT)})
    found += alarms()
    return {"timeouts": sorted(found, key=lambda one: one["seconds"])}


def default_seconds(entry):
    module = sys.modules.get("torch.distributed.constants") or sys.modules.get("torch.distributed.distributed_c10d")
    kind = str(entry[0]) if isinstance(entry, tuple) and entry else ""
    name = "default_pg_nccl_timeout" if "nccl" in kind else "default_pg_timeout"
    return seconds_of(getattr(module, name, None))


def alarms():
    signal = sys.modules.get("signal")
    try:
        left = signal.getitimer(signal.ITIMER_REAL)[0] if signal is not None else 0
    except Exception:
        left = 0
    return [{"name": "an alarm (setitimer)", "seconds": left}] if left else []
