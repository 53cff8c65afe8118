/* pidfd_open(2) and poll(2) in a thread. */
#include "serve/doors/life.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/file.h"
#include "base/syscalls.h"

#define AFTER_MS 60000 /* pages say that it has ended, and read its last tables */

struct prb_life {
    pthread_mutex_t lock;
    pthread_t thread;
    int stop_fd, more;
    void (*ended)(void);
    int fds[PRB_LIFE_TARGETS_MAX];
    size_t count;
};

/* Forget those that ended; *polled_count: stop, more, then the others. */
static void gather(struct prb_life *life, struct pollfd *polled, size_t *polled_count)
{
    pthread_mutex_lock(&life->lock);
    polled[0] = (struct pollfd){life->stop_fd, POLLIN, 0};
    polled[1] = (struct pollfd){life->more, POLLIN, 0};
    for (size_t i = 0; i < life->count; i++)
        polled[i + 2] = (struct pollfd){life->fds[i], POLLIN, 0};
    *polled_count = life->count + 2;
    pthread_mutex_unlock(&life->lock);
}

static void forget(struct prb_life *life, int fd)
{
    pthread_mutex_lock(&life->lock);
    for (size_t i = 0; i < life->count; i++) {
        if (life->fds[i] != fd)
            continue;
        life->fds[i] = life->fds[--life->count];
        break;
    }
    pthread_mutex_unlock(&life->lock);
    close(fd);
}

static void *watch(void *context)
{
    struct prb_life *life = context;
    struct pollfd polled[PRB_LIFE_TARGETS_MAX + 2];
    size_t count;
    for (uint64_t woken;;) {
        gather(life, polled, &count);
        int n = poll(polled, count, count > 2 ? -1 : AFTER_MS);
        if (n < 0 && errno == EINTR)
            continue;
        if (polled[0].revents)
            return NULL;
        if (n == 0) {
            life->ended();
            return NULL;
        }
        if (polled[1].revents)
            (void)!read(life->more, &woken, sizeof woken);
        for (size_t i = 2; i < count; i++)
            if (polled[i].revents)
                forget(life, polled[i].fd);
    }
}

struct prb_life *prb_life_new(int stop_fd, void (*ended)(void), struct prb_error *err)
{
    struct prb_life *life = calloc(1, sizeof *life);
    if (!life)
        return PRB_NULL(prb_nomem(err));
    pthread_mutex_init(&life->lock, NULL);
    life->stop_fd = stop_fd;
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
        close(life->fds[i]);
    close(life->more);
    pthread_mutex_destroy(&life->lock);
    free(life);
}

bool prb_life_add(struct prb_life *life, pid_t pid, struct prb_error *err)
{
    uint64_t one = 1;
    int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (fd < 0)
        return errno == ESRCH ? prb_fail(err, PRB_NOT_FOUND, "there is no process %d", (int)pid)
                              : prb_fail_sys(err, errno, "following process %d", (int)pid);
    pthread_mutex_lock(&life->lock);
    bool room = life->count < PRB_LIFE_TARGETS_MAX;
    if (room)
        life->fds[life->count++] = fd;
    pthread_mutex_unlock(&life->lock);
    if (!room) {
        close(fd);
        return prb_fail(err, PRB_BUSY, "this server has %d processes", PRB_LIFE_TARGETS_MAX);
    }
    return prb_write_all(life->more, &one, sizeof one) || prb_fail_sys(err, errno, "waking");
}
