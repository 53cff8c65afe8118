/* The countdown of a pause: see countdown.h.  It has its own thread, since it asks the target.  A
 * stop shorter than WORTH_S (stepping) is not worth a question. */
#include "dap/session/countdown.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"

#define WORTH_S 1.0

struct prb_dap_countdown {
    struct prb_dap_session *session;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool stopped, ending;
    unsigned stop; /* counts stops */
    double since;  /* s, monotonic */
};

/* Wait until a time (s, monotonic), with the lock held; false: the stop is over. */
static bool wait_until(struct prb_dap_countdown *countdown, unsigned stop, double when)
{
    while (!countdown->ending && countdown->stopped && countdown->stop == stop) {
        double left = when - prb_clock_s();
        if (left <= 0)
            return true;
        struct timespec until = prb_clock_in(left);
        pthread_cond_timedwait(&countdown->changed, &countdown->lock, &until);
    }
    return false;
}

bool prb_dap_countdown_first(const json_t *answer, double *seconds_out, char *name, size_t size)
{
    const json_t *list = json_object_get(answer, "timeouts"), *one;
    bool found = false;
    size_t i;
    json_array_foreach(list, i, one)
    {
        const char *its = json_string_value(json_object_get(one, "name"));
        double seconds = json_number_value(json_object_get(one, "seconds"));
        if (!its || seconds <= 0 || (found && seconds >= *seconds_out))
            continue;
        *seconds_out = seconds;
        snprintf(name, size, "%s", its);
        found = true;
    }
    return found;
}

static void count_down(struct prb_dap_countdown *countdown, unsigned stop, double seconds,
                       const char *name)
{
    static const double marks[] = {300, 120, 60, 30, 10, 0};
    double end = countdown->since + seconds;
    prb_dap_say(countdown->session, true,
                "probing: paused; other ranks are waiting, and the time-out of %.100s (%.0f s) may "
                "end the job in %.0f s",
                name, seconds, end - prb_clock_s());
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
        if (end - marks[i] <= prb_clock_s())
            continue;
        if (!wait_until(countdown, stop, end - marks[i]))
            return;
        if (marks[i] > 0)
            prb_dap_say(countdown->session, marks[i] <= 60,
                        "probing: %.0f s until the time-out of %.100s", marks[i], name);
        else
            prb_dap_say(countdown->session, true, "probing: the time-out of %.100s has passed",
                        name);
    }
}

static void watch_stop(struct prb_dap_countdown *countdown)
{
    unsigned stop = countdown->stop;
    double seconds = 0;
    char name[128];
    if (!wait_until(countdown, stop, countdown->since + WORTH_S))
        return;
    pthread_mutex_unlock(&countdown->lock);
    json_t *answer = prb_dap_ask(countdown->session, "time_outs", NULL, 0, NULL);
    bool found = prb_dap_countdown_first(answer, &seconds, name, sizeof name);
    json_decref(answer);
    pthread_mutex_lock(&countdown->lock);
    if (found && countdown->stopped && countdown->stop == stop)
        count_down(countdown, stop, seconds, name);
    while (!countdown->ending && countdown->stopped && countdown->stop == stop)
        pthread_cond_wait(&countdown->changed, &countdown->lock);
}

static void *watch(void *context)
{
    struct prb_dap_countdown *countdown = context;
    pthread_mutex_lock(&countdown->lock);
    while (!countdown->ending)
        if (countdown->stopped)
            watch_stop(countdown);
        else
            pthread_cond_wait(&countdown->changed, &countdown->lock);
    pthread_mutex_unlock(&countdown->lock);
    return NULL;
}

struct prb_dap_countdown *prb_dap_countdown_open(struct prb_dap_session *session)
{
    struct prb_dap_countdown *countdown = session->backend->ops->has(session->backend, "time_outs")
                                              ? calloc(1, sizeof *countdown)
                                              : NULL;
    if (!countdown)
        return NULL;
    countdown->session = session;
    pthread_mutex_init(&countdown->lock, NULL);
    prb_clock_cond_init(&countdown->changed);
    if (pthread_create(&countdown->thread, NULL, watch, countdown) == 0)
        return countdown;
    free(countdown);
    return NULL;
}

void prb_dap_countdown_stop(struct prb_dap_countdown *countdown)
{
    if (!countdown)
        return;
    pthread_mutex_lock(&countdown->lock);
    countdown->ending = true;
    pthread_cond_broadcast(&countdown->changed);
    pthread_mutex_unlock(&countdown->lock);
    pthread_join(countdown->thread, NULL);
}

void prb_dap_countdown_free(struct prb_dap_countdown *countdown)
{
    if (!countdown)
        return;
    pthread_cond_destroy(&countdown->changed);
    pthread_mutex_destroy(&countdown->lock);
    free(countdown);
}

static void set(struct prb_dap_countdown *countdown, bool stopped)
{
    if (!countdown)
        return;
    pthread_mutex_lock(&countdown->lock);
    countdown->stopped = stopped;
    countdown->stop += stopped;
    countdown->since = prb_clock_s();
    pthread_cond_broadcast(&countdown->changed);
    pthread_mutex_unlock(&countdown->lock);
}

void prb_dap_countdown_begin(struct prb_dap_countdown *countdown) { set(countdown, true); }
void prb_dap_countdown_end(struct prb_dap_countdown *countdown) { set(countdown, false); }
