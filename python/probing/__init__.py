"""Probing, from inside the process that is looked at.

    import probing

    probing.init()                                     # or PROBING=1 in the environment: then nothing is needed
    with probing.span("forward", batch=3): ...         # python.spans
    probing.event("checkpoint", path=path)             # python.events
    probing.step()                                     # python.steps; spans, events and logs carry its number
    probing.log(epoch=1, loss=0.25)                    # training_logs
    losses = probing.table("losses", {"layer": str, "norm": float})
    losses.append("fc1", 0.5)                          # python.losses
    probing.debug(listen="127.0.0.1:9922")             # VS Code and others may attach
    probing.breakpoint()                               # stop here for them

Rows lie in shared memory: `probing PID query "SELECT ..."` reads them from outside, also after the process ended.  All of
it can stay in a program for ever: without a probe the calls do nothing.  `query` and `backtrace` need none.

The code is in the package probing_c, whose name no other project has.
"""

from probing_c import (
    Column,
    ProbeError,
    Table,
    __all__,
    __version__,
    _other,
    backtrace,
    breakpoint,
    config,
    debug,
    detach,
    event,
    init,
    is_active,
    load_ipython_extension,
    log,
    query,
    span,
    step,
    table,
)

if _other.warned("import probing"):
    __path__ = []  # what lies in this folder may be the other project's
