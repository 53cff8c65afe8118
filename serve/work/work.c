/* Threads over lists: questions that wait, quick and slow ones, and those that are answered. */
#include "serve/work/work.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>

#include "base/clock.h"
#include "base/file.h"
#include "format/log_file.h"

#define QUICK_MAX 4
#define SLOW 4 /* questions that may take long, at a time */
#define THREADS_MAX (QUICK_MAX + SLOW)
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
    struct list waiting[2], finished; /* waiting: quick, slow */
    struct worker {
        struct prb_work *work;
        pthread_t thread;
        bool slow;
        struct prb_work_item *running;
    } workers[THREADS_MAX];
    size_t worker_count;
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

/* Each control and evaluation, with what it came to. */
static void audit(const struct prb_serve_job *job, const char *outcome)
{
    const struct prb_buf *body = &job->question->body;
    const char *path = job->route->path;
    if (job->route->grant == PRB_MAY_LOOK)
        return;
    path += strncmp(path, "/api/v1", 7) == 0 ? 7 : 0;
    path += strncmp(path, "/p/{}", 5) == 0 ? 5 : 0;
    const char *token = job->question->token_name;
    prb_log_file_add(job->serve->log, "%s by %s%s%s, process %s%s: %.200s: %s", path,
                     job->question->who, *token ? " with " : "", token, job->part[0],
                     job->question->proxied ? ", proxied" : "",
                     *job->did   ? job->did
                     : body->len ? body->data
                                 : "",
                     outcome);
}

static void answer(struct prb_work *work, struct prb_work_item *item)
{
    struct prb_error err = {0};
    struct prb_serve_job *job = &item->job;
    job->serve = work->serve;
    job->targets = work->targets;
    if (atomic_load(&item->gone))
        return;
    bool ok = job->route->answer(job, &err) && (prb_buf_ok(&item->answer.body) || prb_nomem(&err));
    if (!ok)
        prb_answer_error(&item->answer, &err);
    else
        prb_answer_spare(&item->question, &item->answer);
    prb_answer_compress(&item->question, &item->answer);
    audit(job, ok ? "done" : err.text);
}

static struct prb_work_item *next(struct prb_work *work, bool slow)
{
    while (!work->ending && !work->waiting[slow].first) {
        struct timespec until = prb_clock_in(SWEEP_SECONDS);
        if (pthread_cond_timedwait(&work->more, &work->lock, &until) != ETIMEDOUT)
            continue;
        pthread_mutex_unlock(&work->lock);
        prb_serve_targets_sweep(work->targets);
        pthread_mutex_lock(&work->lock);
    }
    return work->ending ? NULL : pop(&work->waiting[slow]);
}

static void *worker(void *context)
{
    struct worker *self = context;
    struct prb_work *work = self->work;
    struct prb_work_item *item;
    pthread_mutex_lock(&work->lock);
    while ((item = next(work, self->slow))) {
        self->running = item;
        pthread_mutex_unlock(&work->lock);
        answer(work, item);
        pthread_mutex_lock(&work->lock);
        self->running = NULL;
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
    size_t quick = cores > QUICK_MAX ? QUICK_MAX : cores > 1 ? (size_t)cores : 2;
    if (work)
        work->targets = prb_serve_targets_new(files);
    if (!work || !work->targets) {
        free(work);
        return PRB_NULL(prb_nomem(err));
    }
    work->serve = serve;
    work->told = finished;
    work->context = context;
    for (size_t i = 0; i < 2; i++)
        work->waiting[i].last = &work->waiting[i].first;
    work->finished.last = &work->finished.first;
    pthread_mutex_init(&work->lock, NULL);
    prb_clock_cond_init(&work->more);
    for (; work->worker_count < quick + SLOW; work->worker_count++) {
        struct worker *one = work->workers + work->worker_count;
        *one = (struct worker){.work = work, .slow = work->worker_count >= quick};
        if (pthread_create(&one->thread, NULL, worker, one) != 0)
            break;
    }
    if (work->worker_count == quick + SLOW)
        return work;
    prb_work_free(work);
    return PRB_NULL(prb_fail(err, PRB_NOMEM, "no thread can be made"));
}

void prb_work_free(struct prb_work *work)
{
    struct prb_work_item *item;
    pthread_mutex_lock(&work->lock);
    work->ending = true;
    for (size_t i = 0; i < work->worker_count; i++)
        if (work->workers[i].running)
            prb_work_item_leave(work->workers[i].running);
    pthread_cond_broadcast(&work->more);
    pthread_mutex_unlock(&work->lock);
    for (size_t i = 0; i < work->worker_count; i++)
        pthread_join(work->workers[i].thread, NULL);
    while ((item = pop(work->waiting)) || (item = pop(work->waiting + 1)) ||
           (item = pop(&work->finished)))
        prb_work_item_release(item);
    prb_serve_targets_free(work->targets);
    pthread_cond_destroy(&work->more);
    pthread_mutex_destroy(&work->lock);
    free(work);
}

struct prb_serve_targets *prb_work_targets(struct prb_work *work) { return work->targets; }

/* Quick ones share their answers, so that many that wait cost little. */
static bool has_room(const struct list *waiting, const struct prb_work_item *item)
{
    size_t same = 0;
    if (waiting->count >= PRB_SERVE_WAITING_MAX)
        return false;
    for (const struct prb_work_item *one = waiting->first;
         one && item->job.route->slow && *item->job.part[0]; one = one->next)
        same += strcmp(one->job.part[0], item->job.part[0]) == 0;
    return same < PRB_SERVE_WAITING_TARGET_MAX;
}

bool prb_work_add(struct prb_work *work, struct prb_work_item *item)
{
    pthread_mutex_lock(&work->lock);
    struct list *waiting = work->waiting + item->job.route->slow;
    bool room = has_room(waiting, item);
    if (room) {
        atomic_fetch_add(&item->shares, 1);
        push(waiting, item);
        pthread_cond_broadcast(&work->more); /* of either kind */
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
