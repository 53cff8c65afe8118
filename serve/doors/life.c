/* pidfd_open(2) and poll(2) in a thread, and a look for the probe once a second. */
#include "serve/doors/life.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/syscalls.h"
#include "inject/control.h"
#include "proc/stat.h"
#include "serve/serve.h"

#define LOOK_MS 1000 /* between looks for the probe */
#define ANCESTORS_MAX 64

struct prb_life {
    pthread_mutex_t lock; /* of all that follows */
    pthread_t thread;
    int stop_fd, more;
    void (*ended)(void);
    struct target {
        pid_t pid;
        uint64_t started; /* field 22 of proc_pid_stat(5) */
        int fd;           /* pidfd_open(2); -1: it has ended */
        bool probed;      /* it had a probe */
        bool over;        /* and has none any more: a detach is an end, as long as it lasts */
    } targets[PRB_LIFE_TARGETS_MAX];
    size_t count;
    bool by_probe;
    double linger;
};

/* *polled_count: stop, more, then those that live. */
static void gather(struct prb_life *life, struct pollfd *polled, size_t *polled_count)
{
    pthread_mutex_lock(&life->lock);
    polled[0] = (struct pollfd){life->stop_fd, POLLIN, 0};
    polled[1] = (struct pollfd){life->more, POLLIN, 0};
    *polled_count = 2;
    for (size_t i = 0; i < life->count; i++)
        if (life->targets[i].fd >= 0)
            polled[(*polled_count)++] = (struct pollfd){life->targets[i].fd, POLLIN, 0};
    pthread_mutex_unlock(&life->lock);
}

static void note_end(struct prb_life *life, int fd)
{
    pthread_mutex_lock(&life->lock);
    for (size_t i = 0; i < life->count; i++)
        if (life->targets[i].fd == fd)
            life->targets[i].fd = -1;
    pthread_mutex_unlock(&life->lock);
    close(fd);
}

/* Whether one of them lives, or none was added yet; the looks are not made under the lock. */
static bool look(struct prb_life *life)
{
    bool lives = false;
    for (size_t i = 0;; i++) {
        pthread_mutex_lock(&life->lock);
        bool more = i < life->count;
        const struct target one = more ? life->targets[i] : (struct target){.fd = -1};
        pthread_mutex_unlock(&life->lock);
        if (!more)
            return lives || i == 0;
        if (one.fd < 0)
            continue;
        bool probed = life->by_probe && prb_control_present(one.pid);
        pthread_mutex_lock(&life->lock);
        struct target *now = life->targets + i;
        if (now->fd == one.fd) {
            now->probed = now->probed || probed;
            now->over = now->probed && !probed;
        }
        lives = lives || (now->fd >= 0 && !now->over);
        pthread_mutex_unlock(&life->lock);
    }
}

static void *watch(void *context)
{
    struct prb_life *life = context;
    struct pollfd polled[PRB_LIFE_TARGETS_MAX + 2];
    size_t count;
    double until = 0; /* 0: one of them lives */
    for (uint64_t woken;;) {
        bool lives = look(life);
        double now = prb_clock_s();
        until = lives ? 0 : until > 0 ? until : now + life->linger;
        if (until > 0 && now >= until) {
            life->ended();
            return NULL;
        }
        gather(life, polled, &count);
        int left = until > 0 ? (int)((until - now) * 1000) + 1 : -1;
        bool looks = life->by_probe && count > 2;
        int n = poll(polled, count, looks && (left < 0 || left > LOOK_MS) ? LOOK_MS : left);
        if (n < 0 && errno == EINTR)
            continue;
        if (polled[0].revents)
            return NULL;
        if (polled[1].revents)
            (void)!read(life->more, &woken, sizeof woken);
        for (size_t i = 2; i < count; i++)
            if (polled[i].revents)
                note_end(life, polled[i].fd);
    }
}

struct prb_life *prb_life_new(int stop_fd, bool by_probe, double linger, void (*ended)(void),
                              struct prb_error *err)
{
    struct prb_life *life = calloc(1, sizeof *life);
    if (!life)
        return PRB_NULL(prb_nomem(err));
    pthread_mutex_init(&life->lock, NULL);
    life->stop_fd = stop_fd;
    life->by_probe = by_probe;
    life->linger = linger;
    life->ended = ended;
    life->more = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (life->more >= 0 && pthread_create(&life->thread, NULL, watch, life) == 0)
        return life;
    if (life->more >= 0)
        close(life->more);
    pthread_mutex_destroy(&life->lock);
    free(life);
    return PRB_NULL(prb_fail(err, PRB_NOMEM, "no thread can be made"));
}

void prb_life_free(struct prb_life *life)
{
    if (!life)
        return;
    pthread_join(life->thread, NULL);
    for (size_t i = 0; i < life->count; i++)
        if (life->targets[i].fd >= 0)
            close(life->targets[i].fd);
    close(life->more);
    pthread_mutex_destroy(&life->lock);
    free(life);
}

static bool stat_of(pid_t pid, struct prb_stat *out)
{
    char folder[32];
    snprintf(folder, sizeof folder, "/proc/%d", (int)pid);
    return prb_stat_of(folder, out) && out->count >= PRB_STAT_STARTTIME;
}

/* A place: of the same pid, a new one, or that of one that ended.  With the lock. */
static struct target *place_for(struct prb_life *life, pid_t pid)
{
    for (size_t i = 0; i < life->count; i++)
        if (life->targets[i].pid == pid)
            return life->targets + i;
    if (life->count < PRB_LIFE_TARGETS_MAX)
        return life->targets + life->count++;
    for (size_t i = 0; i < life->count; i++)
        if (life->targets[i].fd < 0)
            return life->targets + i;
    return NULL;
}

bool prb_life_add(struct prb_life *life, pid_t pid, struct prb_error *err)
{
    uint64_t one = 1;
    struct prb_stat stat = {0};
    int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (fd < 0)
        return errno == ESRCH ? prb_fail(err, PRB_NOT_FOUND, "there is no process %d", (int)pid)
                              : prb_fail_sys(err, errno, "following process %d", (int)pid);
    stat_of(pid, &stat); /* of the process that fd holds, which keeps its number */
    /* Who adds it waits for the answer: a detach may come before the next look. */
    bool probed = life->by_probe && prb_control_present(pid);
    pthread_mutex_lock(&life->lock);
    struct target *target = place_for(life, pid);
    bool known = target && target->pid == pid && target->fd >= 0;
    if (target && !known)
        *target = (struct target){.pid = pid,
                                  .started = (uint64_t)stat.field[PRB_STAT_STARTTIME],
                                  .fd = fd,
                                  .probed = probed};
    pthread_mutex_unlock(&life->lock);
    if (!target || known)
        close(fd);
    if (!target)
        return prb_fail(err, PRB_BUSY, "this server has %d processes", PRB_LIFE_TARGETS_MAX);
    return prb_write_all(life->more, &one, sizeof one) || prb_fail_sys(err, errno, "waking");
}

/* ---- which processes ---- */

/* started 0: there is no such process now. */
static bool is_target(struct prb_life *life, pid_t pid, uint64_t started)
{
    bool found = false;
    pthread_mutex_lock(&life->lock);
    for (size_t i = 0; i < life->count && !found; i++)
        found = life->targets[i].pid == pid && (!started || life->targets[i].started == started);
    pthread_mutex_unlock(&life->lock);
    return found;
}

bool prb_serve_has(const struct prb_serve *serve, pid_t pid)
{
    if (!serve->options->target || !serve->life)
        return true;
    for (int i = 0; i < ANCESTORS_MAX && pid > 0; i++) {
        struct prb_stat stat;
        bool lives = stat_of(pid, &stat);
        if (is_target(serve->life, pid, lives ? (uint64_t)stat.field[PRB_STAT_STARTTIME] : 0))
            return true;
        pid = lives ? (pid_t)stat.field[PRB_STAT_PPID] : 0;
    }
    return false;
}

bool prb_serve_pids(const struct prb_serve *serve, char *out, size_t size)
{
    size_t len = 0;
    *out = '\0';
    if (!serve->options->target || !serve->life)
        return false;
    pthread_mutex_lock(&serve->life->lock);
    for (size_t i = 0; i < serve->life->count && len + 16 < size; i++)
        len += (size_t)snprintf(out + len, size - len, "%s%d", i ? "," : "",
                                (int)serve->life->targets[i].pid);
    pthread_mutex_unlock(&serve->life->lock);
    return true;
}

bool prb_serve_check_has(const struct prb_serve *serve, pid_t pid, struct prb_error *err)
{
    char text[200];
    if (prb_serve_has(serve, pid))
        return true;
    prb_serve_pids(serve, text, sizeof text);
    prb_fail(err, PRB_PERMISSION, "this server is not for process %d, but for %s", (int)pid, text);
    return prb_error_remedy(err, "`probing serve` is one for all of your processes");
}
