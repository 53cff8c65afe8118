/* One thread that looks at each process once a second (watch.h). */
#include "serve/live/watch.h"

#include <ctype.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/file.h"
#include "inspect/target.h"
#include "serve/doors/life.h"
#include "serve/live/seen.h"

#define NEW_LOOKS 5 /* a new process is asked so often whether it is Python by now */
#define AGAIN 15.0  /* s: then each that was not Python is asked once more */
#define PIDS_MAX 65536

/* A process that is not looked at: it is not Python, not ours, or refuses. */
struct other {
    pid_t pid;
    unsigned looks;
};

struct prb_watch {
    const struct prb_serve *serve;
    pthread_t thread;
    int wake;
    atomic_bool more; /* somebody said that there is a process more */
    struct prb_seen items[PRB_WATCH_PROCESSES];
    /* of its thread alone */
    struct other *others, *next;
    size_t other_count, other_cap, next_count, next_cap;
    char newest[32]; /* what the kernel says of the newest process */
    double again;    /* s, monotonic: when all were asked last */
};

/* ---- which processes ---- */

static bool begin_watching(struct prb_watch *watch, pid_t pid)
{
    struct prb_seen *item = NULL;
    for (size_t i = 0; i < PRB_WATCH_PROCESSES; i++) { /* free, else who ended first */
        struct prb_seen *one = watch->items + i;
        if (!one->pid)
            item = one;
        else if (one->ended && (!item || (item->pid && one->end < item->end)))
            item = one;
        if (!one->pid)
            break;
    }
    return item && prb_seen_begin(item, pid);
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
        struct prb_seen *item = watch->items + i;
        if (!item->pid) /* nobody else sets it */
            continue;
        pthread_mutex_lock(&item->lock);
        if (item->profiler)
            prb_seen_look(item);
        else if (prb_clock_s() - item->end > kept)
            prb_seen_forget(item);
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
        prb_seen_forget(watch->items + i);
        pthread_mutex_destroy(&watch->items[i].lock);
    }
    close(watch->wake);
    free(watch->others);
    free(watch->next);
    free(watch);
}

void prb_watch_again(struct prb_watch *watch) { atomic_store(&watch->more, true); }

/* ---- what others ask; each takes the lock of the process ---- */

static struct prb_seen *lock_item(struct prb_watch *watch, pid_t pid, uint64_t started)
{
    struct prb_seen *ended = NULL;
    for (size_t i = 0; i < PRB_WATCH_PROCESSES; i++) {
        struct prb_seen *item = watch->items + i;
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

void prb_watch_since(struct prb_watch *watch, pid_t pid, uint64_t started,
                     const struct prb_stacks *stacks, double *out)
{
    for (size_t i = 0; i < stacks->thread_count; i++)
        out[i] = -1;
    struct prb_seen *item = lock_item(watch, pid, started);
    if (!item)
        return;
    prb_seen_since(item, stacks, out);
    pthread_mutex_unlock(&item->lock);
}

json_t *prb_watch_history(struct prb_watch *watch, pid_t pid, uint64_t started, double after,
                          double until, double *last_out, struct prb_error *err)
{
    struct prb_seen *item = lock_item(watch, pid, started);
    if (!item)
        return PRB_NULL(prb_fail(err, PRB_NOT_FOUND, "process %d was not looked at yet", (int)pid));
    json_t *value = prb_seen_history(item, after, until, last_out);
    pthread_mutex_unlock(&item->lock);
    return value ? value : PRB_NULL(prb_nomem(err));
}

void prb_watch_each(struct prb_watch *watch, prb_watch_fn *each, void *context)
{
    for (size_t i = 0; i < PRB_WATCH_PROCESSES; i++) {
        struct prb_seen *item = watch->items + i;
        struct prb_measured now;
        pthread_mutex_lock(&item->lock);
        if (prb_seen_measured(item, &now))
            each(context, &now);
        pthread_mutex_unlock(&item->lock);
    }
}
