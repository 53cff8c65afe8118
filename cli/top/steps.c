/* The steps of a training job: see steps.h. */
#include "cli/top/steps.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "cli/command.h"
#include "cli/top/step_rows.h"

#define PROCESSES_MAX 256 /* each has a thread */
#define MB 1048576.0
/* Tier 1: older rows are of a job that stands, or is not traced any more. */
#define RECENT "timestamp > now() - 30"
#define NOW "timestamp > now() - 10"
#define RETRY_S 2.0
#define FUNCTION_MAX 128
#define LOSS_S 0.3 /* for some readings */

const struct prb_steps_phase_name prb_steps_names[PRB_STEPS_PHASES] = {
    [PRB_STEPS_DATA] = {"data", 'd'},
    [PRB_STEPS_FORWARD] = {"forward", 'f'},
    [PRB_STEPS_BACKWARD] = {"backward", 'b'},
    [PRB_STEPS_OPTIMIZER] = {"optimizer", 'o'},
    [PRB_STEPS_ZERO_GRAD] = {"zero_grad", 'z'},
    [PRB_STEPS_COMMUNICATION] = {"communication", 'c'},
    [PRB_STEPS_CHECKPOINT] = {"checkpoint", 'k'},
    [PRB_STEPS_OTHER] = {"other", '.'},
};

/* One process, and the thread that asks it. */
struct follower {
    struct prb_steps *steps;
    pthread_t thread;
    struct prb_steps_row row; /* what is shown: with the lock */
    struct prb_target *target;
    struct prb_db *db;
    bool gpu_less; /* there is no GPU, or nobody who tells of it */
    double seen;   /* s, monotonic: when the step was last asked, and what it was */
    int64_t step;
};

struct prb_steps {
    double seconds;
    pthread_mutex_t lock;
    pthread_cond_t end;
    bool ending;
    struct follower *followers[PROCESSES_MAX];
    size_t count;
};

/* ---- asking ---- */

static bool go_on(void *context)
{
    struct prb_steps *steps = context;
    pthread_mutex_lock(&steps->lock);
    bool ending = steps->ending;
    pthread_mutex_unlock(&steps->lock);
    return !ending;
}

enum {
    SAMPLED_PHASE,
    SAMPLED_ACTIVITY,
    SAMPLED_SHARE,
    SAMPLED_CLOCK,
    SAMPLED_RATE,
    SAMPLED_STEP,
    SAMPLED_ITEMS
};

static bool take_sampled(void *context, size_t columns, const char *const *names,
                         const struct prb_value *row)
{
    struct prb_steps_row *out = context;
    (void)columns, (void)names;
    if (!row || row[SAMPLED_PHASE].type != PRB_TEXT)
        return true;
    double share = prb_steps_real(&row[SAMPLED_SHARE]), rate = prb_steps_real(&row[SAMPLED_RATE]);
    const char *phase = row[SAMPLED_PHASE].text;
    out->known = true;
    if (row[SAMPLED_ACTIVITY].type == PRB_TEXT && strcmp(row[SAMPLED_ACTIVITY].text, "wait") == 0)
        out->waits += share;
    for (size_t i = 0; i < PRB_STEPS_PHASES; i++)
        if (strcmp(phase, prb_steps_names[i].name) == 0)
            out->shares[i] += share;
    if (row[SAMPLED_CLOCK].type == PRB_TEXT)
        snprintf(out->clock, sizeof out->clock, "%s", row[SAMPLED_CLOCK].text);
    out->length = rate > 0 ? 1 / rate : NAN;
    out->step = row[SAMPLED_STEP].type == PRB_INTEGER ? row[SAMPLED_STEP].integer : INT64_MIN;
    out->items = prb_steps_real(&row[SAMPLED_ITEMS]);
    return true;
}

/* Steps that are longer than an interval: by how far the clock went since the interval before. */
static void measure_length(struct follower *follower, struct prb_steps_row *row)
{
    double now = prb_clock_s();
    if (row->step == INT64_MIN || row->step == follower->step)
        return;
    if (isnan(row->length) && follower->step != INT64_MIN && row->step > follower->step)
        row->length = (now - follower->seen) / (double)(row->step - follower->step);
    follower->seen = now;
    follower->step = row->step;
}

static bool ask_sampled(struct follower *follower, struct prb_steps_row *row, struct prb_error *err)
{
    char sql[400];
    double before = row->length;
    snprintf(sql, sizeof sql,
             "SELECT phase, activity, sum(share), max(clock), max(steps_per_second), max(step), "
             "max(items_per_second) FROM python.torch_phases(%.3f) GROUP BY phase, activity",
             follower->steps->seconds);
    memset(row->shares, 0, sizeof row->shares);
    row->waits = 0;
    row->tier = 0;
    row->clock[0] = '\0';
    row->length = row->items = NAN;
    if (!prb_db_query(follower->db, sql, take_sampled, row, err))
        return false;
    measure_length(follower, row);
    if (isnan(row->length) && row->clock[0])
        row->length = before;
    return true;
}

static bool take_loss(void *context, size_t columns, const char *const *names,
                      const struct prb_value *row)
{
    struct prb_steps_row *out = context;
    (void)columns, (void)names;
    if (row)
        out->loss = prb_steps_real(&row[0]);
    return true;
}

static bool take_function(void *context, size_t columns, const char *const *names,
                          const struct prb_value *row)
{
    char *out = context;
    (void)columns, (void)names;
    /* Nothing that would end the text of a statement, or an expression in it. */
    if (row && row[0].type == PRB_TEXT && !strpbrk(row[0].text, "'\",@:"))
        snprintf(out, FUNCTION_MAX, "%s", row[0].text);
    return true;
}

/*
 * Where nothing logs: a variable "loss" of the outermost frame that has one; that one stays.  Its value
 * is what python.variables has read twice, and found the same: the job runs on meanwhile.
 */
static void ask_loss(struct follower *follower, struct prb_steps_row *row)
{
    char function[FUNCTION_MAX] = "", sql[200 + FUNCTION_MAX];
    struct prb_error none;
    double seconds = follower->steps->seconds / 4;
    if (!prb_db_query(follower->db,
                      "SELECT func FROM python.locals WHERE name = 'loss' AND "
                      "value NOT LIKE '<%' ORDER BY depth DESC LIMIT 1",
                      take_function, function, &none) ||
        !function[0])
        return;
    snprintf(sql, sizeof sql,
             "SELECT number FROM python.variables('loss@%s', %.3f) ORDER BY timestamp DESC LIMIT 1",
             function, seconds < LOSS_S ? seconds : LOSS_S);
    (void)!prb_db_query(follower->db, sql, take_loss, row, &none);
}

static bool take_gpu(void *context, size_t columns, const char *const *names,
                     const struct prb_value *row)
{
    struct prb_steps_row *out = context;
    (void)columns, (void)names;
    if (row) {
        out->gpu = prb_steps_real(&row[0]);
        out->gpu_memory = prb_steps_real(&row[1]) * MB;
    }
    return true;
}

/* Of the GPUs that the process uses; where the driver does not say which, of all. */
static void ask_gpu(struct follower *follower, struct prb_steps_row *row)
{
    static const char sql[] =
        "WITH used AS (SELECT gpu_id, memory_mb FROM gpu_processes WHERE gpu_pid = %d AND "
        "timestamp > now() - 10 GROUP BY gpu_id HAVING max(timestamp)), all_gpus AS (SELECT "
        "gpu_id, "
        "gpu_util, memory_used_mb FROM gpu_metrics WHERE timestamp > now() - 10 GROUP BY gpu_id "
        "HAVING max(timestamp)) "
        "SELECT avg(gpu_util), coalesce((SELECT sum(memory_mb) FROM used), sum(memory_used_mb)) "
        "FROM all_gpus WHERE gpu_id IN (SELECT gpu_id FROM used) OR NOT EXISTS "
        "(SELECT 1 FROM used)";
    char text[sizeof sql + 16];
    struct prb_error none;
    if (follower->gpu_less)
        return;
    snprintf(text, sizeof text, sql, (int)row->pid);
    if (!prb_db_query(follower->db, text, take_gpu, row, &none) || isnan(row->gpu))
        follower->gpu_less = true;
}

static void ask_rest(struct follower *follower, struct prb_steps_row *row)
{
    row->loss = row->memory = NAN;
    prb_steps_logged(&(struct prb_steps_rows){follower->db, "1"}, row);
    if (isnan(row->loss))
        ask_loss(follower, row);
    prb_steps_memory(&(struct prb_steps_rows){follower->db, NOW}, row);
    ask_gpu(follower, row);
}

/* ---- one process ---- */

static void close_target(struct follower *follower)
{
    prb_db_close(follower->db);
    prb_target_close(follower->target);
    follower->db = NULL;
    follower->target = NULL;
}

static bool open_target(struct follower *follower, pid_t pid, struct prb_error *err)
{
    if (follower->db)
        return true;
    follower->target = prb_target_open_pid(pid, err);
    follower->db = follower->target ? prb_db_open(follower->target, err) : NULL;
    if (follower->db)
        prb_db_watch(follower->db, go_on, follower->steps);
    else
        close_target(follower);
    return follower->db != NULL;
}

static bool ask(struct follower *follower, struct prb_steps_row *row, struct prb_error *err)
{
    row->known = false;
    if (!open_target(follower, row->pid, err) ||
        (!prb_steps_timed(&(struct prb_steps_rows){follower->db, RECENT}, row) &&
         !ask_sampled(follower, row, err)))
        return false;
    row->problem[0] = '\0';
    ask_rest(follower, row);
    return true;
}

/* True: it was ended. */
static bool sleep_for(struct prb_steps *steps, double seconds)
{
    struct timespec until = prb_clock_timespec(prb_clock_s() + seconds);
    pthread_mutex_lock(&steps->lock);
    while (!steps->ending && pthread_cond_timedwait(&steps->end, &steps->lock, &until) == 0)
        continue;
    bool ending = steps->ending;
    pthread_mutex_unlock(&steps->lock);
    return ending;
}

static void *follow(void *context)
{
    struct follower *follower = context;
    struct prb_steps *steps = follower->steps;
    struct prb_steps_row row = follower->row;
    double pause = 0;
    follower->step = INT64_MIN;
    do {
        struct prb_error err = {0};
        double began = prb_clock_s();
        bool good = ask(follower, &row, &err);
        if (!good) {
            snprintf(row.problem, sizeof row.problem, "%.90s", err.text);
            row.ended = err.code == PRB_GONE || err.code == PRB_NOT_FOUND;
            close_target(follower);
        }
        pthread_mutex_lock(&steps->lock);
        follower->row = row;
        follower->row.known = true;
        pthread_mutex_unlock(&steps->lock);
        pause = (good ? steps->seconds : RETRY_S) - (prb_clock_s() - began);
    } while (!row.ended && !sleep_for(steps, pause > 0.01 ? pause : 0.01));
    close_target(follower);
    return NULL;
}

/* ---- all ---- */

struct prb_steps *prb_steps_new(double seconds)
{
    struct prb_steps *steps = calloc(1, sizeof *steps);
    if (!steps)
        return NULL;
    steps->seconds = seconds;
    pthread_mutex_init(&steps->lock, NULL);
    prb_clock_cond_init(&steps->end);
    return steps;
}

void prb_steps_free(struct prb_steps *steps)
{
    if (!steps)
        return;
    pthread_mutex_lock(&steps->lock);
    steps->ending = true;
    pthread_cond_broadcast(&steps->end);
    pthread_mutex_unlock(&steps->lock);
    for (size_t i = 0; i < steps->count; i++) {
        pthread_join(steps->followers[i]->thread, NULL);
        free(steps->followers[i]);
    }
    pthread_cond_destroy(&steps->end);
    pthread_mutex_destroy(&steps->lock);
    free(steps);
}

static bool is_followed(const struct prb_steps *steps, pid_t pid)
{
    for (size_t i = 0; i < steps->count; i++)
        if (steps->followers[i]->row.pid == pid)
            return true;
    return false;
}

bool prb_steps_follow(struct prb_steps *steps, const struct prb_profile *profile)
{
    for (size_t i = 0; i < profile->process_count && steps->count < PROCESSES_MAX; i++) {
        const struct prb_profile_process *process = &profile->processes[i];
        if (process->ended || is_followed(steps, process->pid))
            continue;
        struct follower *follower = calloc(1, sizeof *follower);
        if (!follower)
            return false;
        follower->steps = steps;
        follower->row = prb_steps_row_unknown(process->pid, process->rank);
        snprintf(follower->row.command, sizeof follower->row.command, "%s",
                 process->command ? process->command : "");
        if (pthread_create(&follower->thread, NULL, follow, follower) != 0) {
            free(follower);
            return false;
        }
        steps->followers[steps->count++] = follower;
    }
    return true;
}

bool prb_steps_ready(struct prb_steps *steps)
{
    bool ready = steps->count > 0;
    pthread_mutex_lock(&steps->lock);
    for (size_t i = 0; i < steps->count; i++)
        ready = ready && steps->followers[i]->row.known;
    pthread_mutex_unlock(&steps->lock);
    return ready;
}

static int by_rank(const void *a, const void *b)
{
    const struct prb_steps_row *x = a, *y = b;
    unsigned rank = (unsigned)x->rank, other = (unsigned)y->rank; /* none comes last */
    if (rank != other)
        return rank > other ? 1 : -1;
    return (x->pid > y->pid) - (x->pid < y->pid);
}

bool prb_steps_take(struct prb_steps *steps, struct prb_steps_row **out, size_t *count, size_t *cap)
{
    if (*cap < steps->count) {
        struct prb_steps_row *more = reallocarray(*out, steps->count, sizeof *more);
        if (!more)
            return false;
        *out = more;
        *cap = steps->count;
    }
    *count = 0;
    pthread_mutex_lock(&steps->lock);
    for (size_t i = 0; i < steps->count; i++)
        if (steps->followers[i]->row.known)
            (*out)[(*count)++] = steps->followers[i]->row;
    pthread_mutex_unlock(&steps->lock);
    if (*count)
        qsort(*out, *count, sizeof **out, by_rank);
    return true;
}
