/* A profile of rows of python.stack_samples: probing.h. */
#include <string.h>

#include "base/clock.h"
#include "profile/collapsed.h"
#include "profile/kept.h"

#define FRESH 30.0 /* s: newer rows are of a process that is sampled now */

struct taking {
    struct prb_profile *profile;
    double from, to;
    struct prb_error *err;
};

static bool take_times(void *context, size_t columns, const char *const *names,
                       const struct prb_value *row)
{
    struct taking *taking = context;
    (void)columns, (void)names;
    if (row && row[0].type == PRB_REAL && row[1].type == PRB_REAL) {
        taking->from = row[0].real;
        taking->to = row[1].real;
    }
    return true;
}

enum { PID, RANK, TID, THREAD, STACK, SAMPLES };

static int64_t integer(const struct prb_value *value, int64_t unknown)
{
    return value->type == PRB_INTEGER ? value->integer : unknown;
}

static bool take_stack(void *context, size_t columns, const char *const *names,
                       const struct prb_value *row)
{
    struct taking *taking = context;
    (void)columns, (void)names;
    if (!row || row[STACK].type != PRB_TEXT || integer(&row[SAMPLES], 0) <= 0)
        return true;
    const struct prb_folded one = {
        .pid = (pid_t)integer(&row[PID], 0),
        .rank = (int)integer(&row[RANK], -1),
        .tid = (pid_t)integer(&row[TID], 0),
        .thread = row[THREAD].type == PRB_TEXT ? row[THREAD].text : NULL,
        .stack = row[STACK].text,
        .samples = (uint64_t)row[SAMPLES].integer,
    };
    return prb_profile_add_folded(taking->profile, &one, taking->err);
}

struct prb_profile *prb_profile_kept(struct prb_db *db, enum prb_profile_mode mode, bool now,
                                     struct prb_error *err)
{
    static const char *const wanted[] = {[PRB_PROFILE_ACTIVE] = "state <> 'idle'",
                                         [PRB_PROFILE_WALL] = "true",
                                         [PRB_PROFILE_GIL] = "state = 'gil'"};
    static const size_t count = sizeof wanted / sizeof *wanted;
    struct taking taking = {.err = err};
    char sql[400];
    if ((size_t)mode >= count || !wanted[mode])
        return PRB_NULL(prb_fail(err, PRB_USAGE, "no such samples are kept"));
    if (!prb_db_query(db, "SELECT min(timestamp), max(timestamp) FROM python.stack_samples",
                      take_times, &taking, err))
        return NULL;
    if (taking.to <= 0 || (now && prb_clock_epoch_s() - taking.to > FRESH))
        return PRB_NULL(prb_fail(err, PRB_NOT_FOUND, "its stacks are not sampled"));
    snprintf(sql, sizeof sql,
             "SELECT pid, rank, os_thread_id, thread_name, stack, sum(samples) "
             "FROM python.stack_samples WHERE %s GROUP BY 1, 2, 3, 4, 5 ORDER BY 1, 2, 3, 4",
             wanted[mode]);
    PRB_AUTO(prb_profile)
    struct prb_profile *profile =
        prb_profile_of_folded(mode, PRB_KEPT_RATE, taking.from - PRB_KEPT_SECONDS,
                              taking.to - taking.from + PRB_KEPT_SECONDS, err);
    taking.profile = profile;
    return profile && prb_db_query(db, sql, take_stack, &taking, err) ? PRB_STEAL(profile) : NULL;
}
