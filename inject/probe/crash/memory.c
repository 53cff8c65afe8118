/*
 * The kernel does not announce that it will kill for memory, but the control group's files show how
 * near that is: memory.events of version 2 wakes a thread that polls it, and the use is read
 * regularly.  Opt-in, on a thread of its own.
 * Source: Documentation/admin-guide/cgroup-v2.rst, cgroup-v1/memory.rst.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

#include "inject/probe/crash/crash.h"
#include "inject/probe/libc.h"
#include "inject/probe/own_fds.h"
#include "inject/probe/settings.h"
#include "inject/probe/socket_path.h"
#include "inject/probe/thread.h"

#define CHECK_MS 1000 /* between checks without an event */
#define EVENT_MS 50   /* at least between those that events ask for */
#define AGAIN 0.9     /* of the threshold: below it the next dump may come */
#define TEXT_MAX 8192

static struct {
    pthread_mutex_t lock;
    int wake; /* the thread's, which closes it; -1: no thread */
} watcher = {.lock = PTHREAD_MUTEX_INITIALIZER, .wake = -1};

static long read_text(const char *folder, const char *name, char out[TEXT_MAX])
{
    char path[512];
    if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path)
        return -1;
    PRB_AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, out, TEXT_MAX - 1) : -1;
    if (n >= 0)
        out[n] = '\0';
    return n;
}

static const struct version {
    const char *line; /* how its line of /proc/PID/cgroup goes on after the number */
    const char *root, *limit, *use, *cache, *events;
} versions[] = {
    {"::", "/sys/fs/cgroup", "memory.max", "memory.current", "\ninactive_file ", "memory.events"},
    {":memory:", "/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
     "\ntotal_inactive_file ", NULL},
};

struct group {
    const struct version *version;
    char folder[400];
};

/* The group's path of its line; false: there is none. */
static bool path_of(const char *text, const char *mark, char out[350])
{
    for (const char *at = text; at && *at; at = strchr(at, '\n'), at += at != NULL) {
        const char *rest = at + strspn(at, "0123456789");
        if (strncmp(rest, mark, strlen(mark)) != 0)
            continue;
        rest += strlen(mark);
        snprintf(out, 350, "%.*s", (int)strcspn(rest, "\n"), rest);
        return true;
    }
    return false;
}

/* As this process sees it; a container's own group may be mounted at the root. */
static bool find_group(struct group *out)
{
    char text[TEXT_MAX], path[350], limit[TEXT_MAX];
    if (prb_socket_path_self("cgroup", text, sizeof text) <= 0)
        return false;
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) {
        out->version = &versions[i];
        if (!path_of(text, versions[i].line, path))
            continue;
        snprintf(out->folder, sizeof out->folder, "%s%s", versions[i].root,
                 strcmp(path, "/") ? path : "");
        if (read_text(out->folder, versions[i].limit, limit) > 0)
            return true;
        snprintf(out->folder, sizeof out->folder, "%s", versions[i].root);
        if (read_text(out->folder, versions[i].limit, limit) > 0)
            return true;
    }
    return false;
}

/* The part of the limit that cannot simply be given back; 0: no limit. */
static double used_part(const struct group *group, double *most_out)
{
    char text[TEXT_MAX];
    if (read_text(group->folder, group->version->limit, text) <= 0 || strncmp(text, "max", 3) == 0)
        return 0;
    double most = strtod(text, NULL), now, cache = 0;
    if (!(most > 0) || read_text(group->folder, group->version->use, text) <= 0)
        return 0;
    now = strtod(text, NULL);
    if (read_text(group->folder, "memory.stat", text) > 0) {
        const char *at = strstr(text, group->version->cache);
        cache = at ? strtod(at + strlen(group->version->cache), NULL) : 0;
    }
    *most_out = most;
    return (now - cache) / most;
}

static bool still_watches(int wake)
{
    pthread_mutex_lock(&watcher.lock);
    bool yes = watcher.wake == wake;
    pthread_mutex_unlock(&watcher.lock);
    return yes;
}

/* True: the group is over the threshold; before: it was already. */
static bool check(const struct group *group, bool before)
{
    char reason[160];
    double most = 0, part = used_part(group, &most);
    double least = prb_settings_number("probing.crash_memory", 0);
    if (least <= 0 || part < least * (before ? AGAIN : 1))
        return false;
    if (!before) {
        snprintf(reason, sizeof reason, "%.0f %% of the control group's %.0f MiB are used",
                 100 * part, most / (1 << 20));
        prb_crash_dump(PRB_CRASH_MEMORY, 0, NULL, NULL, reason);
    }
    return true;
}

/* Until it has to end; -1: there are no events to wait for. */
static void watch_group(const struct group *group, int wake)
{
    char path[440];
    bool before = false;
    snprintf(path, sizeof path, "%s/%s", group->folder,
             group->version->events ? group->version->events : "");
    PRB_AUTO_FD int events = group->version->events ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    while (still_watches(wake)) {
        struct pollfd fds[] = {{.fd = wake, .events = POLLIN}, {.fd = events, .events = POLLPRI}};
        char text[TEXT_MAX];
        before = check(group, before);
        int got = poll(fds, 2, CHECK_MS);
        if (got < 0 && errno != EINTR)
            return;
        if (got > 0 && fds[1].revents) {
            if (pread(events, text, sizeof text, 0) < 0)
                return;
            poll(fds, 1, EVENT_MS); /* they may come by the thousand */
        }
    }
}

static void *watch(void *wake_fd)
{
    struct group group;
    int wake = (int)(intptr_t)wake_fd;
    if (find_group(&group))
        watch_group(&group, wake);
    pthread_mutex_lock(&watcher.lock);
    if (watcher.wake == wake)
        watcher.wake = -1;
    pthread_mutex_unlock(&watcher.lock);
    prb_own_fd_close(wake);
    return NULL;
}

static int make_wake(void *nothing)
{
    (void)nothing;
    return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
}

void prb_crash_watch_memory(bool on)
{
    pthread_mutex_lock(&watcher.lock);
    if (on && watcher.wake < 0) {
        watcher.wake = prb_own_fd_make(make_wake, NULL);
        if (watcher.wake >= 0 &&
            !prb_thread_start("probing-memory", watch, (void *)(intptr_t)watcher.wake, NULL)) {
            prb_own_fd_close(watcher.wake);
            watcher.wake = -1;
        }
    } else if (!on && watcher.wake >= 0) {
        uint64_t one = 1;
        ssize_t written = write(watcher.wake, &one, sizeof one);
        (void)written;
        watcher.wake = -1;
    }
    pthread_mutex_unlock(&watcher.lock);
}

void prb_crash_memory_forked(void)
{
    watcher.lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    watcher.wake = -1;
}
