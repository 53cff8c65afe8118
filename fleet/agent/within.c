/* This host's agent on a thread of a program that does something else, too: cluster.h. */
#include <errno.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "fleet/agent/agent.h"
#include "fleet/host/starter.h"

struct prb_cluster_within {
    const struct prb_cluster_agent_options *given;
    struct prb_cluster_agent_options options;
    pthread_t thread;
    int lock, stop;
    pthread_mutex_t mutex;
    pthread_cond_t told;
    bool ready, ended; /* guarded by mutex */
    struct prb_error err;
};

static void on_ready(void *context)
{
    struct prb_cluster_within *within = context;
    pthread_mutex_lock(&within->mutex);
    within->ready = true;
    pthread_cond_signal(&within->told);
    pthread_mutex_unlock(&within->mutex);
}

static void on_line(void *context, const char *line)
{
    const struct prb_cluster_within *within = context;
    if (within->given->say)
        within->given->say(within->given->context, line);
}

static void *run(void *context)
{
    struct prb_cluster_within *within = context;
    prb_cluster_agent(&within->options, &within->err);
    pthread_mutex_lock(&within->mutex);
    /* Another process may be the agent now. */
    prb_agent_lock_remove(within->lock);
    close(within->lock);
    within->lock = -1;
    within->ended = true;
    pthread_cond_signal(&within->told);
    pthread_mutex_unlock(&within->mutex);
    return NULL;
}

static void release(struct prb_cluster_within *within)
{
    if (within->lock >= 0) {
        prb_agent_lock_remove(within->lock);
        close(within->lock);
    }
    if (within->stop >= 0)
        close(within->stop);
    pthread_cond_destroy(&within->told);
    pthread_mutex_destroy(&within->mutex);
    free(within);
}

/* False: it ended before it was connected. */
static bool wait_ready(struct prb_cluster_within *within)
{
    pthread_mutex_lock(&within->mutex);
    while (!within->ready && !within->ended)
        pthread_cond_wait(&within->told, &within->mutex);
    bool ready = within->ready;
    pthread_mutex_unlock(&within->mutex);
    return ready;
}

static bool start(struct prb_cluster_within *within, struct prb_error *err)
{
    if (!prb_agent_lock_tell(within->lock, true))
        return prb_fail_sys(err, errno, "the agent's lock");
    if (within->stop < 0)
        return prb_fail_sys(err, errno, "an eventfd");
    /* A copy of a process with one thread; a program is begun by the agent's thread, with which it ends. */
    if (!within->options.starter && !prb_fleet_starter_begin(err))
        return false;
    if (pthread_create(&within->thread, NULL, run, within) != 0) {
        prb_fleet_starter_end();
        return prb_fail(err, PRB_NOMEM, "no thread can be made");
    }
    if (wait_ready(within))
        return true;
    pthread_join(within->thread, NULL);
    if (err)
        *err = within->err;
    return false;
}

bool prb_cluster_within_begin(const struct prb_cluster_agent_options *options,
                              struct prb_cluster_within **out,
                              struct prb_cluster_attached *attached, struct prb_error *err)
{
    *out = NULL;
    *attached = (struct prb_cluster_attached){.pid = (int)getpid()};
    PRB_AUTO_FD int lock = -1;
    struct prb_error why = {0};
    if (!prb_agent_lock_take(&lock, &attached->pid, &why)) {
        if (why.code && err)
            *err = why;
        return attached->already = !why.code;
    }
    attached->pid = (int)getpid();
    struct prb_cluster_within *within = calloc(1, sizeof *within);
    if (!within)
        return prb_nomem(err);
    within->given = options;
    within->options = *options;
    within->options.no_collector = true;
    within->options.ready = on_ready;
    within->options.say = on_line;
    within->options.context = within;
    within->options.stop_fd = within->stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    within->lock = PRB_STEAL_FD(lock);
    pthread_mutex_init(&within->mutex, NULL);
    prb_clock_cond_init(&within->told);
    if (start(within, err)) {
        *out = within;
        return true;
    }
    release(within);
    return false;
}

bool prb_cluster_within_is_over(struct prb_cluster_within *within)
{
    pthread_mutex_lock(&within->mutex);
    bool ended = within->ended;
    pthread_mutex_unlock(&within->mutex);
    return ended;
}

void prb_cluster_within_end(struct prb_cluster_within *within)
{
    const uint64_t one = 1;
    if (!within)
        return;
    prb_write_all(within->stop, &one, sizeof one);
    pthread_join(within->thread, NULL);
    release(within);
}
