/* Threads over two lists: waiting and finished. */
#include "serve/work.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>

#include "base/file.h"

#define THREADS_MAX 4
#define SWEEP_SECONDS 10

struct list {
    struct prb_work_item *first, **last;
    size_t count;
};

struct prb_work {
    const struct prb_serve *serve;
    struct prb_serve_targets *targets;
    pthread_mutex_t lock;
    pthread_cond_t more;
    bool ending;
    struct list waiting, finished;
    struct prb_work_item *running[THREADS_MAX];
    pthread_t threads[THREADS_MAX];
    size_t thread_count;
    void (*told)(void *context);
    void *context;
};

static void push(struct list *list, struct prb_work_item *item)
{
    item->next = NULL;
    *list->last = item;
    list->last = &item->next;
    list->count++;
}

static struct prb_work_item *pop(struct list *list)
{
    struct prb_work_item *item = list->first;
    if (!item)
        return NULL;
    list->first = item->next;
    if (!list->first)
        list->last = &list->first;
    list->count--;
    return item;
}

/* ---- items ---- */

struct prb_work_item *prb_work_item_new(void *owner)
{
    struct prb_work_item *item = calloc(1, sizeof *item);
    if (!item)
        return NULL;
    atomic_init(&item->shares, 1);
    item->owner = owner;
    item->job = (struct prb_serve_job){.question = &item->question,
                                       .answer = &item->answer,
                                       .gone = &item->gone,
                                       .wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    return item;
}

void prb_work_item_release(struct prb_work_item *item)
{
    if (atomic_fetch_sub(&item->shares, 1) != 1)
        return;
    prb_question_deinit(&item->question);
    prb_answer_deinit(&item->answer);
    if (item->job.wake_fd >= 0)
        close(item->job.wake_fd);
    free(item);
}

void prb_work_item_leave(struct prb_work_item *item)
{
    uint64_t one = 1;
    atomic_store(&item->gone, true);
    if (item->job.wake_fd >= 0)
        prb_write_all(item->job.wake_fd, &one, sizeof one);
}

/* ---- workers ---- */

static void answer(struct prb_work *work, struct prb_work_item *item)
{
    struct prb_error err = {0};
    struct prb_serve_job *job = &item->job;
    job->serve = work->serve;
    job->targets = work->targets;
    if (atomic_load(&item->gone))
        return;
    if (!job->route->answer(job, &err))
        prb_answer_error(&item->answer, &err);
    else if (!prb_buf_ok(&item->answer.body)) {
        prb_nomem(&err);
        prb_answer_error(&item->answer, &err);
    }
}

static struct prb_work_item *next(struct prb_work *work)
{
    struct timespec until;
    while (!work->ending && !work->waiting.first) {
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += SWEEP_SECONDS;
        if (pthread_cond_timedwait(&work->more, &work->lock, &until) != ETIMEDOUT)
            continue;
        pthread_mutex_unlock(&work->lock);
        prb_serve_targets_sweep(work->targets);
        pthread_mutex_lock(&work->lock);
    }
    return work->ending ? NULL : pop(&work->waiting);
}

static void *worker(void *context)
{
    struct prb_work *work = context;
    struct prb_work_item *item, **running = NULL;
    pthread_mutex_lock(&work->lock);
    for (size_t i = 0; i < THREADS_MAX && !running; i++)
        if (pthread_equal(work->threads[i], pthread_self()))
            running = work->running + i;
    while (running && (item = next(work))) {
        *running = item;
        pthread_mutex_unlock(&work->lock);
        answer(work, item);
        pthread_mutex_lock(&work->lock);
        *running = NULL;
        push(&work->finished, item);
        work->told(work->context);
    }
    pthread_mutex_unlock(&work->lock);
    return NULL;
}

struct prb_work *prb_work_new(const struct prb_serve *serve, const char *const *files,
                              void (*finished)(void *context), void *context, struct prb_error *err)
{
    struct prb_work *work = calloc(1, sizeof *work);
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    size_t wanted = cores > THREADS_MAX ? THREADS_MAX : cores > 1 ? (size_t)cores : 2;
    if (work)
        work->targets = prb_serve_targets_new(files);
    if (!work || !work->targets) {
        free(work);
        return PRB_NULL(prb_nomem(err));
    }
    work->serve = serve;
    work->told = finished;
    work->context = context;
    work->waiting.last = &work->waiting.first;
    work->finished.last = &work->finished.first;
    pthread_mutex_init(&work->lock, NULL);
    pthread_cond_init(&work->more, NULL);
    pthread_mutex_lock(&work->lock); /* a worker finds itself in threads */
    while (work->thread_count < wanted &&
           pthread_create(work->threads + work->thread_count, NULL, worker, work) == 0)
        work->thread_count++;
    pthread_mutex_unlock(&work->lock);
    if (work->thread_count)
        return work;
    prb_work_free(work);
    return PRB_NULL(prb_fail(err, PRB_NOMEM, "no thread can be made"));
}

void prb_work_free(struct prb_work *work)
{
    struct prb_work_item *item;
    pthread_mutex_lock(&work->lock);
    work->ending = true;
    for (size_t i = 0; i < THREADS_MAX; i++)
        if (work->running[i])
            prb_work_item_leave(work->running[i]);
    pthread_cond_broadcast(&work->more);
    pthread_mutex_unlock(&work->lock);
    for (size_t i = 0; i < work->thread_count; i++)
        pthread_join(work->threads[i], NULL);
    while ((item = pop(&work->waiting)) || (item = pop(&work->finished)))
        prb_work_item_release(item);
    prb_serve_targets_free(work->targets);
    pthread_cond_destroy(&work->more);
    pthread_mutex_destroy(&work->lock);
    free(work);
}

bool prb_work_add(struct prb_work *work, struct prb_work_item *item)
{
    pthread_mutex_lock(&work->lock);
    bool room = work->waiting.count < PRB_SERVE_WAITING_MAX;
    if (room) {
        atomic_fetch_add(&item->shares, 1);
        push(&work->waiting, item);
        pthread_cond_signal(&work->more);
    }
    pthread_mutex_unlock(&work->lock);
    return room;
}

struct prb_work_item *prb_work_finished(struct prb_work *work)
{
    pthread_mutex_lock(&work->lock);
    struct prb_work_item *first = work->finished.first;
    work->finished = (struct list){.last = &work->finished.first};
    pthread_mutex_unlock(&work->lock);
    return first;
}
