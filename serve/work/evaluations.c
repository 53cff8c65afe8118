/* A list under a lock: it is as long as there are workers for slow questions. */
#include "serve/work/evaluations.h"

#include <pthread.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct prb_evaluation *running;

static struct prb_evaluation *find(const char *target, const char *id)
{
    struct prb_evaluation *one = running;
    while (one && (strcmp(one->target, target) != 0 || strcmp(one->id, id) != 0))
        one = one->next;
    return one;
}

bool prb_evaluation_enter(struct prb_evaluation *one, struct prb_error *err)
{
    pthread_mutex_lock(&lock);
    bool free = !*one->id || !find(one->target, one->id);
    if (free) {
        one->next = running;
        running = one;
    }
    pthread_mutex_unlock(&lock);
    return free || prb_fail(err, PRB_BUSY, "an evaluation %.60s runs already", one->id);
}

void prb_evaluation_leave(struct prb_evaluation *one)
{
    pthread_mutex_lock(&lock);
    struct prb_evaluation **at = &running;
    while (*at && *at != one)
        at = &(*at)->next;
    if (*at)
        *at = one->next;
    pthread_mutex_unlock(&lock);
}

bool prb_evaluation_cancel(const char *target, const char *id, struct prb_error *err)
{
    pthread_mutex_lock(&lock);
    struct prb_evaluation *one = *id ? find(target, id) : NULL;
    if (one)
        atomic_store(&one->cancelled, true);
    pthread_mutex_unlock(&lock);
    return one != NULL || prb_fail(err, PRB_NOT_FOUND, "no evaluation %.60s runs", id);
}
