/*
 * A process whose threads a debugger has stopped, or a core that it has open.  Texts and files come
 * from the process or core itself; memory from the debugger (without its breakpoints), else from
 * the process; registers from the debugger (it may replay a recording), else from ptrace(2) in the
 * tracer's own thread.
 */
#include <elf.h>
#include <string.h>
#include <sys/procfs.h>
#include <sys/ptrace.h>
#include <sys/uio.h>

#include "arch/arch.h"
#include "proc/source.h"

struct debugged {
    struct prb_proc base;
    struct prb_proc *inner;
    prb_mem_fn *read;
    prb_registers_fn *registers;
    void *context;
};

static struct prb_proc *inner_of(struct prb_proc *proc) { return ((struct debugged *)proc)->inner; }

static bool debugger_text(struct prb_proc *proc, const char *name, struct prb_buf *out,
                          struct prb_error *err)
{
    return prb_proc_text(inner_of(proc), name, out, err);
}

static bool debugger_tids(struct prb_proc *proc, struct prb_buf *out, struct prb_error *err)
{
    struct prb_proc *inner = inner_of(proc);
    return inner->ops->tids(inner, out, err);
}

static bool debugger_check(struct prb_proc *proc, struct prb_error *err)
{
    return prb_proc_check(inner_of(proc), err);
}

static int debugger_open_map(struct prb_proc *proc, const struct prb_map *map,
                             struct prb_error *err)
{
    return prb_proc_open_map(inner_of(proc), map, err);
}

static int debugger_open_path(struct prb_proc *proc, const char *path)
{
    return prb_proc_open_path(inner_of(proc), path);
}

static void debugger_free(struct prb_proc *proc)
{
    prb_proc_deinit(proc);
    prb_proc_free(inner_of(proc));
    free(proc);
}

/* ---- registers ---- */

static bool by_ptrace(pid_t tid, struct prb_registers *out)
{
    elf_gregset_t gregset;
    struct iovec iov = {&gregset, sizeof gregset};
    return ptrace(PTRACE_GETREGSET, tid, (void *)(uintptr_t)NT_PRSTATUS, &iov) == 0 &&
           prb_arch_registers(prb_arch_host(), &gregset, iov.iov_len, out, NULL);
}

/* Those that unwinding asks for. */
static bool by_debugger(const struct debugged *debugged, pid_t tid, struct prb_registers *out)
{
    const struct prb_arch *arch = prb_arch_host();
    const char *names[PRB_REG_MAX];
    unsigned places[PRB_REG_MAX];
    uint64_t values[PRB_REG_MAX];
    size_t count = 0;
    for (unsigned i = 0; i < arch->register_count; i++)
        if (arch->registers[i].unwind >= 0) {
            names[count] = arch->registers[i].name;
            places[count++] = i;
        }
    if (!debugged->registers || !debugged->registers(debugged->context, tid, names, count, values))
        return false;
    struct prb_registers registers = {.known = 0};
    for (size_t i = 0; i < count; i++)
        prb_register_set(&registers, places[i], values[i]);
    *out = registers;
    return true;
}

/* A blocked thread's, of a process that others trace. */
static bool by_proc(struct prb_proc *proc, pid_t tid, struct prb_registers *out)
{
    const struct prb_arch *arch = prb_arch_host();
    struct prb_syscall call;
    if (!prb_proc_syscall(proc, tid, &call, NULL) || call.running)
        return false;
    *out = (struct prb_registers){.known = 0};
    prb_register_set(out, arch->sp, call.sp);
    prb_register_set(out, arch->pc, call.pc);
    return true;
}

static bool debugger_registers(struct prb_proc *proc, pid_t tid, struct prb_registers *out,
                               struct prb_error *err)
{
    struct debugged *debugged = (struct debugged *)proc;
    if (!proc->exists)
        return prb_proc_registers(debugged->inner, tid, out, err);
    return by_debugger(debugged, tid, out) || by_ptrace(tid, out) || by_proc(proc, tid, out) ||
           prb_fail(err, PRB_BUSY, "thread %d runs, or its registers cannot be read", (int)tid);
}

/* ---- memory ---- */

struct debugger_mem {
    struct prb_mem base;
    struct prb_proc *inner;
    struct prb_mem *told; /* what the debugger reads; NULL: it reads nothing */
};

static void from_inner(struct prb_mem *mem, struct prb_range *range)
{
    range->got += prb_mem_read_some(mem, range->addr + range->got,
                                    (uint8_t *)range->buf + range->got, range->len - range->got);
}

/* Of a process the debugger's bytes count, of a core the core's own, which are checked against its
 * build ids. */
static bool debugger_readv(struct prb_mem *mem, struct prb_range *ranges, size_t count,
                           struct prb_error *err)
{
    struct debugger_mem *self = (struct debugger_mem *)mem;
    struct prb_mem *own = prb_proc_mem(self->inner, NULL);
    bool core = !self->inner->exists;
    (void)err;
    for (size_t i = 0; i < count; i++) {
        struct prb_range *range = &ranges[i];
        range->got = 0;
        if (core && own)
            from_inner(own, range);
        if (self->told && range->got == 0)
            prb_mem_readv_some(self->told, range, 1, NULL);
        if (!core && own && range->got < range->len)
            from_inner(own, range);
    }
    return true;
}

static void debugger_mem_free(struct prb_mem *mem)
{
    prb_mem_free(((struct debugger_mem *)mem)->told);
    free(mem);
}

static const struct prb_mem_ops debugger_mem_ops = {"debugger", debugger_readv, debugger_mem_free};

static struct prb_mem *debugger_mem_new(struct prb_proc *proc, struct prb_error *err)
{
    const struct debugged *debugged = (struct debugged *)proc;
    PRB_AUTO_FREE struct debugger_mem *self = calloc(1, sizeof *self);
    if (!self)
        return PRB_NULL(prb_nomem(err));
    *self = (struct debugger_mem){{&debugger_mem_ops, 0, 0}, debugged->inner, NULL};
    if (debugged->read &&
        !(self->told = prb_mem_callback_new(debugged->read, debugged->context, err)))
        return NULL;
    return &PRB_STEAL(self)->base;
}

static const struct prb_proc_ops debugger_ops = {
    .name = "debugger",
    .text = debugger_text,
    .tids = debugger_tids,
    .check = debugger_check,
    .registers = debugger_registers,
    .open_map = debugger_open_map,
    .open_path = debugger_open_path,
    .mem_new = debugger_mem_new,
    .free = debugger_free,
};

struct prb_proc *prb_proc_of_debugger(struct prb_proc *inner, prb_mem_fn *read,
                                      prb_registers_fn *registers, void *context,
                                      struct prb_error *err)
{
    struct debugged *debugged = calloc(1, sizeof *debugged);
    if (!debugged) {
        prb_proc_free(inner);
        return PRB_NULL(prb_nomem(err));
    }
    *debugged = (struct debugged){
        .base = {.ops = &debugger_ops,
                 .pid = inner->pid,
                 .time = inner->time,
                 .signal = inner->signal,
                 .signalled = inner->signalled,
                 .exists = inner->exists,
                 .snapshot = inner->snapshot,
                 .inner = inner->inner},
        .inner = inner,
        .read = read,
        .registers = registers,
        .context = context,
    };
    return &debugged->base;
}
