/* Steps, and the phases in them: python.torch_step_timing, or python.steps of a program that counts
 * its steps itself (probing.step). */
#include <inttypes.h>
#include <math.h>

#include "export/export.h"

enum { TIME, DURATION, GLOBAL, LOCAL, NOTES };

/* What is said of a step beside its number, as the table has it. */
static const char *const columns[] = {
    "timestamp", "step_duration_sec", "global_step", "local_step", "data",
    "forward",   "backward",          "optimizer",   "comm_wait",  "other",
    "updates",   "micro_steps",       "overhead",    NULL};

static void step_name(char *name, size_t cap, int64_t step)
{
    snprintf(name, cap, step == INT64_MIN ? "step" : "step %" PRId64, step);
}

/* The row's time is the step's end. */
static bool take_timed(struct prb_export *export, struct prb_export_process *process,
                       const struct prb_value *row, void *context)
{
    double end = prb_export_real(&row[TIME]), duration = prb_export_real(&row[DURATION]);
    uint32_t track = prb_export_track_of(export, process, PRB_EXPORT_STEPS, 0, "steps");
    int64_t step = prb_export_integer(&row[GLOBAL]);
    char name[40];
    (void)context;
    if (step == INT64_MIN)
        step = prb_export_integer(&row[LOCAL]);
    if (isnan(duration) || end > export->until ||
        end - duration < export->since - PRB_TRACE_SAME_NS * 1e-9)
        return true; /* it ended after, or began before, the time that is wanted */
    step_name(name, sizeof name, step);
    prb_export_slice(export, track, name, end - duration, duration, 1);
    for (size_t i = NOTES; columns[i]; i++)
        prb_export_note(export, columns[i], &row[i]);
    export->out->steps++;
    return !export->failed;
}

/* The row's time is the step's begin; it ends where the next one begins. */
static bool take_counted(struct prb_export *export, struct prb_export_process *process,
                         const struct prb_value *row, void *context)
{
    double time = prb_export_real(&row[0]);
    int64_t now = prb_trace_ns(time);
    uint32_t track = prb_export_track_of(export, process, PRB_EXPORT_STEPS, 0, "steps");
    char name[40];
    (void)context;
    if (time > export->until)
        return true;
    if (process->step_began != INT64_MIN && now != INT64_MIN) {
        step_name(name, sizeof name, process->step);
        prb_trace_slice(&export->trace, track, name, process->step_began, now, 1);
        export->out->steps++;
    }
    process->step = prb_export_integer(&row[1]);
    process->step_began = now;
    return !export->failed;
}

bool prb_export_steps(struct prb_export *export, struct prb_error *err)
{
    static const char *const counted[] = {"time/timestamp", "step", NULL};
    return prb_export_rows(export, "python.torch_step_timing", columns, false, take_timed, NULL,
                           err) &&
           (export->out->steps ||
            prb_export_rows(export, "python.steps", counted, false, take_counted, NULL, err));
}
