/* Rows of a profile (profile_rows.h): of the one that was saved, or of one that is made now. */
#include "table/shared/profile_rows.h"

#include <time.h>

#include "sql/db.h"
#include "table/shared/duration.h"

#define SECONDS 1.0
#define RATE 100.0

PRB_DEFINE_AUTO_PTR(prb_profiler, struct prb_profiler, prb_profiler_free)
PRB_DEFINE_AUTO_PTR(prb_profile, struct prb_profile, prb_profile_free)

struct filling {
    struct prb_rows *rows;
    const struct prb_profile *profile;
};

static bool add_row(void *context, const struct prb_profile_call *call)
{
    const struct filling *filling = context;
    struct prb_rows *rows = filling->rows;
    const struct prb_profile *profile = filling->profile;
    const struct prb_profile_function *function = &profile->functions[call->function];
    const struct prb_profile_thread *thread = &profile->threads[call->thread];
    const struct prb_profile_process *process = &profile->processes[thread->process];
    double length = (call->end - call->start) * 1e3;
    prb_row_begin(rows);
    prb_row_real(rows, profile->start + call->start);
    prb_row_text(rows, function->qualname);
    prb_row_real(rows, length);
    prb_row_real(rows,
                 call->samples ? length * (double)call->self_samples / (double)call->samples : 0);
    prb_row_int(rows, (int64_t)call->samples);
    prb_row_text(rows, function->filename);
    if (call->line > 0)
        prb_row_int(rows, call->line);
    else
        prb_row_null(rows);
    prb_row_int(rows, call->depth);
    prb_row_text(rows, thread->name);
    prb_row_int(rows, process->pid);
    if (process->rank >= 0)
        prb_row_int(rows, process->rank);
    else
        prb_row_null(rows);
    if (thread->tid)
        prb_row_int(rows, thread->tid);
    return true;
}

static bool in_time(void *context, const struct prb_profile *profile)
{
    (void)profile;
    return prb_rows_in_time(context);
}

/* Sample the target; waiting threads too: a function that waits is a call as any other. */
static struct prb_profile *take(struct prb_rows *rows, struct prb_error *err)
{
    struct prb_db *db = prb_rows_db(rows);
    double seconds = SECONDS, rate = RATE;
    if (!prb_rows_seconds(rows, &seconds, err) || !prb_rows_number(rows, "rate", 1e6, &rate, err))
        return NULL;
    const struct prb_target_info *info = prb_target_info(db->target);
    const struct prb_profiler_options options = {
        .mode = PRB_PROFILE_WALL, .rate = rate, .timeline = true, .all_interpreters = true};
    PRB_AUTO(prb_profiler) struct prb_profiler *profiler = prb_profiler_new(&options, err);
    if (!profiler || !prb_profiler_add(profiler, info->pid, err) ||
        !prb_profiler_run(profiler, seconds, -1, in_time, rows, err))
        return NULL;
    return prb_profiler_finish(profiler);
}

static void warn(struct prb_rows *rows, const struct prb_profile *profile)
{
    if (profile->warning)
        prb_rows_warn(rows, "%s", profile->warning);
    else if (profile->dropped)
        prb_rows_warn(rows, "%llu of %llu stacks were dropped: no two readings were equal",
                      (unsigned long long)profile->dropped,
                      (unsigned long long)profile->thread_samples);
    else if (!profile->samples && profile->failed)
        prb_rows_warn(rows, "none of %llu samples could be taken",
                      (unsigned long long)profile->failed);
}

bool prb_profiling_rows(struct prb_rows *rows, struct prb_error *err)
{
    struct prb_db *db = prb_rows_db(rows);
    PRB_AUTO(prb_profile) struct prb_profile *taken = NULL;
    if (!db->profile && !db->target) {
        prb_fail(err, PRB_USAGE, "%s needs a process or a saved profile, and none is given",
                 prb_rows_table(rows)->name);
        return prb_error_remedy(err, "name one: probing -t PID query …");
    }
    if (!db->profile && !(taken = take(rows, err)))
        return false;
    struct filling filling = {rows, db->profile ? db->profile : taken};
    warn(rows, filling.profile);
    return prb_profile_each_call(filling.profile, add_row, &filling, err);
}
