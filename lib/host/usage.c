/* What the threads of a process did between two readings: see usage.h. */
#include "host/usage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "proc/stat.h"

/* proc_pid_stat(5) */
enum { MINFLT = 10, MAJFLT = 12 };

#define KNOWN_MAX 16  /* threads that ran: more are never still for as long as they are read */
#define KNOWN_TURNS 3 /* until they are */

static void drop_descriptors(struct prb_usage_count *one)
{
    for (size_t i = 0; i < PRB_USAGE_TEXTS; i++) {
        if (one->kept[i] >= 0)
            close(one->kept[i]);
        one->kept[i] = -1;
    }
}

/* They move from an earlier reading of the same thread, if there is one. */
static void take_descriptors(struct prb_usage_count *before, struct prb_usage_count *out)
{
    for (size_t i = 0; i < PRB_USAGE_TEXTS; i++) {
        out->kept[i] = before ? before->kept[i] : -1;
        if (before)
            before->kept[i] = -1;
    }
}

void prb_usage_deinit(struct prb_usage *usage)
{
    for (size_t i = 0; i < usage->count; i++)
        drop_descriptors(&usage->items[i]);
    free(usage->items);
}

struct reading {
    struct prb_proc *proc;
    bool switches, keep;
    bool only_known;     /* threads that ran before alone have run since */
    double known_at;     /* s, monotonic */
    struct prb_buf text; /* of the last that was read */
};

/* "task/TID/NAME": snprintf(3) would take as long as the kernel to answer. */
static const char *thread_path(pid_t tid, const char *name, char out[64])
{
    char digits[16], *at = digits + sizeof digits;
    do
        *--at = (char)('0' + tid % 10);
    while ((tid /= 10));
    char *end = stpncpy(stpcpy(out, "task/"), at, (size_t)(digits + sizeof digits - at));
    stpcpy(stpcpy(end, "/"), name);
    return out;
}

static bool read_text(struct reading *reading, struct prb_usage_count *of, int which,
                      const char *name)
{
    char path[64];
    name = of->tid ? thread_path(of->tid, name, path) : name;
    reading->text.len = 0;
    return (reading->keep ? prb_proc_line(reading->proc, name, &of->kept[which], &reading->text)
                          : prb_proc_text(reading->proc, name, &reading->text, NULL)) &&
           reading->text.data;
}

/* of: has the descriptors. */
static bool read_schedstat(struct reading *reading, struct prb_usage_count *of,
                           struct prb_usage_count *out)
{
    char *slices, *wait, *end;
    if (!read_text(reading, of, PRB_USAGE_SCHEDSTAT, "schedstat"))
        return false;
    unsigned long long on_cpu = strtoull(reading->text.data, &wait, 10);
    unsigned long long waited = strtoull(wait, &slices, 10), count = strtoull(slices, &end, 10);
    if (wait == reading->text.data || slices == wait || end == slices)
        return false;
    out->on_cpu = (double)on_cpu * 1e-9;
    out->wait = (double)waited * 1e-9;
    out->slices = (int64_t)count;
    return true;
}

static void read_switches(struct reading *reading, struct prb_usage_count *out)
{
    if (!read_text(reading, out, PRB_USAGE_STATUS, "status"))
        return;
    if (!prb_status_number(&reading->text, "voluntary_ctxt_switches", &out->voluntary))
        out->voluntary = -1;
    if (!prb_status_number(&reading->text, "nonvoluntary_ctxt_switches", &out->forced))
        out->forced = -1;
}

static bool read_stat(struct reading *reading, struct prb_usage_count *out)
{
    const double tick = 1.0 / (double)sysconf(_SC_CLK_TCK);
    struct prb_stat stat;
    out->at = prb_clock_s();
    if (!read_text(reading, out, PRB_USAGE_STAT, "stat") ||
        !prb_stat_parse(reading->text.data, &stat))
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

/* It has not run since. */
static bool take_over(struct prb_usage_count *before, double now, struct prb_usage_count *out)
{
    *out = *before;
    for (size_t i = 0; i < PRB_USAGE_TEXTS; i++)
        before->kept[i] = -1;
    out->at = now;
    out->ran = false;
    return true;
}

/* before: the same thread's earlier one, or NULL.  False: it has ended. */
static bool read_thread(struct reading *reading, pid_t tid, struct prb_usage_count *before,
                        struct prb_usage_count *out)
{
    if (reading->only_known && before && !before->ran)
        return take_over(before, reading->known_at, out);
    *out = (struct prb_usage_count){.tid = tid,
                                    .on_cpu = -1,
                                    .wait = -1,
                                    .slices = -1,
                                    .ran = true,
                                    .voluntary = -1,
                                    .forced = -1,
                                    .read = -1,
                                    .written = -1};
    take_descriptors(before, out);
    read_schedstat(reading, out, out);
    if (has_not_run(before, out)) {
        take_descriptors(out, before);
        return take_over(before, prb_clock_s(), out);
    }
    if (!read_stat(reading, out)) {
        drop_descriptors(out);
        return false;
    }
    if (reading->switches)
        read_switches(reading, out);
    return true;
}

static void read_bytes(struct reading *reading, struct prb_usage_count *out)
{
    if (!read_text(reading, out, PRB_USAGE_IO, "io"))
        return;
    if (!prb_status_number(&reading->text, "read_bytes", &out->read))
        out->read = -1;
    if (!prb_status_number(&reading->text, "write_bytes", &out->written))
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

/* The process, whose stat counts threads that have ended, too. */
static bool read_process(struct reading *reading, struct prb_usage_count *before,
                         struct prb_usage_count *out)
{
    *out = (struct prb_usage_count){.read = -1, .written = -1};
    take_descriptors(before, out);
    if (!read_stat(reading, out))
        return false;
    read_bytes(reading, out);
    return true;
}

/* What stat has not is the sum of the threads there are. */
static void sum_up(struct prb_usage *usage)
{
    struct prb_usage_count *sum = &usage->items[0];
    sum->on_cpu = sum->wait = 0;
    sum->voluntary = sum->forced = 0;
    for (size_t i = 1; i < usage->count; i++)
        add_thread(sum, &usage->items[i]);
}

void prb_usage_read_switches(struct prb_proc *proc, struct prb_usage_count *thread)
{
    struct reading reading = {.proc = proc, .keep = true};
    read_switches(&reading, thread);
    prb_buf_deinit(&reading.text);
}

/* prb_usage_next, to take its descriptors. */
static struct prb_usage_count *next_of(struct prb_usage *before, size_t *at, pid_t tid)
{
    const struct prb_usage_count *one = before ? prb_usage_next(before, at, tid) : NULL;
    return one ? &before->items[one - before->items] : NULL;
}

/* Of all threads, and of those that have ended; -1: not known. */
static int64_t process_ns(clockid_t clock)
{
    struct timespec time;
    return clock_gettime(clock, &time) != 0 ? -1 : time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

static size_t count_known(const struct prb_usage *usage)
{
    size_t known = 0;
    for (size_t i = 1; i < usage->count; i++)
        known += usage->items[i].ran;
    return known;
}

/* Less what the threads took: those that ran as it is now, the rest as it stands in the reading.  -1: not known. */
static int64_t less_threads(struct reading *reading, struct prb_usage *usage, int64_t whole)
{
    for (size_t i = 1; i < usage->count; i++) {
        struct prb_usage_count *one = &usage->items[i], now = *one;
        if (one->on_cpu < 0 || (one->ran && !read_schedstat(reading, one, &now)))
            return -1;
        whole -= (int64_t)(now.on_cpu * 1e9 + 0.5);
    }
    return whole;
}

/*
 * What the process took beside its threads, which changes only where one has run that had not run
 * before, or has ended.  -1: not known, as none may be accounted for while they are read.
 */
static int64_t others_ns(struct reading *reading, struct prb_usage *usage)
{
    clockid_t clock;
    if (count_known(usage) > KNOWN_MAX ||
        clock_getcpuclockid(prb_proc_pid(reading->proc), &clock) != 0)
        return -1;
    for (int turn = 0; turn < KNOWN_TURNS; turn++) {
        int64_t whole = process_ns(clock), others = less_threads(reading, usage, whole);
        if (whole >= 0 && process_ns(clock) == whole)
            return others;
    }
    return -1;
}

/* Add the threads of an earlier reading.  False: one has ended, and another may have begun. */
static bool read_same(struct reading *reading, struct prb_usage *before, struct prb_usage *out)
{
    for (size_t i = 1; i < before->count; i++)
        out->count +=
            read_thread(reading, before->items[i].tid, &before->items[i], &out->items[out->count]);
    return out->count == before->count;
}

static bool read_listed(struct reading *reading, struct prb_usage *before, struct prb_usage *out,
                        struct prb_error *err)
{
    size_t at = 0;
    PRB_AUTO(prb_tasks) struct prb_tasks tasks = {0};
    if (!prb_proc_tids(reading->proc, &tasks, err))
        return false;
    struct prb_usage_count *more = reallocarray(out->items, tasks.count + 1, sizeof *out->items);
    if (!more)
        return prb_nomem(err);
    out->items = more;
    for (size_t i = 0; i < tasks.count; i++)
        out->count +=
            read_thread(reading, tasks.items[i].tid, next_of(before, &at, tasks.items[i].tid),
                        &out->items[out->count]);
    return true;
}

static bool read_all(struct reading *reading, struct prb_usage *before, struct prb_usage *out,
                     struct prb_error *err)
{
    size_t earlier = before ? before->count : 0;
    if (!(out->items = calloc(earlier + 1, sizeof *out->items)))
        return prb_nomem(err);
    if (!read_process(reading, earlier ? &before->items[0] : NULL, &out->items[0])) {
        drop_descriptors(&out->items[0]);
        return prb_proc_check(reading->proc, err) &&
               prb_fail(err, PRB_UNSUPPORTED, "there is no /proc/%d/stat to read",
                        (int)prb_proc_pid(reading->proc));
    }
    out->count = 1;
    out->others = before ? before->others : -1;
    if (earlier < 2 || (uint64_t)out->items[0].threads != earlier - 1)
        return read_listed(reading, before, out, err);
    reading->only_known = before->others >= 0 && others_ns(reading, before) == before->others;
    reading->known_at = prb_clock_s();
    if (read_same(reading, before, out))
        return true;
    reading->only_known = false;
    PRB_AUTO(prb_usage) struct prb_usage part = *out;
    *out = (struct prb_usage){.items = malloc(sizeof *out->items), .count = 1};
    if (!out->items) {
        out->count = 0;
        return prb_nomem(err);
    }
    out->items[0] = part.items[0];
    take_descriptors(&part.items[0], &out->items[0]);
    return read_listed(reading, &part, out, err);
}

bool prb_usage_read(struct prb_proc *proc, bool switches, struct prb_usage *before,
                    struct prb_usage *out, struct prb_error *err)
{
    struct reading reading = {.proc = proc, .switches = switches, .keep = before != NULL};
    PRB_AUTO(prb_usage) struct prb_usage usage = {0};
    bool good = read_all(&reading, before, &usage, err);
    if (good && reading.keep && !reading.only_known)
        usage.others = others_ns(&reading, &usage);
    prb_buf_deinit(&reading.text);
    if (!good)
        return false;
    sum_up(&usage);
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
