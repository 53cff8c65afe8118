/* The steps of a job's ranks: see job_steps.h. */
#include "cli/top/job_steps.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "cli/top/step_rows.h"

#define MB 1048576.0
#define RECENT "30" /* s: older rows are of a job that stands, or is not traced any more */

static const struct prb_fleet_member *member_of(const struct prb_fleet_info *info, int rank)
{
    for (size_t i = 0; i < info->member_count; i++)
        if (info->members[i].rank == rank)
            return &info->members[i];
    return NULL;
}

/* Before anything is known of a rank. */
static struct prb_steps_row begin_row(const struct prb_fleet_info *info, int rank)
{
    const struct prb_fleet_member *member = member_of(info, rank);
    struct prb_steps_row row = prb_steps_row_unknown(member ? member->pid : 0, rank);
    row.ended = !member || member->ended > 0;
    snprintf(row.command, sizeof row.command, "%s", member ? member->host : "");
    snprintf(row.problem, sizeof row.problem, "%s",
             member ? "no steps recorded: config probing.torch.profiling=on" : "no such process");
    return row;
}

static struct prb_steps_row *find(const struct prb_kept_steps *steps, const struct prb_value *rank)
{
    for (size_t i = 0; rank->type == PRB_INTEGER && i < steps->count; i++)
        if (steps->rows[i].rank == rank->integer)
            return &steps->rows[i];
    return NULL;
}

/* The rank is the last cell. */
static bool take_timed(void *context, size_t columns, const char *const *names,
                       const struct prb_value *row)
{
    struct prb_steps_row *out = row ? find(context, &row[columns - 1]) : NULL;
    (void)names;
    if (out)
        prb_steps_put_timed(out, row);
    if (out && out->known)
        out->problem[0] = '\0';
    return true;
}

static bool take_loss(void *context, size_t columns, const char *const *names,
                      const struct prb_value *row)
{
    struct prb_steps_row *out = row ? find(context, &row[columns - 1]) : NULL;
    (void)names;
    if (out)
        out->loss = prb_steps_real(&row[0]);
    return true;
}

static bool take_memory(void *context, size_t columns, const char *const *names,
                        const struct prb_value *row)
{
    struct prb_steps_row *out = row ? find(context, &row[columns - 1]) : NULL;
    (void)names;
    if (out)
        out->memory = prb_steps_real(&row[0]) * MB;
    return true;
}

/* The newest rows of each rank: n counts them. */
#define NEWEST(columns, time, table)                                                               \
    "(SELECT " columns ", rank, row_number() OVER (PARTITION BY rank ORDER BY " time               \
    " DESC) AS n FROM " table " WHERE " time " > now() - " RECENT ")"

#define TIMED                                                                                      \
    "SELECT count(*), avg(step_duration_sec), max(coalesce(global_step, local_step)), avg(data), " \
    "avg(forward), avg(backward), avg(optimizer), avg(comm_wait), rank FROM " NEWEST(              \
        TIMED_COLUMNS, "timestamp", "python.torch_step_timing") " WHERE n <= 20 GROUP BY rank"
#define TIMED_COLUMNS                                                                              \
    "step_duration_sec, global_step, local_step, data, forward, backward, optimizer, comm_wait"

bool prb_job_steps_read(const struct prb_fleet_info *info, struct prb_db *db,
                        struct prb_kept_steps *out, struct prb_error *err)
{
    struct prb_error none;
    size_t count = prb_rank_set_size(info->asked);
    prb_kept_steps_free(out);
    *out = (struct prb_kept_steps){.rows = calloc(count + 1, sizeof *out->rows)};
    if (!out->rows)
        return prb_cli_fail(err, PRB_NOMEM, "", "out of memory");
    for (int rank = prb_rank_set_next(info->asked, -1); rank >= 0 && out->count < count;
         rank = prb_rank_set_next(info->asked, rank))
        out->rows[out->count++] = begin_row(info, rank);
    if (!prb_db_query(db, TIMED, take_timed, out, err))
        return false;
    /* What no rank has stays not known. */
    (void)!prb_db_query(
        db, "SELECT loss, rank FROM " NEWEST("loss", "time", "python.training_logs") " WHERE n = 1",
        take_loss, out, &none);
    (void)!prb_db_query(db,
                        "SELECT memory_mb, rank FROM " NEWEST("memory_mb", "timestamp",
                                                              "memory_usage") " WHERE n = 1",
                        take_memory, out, &none);
    return true;
}
