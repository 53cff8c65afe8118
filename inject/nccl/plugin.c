/*
 * The NCCL profiler plugin: a library that NCCL loads itself when NCCL_PROFILER_PLUGIN names it, libc only.
 *
 * NCCL calls it from the threads that enqueue and from its proxy's, and looks at the event mask at every group.  The
 * mask is 0 until the probe hands over where rows go (host.h).  Events may come in any order, end after their
 * communicator, or never end: a handle is a number that NCCL keeps for us, never an address, and one that is too old
 * finds nothing.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "inject/nccl/events.h"
#include "inject/nccl/host.h"
#include "inject/nccl/interface.h"
#include "inject/nccl/tables.h"
#include "ring/ring.h"

#define VISIBLE __attribute__((visibility("default")))
#define EVENTS PRB_NCCL_EVENTS
#define INDEX_BITS 16
#define COMMS PRB_NCCL_COMMS
#define NAME PRB_NCCL_NAME
#define WAITS PRB_NCCL_WAITS
#define NO_WAIT PRB_NCCL_NO_WAIT

static struct prb_nccl_event events[EVENTS];
static struct prb_nccl_comm comms[COMMS];
static atomic_uint comm_count;

VISIBLE extern struct prb_nccl_state prb_nccl_state;
struct prb_nccl_state prb_nccl_state = {.version = PRB_NCCL_EVENTS_VERSION,
                                        .event_size = sizeof(struct prb_nccl_event),
                                        .events = events,
                                        .comms = comms,
                                        .rank = -1};
static pthread_mutex_t lock =
    PTHREAD_MUTEX_INITIALIZER; /* of switching, and of masks against their end */
static const struct prb_nccl_host *_Atomic host;
static void *_Atomic colls, *_Atomic proxies, *_Atomic queues, *_Atomic counters;
static _Atomic uint64_t least;
static int pid;

static struct {
    _Atomic uint64_t colls, p2ps, proxy_ops, proxy_steps, kernels, nets;
    _Atomic uint64_t rows, exhausted, dropped, filtered, unmatched;
} count;

#define COUNT(of) atomic_fetch_add_explicit(&count.of, 1, memory_order_relaxed)

static void copy_name(char out[NAME], const char *name)
{
    size_t len = name ? strnlen(name, NAME - 1) : 0;
    if (len)
        memcpy(out, name, len);
    out[len] = '\0';
}

/* ---- rows ---- */

struct row {
    struct prb_ring_value values[24];
    size_t count;
};

static void put(struct row *row, int64_t value)
{
    row->values[row->count++] = (struct prb_ring_value){.integer = value};
}

static void put_unless(struct row *row, bool none, int64_t value)
{
    row->values[row->count++] = (struct prb_ring_value){.null = none, .integer = none ? 0 : value};
}

static void put_text(struct row *row, const char *text)
{
    struct prb_ring_value value = {.null = !*text};
    if (*text) {
        value.text = text;
        value.len = strlen(text);
    }
    row->values[row->count++] = value;
}

static void begin_row(struct row *row, int64_t at)
{
    row->count = 0;
    row->values[row->count++] = (struct prb_ring_value){.real = (double)at / 1e9};
    put(row, at);
    put(row, pid);
}

static void write_row(void *table, const struct row *row)
{
    const struct prb_nccl_host *to = atomic_load(&host);
    if (to && table && to->write(table, row->values))
        COUNT(rows);
    else
        COUNT(dropped);
}

static void put_rank(struct row *row, const struct prb_nccl_comm *comm)
{
    put(row, prb_nccl_state.rank >= 0 ? prb_nccl_state.rank : comm->rank);
}

/* "ncclFloat32": the bits stand in the name. */
static uint64_t bytes_of_type(const char *name)
{
    const char *digits = name + strcspn(name, "0123456789");
    return strtoull(digits, NULL, 10) / 8;
}

/* How long it ran, by the best clock there is. */
static uint64_t run_time(const struct prb_nccl_event *event, const char **source_out)
{
    bool all = event->coll.channels > 0 && event->coll.kernels >= event->coll.channels;
    if (all && event->coll.gpu_began && event->coll.gpu_ended > event->coll.gpu_began) {
        *source_out = "kernel_gpu";
        return event->coll.gpu_ended - event->coll.gpu_began;
    }
    if (all && event->coll.kernel_ended) {
        *source_out = "kernel_ch";
        return event->coll.kernel_ended - event->coll.kernel_began;
    }
    if (event->coll.proxy_ended) {
        *source_out = "proxy";
        return event->coll.proxy_ended - event->began;
    }
    *source_out = "enqueue";
    return event->coll.enqueued;
}

static void write_coll(const struct prb_nccl_event *event)
{
    const char *source;
    uint64_t ns = run_time(event, &source);
    struct row row;
    bool p2p = event->type == NCCL_P2P;
    if (event->bytes < atomic_load_explicit(&least, memory_order_relaxed)) {
        COUNT(filtered);
        return;
    }
    begin_row(&row, event->wall);
    put_rank(&row, event->comm);
    put(&row, (int64_t)event->comm->hash);
    put(&row, event->comm->ranks);
    put_text(&row, event->coll.func);
    put_unless(&row, p2p, (int64_t)event->coll.seq);
    put(&row, p2p);
    put_unless(&row, !p2p, event->coll.peer);
    put(&row, (int64_t)event->coll.count);
    put(&row, (int64_t)event->bytes);
    put_text(&row, event->coll.datatype);
    put_text(&row, event->coll.algorithm);
    put_text(&row, event->coll.protocol);
    put(&row, event->coll.channels);
    put(&row, (int64_t)ns);
    put_unless(&row, !event->stopped, (int64_t)event->coll.enqueued);
    put_text(&row, source);
    row.values[row.count++] =
        (struct prb_ring_value){.null = !ns, .real = ns ? (double)event->bytes / (double)ns : 0};
    write_row(atomic_load(&colls), &row);
}

static void write_counters(void)
{
    struct row row;
    uint64_t used = atomic_load(&prb_nccl_state.next);
    begin_row(&row, prb_clock_epoch_ns());
    put_unless(&row, prb_nccl_state.rank < 0, prb_nccl_state.rank);
    put(&row, (int64_t)count.colls);
    put(&row, (int64_t)count.p2ps);
    put(&row, (int64_t)count.proxy_ops);
    put(&row, (int64_t)count.proxy_steps);
    put(&row, (int64_t)count.kernels);
    put(&row, (int64_t)count.nets);
    put(&row, (int64_t)count.rows);
    put(&row, (int64_t)count.exhausted);
    put(&row, (int64_t)count.dropped);
    put(&row, (int64_t)count.filtered);
    put(&row, (int64_t)count.unmatched);
    put(&row, (int64_t)(used < EVENTS ? used : EVENTS));
    put(&row, EVENTS);
    write_row(atomic_load(&counters), &row);
}

/* ---- events ---- */

static void hold(struct prb_nccl_event *event)
{
    while (atomic_flag_test_and_set_explicit(&event->busy, memory_order_acquire))
        ;
}

static void leave(struct prb_nccl_event *event)
{
    atomic_flag_clear_explicit(&event->busy, memory_order_release);
}

static bool is_coll(const struct prb_nccl_event *event)
{
    return event->type == NCCL_COLL || event->type == NCCL_P2P;
}

/* The event of a handle, held; NULL: its place has been taken since. */
static struct prb_nccl_event *find(uint64_t handle)
{
    struct prb_nccl_event *event = &events[handle & (EVENTS - 1)];
    if (!handle)
        return NULL;
    hold(event);
    if (event->handle == handle)
        return event;
    leave(event);
    COUNT(unmatched);
    return NULL;
}

/* The place that was taken longest ago, held.  A collective there whose end never came is written as far as it is
 * known. */
static struct prb_nccl_event *take(int type, const struct prb_nccl_comm *comm, uint64_t parent)
{
    uint64_t number = atomic_fetch_add_explicit(&prb_nccl_state.next, 1, memory_order_relaxed);
    struct prb_nccl_event *event = &events[number & (EVENTS - 1)];
    hold(event);
    if (event->handle && !event->stopped)
        COUNT(exhausted);
    if (event->handle && is_coll(event) && !event->written)
        write_coll(event);
    memset((char *)event + offsetof(struct prb_nccl_event, handle), 0,
           sizeof *event - offsetof(struct prb_nccl_event, handle));
    event->handle = (number / EVENTS + 1) << INDEX_BITS | (number & (EVENTS - 1));
    event->parent = parent;
    event->type = type;
    event->comm = comm;
    event->began = prb_clock_ns();
    return event;
}

/* With the collective held: its row, once all that is expected has come. */
static void finish(struct prb_nccl_event *event)
{
    bool kernels =
        atomic_load_explicit(&prb_nccl_state.wanted, memory_order_relaxed) & NCCL_KERNEL_CHANNEL;
    if (event->written || !event->stopped ||
        (kernels && event->coll.kernels < event->coll.channels))
        return;
    event->written = true;
    write_coll(event);
}

static void start_coll(struct prb_nccl_event *event, const struct nccl_event *told)
{
    bool p2p = event->type == NCCL_P2P;
    event->wall = prb_clock_epoch_ns();
    event->coll.seq = p2p ? 0 : told->coll.seq;
    event->coll.count = p2p ? told->p2p.count : told->coll.count;
    event->coll.peer = p2p ? told->p2p.peer : -1;
    event->coll.channels = p2p ? told->p2p.channels : told->coll.channels;
    copy_name(event->coll.func, p2p ? told->p2p.func : told->coll.func);
    copy_name(event->coll.datatype, p2p ? told->p2p.datatype : told->coll.datatype);
    copy_name(event->coll.algorithm, p2p ? NULL : told->coll.algorithm);
    copy_name(event->coll.protocol, p2p ? NULL : told->coll.protocol);
    event->bytes = event->coll.count * bytes_of_type(event->coll.datatype);
    if (p2p)
        COUNT(p2ps);
    else
        COUNT(colls);
}

static void start_proxy(struct prb_nccl_event *event, const struct nccl_event *told)
{
    event->wall = prb_clock_epoch_ns();
    event->proxy.channel = told->proxy_op.channel;
    event->proxy.peer = told->proxy_op.peer;
    event->proxy.is_send = told->proxy_op.is_send != 0;
    event->proxy.steps = told->proxy_op.steps;
    COUNT(proxy_ops);
}

static void start_step(struct prb_nccl_event *event, const struct nccl_event *told)
{
    (void)told;
    event->step.wait = NO_WAIT;
    COUNT(proxy_steps);
}

static void start_kernel(struct prb_nccl_event *event, const struct nccl_event *told)
{
    event->kernel.gpu_began = told->kernel.timer;
    COUNT(kernels);
}

static void start_net(struct prb_nccl_event *event, const struct nccl_event *told)
{
    const struct nccl_net_ib *queue = told->net.data;
    event->wall = prb_clock_epoch_ns();
    if (told->net.id != NCCL_NET_IB_1 || !queue || queue->type != NCCL_NET_QUEUE)
        return;
    event->net.known = true;
    event->net.device = queue->device;
    event->net.request = queue->request;
    event->net.opcode = queue->opcode;
    event->net.queue = queue->queue;
    event->net.length = queue->length;
    COUNT(nets);
}

static void step_enters(struct prb_nccl_event *event, int wait, uint64_t now)
{
    if (event->step.wait != NO_WAIT)
        event->waits[event->step.wait] += now - event->step.since;
    event->step.wait = wait;
    event->step.since = now;
}

static void write_proxy(const struct prb_nccl_event *event, uint64_t now)
{
    struct row row;
    char func[NAME] = "";
    uint64_t seq = 0;
    struct prb_nccl_event *parent = find(event->parent);
    bool known = parent && is_coll(parent);
    if (known) {
        copy_name(func, parent->coll.func);
        seq = parent->coll.seq;
        parent->coll.proxy_ended = now;
    }
    if (parent)
        leave(parent);
    begin_row(&row, event->wall);
    put_rank(&row, event->comm);
    put(&row, (int64_t)event->comm->hash);
    put_text(&row, func);
    put_unless(&row, !known || !seq, (int64_t)seq);
    put(&row, event->proxy.channel);
    put(&row, event->proxy.peer);
    put(&row, event->proxy.is_send);
    put(&row, event->proxy.steps);
    put(&row, (int64_t)event->bytes);
    put(&row, (int64_t)(now - event->began));
    for (int i = 0; i < WAITS; i++)
        put(&row, (int64_t)event->waits[i]);
    write_row(atomic_load(&proxies), &row);
}

/* The proxy operation that the event's step belongs to: whom it is for. */
static bool find_peer(uint64_t step, struct prb_nccl_event *out)
{
    struct prb_nccl_event *event = find(step);
    uint64_t operation = event && event->type == NCCL_PROXY_STEP ? event->parent : 0;
    if (event)
        leave(event);
    event = find(operation);
    bool known = event && event->type == NCCL_PROXY_OP;
    if (known)
        *out = *event;
    if (event)
        leave(event);
    return known;
}

static void write_net(const struct prb_nccl_event *event, uint64_t now)
{
    struct row row;
    struct prb_nccl_event operation;
    if (!event->net.known)
        return;
    bool peer = find_peer(event->parent, &operation);
    begin_row(&row, event->wall);
    put_rank(&row, event->comm);
    put(&row, (int64_t)event->comm->hash);
    put(&row, event->net.device);
    put(&row, event->net.queue);
    put(&row, (int64_t)event->net.request);
    put(&row, event->net.opcode);
    put(&row, (int64_t)event->net.length);
    put_unless(&row, !peer, peer ? operation.proxy.peer : 0);
    put_unless(&row, !peer, peer ? operation.proxy.is_send : 0);
    put(&row, (int64_t)(now - event->began));
    write_row(atomic_load(&queues), &row);
}

static void stop_step(const struct prb_nccl_event *event)
{
    struct prb_nccl_event *parent = find(event->parent);
    if (!parent)
        return;
    if (parent->type == NCCL_PROXY_OP) {
        for (int i = 0; i < WAITS; i++)
            parent->waits[i] += event->waits[i];
        parent->bytes += event->bytes;
    }
    leave(parent);
}

static void stop_kernel(const struct prb_nccl_event *event, uint64_t now)
{
    struct prb_nccl_event *parent = find(event->parent);
    if (!parent)
        return;
    if (is_coll(parent)) {
        uint64_t began = event->kernel.gpu_began, ended = event->kernel.gpu_ended;
        parent->coll.kernels++;
        if (!parent->coll.kernel_began || event->began < parent->coll.kernel_began)
            parent->coll.kernel_began = event->began;
        if (now > parent->coll.kernel_ended)
            parent->coll.kernel_ended = now;
        if (began && (!parent->coll.gpu_began || began < parent->coll.gpu_began))
            parent->coll.gpu_began = began;
        if (ended > parent->coll.gpu_ended)
            parent->coll.gpu_ended = ended;
        finish(parent);
    }
    leave(parent);
}

static const struct kind {
    int type;
    void (*start)(struct prb_nccl_event *event, const struct nccl_event *told);
} kinds[] = {
    {NCCL_COLL, start_coll},
    {NCCL_P2P, start_coll},
    {NCCL_PROXY_OP, start_proxy},
    {NCCL_PROXY_STEP, start_step},
    {NCCL_KERNEL_CHANNEL, start_kernel},
    {NCCL_NET_PLUGIN, start_net},
};

static int start(void *context, void **handle, struct nccl_event *told, uint64_t type)
{
    const struct prb_nccl_comm *comm = context;
    *handle = NULL;
    if (!comm ||
        !(type & (uint64_t)atomic_load_explicit(&prb_nccl_state.wanted, memory_order_relaxed)))
        return 0;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if ((uint64_t)kinds[i].type == type) {
            struct prb_nccl_event *event = take(kinds[i].type, comm, (uintptr_t)told->parent);
            kinds[i].start(event, told);
            *handle = (void *)(uintptr_t)event->handle;
            leave(event);
        }
    return 0;
}

static int start_4(void *context, void **handle, struct nccl_event *told)
{
    return start(context, handle, told, told->type & 0xff);
}

static int start_5(void *context, void **handle, struct nccl_event *told)
{
    return start(context, handle, told, told->type);
}

static int stop(void *handle)
{
    struct prb_nccl_event *event = find((uintptr_t)handle);
    uint64_t now = prb_clock_ns();
    if (!event)
        return 0;
    bool first = !event->stopped;
    event->stopped = true;
    if (first && is_coll(event)) {
        event->coll.enqueued = now - event->began;
        finish(event);
    }
    if (first && event->type == NCCL_PROXY_STEP)
        step_enters(event, NO_WAIT, now);
    struct prb_nccl_event copy = *event;
    leave(event); /* never two at once */
    if (first && copy.type == NCCL_PROXY_OP)
        write_proxy(&copy, now);
    else if (first && copy.type == NCCL_PROXY_STEP)
        stop_step(&copy);
    else if (first && copy.type == NCCL_KERNEL_CHANNEL)
        stop_kernel(&copy, now);
    else if (first && copy.type == NCCL_NET_PLUGIN)
        write_net(&copy, now);
    return 0;
}

static int wait_of(int state)
{
    static const struct {
        int state, wait;
    } waits[] = {{NCCL_SEND_GPU_WAIT, PRB_NCCL_SEND_GPU}, {NCCL_SEND_PEER_WAIT, PRB_NCCL_SEND_PEER},
                 {NCCL_SEND_WAIT, PRB_NCCL_SEND},         {NCCL_RECV_WAIT, PRB_NCCL_RECEIVE},
                 {NCCL_RECV_FLUSH_WAIT, PRB_NCCL_FLUSH},  {NCCL_RECV_GPU_WAIT, NO_WAIT}};
    for (size_t i = 0; i < sizeof waits / sizeof *waits; i++)
        if (waits[i].state == state)
            return waits[i].wait;
    return -1;
}

static int record(void *handle, int state, union nccl_state *arguments)
{
    struct prb_nccl_event *event = find((uintptr_t)handle);
    int wait = wait_of(state);
    if (!event)
        return 0;
    if (event->type == NCCL_PROXY_STEP && !event->stopped && wait >= 0) {
        step_enters(event, wait, prb_clock_ns());
        if (arguments && arguments->bytes)
            event->bytes = arguments->bytes;
    }
    if (event->type == NCCL_KERNEL_CHANNEL && state == NCCL_KERNEL_STOP && arguments)
        event->kernel.gpu_ended = arguments->timer;
    leave(event);
    return 0;
}

/* ---- communicators ---- */

static int init(void **context, uint64_t hash, int *mask, int ranks, int rank)
{
    unsigned number = atomic_fetch_add(&comm_count, 1);
    const char *text = getenv("RANK");
    *context = NULL;
    *mask = 0;
    if (number >= COMMS)
        return 0;
    pthread_mutex_lock(&lock);
    if (text && *text)
        prb_nccl_state.rank = atoi(text);
    comms[number].hash = hash;
    comms[number].rank = rank;
    comms[number].ranks = ranks;
    comms[number].mask = mask;
    __atomic_store_n(mask, atomic_load(&prb_nccl_state.wanted), __ATOMIC_RELAXED);
    pthread_mutex_unlock(&lock);
    *context = &comms[number];
    return 0;
}

static int init_4(void **context, int *mask, const char *name, uint64_t hash, int nodes, int ranks,
                  int rank, void *log)
{
    (void)name, (void)nodes, (void)log;
    return init(context, hash, mask, ranks, rank);
}

static int init_5(void **context, uint64_t hash, int *mask, const char *name, int nodes, int ranks,
                  int rank, void *log)
{
    (void)name, (void)nodes, (void)log;
    return init(context, hash, mask, ranks, rank);
}

/* Its events may still end; what they refer to stays.  Collectives whose kernels were never seen to end are written as
 * far as they are known. */
static int finalize(void *context)
{
    struct prb_nccl_comm *comm = context;
    if (!comm)
        return 0;
    pthread_mutex_lock(&lock);
    comm->mask = NULL;
    for (size_t i = 0; atomic_load(&prb_nccl_state.wanted) && i < EVENTS; i++) {
        hold(&events[i]);
        if (events[i].handle && events[i].comm == comm && is_coll(&events[i]) &&
            events[i].stopped && !events[i].written) {
            events[i].written = true;
            write_coll(&events[i]);
        }
        leave(&events[i]);
    }
    if (atomic_load(&prb_nccl_state.wanted))
        write_counters();
    pthread_mutex_unlock(&lock);
    return 0;
}

VISIBLE prb_nccl_switch_fn prb_nccl_switch;
void prb_nccl_switch(const struct prb_nccl_host *to, int mask, uint64_t least_bytes)
{
    if (to && to->version != PRB_NCCL_VERSION)
        return;
    pthread_mutex_lock(&lock);
    pid = getpid();
    if (to && mask) {
        colls = to->table(PRB_NCCL_COLLS, PRB_NCCL_COLL_COLUMNS);
        proxies = to->table(PRB_NCCL_PROXIES, PRB_NCCL_PROXY_COLUMNS);
        queues = mask & NCCL_NET_PLUGIN ? to->table(PRB_NCCL_QUEUES, PRB_NCCL_QUEUE_COLUMNS) : NULL;
        counters = to->table(PRB_NCCL_COUNTERS, PRB_NCCL_COUNTER_COLUMNS);
        host = to;
    } else if (atomic_load(&prb_nccl_state.wanted)) {
        write_counters();
    }
    atomic_store(&least, least_bytes);
    if (!atomic_load(&prb_nccl_state.wanted))
        atomic_store(&prb_nccl_state.since, prb_clock_ns());
    atomic_store(&prb_nccl_state.wanted, to ? mask : 0);
    unsigned made = atomic_load(&comm_count);
    for (unsigned i = 0; i < made && i < COMMS; i++)
        if (comms[i].mask)
            __atomic_store_n(comms[i].mask, atomic_load(&prb_nccl_state.wanted), __ATOMIC_RELAXED);
    pthread_mutex_unlock(&lock);
}

/* NCCL calls init with the arguments of the version whose name it found. */
typedef int init_fn(void);
VISIBLE extern const struct nccl_profiler ncclProfiler_v4, ncclProfiler_v5, ncclProfiler_v6;
const struct nccl_profiler ncclProfiler_v4 = {
    "probing", (init_fn *)(void *)init_4, start_4, stop, record, finalize};
const struct nccl_profiler ncclProfiler_v5 = {
    "probing", (init_fn *)(void *)init_5, start_5, stop, record, finalize};
const struct nccl_profiler ncclProfiler_v6 = {
    "probing", (init_fn *)(void *)init_5, start_5, stop, record, finalize};
