/* The cache of open targets: see targets.h. */
#include "serve/work/targets.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/file.h"
#include "proc/stat.h"
#include "serve/doors/life.h"

#define IDLE_SECONDS 60
#define SHARED_SECONDS 0.02

struct prb_serve_target {
    char name[PATH_MAX]; /* "123" or a path; "": the place is free */
    bool slow;           /* for slow questions: quick ones have a handle of their own */
    uint64_t started;    /* of a process */
    unsigned users;      /* that hold it or wait for it; under the lock of all */
    double used;         /* s, monotonic */
    pthread_mutex_t lock;
    struct prb_target *target; /* NULL: not open yet */
    struct prb_db *db;
    struct shared {
        char key[64];
        double made;
        struct prb_answer answer;
    } shared;
    struct prb_serve_targets *all;
};

struct prb_serve_targets {
    const char *const *files;
    pthread_mutex_t lock; /* of names, users and used */
    struct prb_serve_target items[PRB_SERVE_TARGETS_MAX];
};

struct prb_serve_targets *prb_serve_targets_new(const char *const *files)
{
    struct prb_serve_targets *targets = calloc(1, sizeof *targets);
    if (!targets)
        return NULL;
    targets->files = files;
    pthread_mutex_init(&targets->lock, NULL);
    for (size_t i = 0; i < PRB_SERVE_TARGETS_MAX; i++) {
        pthread_mutex_init(&targets->items[i].lock, NULL);
        targets->items[i].all = targets;
    }
    return targets;
}

static void shut(struct prb_serve_target *item)
{
    if (item->db)
        prb_db_close(item->db);
    if (item->target)
        prb_target_close(item->target);
    prb_answer_deinit(&item->shared.answer);
    item->shared.key[0] = '\0';
    item->db = NULL;
    item->target = NULL;
}

void prb_serve_targets_free(struct prb_serve_targets *targets)
{
    if (!targets)
        return;
    for (size_t i = 0; i < PRB_SERVE_TARGETS_MAX; i++) {
        shut(targets->items + i);
        pthread_mutex_destroy(&targets->items[i].lock);
    }
    pthread_mutex_destroy(&targets->lock);
    free(targets);
}

void prb_serve_targets_sweep(struct prb_serve_targets *targets)
{
    double now = prb_clock_s();
    pthread_mutex_lock(&targets->lock);
    for (size_t i = 0; i < PRB_SERVE_TARGETS_MAX; i++) {
        struct prb_serve_target *item = targets->items + i;
        if (!*item->name || item->users || now - item->used < IDLE_SECONDS)
            continue;
        shut(item);
        item->name[0] = '\0';
    }
    pthread_mutex_unlock(&targets->lock);
}

/* ---- names ---- */

uint64_t prb_serve_started(pid_t pid)
{
    char folder[32];
    struct prb_stat stat;
    snprintf(folder, sizeof folder, "/proc/%d", (int)pid);
    return prb_stat_of(folder, &stat) && stat.count >= PRB_STAT_STARTTIME
               ? (uint64_t)stat.field[PRB_STAT_STARTTIME]
               : 0;
}

bool prb_serve_crash_folder(char out[PRB_CRASH_PATH_MAX], struct prb_error *err)
{
    const char *wanted = getenv("PROBING_CRASH_DIR");
    return prb_crash_dump_folder(wanted ? wanted : "", out, err);
}

static bool name_file(const struct prb_serve_targets *targets, const char *base, char *out,
                      struct prb_error *err)
{
    char folder[PRB_CRASH_PATH_MAX];
    for (const char *const *file = targets->files; file && *file; file++)
        if (strcmp(prb_base_name(*file), base) == 0)
            return snprintf(out, PATH_MAX, "%s", *file) < PATH_MAX;
    if (*base && !strchr(base, '/') && *base != '.' && prb_serve_crash_folder(folder, NULL)) {
        int n = snprintf(out, PATH_MAX, "%s/%s", folder, base);
        if (n < PATH_MAX && access(out, R_OK) == 0)
            return true;
    }
    return prb_fail(err, PRB_NOT_FOUND, "no file %.100s is served", base);
}

static bool name_process(const char *text, char *out, uint64_t *started, struct prb_error *err)
{
    char *end;
    long pid = strtol(text, &end, 10);
    bool dated = *end == '.';
    uint64_t wanted = dated ? strtoull(end + 1, &end, 10) : 0;
    if (*text < '1' || *text > '9' || *end || pid <= 0 || pid > INT_MAX)
        return prb_fail(err, PRB_NOT_FOUND,
                        "\"%.60s\" is no target: PID, PID.STARTTIME or file:NAME", text);
    *started = prb_serve_started((pid_t)pid);
    if (dated && *started != wanted)
        return prb_fail(err, PRB_GONE, "process %ld %s", pid,
                        *started ? "is another one by now" : "has ended");
    if (!*started)
        return prb_fail(err, PRB_NOT_FOUND, "there is no process %ld", pid);
    snprintf(out, PATH_MAX, "%ld", pid);
    return true;
}

struct prb_serve_wanted prb_serve_wanted(const struct prb_serve_job *job)
{
    return (struct prb_serve_wanted){.serve = job->serve,
                                     .targets = job->targets,
                                     .name = job->part[0],
                                     .slow = job->route->slow,
                                     .until = job->until};
}

static bool is_file(const char *name) { return strncmp(name, "file:", 5) == 0; }

/* out: what prb_target_open takes; *started: of a process, else 0. */
static bool find(const struct prb_serve_wanted *wanted, char out[PATH_MAX], uint64_t *started,
                 struct prb_error *err)
{
    *started = 0;
    if (is_file(wanted->name))
        return name_file(wanted->targets, wanted->name + 5, out, err);
    return name_process(wanted->name, out, started, err) &&
           (!wanted->serve ||
            prb_serve_check_has(wanted->serve, (pid_t)strtol(out, NULL, 10), err));
}

bool prb_serve_target_spec(const struct prb_serve_wanted *wanted, char out[PATH_MAX],
                           struct prb_error *err)
{
    uint64_t started;
    return find(wanted, out, &started, err);
}

bool prb_serve_target_process(const struct prb_serve_job *job, char out[16], struct prb_error *err)
{
    const struct prb_serve_wanted wanted = prb_serve_wanted(job);
    PRB_AUTO_FREE char *name = malloc(PATH_MAX);
    if (!name)
        return prb_nomem(err);
    if (is_file(wanted.name))
        return prb_fail(err, PRB_UNSUPPORTED, "%.100s is a file: this needs a live process",
                        wanted.name + 5);
    if (!prb_serve_target_spec(&wanted, name, err))
        return false;
    snprintf(out, 16, "%.15s", name);
    return true;
}

/* ---- holding ---- */

/* Its place, one user more; NULL: all places are in use. */
static struct prb_serve_target *place_of(struct prb_serve_targets *targets, const char *name,
                                         bool slow)
{
    struct prb_serve_target *free_one = NULL;
    for (size_t i = 0; i < PRB_SERVE_TARGETS_MAX; i++) {
        struct prb_serve_target *item = targets->items + i;
        if (strcmp(item->name, name) == 0 && item->slow == slow)
            return item;
        if (!item->users && (!free_one || (*free_one->name && item->used < free_one->used)))
            free_one = item;
    }
    if (free_one) {
        shut(free_one);
        snprintf(free_one->name, sizeof free_one->name, "%s", name);
        free_one->slow = slow;
    }
    return free_one;
}

static bool lock_until(pthread_mutex_t *lock, double until)
{
    double left = until - prb_clock_s();
    struct timespec at = prb_clock_epoch_in(left > 0 ? left : 0);
    return pthread_mutex_timedlock(lock, &at) == 0;
}

static void leave(struct prb_serve_target *item)
{
    pthread_mutex_lock(&item->all->lock);
    item->users--;
    item->used = prb_clock_s();
    pthread_mutex_unlock(&item->all->lock);
}

struct prb_serve_target *prb_serve_target_hold_wanted(const struct prb_serve_wanted *wanted,
                                                      struct prb_error *err)
{
    struct prb_serve_targets *targets = wanted->targets;
    PRB_AUTO_FREE char *name = malloc(PATH_MAX);
    uint64_t started;
    if (!name)
        return PRB_NULL(prb_nomem(err));
    if (!find(wanted, name, &started, err))
        return NULL;
    pthread_mutex_lock(&targets->lock);
    struct prb_serve_target *item = place_of(targets, name, wanted->slow);
    if (item)
        item->users++;
    pthread_mutex_unlock(&targets->lock);
    if (!item)
        return PRB_NULL(
            prb_fail(err, PRB_BUSY, "%d targets are looked at already", PRB_SERVE_TARGETS_MAX));
    if (!lock_until(&item->lock, wanted->until)) {
        leave(item);
        return PRB_NULL(prb_fail(err, PRB_TIMEOUT, "others look at it for too long"));
    }
    if (item->target && item->started != started) /* another process of that pid */
        shut(item);
    item->started = started;
    if (!item->target)
        item->target = started ? prb_target_open_pid((pid_t)strtol(item->name, NULL, 10), err)
                               : prb_target_open(item->name, NULL, err);
    if (item->target)
        return item;
    pthread_mutex_unlock(&item->lock);
    leave(item);
    return NULL;
}

struct prb_serve_target *prb_serve_target_hold(const struct prb_serve_job *job,
                                               struct prb_error *err)
{
    const struct prb_serve_wanted wanted = prb_serve_wanted(job);
    return prb_serve_target_hold_wanted(&wanted, err);
}

void prb_serve_target_release(struct prb_serve_target *held)
{
    pthread_mutex_unlock(&held->lock);
    leave(held);
}

struct prb_target *prb_serve_target_open(const struct prb_serve_target *held)
{
    return held->target;
}

struct prb_db *prb_serve_target_db(struct prb_serve_target *held, struct prb_error *err)
{
    if (!held->db)
        held->db = prb_db_open(held->target, err);
    return held->db;
}

const char *prb_serve_target_name(const struct prb_serve_target *held) { return held->name; }

/* ---- one look for all ---- */

bool prb_serve_target_shared(const struct prb_serve_target *held, const char *key, double asked,
                             struct prb_answer *out)
{
    const struct shared *shared = &held->shared;
    if (strcmp(shared->key, key) != 0 || shared->made < asked - SHARED_SECONDS)
        return false;
    out->type = shared->answer.type;
    out->status = shared->answer.status;
    memcpy(out->etag, shared->answer.etag, sizeof out->etag);
    prb_buf_add(&out->body, shared->answer.body.data, shared->answer.body.len);
    return prb_buf_ok(&out->body);
}

void prb_serve_target_share(struct prb_serve_target *held, const char *key,
                            const struct prb_answer *answer)
{
    struct shared *shared = &held->shared;
    prb_answer_deinit(&shared->answer);
    shared->key[0] = '\0';
    shared->answer = *answer;
    shared->answer.body = (struct prb_buf){0};
    prb_buf_add(&shared->answer.body, answer->body.data, answer->body.len);
    if (!prb_buf_ok(&shared->answer.body))
        return;
    shared->made = prb_clock_s();
    snprintf(shared->key, sizeof shared->key, "%s", key);
}
