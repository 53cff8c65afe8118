/* Spans and events that the program records (probing.span, probing.event), and torch's user scopes,
 * by thread. */
#include <math.h>

#include "export/export.h"

enum { TIME, DURATION, NAME, THREAD, STEP, ERROR, ATTRIBUTES };
static const char *const spans[] = {"time/timestamp",      "duration", "name",
                                    "os_thread_id/thread", "step",     "error",
                                    "attributes",          NULL};

static uint32_t track_of(struct prb_export *export, const struct prb_export_process *process,
                         const struct prb_value *thread)
{
    int64_t tid = prb_export_integer(thread);
    char name[64] = "spans";
    if (tid != INT64_MIN && tid != process->pid)
        snprintf(name, sizeof name, "spans, thread %lld", (long long)tid);
    return prb_export_track_of(export, process, PRB_EXPORT_SPANS,
                               tid == INT64_MIN ? 0 : (uint64_t)tid, name);
}

static void add_notes(struct prb_export *export, const struct prb_value *row)
{
    prb_export_note(export, "step", &row[STEP]);
    prb_export_note(export, "error", &row[ERROR]);
    prb_export_note(export, "attributes", &row[ATTRIBUTES]);
}

static bool take_span(struct prb_export *export, struct prb_export_process *process,
                      const struct prb_value *row, void *context)
{
    const char *name = prb_export_text(&row[NAME]);
    (void)context;
    prb_export_slice(export, track_of(export, process, &row[THREAD]), name ? name : "span",
                     prb_export_real(&row[TIME]), prb_export_real(&row[DURATION]), 0);
    add_notes(export, row);
    return !export->failed;
}

static bool take_event(struct prb_export *export, struct prb_export_process *process,
                       const struct prb_value *row, void *context)
{
    const char *name = prb_export_text(&row[NAME]);
    (void)context;
    prb_trace_moment(&export->trace, track_of(export, process, &row[THREAD]), name ? name : "event",
                     prb_trace_ns(prb_export_real(&row[TIME])));
    add_notes(export, row);
    return !export->failed;
}

bool prb_export_spans(struct prb_export *export, struct prb_error *err)
{
    return prb_export_rows(export, "python.spans", spans, false, take_span, NULL, err) &&
           prb_export_rows(export, "python.events", spans, false, take_event, NULL, err);
}
