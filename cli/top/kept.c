/* The steps that the store keeps of a job: see kept.h. */
#include "cli/top/kept.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "cli/top/step_rows.h"

#define PROCESSES_MAX 4096
#define GPU_S 30 /* before the last step: the same as of a live job's steps */

enum { FOUND_PID, FOUND_RANK, FOUND_LAST };

struct finding {
    struct prb_kept_steps *out;
    struct prb_error *err;
};

static bool take_process(void *context, size_t columns, const char *const *names,
                         const struct prb_value *row)
{
    struct finding *finding = context;
    struct prb_kept_steps *out = finding->out;
    (void)columns, (void)names;
    if (!row || out->count >= PROCESSES_MAX)
        return true;
    struct prb_steps_row *more = reallocarray(out->rows, out->count + 1, sizeof *more);
    if (!more)
        return prb_cli_fail(finding->err, PRB_NOMEM, "", "out of memory");
    out->rows = more;
    more[out->count] = prb_steps_row_unknown(
        row[FOUND_PID].type == PRB_INTEGER ? (pid_t)row[FOUND_PID].integer : 0,
        row[FOUND_RANK].type == PRB_INTEGER ? (int)row[FOUND_RANK].integer : -1);
    more[out->count++].seen = prb_steps_real(&row[FOUND_LAST]);
    return true;
}

static bool take_gpu(void *context, size_t columns, const char *const *names,
                     const struct prb_value *row)
{
    (void)columns, (void)names;
    if (row)
        ((struct prb_steps_row *)context)->gpu = prb_steps_real(&row[0]);
    return true;
}

static void fill(struct prb_db *db, struct prb_steps_row *row)
{
    char where[48], sql[200];
    struct prb_error none;
    snprintf(where, sizeof where, row->pid ? "pid = %d" : "pid IS NULL", (int)row->pid);
    const struct prb_steps_rows rows = {db, where};
    (void)!prb_steps_timed(&rows, row);
    prb_steps_logged(&rows, row);
    prb_steps_memory(&rows, row);
    snprintf(sql, sizeof sql,
             "SELECT avg(gpu_util) FROM gpu_metrics WHERE timestamp BETWEEN %.6f - %d AND %.6f + 1",
             row->seen, GPU_S, row->seen);
    (void)!prb_db_query(db, sql, take_gpu, row, &none);
}

bool prb_kept_steps_read(struct prb_db *db, const char *job, struct prb_kept_steps *out,
                         struct prb_error *err)
{
    struct finding finding = {out, err};
    if (!prb_db_query(db,
                      "SELECT pid, rank, max(timestamp) FROM python.torch_step_timing "
                      "GROUP BY pid, rank ORDER BY rank IS NULL, rank, pid",
                      take_process, &finding, err))
        return false;
    if (!out->count)
        return prb_cli_fail(err, PRB_NOT_FOUND,
                            "config probing.torch.profiling=on records them; what there is: "
                            "query \"SHOW TABLES\"",
                            "no steps of %s were recorded", job);
    for (size_t i = 0; i < out->count; i++)
        fill(db, &out->rows[i]);
    return true;
}

void prb_kept_steps_free(struct prb_kept_steps *steps) { free(steps->rows); }
