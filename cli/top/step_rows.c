/* What the tables of a process say of its last steps: see step_rows.h. */
#include <math.h>
#include <string.h>

#include "cli/top/step_rows.h"

#define MB 1048576.0
#define TEXT_MAX 600

enum { TIMED_STEPS, TIMED_LENGTH, TIMED_STEP, TIMED_PHASES };

struct prb_steps_row prb_steps_row_unknown(pid_t pid, int rank)
{
    return (struct prb_steps_row){.pid = pid,
                                  .rank = rank,
                                  .step = INT64_MIN,
                                  .length = NAN,
                                  .items = NAN,
                                  .loss = NAN,
                                  .memory = NAN,
                                  .gpu = NAN,
                                  .gpu_memory = NAN,
                                  .unit = "samples"};
}

void prb_steps_put_timed(struct prb_steps_row *out, const struct prb_value *row)
{
    static const enum prb_steps_phase phases[] = {PRB_STEPS_DATA, PRB_STEPS_FORWARD,
                                                  PRB_STEPS_BACKWARD, PRB_STEPS_OPTIMIZER,
                                                  PRB_STEPS_COMMUNICATION};
    double length = prb_steps_real(&row[TIMED_LENGTH]), rest = 1;
    if (!(length > 0))
        return;
    out->tier = 1;
    out->known = true;
    out->length = length;
    out->step = row[TIMED_STEP].type == PRB_INTEGER ? row[TIMED_STEP].integer : INT64_MIN;
    for (size_t i = 0; i < sizeof phases / sizeof *phases; i++) {
        double share = prb_steps_real(&row[TIMED_PHASES + i]) / length;
        out->shares[phases[i]] = share > 0 && share <= 1 ? share : 0;
        rest -= out->shares[phases[i]];
    }
    out->shares[PRB_STEPS_OTHER] = rest > 0 ? rest : 0;
}

static bool take_timed(void *context, size_t columns, const char *const *names,
                       const struct prb_value *row)
{
    (void)columns, (void)names;
    if (row)
        prb_steps_put_timed(context, row);
    return true;
}

bool prb_steps_timed(const struct prb_steps_rows *rows, struct prb_steps_row *out)
{
    char sql[TEXT_MAX];
    struct prb_error none;
    snprintf(sql, sizeof sql,
             "SELECT count(*), avg(step_duration_sec), max(coalesce(global_step, local_step)), "
             "avg(data), avg(forward), avg(backward), avg(optimizer), avg(comm_wait) FROM "
             "(SELECT * FROM python.torch_step_timing WHERE %s ORDER BY timestamp DESC LIMIT %d)",
             rows->where, PRB_STEPS_RECENT);
    return prb_db_query(rows->db, sql, take_timed, out, &none) && out->known;
}

/* The newest row of what the program logs, whatever columns it has. */
static bool take_log(void *context, size_t columns, const char *const *names,
                     const struct prb_value *row)
{
    static const struct {
        const char *name, *unit;
    } rates[] = {{"tokens_per_second", "tokens"},
                 {"tokens_per_sec", "tokens"},
                 {"tok_per_sec", "tokens"},
                 {"samples_per_second", "samples"},
                 {"samples_per_sec", "samples"},
                 {"train_samples_per_second", "samples"},
                 {"train_tokens_per_second", "tokens"}};
    struct prb_steps_row *out = context;
    for (size_t i = 0; row && i < columns; i++) {
        if (strcmp(names[i], "loss") == 0)
            out->loss = prb_steps_real(&row[i]);
        for (size_t k = 0; k < sizeof rates / sizeof *rates; k++)
            if (strcmp(names[i], rates[k].name) == 0 && prb_steps_real(&row[i]) > 0) {
                out->items = prb_steps_real(&row[i]);
                snprintf(out->unit, sizeof out->unit, "%s", rates[k].unit);
            }
    }
    return true;
}

void prb_steps_logged(const struct prb_steps_rows *rows, struct prb_steps_row *out)
{
    char sql[TEXT_MAX];
    struct prb_error none;
    snprintf(sql, sizeof sql,
             "SELECT * FROM python.training_logs WHERE %s ORDER BY time DESC LIMIT 1", rows->where);
    (void)!prb_db_query(rows->db, sql, take_log, out, &none);
}

static bool take_memory(void *context, size_t columns, const char *const *names,
                        const struct prb_value *row)
{
    (void)columns, (void)names;
    if (row)
        ((struct prb_steps_row *)context)->memory = prb_steps_real(&row[0]) * MB;
    return true;
}

void prb_steps_memory(const struct prb_steps_rows *rows, struct prb_steps_row *out)
{
    char sql[TEXT_MAX];
    struct prb_error none;
    snprintf(sql, sizeof sql,
             "SELECT memory_mb FROM memory_usage WHERE %s ORDER BY timestamp DESC LIMIT 1",
             rows->where);
    (void)!prb_db_query(rows->db, sql, take_memory, out, &none);
}
