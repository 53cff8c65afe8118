/*
 * What the machine says of the processes that record, once a second: threads, memory, control group,
 * network, GPUs.  It goes through rings in the process's folder, which queries read as they read its
 * own, and from there to the store: whatever ends, the rows are there.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "collect/parts.h"
#include "host/gpu.h"
#include "host/memory.h"
#include "host/network.h"
#include "host/usage.h"
#include "proc/stat.h"
#include "store/host.h"

#define GPU_LESS 60.0   /* s: until a machine without GPUs is asked again */
#define EARLY 0.05      /* s: a turn may be so much shorter */
#define THREADS_MAX 512 /* rows of threads in a second */
#define BUSY_THREADS 8  /* so many have their switches read, too: that costs most */
#define ROW_BYTES 260   /* of a thread's row in a ring */
#define ROOM_SECONDS 30 /* that a ring of threads has room for */
#define ROOM_CHUNKS 4   /* each look at the ring reads so many states, or twice as many */
#define ROOM_MIN ((uint64_t)128 << 10)
#define ROOM_STACKS ((uint64_t)2 << 20)
#define ROOM_MAX ((uint64_t)8 << 20)
#define VALUES_MAX 24
#define MB 1048576.0

enum { USAGE, MEMORY, CGROUP, NETWORK, GPUS, GPU_PROCESSES, STACKS, TABLES };
static const struct {
    const char *name, *columns;
} tables[TABLES] = {
    [USAGE] = {PRB_HOST_USAGE, PRB_HOST_USAGE_COLUMNS},
    [MEMORY] = {PRB_HOST_MEMORY, PRB_HOST_MEMORY_COLUMNS},
    [CGROUP] = {PRB_HOST_CGROUP, PRB_HOST_CGROUP_COLUMNS},
    [NETWORK] = {PRB_HOST_NETWORK, PRB_HOST_NETWORK_COLUMNS},
    [GPUS] = {PRB_HOST_GPUS, PRB_HOST_GPUS_COLUMNS},
    [GPU_PROCESSES] = {PRB_HOST_GPU_PROCESSES, PRB_HOST_GPU_PROCESSES_COLUMNS},
    [STACKS] = {PRB_HOST_STACKS, PRB_HOST_STACKS_COLUMNS},
};

struct prb_collect_host {
    struct prb_proc *proc;
    struct prb_ring_table *rings[TABLES]; /* NULL: not made yet */
    bool failed[TABLES];                  /* it cannot be made */
    struct prb_usage before;              /* the last reading of its threads */
    int status;                           /* a descriptor; -1: none */
    struct prb_interfaces_kept interfaces;
    struct prb_cgroup_kept groups;
    double last, last_gpus; /* s, monotonic: when it was sampled; 0: not yet */
};

void prb_collect_host_free(struct prb_collect_host *host)
{
    if (!host)
        return;
    for (size_t i = 0; i < TABLES; i++)
        prb_ring_table_forget(host->rings[i]);
    prb_usage_deinit(&host->before);
    if (host->status >= 0)
        close(host->status);
    if (host->interfaces.fd >= 0)
        close(host->interfaces.fd);
    prb_proc_free(host->proc);
    free(host);
}

/* ---- rows ---- */

struct row {
    struct prb_ring_value values[VALUES_MAX];
    size_t count;
};

static void put_text(struct row *row, const char *text)
{
    struct prb_ring_value *value = &row->values[row->count++];
    *value = (struct prb_ring_value){.null = !text};
    value->text = text ? text : "";
    value->len = strlen(value->text);
}

static void put_real(struct row *row, bool known, double number)
{
    struct prb_ring_value *value = &row->values[row->count++];
    *value = (struct prb_ring_value){.null = !known};
    value->real = known ? number : 0;
}

static void put_integer(struct row *row, bool known, int64_t number)
{
    struct prb_ring_value *value = &row->values[row->count++];
    *value = (struct prb_ring_value){.null = !known};
    value->integer = known ? number : 0;
}

/* Numbers below 0 are not known. */
static void put_known(struct row *row, double number) { put_real(row, number >= 0, number); }
static void put_count(struct row *row, int64_t number) { put_integer(row, number >= 0, number); }
static void put_mb(struct row *row, int64_t bytes)
{
    put_real(row, bytes >= 0, (double)bytes / MB);
}
static void put_increase(struct row *row, int64_t before, int64_t after)
{
    put_integer(row, before >= 0 && after >= before, after - before);
}
/* To a thousandth, which packs well and is finer than what the kernel says. */
static void put_percent(struct row *row, double number)
{
    put_real(row, number >= 0, (double)(int64_t)(number * 1e3 + 0.5) / 1e3);
}

static void begin_row(struct row *row, double now)
{
    row->count = 0;
    put_real(row, true, now);
}

/* ---- rings ---- */

static struct prb_ring_table *ring_of(const struct prb_collected *process, int which)
{
    struct prb_collect_host *host = process->host;
    char folder[32];
    struct prb_ring_limits limits = {.bytes_max = ROOM_MIN / 2};
    if (host->rings[which] || host->failed[which])
        return host->rings[which];
    if (which == USAGE) {
        uint64_t room = host->before.count * ROW_BYTES * ROOM_SECONDS;
        limits.chunks = ROOM_CHUNKS;
        limits.bytes_max = room < ROOM_MIN ? ROOM_MIN : room > ROOM_MAX ? ROOM_MAX : room;
    }
    if (which == STACKS)
        limits.bytes_max = ROOM_STACKS;
    snprintf(folder, sizeof folder, "/proc/self/fd/%d", process->folder);
    host->rings[which] =
        prb_ring_table_parse(folder, tables[which].name, tables[which].columns, &limits, NULL);
    host->failed[which] = !host->rings[which];
    return host->rings[which];
}

static void write_row(const struct prb_collected *process, int which, const struct row *row)
{
    struct prb_ring_table *ring = ring_of(process, which);
    if (ring)
        prb_ring_write(ring, row->values);
}

/* ---- threads ---- */

static int64_t ns(double seconds) { return seconds < 0 ? -1 : (int64_t)(seconds * 1e9 + 0.5); }

static void add_usage(const struct prb_collected *process, double now,
                      const struct prb_usage_count *before, const struct prb_usage_count *after)
{
    const struct prb_usage_rate rate = prb_usage_between(before, after);
    const char state[2] = {after->state};
    bool whole = !after->tid;
    struct row row;
    begin_row(&row, now);
    put_text(&row, whole ? "process" : "thread");
    put_integer(&row, !whole, after->tid);
    put_text(&row, after->comm);
    put_percent(&row, rate.user);
    put_percent(&row, rate.system);
    put_percent(&row, rate.wait);
    put_increase(&row, before->minor, after->minor);
    put_increase(&row, before->major, after->major);
    put_increase(&row, before->voluntary, after->voluntary);
    put_increase(&row, before->forced, after->forced);
    put_real(&row, before->read >= 0 && after->read >= before->read,
             (double)(after->read - before->read) / MB);
    put_real(&row, before->written >= 0 && after->written >= before->written,
             (double)(after->written - before->written) / MB);
    put_text(&row, state);
    put_count(&row, ns(rate.seconds));
    put_count(&row, ns(after->user));
    put_count(&row, ns(after->system));
    put_integer(&row, whole, after->resident / 1024);
    put_integer(&row, whole, after->threads);
    put_percent(&row, whole ? -1 : prb_collect_gil_share(process, after->tid));
    write_row(process, USAGE, &row);
}

static double spent(const struct prb_usage_count *old, const struct prb_usage_count *after)
{
    return old ? after->on_cpu - old->on_cpu + after->user + after->system - old->user - old->system
               : -1;
}

/* Of the threads that ran most since the last reading; those of the main thread came with the memory. */
static void read_switches(struct prb_proc *proc, const struct prb_usage *before,
                          struct prb_usage *now, const struct prb_memory_usage *memory)
{
    double ran[THREADS_MAX + 1];
    for (size_t i = 1, at = 0; i < now->count && i <= THREADS_MAX; i++)
        ran[i] = spent(prb_usage_next(before, &at, now->items[i].tid), &now->items[i]);
    for (int turn = 0; turn < BUSY_THREADS; turn++) {
        size_t best = 0;
        double most = 0; /* others have not switched */
        for (size_t i = 1; i < now->count && i <= THREADS_MAX; i++) {
            if (ran[i] > most) {
                most = ran[i];
                best = i;
            }
        }
        if (!best)
            return;
        ran[best] = -1;
        if (memory && now->items[best].tid == prb_proc_pid(proc)) {
            now->items[best].voluntary = memory->voluntary;
            now->items[best].forced = memory->forced;
        } else {
            prb_usage_read_switches(proc, &now->items[best]);
        }
    }
}

static void sample_usage(const struct prb_collected *process, double now,
                         const struct prb_memory_usage *memory)
{
    struct prb_collect_host *host = process->host;
    struct prb_usage *before = &host->before;
    PRB_AUTO(prb_usage) struct prb_usage after = {0};
    if (!prb_usage_read(host->proc, false, before, &after, NULL))
        return;
    read_switches(host->proc, before, &after, memory);
    prb_usage_settle(before, &after);
    for (size_t i = 0, at = 0; i < after.count && i <= THREADS_MAX; i++) {
        const struct prb_usage_count *old = prb_usage_next(before, &at, after.items[i].tid);
        if (old)
            add_usage(process, now, old, &after.items[i]);
    }
    struct prb_usage swap = *before;
    *before = after;
    after = swap;
}

/* ---- the rest ---- */

static void add_memory(const struct prb_collected *process, double now,
                       const struct prb_memory_usage *usage, const struct prb_cgroup *group)
{
    struct row row;
    begin_row(&row, now);
    put_mb(&row, usage->resident);
    put_mb(&row, usage->anon);
    put_mb(&row, usage->file);
    put_mb(&row, usage->shared);
    put_mb(&row, usage->swap);
    put_mb(&row, usage->peak);
    put_mb(&row, group ? group->memory_used : -1);
    put_mb(&row, group ? group->memory_limit : -1);
    put_count(&row, group ? group->oom_kills : -1);
    write_row(process, MEMORY, &row);
}

static double part(double percent) { return percent < 0 ? -1 : percent / 100; }

static void sample_group(const struct prb_collected *process, double now,
                         const struct prb_cgroup *group)
{
    struct row row;
    begin_row(&row, now);
    put_text(&row, group->version ? group->path : NULL);
    put_integer(&row, group->version, group->version);
    put_count(&row, group->memory_used);
    put_count(&row, group->memory_limit);
    put_text(&row, group->limited_by[0] ? group->limited_by : NULL);
    put_count(&row, group->oom_kills);
    put_known(&row, group->cpus);
    put_known(&row, group->throttled < 0 ? -1 : group->throttled * 1e3);
    put_count(&row, group->throttled_periods);
    put_known(&row, part(group->pressure_cpu));
    put_known(&row, part(group->pressure_memory));
    put_known(&row, part(group->pressure_io));
    write_row(process, CGROUP, &row);
}

static void sample_network(const struct prb_collected *process, double now)
{
    PRB_AUTO(prb_interfaces) struct prb_interfaces found = {0};
    struct row row;
    if (!prb_interfaces_read(process->host->proc, &process->host->interfaces, &found, NULL))
        return;
    for (size_t i = 0; i < found.count; i++) {
        const struct prb_interface *one = &found.items[i];
        begin_row(&row, now);
        put_text(&row, one->name);
        put_text(&row, one->rdma ? "rdma" : "net");
        put_count(&row, one->rx_bytes);
        put_count(&row, one->tx_bytes);
        put_count(&row, one->rx_packets);
        put_count(&row, one->tx_packets);
        put_count(&row, one->rx_errors);
        put_count(&row, one->tx_errors);
        write_row(process, NETWORK, &row);
    }
}

static void add_gpu(const struct prb_collected *process, double now, const struct prb_gpu *gpu)
{
    struct row row;
    begin_row(&row, now);
    put_integer(&row, true, gpu->index);
    put_text(&row, gpu->uuid[0] ? gpu->uuid : NULL);
    put_text(&row, gpu->name[0] ? gpu->name : NULL);
    put_text(&row, gpu->backend);
    put_known(&row, gpu->busy);
    put_known(&row, gpu->memory_busy);
    put_mb(&row, gpu->memory_used);
    put_mb(&row, gpu->memory_total);
    put_known(&row, gpu->temperature);
    put_known(&row, gpu->power);
    put_known(&row, gpu->energy);
    put_count(&row, gpu->sm_clock);
    put_count(&row, gpu->memory_clock);
    put_text(&row, gpu->throttle);
    put_count(&row, gpu->ecc_errors);
    put_percent(&row, gpu->sm_active);
    put_count(&row, gpu->xid);
    put_mb(&row, gpu->nvlink_received);
    put_mb(&row, gpu->nvlink_sent);
    write_row(process, GPUS, &row);
}

static void add_gpu_process(const struct prb_collected *process, double now,
                            const struct prb_gpu_process *one)
{
    struct row row;
    begin_row(&row, now);
    put_integer(&row, true, one->gpu);
    put_integer(&row, one->pid >= 0, one->pid);
    put_mb(&row, one->memory);
    put_known(&row, one->busy);
    write_row(process, GPU_PROCESSES, &row);
}

void prb_collect_put_stack(const struct prb_collected *process, double now,
                           const struct prb_collected_stack *stack)
{
    struct row row;
    if (!process->host)
        return;
    begin_row(&row, now);
    put_integer(&row, stack->tid > 0, stack->tid);
    put_text(&row, stack->thread);
    put_text(&row, stack->state);
    put_integer(&row, true, stack->samples);
    put_text(&row, stack->stack);
    write_row(process, STACKS, &row);
}

/* Whether a sample is due: the interval may have changed since the last one. */
static bool is_due(const struct prb_collected *process, enum prb_collect_what what, double time)
{
    const struct prb_collect_host *host = process->host;
    double seconds = process->seconds[what];
    double last = what == PRB_COLLECT_CPU ? host->last : host->last_gpus;
    return seconds > 0 && (last <= 0 || time >= last + seconds - EARLY);
}

bool prb_collect_has_gpus(const struct prb_collected *process)
{
    return process->host && process->host->last_gpus > 0;
}

/* Whether it is the first process of its job, and due. */
static bool wants_gpus(const struct prb_collection *collection, size_t index, double time)
{
    const struct prb_collected *process = &collection->items[index];
    if (!process->host || !is_due(process, PRB_COLLECT_GPU, time))
        return false;
    for (size_t i = 0; i < index; i++)
        if (collection->items[i].host && collection->items[i].file == process->file)
            return false;
    return true;
}

/* The machine's, for the first process of each job. */
static void sample_gpus(struct prb_collection *collection, double now)
{
    PRB_AUTO(prb_gpus) struct prb_gpus gpus = {0};
    double time = prb_clock_s();
    size_t first = 0;
    while (first < collection->count && !wants_gpus(collection, first, time))
        first++;
    if (first == collection->count || time < collection->next_gpus)
        return;
    prb_gpus_keep();
    if (!prb_gpus_read(true, &gpus, NULL)) {
        collection->next_gpus = time + GPU_LESS;
        return;
    }
    for (size_t i = first; i < collection->count; i++) {
        struct prb_collected *process = &collection->items[i];
        if (!wants_gpus(collection, i, time))
            continue;
        process->host->last_gpus = time;
        for (size_t j = 0; j < gpus.count; j++)
            add_gpu(process, now, &gpus.items[j]);
        for (size_t j = 0; j < gpus.process_count; j++)
            add_gpu_process(process, now, &gpus.processes[j]);
    }
}

/* ---- turns ---- */

/* What an earlier collector left in the rings goes to the store first: ours replace them. */
static bool begin(struct prb_collected *process)
{
    struct prb_stat stat;
    uint64_t moved = 0;
    char folder[32];
    snprintf(folder, sizeof folder, "/proc/%d", (int)process->pid);
    if (!prb_stat_of(folder, &stat) || (uint64_t)stat.field[PRB_STAT_STARTTIME] != process->started)
        return false; /* it is in another pid namespace */
    if (!prb_collect_rings(process, true, &moved, NULL) ||
        !(process->host = calloc(1, sizeof *process->host)))
        return false;
    process->host->status = process->host->interfaces.fd = -1;
    process->moved += moved;
    if ((process->host->proc = prb_proc_open(process->pid, NULL)))
        return true;
    free(process->host);
    process->host = NULL;
    return false;
}

void prb_collect_hosts(struct prb_collection *collection)
{
    double time = prb_clock_s();
    struct timespec clock;
    clock_gettime(CLOCK_REALTIME, &clock);
    double now = (double)clock.tv_sec + (double)(clock.tv_nsec / 1000) * 1e-6;
    for (size_t i = 0; i < collection->count; i++) {
        struct prb_collected *process = &collection->items[i];
        struct prb_cgroup group;
        if (process->ended || !process->file || process->host_failed)
            continue;
        if (!process->host && !begin(process)) {
            process->host_failed = true;
            continue;
        }
        prb_collect_stacks(process, time, now, false);
        if (!is_due(process, PRB_COLLECT_CPU, time))
            continue;
        process->host->last = time;
        bool known = prb_cgroup_read(process->host->proc, &collection->mounts,
                                     &process->host->groups, &group, NULL);
        struct prb_memory_usage memory;
        bool has_memory = prb_memory_usage_read(process->host->proc, false, &process->host->status,
                                                &memory, NULL);
        prb_collect_gil(process, time);
        sample_usage(process, now, has_memory ? &memory : NULL);
        if (has_memory)
            add_memory(process, now, &memory, known ? &group : NULL);
        if (known)
            sample_group(process, now, &group);
        sample_network(process, now);
    }
    sample_gpus(collection, now);
}
