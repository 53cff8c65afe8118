/* Phases below the steps, and modules by thread: python.torch_trace. */
#include <math.h>
#include <string.h>

#include "export/export.h"

enum { TIME, DURATION, NAME, STAGE, DEPTH, MODULE, THREAD, RECOMPUTE, STEP, OPTIMIZER };
static const char *const columns[] = {
    "timestamp", "duration",  "operation_name", "stage",     "depth", "module",
    "thread",    "recompute", "global_step",    "optimizer", NULL};

/* Whether a row is a part of its step: a whole forward, or what is not of a module. */
static bool is_phase(const char *stage, int64_t depth)
{
    return strcmp(stage, "forward") != 0 ? strcmp(stage, "scope") != 0 : depth == 0;
}

static void put_phase(struct prb_export *export, const struct prb_export_process *process,
                      const struct prb_value *row, const char *stage)
{
    uint32_t track = prb_export_track_of(export, process, PRB_EXPORT_STEPS, 0, "steps");
    prb_export_slice(export, track, stage, prb_export_real(&row[TIME]),
                     prb_export_real(&row[DURATION]), 2);
    prb_export_note(export, "optimizer", &row[OPTIMIZER]);
}

static void put_call(struct prb_export *export, const struct prb_export_process *process,
                     const struct prb_value *row, const char *stage, int64_t depth)
{
    int64_t thread = prb_export_integer(&row[THREAD]);
    const char *name = prb_export_text(&row[NAME]);
    uint64_t key = thread == INT64_MIN ? 0 : (uint64_t)thread;
    char track_name[64] = "modules";
    if (key && thread != process->pid)
        snprintf(track_name, sizeof track_name, "modules, thread %lld", (long long)thread);
    uint32_t track = prb_export_track_of(export, process, PRB_EXPORT_MODULES, key, track_name);
    prb_export_slice(export, track, name ? name : stage, prb_export_real(&row[TIME]),
                     prb_export_real(&row[DURATION]), depth < 0 ? 0 : (uint32_t)depth + 1);
    prb_export_note(export, "module", &row[MODULE]);
    if (prb_export_integer(&row[RECOMPUTE]) == 1)
        prb_trace_note_integer(&export->trace, "recompute", 1);
}

static bool take(struct prb_export *export, struct prb_export_process *process,
                 const struct prb_value *row, void *context)
{
    const char *stage = prb_export_text(&row[STAGE]);
    int64_t depth = prb_export_integer(&row[DEPTH]);
    (void)context;
    if (!stage || isnan(prb_export_real(&row[DURATION])))
        return true;
    if (is_phase(stage, depth) && prb_export_integer(&row[RECOMPUTE]) != 1)
        put_phase(export, process, row, stage);
    if (strcmp(stage, "forward") == 0 || strcmp(stage, "scope") == 0)
        put_call(export, process, row, stage, depth);
    return !export->failed;
}

bool prb_export_modules(struct prb_export *export, struct prb_error *err)
{
    return prb_export_rows(export, "python.torch_trace", columns, false, take, NULL, err);
}
