/* What the threads of a process did between two readings: see usage.h. */
#include "host/usage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "proc/stat.h"

/* proc_pid_stat(5) */
enum { MINFLT = 10, MAJFLT = 12 };

static void drop_descriptor(struct prb_usage_count *one)
{
    if (one->schedstat >= 0)
        close(one->schedstat);
    one->schedstat = -1;
}

void prb_usage_deinit(struct prb_usage *usage)
{
    for (size_t i = 0; i < usage->count; i++)
        drop_descriptor(&usage->items[i]);
    free(usage->items);
}

static void read_schedstat(struct prb_proc *proc, const char *name, bool keep,
                           struct prb_usage_count *out)
{
    PRB_AUTO(prb_buf) struct prb_buf text = {0};
    unsigned long long on_cpu, wait, slices;
    bool read = keep ? prb_proc_line(proc, name, &out->schedstat, &text)
                     : prb_proc_text(proc, name, &text, NULL);
    if (!read || sscanf(text.data, "%llu %llu %llu", &on_cpu, &wait, &slices) != 3)
        return;
    out->on_cpu = (double)on_cpu * 1e-9;
    out->wait = (double)wait * 1e-9;
    out->slices = (int64_t)slices;
}

static void read_switches(struct prb_proc *proc, const char *name, struct prb_usage_count *out)
{
    PRB_AUTO(prb_buf) struct prb_buf text = {0};
    if (!prb_proc_text(proc, name, &text, NULL))
        return;
    if (!prb_status_number(&text, "voluntary_ctxt_switches", &out->voluntary))
        out->voluntary = -1;
    if (!prb_status_number(&text, "nonvoluntary_ctxt_switches", &out->forced))
        out->forced = -1;
}

static bool read_stat(struct prb_proc *proc, const char *name, struct prb_usage_count *out)
{
    const double tick = 1.0 / (double)sysconf(_SC_CLK_TCK);
    struct prb_stat stat;
    out->at = prb_clock_s();
    if (!prb_stat_read(proc, name, &stat))
        return false;
    memcpy(out->comm, stat.comm, sizeof out->comm);
    out->state = stat.state;
    out->user = (double)stat.field[PRB_STAT_UTIME] * tick;
    out->system = (double)stat.field[PRB_STAT_STIME] * tick;
    out->minor = stat.field[MINFLT];
    out->major = stat.field[MAJFLT];
    out->resident = stat.field[PRB_STAT_RSS] * sysconf(_SC_PAGESIZE);
    out->threads = stat.field[PRB_STAT_THREADS];
    return true;
}

static bool has_not_run(const struct prb_usage_count *before, const struct prb_usage_count *now)
{
    return before && now->on_cpu >= 0 && before->on_cpu == now->on_cpu &&
           before->slices == now->slices;
}

/* before: the same thread's earlier one, or NULL; keep: its descriptor moves to the new one. */
static bool read_thread(struct prb_proc *proc, pid_t tid, bool switches, bool keep,
                        struct prb_usage_count *before, struct prb_usage_count *out)
{
    char name[64];
    *out = (struct prb_usage_count){.tid = tid,
                                    .on_cpu = -1,
                                    .wait = -1,
                                    .slices = -1,
                                    .voluntary = -1,
                                    .forced = -1,
                                    .read = -1,
                                    .written = -1,
                                    .schedstat = before ? before->schedstat : -1};
    if (before)
        before->schedstat = -1;
    snprintf(name, sizeof name, "task/%d/schedstat", (int)tid);
    read_schedstat(proc, name, keep, out);
    if (has_not_run(before, out)) {
        int descriptor = out->schedstat;
        *out = *before;
        out->schedstat = descriptor;
        out->at = prb_clock_s();
        return true;
    }
    snprintf(name, sizeof name, "task/%d/stat", (int)tid);
    if (!read_stat(proc, name, out)) {
        drop_descriptor(out);
        return false;
    }
    snprintf(name, sizeof name, "task/%d/status", (int)tid);
    if (switches)
        read_switches(proc, name, out);
    return true;
}

static void read_bytes(struct prb_proc *proc, struct prb_usage_count *out)
{
    PRB_AUTO(prb_buf) struct prb_buf text = {0};
    if (!prb_proc_text(proc, "io", &text, NULL))
        return;
    if (!prb_status_number(&text, "read_bytes", &out->read))
        out->read = -1;
    if (!prb_status_number(&text, "write_bytes", &out->written))
        out->written = -1;
}

static void add(double *sum, double value) { *sum = *sum < 0 || value < 0 ? -1 : *sum + value; }

static void add_count(int64_t *sum, int64_t value)
{
    *sum = *sum < 0 || value < 0 ? -1 : *sum + value;
}

static void add_thread(struct prb_usage_count *sum, const struct prb_usage_count *thread)
{
    add(&sum->on_cpu, thread->on_cpu);
    add(&sum->wait, thread->wait);
    add_count(&sum->voluntary, thread->voluntary);
    add_count(&sum->forced, thread->forced);
}

/* The process, whose stat counts threads that have ended, too; what stat has not is the sum of the
 * threads there are. */
static bool read_process(struct prb_proc *proc, const struct prb_usage *threads,
                         struct prb_usage_count *out)
{
    *out = (struct prb_usage_count){.read = -1, .written = -1, .schedstat = -1};
    if (!read_stat(proc, "stat", out))
        return false;
    for (size_t i = 1; i < threads->count; i++)
        add_thread(out, &threads->items[i]);
    read_bytes(proc, out);
    return true;
}

void prb_usage_read_switches(struct prb_proc *proc, struct prb_usage_count *thread)
{
    char name[64];
    snprintf(name, sizeof name, "task/%d/status", (int)thread->tid);
    read_switches(proc, name, thread);
}

/* prb_usage_next, to take its descriptor. */
static struct prb_usage_count *next_of(struct prb_usage *before, size_t *at, pid_t tid)
{
    const struct prb_usage_count *one = before ? prb_usage_next(before, at, tid) : NULL;
    return one ? &before->items[one - before->items] : NULL;
}

bool prb_usage_read(struct prb_proc *proc, bool switches, struct prb_usage *before,
                    struct prb_usage *out, struct prb_error *err)
{
    size_t at = 0;
    PRB_AUTO(prb_tasks) struct prb_tasks tasks = {0};
    PRB_AUTO(prb_usage) struct prb_usage usage = {0};
    if (!prb_proc_tids(proc, &tasks, err))
        return false;
    usage.items = calloc(tasks.count + 1, sizeof *usage.items);
    if (!usage.items)
        return prb_nomem(err);
    usage.count = 1;
    usage.items[0].schedstat = -1;
    for (size_t i = 0; i < tasks.count; i++)
        usage.count +=
            read_thread(proc, tasks.items[i].tid, switches, before != NULL,
                        next_of(before, &at, tasks.items[i].tid), &usage.items[usage.count]);
    if (!read_process(proc, &usage, &usage.items[0]))
        return prb_proc_check(proc, err) &&
               prb_fail(err, PRB_UNSUPPORTED, "there is no /proc/%d/stat to read",
                        (int)prb_proc_pid(proc));
    *out = usage;
    usage = (struct prb_usage){0};
    return true;
}

const struct prb_usage_count *prb_usage_find(const struct prb_usage *usage, pid_t tid)
{
    for (size_t i = 0; i < usage->count; i++)
        if (usage->items[i].tid == tid)
            return &usage->items[i];
    return NULL;
}

const struct prb_usage_count *prb_usage_next(const struct prb_usage *usage, size_t *at, pid_t tid)
{
    for (size_t i = *at; i < usage->count; i++)
        if (usage->items[i].tid == tid) {
            *at = i + 1;
            return &usage->items[i];
        }
    return NULL;
}

void prb_usage_settle(struct prb_usage *before, const struct prb_usage *after)
{
    if (!before->count)
        return;
    struct prb_usage_count *sum = &before->items[0];
    sum->on_cpu = sum->wait = 0;
    sum->voluntary = sum->forced = 0;
    for (size_t i = 1, at = 0; i < after->count; i++) {
        const struct prb_usage_count *old = prb_usage_next(before, &at, after->items[i].tid);
        if (old)
            add_thread(sum, old);
    }
}

struct prb_usage_rate prb_usage_between(const struct prb_usage_count *before,
                                        const struct prb_usage_count *after)
{
    double seconds = after->at - before->at;
    struct prb_usage_rate rate = {seconds, -1, -1, -1};
    if (seconds <= 0)
        return rate;
    double user = after->user - before->user, system = after->system - before->system;
    /* Ticks say how it divides, schedstat how much it is; the process's counts only threads that
     * are still there, so its ticks stand. */
    if (after->tid && before->on_cpu >= 0 && after->on_cpu >= 0) {
        double all = after->on_cpu - before->on_cpu, ticks = user + system;
        double share = ticks > 0 ? system / ticks
                       : after->user + after->system > 0
                           ? after->system / (after->user + after->system)
                           : 0;
        user = all * (1 - share);
        system = all * share;
    }
    rate.user = 100 * user / seconds;
    rate.system = 100 * system / seconds;
    if (before->wait >= 0 && after->wait >= before->wait)
        rate.wait = 100 * (after->wait - before->wait) / seconds;
    return rate;
}
