/* One thread that looks at each process once a second (watch.h). */
#include "serve/live/watch.h"

#include <ctype.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/index.h"
#include "format/json.h"
#include "inspect/target.h"
#include "proc/stat.h"
#include "serve/doors/life.h"
#include "table/recorded/last_step.h"

#define NEW_LOOKS 5      /* a new process is asked so often whether it is Python by now */
#define AGAIN 15.0       /* s: then each that was not Python is asked once more */
#define THREADS_MAX 4096 /* of the profile, as PRB_WATCH_NODES_MAX */
#define GONE_LOOKS 3     /* a thread that was not found in so many looks has ended */
#define PIDS_MAX 65536

struct change {
    uint32_t thread, node; /* node 0: the thread has ended */
};

struct moment {
    double time;   /* s since the epoch */
    uint64_t from; /* its changes: number of the first, and of the one after the last */
    uint64_t to;
    double rss;
    float cpu; /* cores; below 0: not known */
    int threads;
    int64_t step;
    uint32_t changed;
};

/* A thread of the profile, by its index there. */
struct watched_thread {
    uint32_t node;
    uint64_t look;  /* the last that found it */
    double changed; /* s, monotonic */
};

struct watched {
    pthread_mutex_t lock; /* of all that follows */
    pid_t pid;            /* 0: the place is free */
    uint64_t started;
    struct prb_profiler *profiler;
    struct prb_profile *ended; /* its profile, when the process has ended */
    double end;                /* s, monotonic: when that was */
    struct prb_step_reader *steps;
    struct moment *moments; /* PRB_WATCH_MOMENTS, by number */
    uint64_t moment_count;  /* so far */
    uint64_t moment_first;  /* the first that is kept */
    struct change *changes; /* PRB_WATCH_CHANGES, by number */
    uint64_t change_count;
    struct watched_thread *threads;
    size_t thread_count, thread_cap;
    uint64_t look;
    double ticks; /* of CPU time, at the last look */
    double at;    /* s, monotonic: of it */
};

/* A process that is not looked at: it is not Python, not ours, or refuses. */
struct other {
    pid_t pid;
    unsigned looks;
    bool watched;
};

struct prb_watch {
    const struct prb_serve *serve;
    pthread_t thread;
    int wake;
    atomic_bool more; /* somebody said that there is a process more */
    struct watched items[PRB_WATCH_PROCESSES];
    /* of its thread alone */
    struct other *others, *next;
    size_t other_count, other_cap, next_count, next_cap;
    char newest[32]; /* what the kernel says of the newest process */
    double again;    /* s, monotonic: when all were asked last */
};

/* ---- a process's memory of its stacks ---- */

static const struct prb_profile *profile_of(const struct watched *item)
{
    return item->ended ? item->ended : prb_profiler_profile(item->profiler);
}

/* Of a stack, by its names and lines. */
static uint64_t hash_of(const struct prb_profile *profile, uint32_t node)
{
    uint64_t hash = 1;
    for (; node; node = profile->nodes[node].parent) {
        const struct prb_profile_frame *frame = profile->frames + profile->nodes[node].frame;
        const struct prb_profile_function *function = profile->functions + frame->function;
        const char *name = function->qualname ? function->qualname : "";
        hash = prb_hash_words(hash, prb_hash_bytes(name, strlen(name)));
        hash = prb_hash_words(hash, (uint64_t)(unsigned)frame->line);
    }
    return hash;
}

static void add_change(struct watched *item, struct moment *moment, uint32_t thread, uint32_t node)
{
    item->changes[item->change_count++ % PRB_WATCH_CHANGES] = (struct change){thread, node};
    moment->to = item->change_count;
    moment->changed++;
    while (item->change_count - item->moments[item->moment_first % PRB_WATCH_MOMENTS].from >
               PRB_WATCH_CHANGES &&
           item->moment_first < item->moment_count)
        item->moment_first++;
}

static bool room_for_threads(struct watched *item, size_t count)
{
    while (item->thread_count < count) {
        if (!PRB_GROW(item->threads, item->thread_count, item->thread_cap))
            return false;
        item->threads[item->thread_count++] = (struct watched_thread){0};
    }
    return true;
}

static void note_threads(struct watched *item, const struct prb_profile *profile,
                         struct moment *moment, double now)
{
    if (!room_for_threads(item, profile->thread_count))
        return;
    for (size_t i = 0; i < profile->thread_count; i++) {
        const struct prb_profile_thread *row = profile->threads + i;
        struct watched_thread *thread = item->threads + i;
        bool seen = row->seen == profile->samples;
        if (!thread->look && seen)
            thread->changed = now;
        if (seen) {
            thread->look = item->look;
            if (thread->node == row->node)
                continue;
            if (thread->node)
                thread->changed = now;
            thread->node = row->node;
            add_change(item, moment, (uint32_t)i, row->node);
        } else if (thread->node && item->look - thread->look >= GONE_LOOKS) {
            thread->node = 0;
            add_change(item, moment, (uint32_t)i, 0);
        }
    }
}

static void note_usage(struct watched *item, struct moment *moment, double now)
{
    char folder[32];
    struct prb_stat stat;
    snprintf(folder, sizeof folder, "/proc/%d", (int)item->pid);
    if (!prb_stat_of(folder, &stat) || stat.count < PRB_STAT_RSS)
        return;
    double ticks = (double)(stat.field[PRB_STAT_UTIME] + stat.field[PRB_STAT_STIME]);
    double seconds = (ticks - item->ticks) / (double)sysconf(_SC_CLK_TCK);
    moment->cpu = item->look > 1 ? (float)(seconds / (now - item->at)) : -1;
    moment->rss = (double)(stat.field[PRB_STAT_RSS] * sysconf(_SC_PAGESIZE));
    moment->threads = (int)stat.field[PRB_STAT_THREADS];
    item->ticks = ticks;
    item->at = now;
}

static bool begin_profiler(struct watched *item, struct prb_error *err)
{
    const struct prb_profiler_options options = {.mode = PRB_PROFILE_WALL,
                                                 .rate = 1 / PRB_WATCH_EVERY};
    struct prb_profiler *profiler = prb_profiler_new(&options, err);
    if (!profiler || !prb_profiler_add(profiler, item->pid, err)) {
        prb_profiler_free(profiler);
        return false;
    }
    item->profiler = profiler;
    return true;
}

/* The tables of the profile only grow.  A new one knows by hashes who has not moved since. */
static void begin_anew(struct watched *item)
{
    struct prb_profiler *before = item->profiler;
    struct watched_thread *threads = item->threads;
    size_t count = item->thread_count;
    if (!begin_profiler(item, NULL))
        return;
    item->threads = NULL;
    item->thread_count = item->thread_cap = 0;
    item->moment_first = item->moment_count;
    item->change_count = 0;
    item->look = 1;
    prb_profiler_sample(item->profiler, NULL);
    const struct prb_profile *old = prb_profiler_profile(before);
    const struct prb_profile *profile = prb_profiler_profile(item->profiler);
    bool room = room_for_threads(item, profile->thread_count);
    for (size_t i = 0; room && i < profile->thread_count; i++)
        for (size_t j = 0; j < count; j++)
            if (old->threads[j].thread_id == profile->threads[i].thread_id && threads[j].node &&
                hash_of(old, threads[j].node) == hash_of(profile, profile->threads[i].node))
                item->threads[i] =
                    (struct watched_thread){.look = 1, .changed = threads[j].changed};
    free(threads);
    prb_profiler_free(before);
}

static bool ran_out(const struct prb_profile *profile)
{
    return profile->node_count > PRB_WATCH_NODES_MAX || profile->thread_count > THREADS_MAX ||
           profile->weight_count > 2 * PRB_WATCH_NODES_MAX;
}

static void end(struct watched *item)
{
    item->ended = prb_profiler_finish(item->profiler);
    item->end = prb_clock_s();
    prb_profiler_free(item->profiler);
    item->profiler = NULL;
    prb_step_reader_free(item->steps);
    item->steps = NULL;
}

/* All but its lock, which the caller has and others may wait for. */
static void fill(struct watched *item, const struct watched *with)
{
    const size_t from = offsetof(struct watched, pid);
    memcpy((char *)item + from, (const char *)with + from, sizeof *item - from);
}

static void forget(struct watched *item)
{
    prb_profiler_free(item->profiler);
    if (item->ended)
        prb_profile_free(item->ended);
    prb_step_reader_free(item->steps);
    free(item->moments);
    free(item->changes);
    free(item->threads);
    fill(item, &(struct watched){0});
}

static void look(struct watched *item)
{
    bool any = prb_profiler_sample(item->profiler, NULL);
    if (!any && !prb_profiler_alive(item->profiler)) {
        end(item);
        return;
    }
    double now = prb_clock_s();
    item->look++;
    uint64_t number = item->moment_count++;
    if (item->moment_count - item->moment_first > PRB_WATCH_MOMENTS)
        item->moment_first = item->moment_count - PRB_WATCH_MOMENTS;
    struct moment *moment = item->moments + number % PRB_WATCH_MOMENTS;
    *moment = (struct moment){.time = prb_clock_epoch_s(),
                              .from = item->change_count,
                              .to = item->change_count,
                              .cpu = -1,
                              .step = item->steps ? prb_step_reader_last(item->steps) : -1};
    note_usage(item, moment, now);
    const struct prb_profile *profile = prb_profiler_profile(item->profiler);
    if (any)
        note_threads(item, profile, moment, now);
    if (ran_out(profile))
        begin_anew(item);
}

/* ---- which processes ---- */

static bool begin_watching(struct prb_watch *watch, pid_t pid)
{
    struct watched *item = NULL;
    struct prb_error err = {0};
    for (size_t i = 0; i < PRB_WATCH_PROCESSES; i++) { /* free, else who ended first */
        struct watched *one = watch->items + i;
        if (!one->pid)
            item = one;
        else if (one->ended && (!item || (item->pid && one->end < item->end)))
            item = one;
        if (!one->pid)
            break;
    }
    struct watched made = {.pid = pid};
    char folder[32];
    struct prb_stat stat;
    snprintf(folder, sizeof folder, "/proc/%d", (int)pid);
    if (!item || !prb_stat_of(folder, &stat) || stat.count < PRB_STAT_STARTTIME)
        return false;
    made.started = (uint64_t)stat.field[PRB_STAT_STARTTIME];
    made.moments = calloc(PRB_WATCH_MOMENTS, sizeof *made.moments);
    made.changes = calloc(PRB_WATCH_CHANGES, sizeof *made.changes);
    if (!made.moments || !made.changes || !begin_profiler(&made, &err)) {
        free(made.moments);
        free(made.changes);
        return false;
    }
    made.steps = prb_step_reader_new(pid, made.started);
    pthread_mutex_lock(&item->lock);
    forget(item);
    fill(item, &made);
    pthread_mutex_unlock(&item->lock);
    return true;
}

/* Ours to look at, and not a part of Probing. */
static bool may_be_watched(const struct prb_watch *watch, pid_t pid)
{
    char path[32];
    struct stat st;
    snprintf(path, sizeof path, "/proc/%d", (int)pid);
    return pid != getpid() && stat(path, &st) == 0 && st.st_uid == geteuid() &&
           prb_serve_has(watch->serve, pid) && prb_process_is_python(pid, NULL);
}

static struct other *other_of(struct prb_watch *watch, size_t *at, pid_t pid)
{
    while (*at < watch->other_count && watch->others[*at].pid < pid)
        ++*at;
    return *at < watch->other_count && watch->others[*at].pid == pid ? watch->others + *at : NULL;
}

static int by_pid(const void *a, const void *b)
{
    const struct other *x = a, *y = b;
    return (x->pid > y->pid) - (x->pid < y->pid);
}

static bool is_watched(const struct prb_watch *watch, pid_t pid)
{
    for (size_t i = 0; i < PRB_WATCH_PROCESSES; i++)
        if (watch->items[i].pid == pid && !watch->items[i].ended)
            return true;
    return false;
}

/* Whether a process has begun since the last call, by the fifth field of proc_loadavg(5). */
static bool some_are_new(struct prb_watch *watch)
{
    char text[128];
    PRB_AUTO_FD int fd = open("/proc/loadavg", O_RDONLY | O_CLOEXEC);
    size_t len = fd >= 0 ? prb_read_at(fd, text, sizeof text - 1, 0) : 0;
    text[len] = '\0';
    const char *newest = strrchr(text, ' ');
    bool same = newest && strncmp(newest, watch->newest, sizeof watch->newest - 1) == 0;
    snprintf(watch->newest, sizeof watch->newest, "%s", newest ? newest : "");
    return !same;
}

static bool some_are_young(const struct prb_watch *watch)
{
    for (size_t i = 0; i < watch->other_count; i++)
        if (watch->others[i].looks < NEW_LOOKS)
            return true;
    return false;
}

static void find(struct prb_watch *watch)
{
    double now = prb_clock_s();
    bool all = atomic_exchange(&watch->more, false) || now - watch->again > AGAIN;
    if (!some_are_new(watch) && !all && !some_are_young(watch))
        return;
    PRB_AUTO(dir) DIR *dir = opendir("/proc");
    watch->next_count = 0;
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        pid_t pid = isdigit((unsigned char)entry->d_name[0]) ? (pid_t)atoi(entry->d_name) : 0;
        if (pid > 0 && watch->next_count < PIDS_MAX &&
            PRB_GROW(watch->next, watch->next_count, watch->next_cap))
            watch->next[watch->next_count++] = (struct other){.pid = pid};
    }
    if (watch->next_count)
        qsort(watch->next, watch->next_count, sizeof *watch->next, by_pid);
    size_t at = 0;
    for (size_t i = 0; i < watch->next_count; i++) {
        struct other *one = watch->next + i;
        const struct other *known = other_of(watch, &at, one->pid);
        if (known)
            *one = *known;
        bool due = one->looks < NEW_LOOKS || all;
        if (one->looks < NEW_LOOKS)
            one->looks++;
        if (due && !is_watched(watch, one->pid) && may_be_watched(watch, one->pid) &&
            begin_watching(watch, one->pid))
            one->looks = NEW_LOOKS;
    }
    if (all)
        watch->again = now;
    struct other *swap = watch->others;
    size_t cap = watch->other_cap;
    watch->others = watch->next;
    watch->other_count = watch->next_count;
    watch->other_cap = watch->next_cap;
    watch->next = swap;
    watch->next_cap = cap;
}

/* ---- the thread ---- */

static void look_at_all(struct prb_watch *watch)
{
    double kept = PRB_WATCH_MOMENTS * PRB_WATCH_EVERY;
    for (size_t i = 0; i < PRB_WATCH_PROCESSES; i++) {
        struct watched *item = watch->items + i;
        if (!item->pid) /* nobody else sets it */
            continue;
        pthread_mutex_lock(&item->lock);
        if (item->profiler)
            look(item);
        else if (prb_clock_s() - item->end > kept)
            forget(item);
        pthread_mutex_unlock(&item->lock);
    }
}

static void *run(void *context)
{
    struct prb_watch *watch = context;
    struct pollfd wake = {.fd = watch->wake, .events = POLLIN};
    double next = prb_clock_s();
    do {
        find(watch);
        look_at_all(watch);
        double now = prb_clock_s();
        next = next + PRB_WATCH_EVERY < now ? now + PRB_WATCH_EVERY : next + PRB_WATCH_EVERY;
        wake.revents = 0;
        poll(&wake, 1, (int)((next - now) * 1000));
    } while (!wake.revents);
    return NULL;
}

struct prb_watch *prb_watch_new(const struct prb_serve *serve, struct prb_error *err)
{
    struct prb_watch *watch = calloc(1, sizeof *watch);
    if (!watch)
        return PRB_NULL(prb_nomem(err));
    watch->serve = serve;
    watch->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    for (size_t i = 0; i < PRB_WATCH_PROCESSES; i++)
        pthread_mutex_init(&watch->items[i].lock, NULL);
    if (watch->wake >= 0 && pthread_create(&watch->thread, NULL, run, watch) == 0)
        return watch;
    if (watch->wake >= 0)
        close(watch->wake);
    free(watch);
    return PRB_NULL(prb_fail(err, PRB_NOMEM, "no thread can be made"));
}

void prb_watch_free(struct prb_watch *watch)
{
    uint64_t one = 1;
    if (!watch)
        return;
    prb_write_all(watch->wake, &one, sizeof one);
    pthread_join(watch->thread, NULL);
    for (size_t i = 0; i < PRB_WATCH_PROCESSES; i++) {
        forget(watch->items + i);
        pthread_mutex_destroy(&watch->items[i].lock);
    }
    close(watch->wake);
    free(watch->others);
    free(watch->next);
    free(watch);
}

void prb_watch_again(struct prb_watch *watch) { atomic_store(&watch->more, true); }

/* ---- what others ask; each takes the lock of the process ---- */

static struct watched *lock_item(struct prb_watch *watch, pid_t pid, uint64_t started)
{
    struct watched *ended = NULL;
    for (size_t i = 0; i < PRB_WATCH_PROCESSES; i++) {
        struct watched *item = watch->items + i;
        pthread_mutex_lock(&item->lock);
        bool same = item->pid == pid && (!started || item->started == started);
        if (same && !item->ended)
            return item;
        if (same)
            ended = item;
        pthread_mutex_unlock(&item->lock);
    }
    if (!ended)
        return NULL;
    pthread_mutex_lock(&ended->lock);
    if (ended->pid == pid)
        return ended;
    pthread_mutex_unlock(&ended->lock);
    return NULL;
}

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

/* Whether the Python frames of a stack are those of a node. */
static bool is_node(const struct prb_profile *profile, uint32_t node,
                    const struct prb_thread *thread)
{
    for (size_t i = 0; i < thread->frame_count; i++) {
        const struct prb_frame *frame = thread->frames + i;
        if (frame->kind != PRB_FRAME_PYTHON)
            continue;
        if (!node)
            return false;
        const struct prb_profile_frame *at = profile->frames + profile->nodes[node].frame;
        const struct prb_profile_function *function = profile->functions + at->function;
        if (at->line != frame->line || !same_text(function->qualname, frame->qualname) ||
            !same_text(function->filename, frame->filename))
            return false;
        node = profile->nodes[node].parent;
    }
    return !node;
}

void prb_watch_since(struct prb_watch *watch, pid_t pid, uint64_t started,
                     const struct prb_stacks *stacks, double *out)
{
    for (size_t i = 0; i < stacks->thread_count; i++)
        out[i] = -1;
    struct watched *item = lock_item(watch, pid, started);
    if (!item)
        return;
    const struct prb_profile *profile = profile_of(item);
    double now = prb_clock_s();
    for (size_t i = 0; i < stacks->thread_count; i++)
        for (size_t j = 0; j < item->thread_count && j < profile->thread_count; j++) {
            if (!item->threads[j].node ||
                profile->threads[j].thread_id != stacks->threads[i].thread_id)
                continue;
            out[i] = is_node(profile, item->threads[j].node, stacks->threads + i)
                         ? now - item->threads[j].changed
                         : 0;
        }
    pthread_mutex_unlock(&item->lock);
}

/* ---- history ---- */

struct writer {
    const struct prb_profile *profile;
    json_t *frames, *stacks, *threads, *moments;
    uint32_t *frame_at, *stack_at,
        *thread_at; /* by their numbers in the profile; 0: not there, else 1 more */
};

static json_int_t put_frame(struct writer *writer, uint32_t frame)
{
    static const char *const kinds[] = {"python", "native", "broken", "task"};
    if (writer->frame_at[frame])
        return writer->frame_at[frame] - 1;
    const struct prb_profile *profile = writer->profile;
    const struct prb_profile_frame *row = profile->frames + frame;
    const struct prb_profile_function *function = profile->functions + row->function;
    const char *file = function->short_filename ? function->short_filename : function->filename;
    json_array_append_new(
        writer->frames,
        json_pack("{s:o,s:o,s:o,s:s}", "name",
                  prb_json_text(function->qualname ? function->qualname : function->name), "file",
                  prb_json_text(file), "line",
                  row->line > 0 ? json_integer(row->line) : json_null(), "kind",
                  kinds[function->kind]));
    writer->frame_at[frame] = (uint32_t)json_array_size(writer->frames);
    return writer->frame_at[frame] - 1;
}

static json_int_t put_stack(struct writer *writer, uint32_t node)
{
    if (!node)
        return -1;
    if (writer->stack_at[node])
        return writer->stack_at[node] - 1;
    json_t *frames = json_array();
    for (uint32_t at = node; at; at = writer->profile->nodes[at].parent)
        json_array_append_new(frames,
                              json_integer(put_frame(writer, writer->profile->nodes[at].frame)));
    json_array_append_new(writer->stacks, frames);
    writer->stack_at[node] = (uint32_t)json_array_size(writer->stacks);
    return writer->stack_at[node] - 1;
}

static json_int_t put_thread(struct writer *writer, uint32_t thread)
{
    if (writer->thread_at[thread])
        return writer->thread_at[thread] - 1;
    const struct prb_profile_thread *row = writer->profile->threads + thread;
    json_array_append_new(writer->threads, json_pack("{s:i,s:o}", "id", (int)row->tid, "name",
                                                     prb_json_text(row->name)));
    writer->thread_at[thread] = (uint32_t)json_array_size(writer->threads);
    return writer->thread_at[thread] - 1;
}

static void put_change(struct writer *writer, json_t *stacks, uint32_t thread, uint32_t node)
{
    json_t *pair = json_array();
    json_array_append_new(pair, json_integer(put_thread(writer, thread)));
    json_array_append_new(pair, json_integer(put_stack(writer, node)));
    json_array_append_new(stacks, pair);
}

static void put_moment(struct writer *writer, const struct moment *moment, json_t *stacks)
{
    json_array_append_new(writer->moments,
                          json_pack("{s:f,s:o,s:I,s:i,s:o,s:i,s:o}", "time", moment->time, "cpu",
                                    moment->cpu >= 0 ? json_real((double)moment->cpu) : json_null(),
                                    "rss", (json_int_t)moment->rss, "threads", moment->threads,
                                    "step",
                                    moment->step >= 0 ? json_integer(moment->step) : json_null(),
                                    "changed", (int)moment->changed, "stacks", stacks));
}

/* Stacks of all threads as they were at a moment: by all changes until then.  What was lost before
 * the first moment that is kept is made good by the first change of a thread afterwards. */
static void put_all(struct writer *writer, const struct watched *item, const struct moment *moment,
                    json_t *stacks)
{
    PRB_AUTO_FREE uint32_t *nodes = calloc(item->thread_count + 1, sizeof *nodes);
    uint64_t first =
        item->change_count > PRB_WATCH_CHANGES ? item->change_count - PRB_WATCH_CHANGES : 0;
    if (!nodes)
        return;
    for (size_t i = 0; i < item->thread_count; i++)
        nodes[i] = UINT32_MAX;
    for (uint64_t at = first; at < moment->to; at++) {
        const struct change *change = item->changes + at % PRB_WATCH_CHANGES;
        nodes[change->thread] = change->node;
    }
    for (uint64_t at = moment->to; at < item->change_count; at++) {
        const struct change *change = item->changes + at % PRB_WATCH_CHANGES;
        if (nodes[change->thread] == UINT32_MAX)
            nodes[change->thread] = 0;
    }
    for (size_t i = 0; i < item->thread_count; i++) {
        uint32_t node = nodes[i] == UINT32_MAX ? item->threads[i].node : nodes[i];
        if (node)
            put_change(writer, stacks, (uint32_t)i, node);
    }
}

static json_t *write_history(struct watched *item, double after, double until, double *last_out)
{
    struct writer writer = {.profile = profile_of(item),
                            .frames = json_array(),
                            .stacks = json_array(),
                            .threads = json_array(),
                            .moments = json_array()};
    const struct prb_profile *profile = writer.profile;
    writer.frame_at = calloc(profile->frame_count + 1, sizeof *writer.frame_at);
    writer.stack_at = calloc(profile->node_count + 1, sizeof *writer.stack_at);
    writer.thread_at = calloc(profile->thread_count + 1, sizeof *writer.thread_at);
    bool room = writer.frame_at && writer.stack_at && writer.thread_at, first = true;
    double last = after;
    for (uint64_t i = item->moment_first; room && i < item->moment_count; i++) {
        const struct moment *moment = item->moments + i % PRB_WATCH_MOMENTS;
        if (moment->time <= after || moment->time > until)
            continue;
        json_t *stacks = json_array();
        if (first)
            put_all(&writer, item, moment, stacks);
        for (uint64_t at = moment->from; !first && at < moment->to; at++) {
            const struct change *change = item->changes + at % PRB_WATCH_CHANGES;
            put_change(&writer, stacks, change->thread, change->node);
        }
        put_moment(&writer, moment, stacks);
        last = moment->time;
        first = false;
    }
    free(writer.frame_at);
    free(writer.stack_at);
    free(writer.thread_at);
    if (last_out)
        *last_out = last;
    return json_pack("{s:f,s:f,s:o,s:o,s:o,s:o}", "time", prb_clock_epoch_s(), "every",
                     PRB_WATCH_EVERY, "frames", writer.frames, "stacks", writer.stacks, "threads",
                     writer.threads, "moments", writer.moments);
}

json_t *prb_watch_history(struct prb_watch *watch, pid_t pid, uint64_t started, double after,
                          double until, double *last_out, struct prb_error *err)
{
    struct watched *item = lock_item(watch, pid, started);
    if (!item)
        return PRB_NULL(prb_fail(err, PRB_NOT_FOUND, "process %d was not looked at yet", (int)pid));
    json_t *value = write_history(item, after, until, last_out);
    pthread_mutex_unlock(&item->lock);
    return value ? value : PRB_NULL(prb_nomem(err));
}

/* ---- metrics ---- */

static bool look_at_now(const struct watched *item, struct prb_measured *out)
{
    if (!item->pid || item->ended || item->moment_count == item->moment_first)
        return false;
    const struct prb_profile *profile = prb_profiler_profile(item->profiler);
    const struct moment *moment = item->moments + (item->moment_count - 1) % PRB_WATCH_MOMENTS;
    *out = (struct prb_measured){.pid = item->pid,
                                 .rank = profile->processes[0].rank,
                                 .command = profile->processes[0].command,
                                 .cpu = item->ticks / (double)sysconf(_SC_CLK_TCK),
                                 .rss = moment->rss,
                                 .threads = moment->threads,
                                 .step = moment->step,
                                 .unchanged = -1};
    for (size_t i = 0; i < item->thread_count && i < profile->thread_count; i++)
        if (item->threads[i].node && (profile->threads[i].tid == item->pid || out->unchanged < 0))
            out->unchanged = prb_clock_s() - item->threads[i].changed;
    return true;
}

void prb_watch_each(struct prb_watch *watch, prb_watch_fn *each, void *context)
{
    for (size_t i = 0; i < PRB_WATCH_PROCESSES; i++) {
        struct watched *item = watch->items + i;
        struct prb_measured now;
        pthread_mutex_lock(&item->lock);
        if (look_at_now(item, &now))
            each(context, &now);
        pthread_mutex_unlock(&item->lock);
    }
}
