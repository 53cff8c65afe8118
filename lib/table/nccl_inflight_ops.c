/* nccl.inflight_ops: what NCCL has begun and not ended, as the plugin remembers it, read from outside. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "inject/nccl/events.h"
#include "inject/nccl/host.h"
#include "inject/nccl/interface.h"
#include "inspect/target.h"
#include "proc/elf.h"
#include "table/shared/moment_columns.h"

#define READINGS 4 /* of an event, until two are equal */

static const struct prb_column columns[] = {
    PRB_MOMENT_COLUMNS,
    {"ts", PRB_INTEGER, "ns", "the same as timestamp"},
    {"comm_hash", PRB_INTEGER, "id", "of the communicator, as in nccl.coll_perf"},
    {"n_ranks", PRB_INTEGER, "count", "of the communicator"},
    {"kind", PRB_TEXT, "", "coll, p2p, or proxy_op: what the proxy sends or receives for one"},
    {"coll_func", PRB_TEXT, "", "AllReduce, Send and the like"},
    {"seq", PRB_INTEGER, "", "of the collective in its communicator; NULL: point to point"},
    {"msg_size_bytes", PRB_INTEGER, "bytes", "of the collective"},
    {"channel_id", PRB_INTEGER, "id", "of a proxy operation"},
    {"peer", PRB_INTEGER, "id", "the other rank; NULL: all"},
    {"is_send", PRB_INTEGER, "", "of a proxy operation, 1: it sends, 0: it receives"},
    {"state", PRB_TEXT, "",
     "enqueuing (the call has not returned), queued (no kernel has begun), running; of a proxy "
     "operation what it waits for, as nccl.proxy_ops has it: send_gpu_wait, recv_wait, …"},
    {"state_ns", PRB_INTEGER, "ns", "how long a proxy operation waits for that"},
    {"start_ns", PRB_INTEGER, "ns", "when it began, since the epoch"},
    {"age_ns", PRB_INTEGER, "ns", "since then"},
    {0},
};

static const char *const waits[PRB_NCCL_WAITS] = {"send_gpu_wait", "send_peer_wait", "send_wait",
                                                  "recv_wait", "recv_flush_wait"};

struct flight {
    struct prb_mem *mem;
    struct prb_nccl_state state;
    struct prb_nccl_comm comms[PRB_NCCL_COMMS];
    struct prb_nccl_event events[PRB_NCCL_EVENTS];
    size_t count;
    bool running[PRB_NCCL_EVENTS];  /* a kernel of this collective has begun */
    uint32_t step[PRB_NCCL_EVENTS]; /* 1 + the step of this proxy operation that is in flight */
    uint64_t now;                   /* CLOCK_MONOTONIC, ns; 0: the process does not run */
    int64_t wall;                   /* ns since the epoch */
};

/* ---- reading ---- */

/* Where the plugin has its state; 0: it is not loaded. */
static prb_addr find_state(struct prb_proc *proc, struct prb_error *err)
{
    PRB_AUTO(prb_modules) struct prb_modules modules = {0};
    if (!prb_modules_init(&modules, proc, err))
        return 0;
    for (size_t i = 0; i < modules.count; i++) {
        struct prb_module *one = &modules.items[i];
        const char *name = strrchr(one->path, '/');
        struct prb_symbol symbol;
        struct prb_elf *elf = name && strcmp(name + 1, PRB_NCCL_LIBRARY) == 0
                                  ? prb_modules_elf(&modules, one, err)
                                  : NULL;
        if (elf && prb_elf_symbol(elf, PRB_NCCL_STATE, &symbol, err))
            return symbol.value + one->bias;
    }
    return 0;
}

static prb_addr address_of(const struct flight *flight, size_t index)
{
    return (prb_addr)(uintptr_t)flight->state.events + index * sizeof *flight->events;
}

static bool read_state(struct flight *flight, prb_addr at, struct prb_error *err)
{
    if (!prb_mem_read(flight->mem, at, &flight->state, sizeof flight->state, err))
        return false;
    if (flight->state.version != PRB_NCCL_EVENTS_VERSION ||
        flight->state.event_size != sizeof *flight->events)
        return prb_fail(err, PRB_UNSUPPORTED,
                        "the NCCL plugin in the process is of another version than this program");
    uint64_t begun = flight->state.next;
    flight->count = begun < PRB_NCCL_EVENTS ? (size_t)begun : PRB_NCCL_EVENTS;
    return prb_mem_read(flight->mem, (prb_addr)(uintptr_t)flight->state.comms, flight->comms,
                        sizeof flight->comms, err) &&
           prb_mem_read(flight->mem, address_of(flight, 0), flight->events,
                        flight->count * sizeof *flight->events, err);
}

static bool is_coll(const struct prb_nccl_event *event)
{
    return event->type == NCCL_COLL || event->type == NCCL_P2P;
}

/* The target's pointer: an index, or PRB_NCCL_COMMS. */
static size_t comm_of(const struct flight *flight, const struct prb_nccl_event *event)
{
    uintptr_t first = (uintptr_t)flight->state.comms, at = (uintptr_t)event->comm;
    size_t index = (at - first) / sizeof *flight->comms;
    return at < first || index >= PRB_NCCL_COMMS ? PRB_NCCL_COMMS : index;
}

/* Begun since recording was switched on, and not at its end; its communicator lives. */
static bool is_open(const struct flight *flight, const struct prb_nccl_event *event)
{
    size_t comm = comm_of(flight, event);
    return event->handle && event->began >= flight->state.since && comm < PRB_NCCL_COMMS &&
           flight->comms[comm].mask && (is_coll(event) ? !event->written : !event->stopped);
}

/* Its thread is within it: what it holds is half of what it will. */
static bool is_held(const struct prb_nccl_event *event)
{
    static const char free[sizeof event->busy]; /* as ATOMIC_FLAG_INIT */
    return memcmp(&event->busy, free, sizeof free) != 0;
}

/* The program goes on meanwhile.  False: the event ended, or changes all the time. */
static bool settle(struct flight *flight, size_t index)
{
    struct prb_nccl_event *event = &flight->events[index], again;
    for (int i = 0; i < READINGS && is_open(flight, event); i++) {
        if (prb_mem_read_some(flight->mem, address_of(flight, index), &again, sizeof again) <
            sizeof again)
            return false;
        if (memcmp(&again, event, sizeof again) == 0 && !is_held(event))
            return true;
        if (again.handle != event->handle)
            return false;
        *event = again;
    }
    return false;
}

/* Index of the event with this handle, or PRB_NCCL_EVENTS. */
static size_t find(const struct flight *flight, uint64_t handle)
{
    size_t index = handle % PRB_NCCL_EVENTS;
    return handle && index < flight->count && flight->events[index].handle == handle
               ? index
               : PRB_NCCL_EVENTS;
}

static void look_at_children(struct flight *flight)
{
    for (size_t i = 0; i < flight->count; i++) {
        const struct prb_nccl_event *event = &flight->events[i];
        size_t parent = find(flight, event->parent);
        if (parent == PRB_NCCL_EVENTS)
            continue;
        flight->running[parent] |= event->type == NCCL_KERNEL_CHANNEL;
        if (event->type == NCCL_PROXY_STEP && !event->stopped)
            flight->step[parent] = (uint32_t)i + 1;
    }
}

/* ---- rows ---- */

static void put_state(struct prb_rows *rows, const struct flight *flight, size_t index)
{
    const struct prb_nccl_event *event = &flight->events[index];
    uint32_t step = flight->step[index];
    const struct prb_nccl_event *waiting = step ? &flight->events[step - 1] : NULL;
    if (is_coll(event)) {
        prb_row_text(rows, !event->stopped          ? "enqueuing"
                           : flight->running[index] ? "running"
                                                    : "queued");
        prb_row_null(rows);
    } else if (waiting && waiting->step.wait >= 0 && waiting->step.wait < PRB_NCCL_WAITS) {
        prb_row_text(rows, waits[waiting->step.wait]);
        prb_row_int_unless(
            rows,
            flight->now >= waiting->step.since ? (int64_t)(flight->now - waiting->step.since) : -1,
            -1);
    } else {
        prb_row_null(rows);
        prb_row_null(rows);
    }
}

static void put(struct prb_rows *rows, const struct flight *flight, size_t index)
{
    const struct prb_nccl_event *event = &flight->events[index];
    const struct prb_nccl_comm *comm = &flight->comms[comm_of(flight, event)];
    size_t parent = is_coll(event) ? index : find(flight, event->parent);
    const struct prb_nccl_event *coll = parent < PRB_NCCL_EVENTS && is_coll(&flight->events[parent])
                                            ? &flight->events[parent]
                                            : NULL;
    bool proxy = event->type == NCCL_PROXY_OP, p2p = coll && coll->type == NCCL_P2P;
    prb_row_begin(rows);
    prb_row_real(rows, (double)flight->wall / 1e9);
    prb_row_int(rows, prb_rows_target(rows)->info.pid);
    prb_row_int(rows, flight->state.rank >= 0 ? flight->state.rank : comm->rank);
    prb_row_int(rows, flight->wall);
    prb_row_int(rows, (int64_t)comm->hash);
    prb_row_int(rows, comm->ranks);
    prb_row_text(rows, proxy ? "proxy_op" : p2p ? "p2p" : "coll");
    if (coll)
        prb_row_textn(rows, coll->coll.func, strnlen(coll->coll.func, PRB_NCCL_NAME));
    else
        prb_row_null(rows);
    prb_row_int_unless(rows, coll && !p2p ? (int64_t)coll->coll.seq : -1, -1);
    prb_row_int_unless(rows, coll ? (int64_t)coll->bytes : -1, -1);
    prb_row_int_unless(rows, proxy ? event->proxy.channel : -1, -1);
    prb_row_int_unless(rows, proxy ? event->proxy.peer : p2p ? coll->coll.peer : -1, -1);
    prb_row_int_unless(rows, proxy ? event->proxy.is_send : -1, -1);
    put_state(rows, flight, index);
    prb_row_int(rows, event->wall);
    prb_row_int(rows, flight->now > event->began ? (int64_t)(flight->now - event->began)
                                                 : flight->wall - event->wall);
}

static void tell_time(struct prb_proc *proc, struct flight *flight)
{
    double time = prb_proc_time(proc);
    flight->wall = time > 0 ? (int64_t)(time * 1e9) : prb_clock_epoch_ns();
    flight->now = time > 0 ? 0 : prb_clock_ns();
}

static bool fill(struct prb_rows *rows, struct prb_error *err)
{
    struct prb_proc *proc = prb_rows_target(rows)->proc;
    struct prb_error why = {0};
    prb_addr at = find_state(proc, &why);
    PRB_AUTO_FREE struct flight *flight = calloc(1, sizeof *flight);
    if (!flight)
        return prb_nomem(err);
    if (!at) {
        prb_rows_warn(rows, "%s",
                      why.code ? why.text
                               : "NCCL has not loaded our plugin in this process: start it with "
                                 "`probing launch` or PROBING=1");
        return true;
    }
    flight->mem = prb_proc_mem(proc, err);
    if (!flight->mem || !read_state(flight, at, err))
        return false;
    if (!flight->state.wanted)
        prb_rows_warn(rows, "NCCL's events are not recorded: `config probing.nccl=on`");
    tell_time(proc, flight);
    look_at_children(flight);
    for (size_t i = 0; flight->state.wanted && i < flight->count; i++)
        if ((is_coll(&flight->events[i]) || flight->events[i].type == NCCL_PROXY_OP) &&
            settle(flight, i))
            put(rows, flight, i);
    return true;
}

const struct prb_table prb_table_nccl_inflight_ops = {
    .schema = "nccl",
    .name = "inflight_ops",
    .doc = "what NCCL has begun and not ended now, and what it waits for (probing.nccl); read from "
           "outside, so also while the process hangs",
    .columns = columns,
    .needs_target = true,
    .fill = fill,
};
