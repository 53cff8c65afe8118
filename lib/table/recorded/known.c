/*
 * Tables that the package `probing` writes (python/probing_c/_spans.py), as they are before their first
 * row; training_logs has what is watched until then (shared/training_logs.c).  To add one: its columns and its line at the end; tests/python compares them with what the
 * package makes.
 */
#include "table/recorded/known.h"

#include <stdlib.h>
#include <string.h>

#include "table/recorded/live.h"
#include "table/shared/training_logs.h"
#include "table/shared/unrecorded.h"

#define TIME(doc) {"time", PRB_REAL, "s", doc}
#define THREAD {"os_thread_id", PRB_INTEGER, "id", "the kernel's number of the thread"}

static const struct prb_column spans[] = {
    TIME("when it began"),
    {"duration", PRB_REAL, "s", "how long it took"},
    {"name", PRB_TEXT, "", "as the program calls it"},
    {"span_id", PRB_INTEGER, "", "number within the process"},
    {"parent_id", PRB_INTEGER, "", "the span around it"},
    THREAD,
    {"step", PRB_INTEGER, "", "of probing.step"},
    {"error", PRB_TEXT, "", "class of the exception that ended it"},
    {"attributes", PRB_TEXT, "", "JSON"},
    PRB_RECORDED_TIMESTAMP,
    {0},
};

static const struct prb_column events[] = {
    TIME("when it was"),
    {"name", PRB_TEXT, "", "as the program calls it"},
    {"span_id", PRB_INTEGER, "", "the span around it"},
    THREAD,
    {"step", PRB_INTEGER, "", "of probing.step"},
    {"attributes", PRB_TEXT, "", "JSON"},
    PRB_RECORDED_TIMESTAMP,
    {0},
};

static const struct prb_column steps[] = {
    TIME("when it began"),
    {"step", PRB_INTEGER, "", "its number"},
    {"epoch", PRB_REAL, "", "as the program said"},
    {"previous_duration", PRB_REAL, "s", "of the step before it"},
    PRB_RECORDED_TIMESTAMP,
    {0},
};

static bool fill_nothing(struct prb_rows *rows, struct prb_error *err)
{
    (void)rows, (void)err;
    return true;
}

/* PyTorch's record_function blocks are spans, too. */
static bool fill_spans(struct prb_rows *rows, struct prb_error *err)
{
    (void)err;
    prb_note_unrecorded(rows, true);
    return true;
}

#define KNOWN(table, fill_rows, text)                                                              \
    static const struct prb_table known_##table = {.schema = "python",                             \
                                                   .name = #table,                                 \
                                                   .doc = text,                                    \
                                                   .columns = table,                               \
                                                   .needs_target = true,                           \
                                                   .fill = fill_rows};
KNOWN(spans, fill_spans, "spans of code that the program names: probing.span")
KNOWN(events, fill_nothing, "moments that the program names: probing.event")
KNOWN(steps, fill_nothing, "steps that the program counts itself: probing.step")
#undef KNOWN

const struct prb_table *const prb_known_tables[] = {&known_spans, &known_events, &known_steps,
                                                    &prb_training_logs_watched};
const size_t prb_known_count = sizeof prb_known_tables / sizeof *prb_known_tables;

const char *prb_known_doc(const char *name)
{
    for (size_t i = 0; i < prb_known_count; i++)
        if (strcmp(prb_known_tables[i]->name, name) == 0)
            return prb_known_tables[i]->doc;
    return NULL;
}

struct known_source {
    struct prb_table_source source; /* first */
    bool listed;
};

static bool changed(struct prb_table_source *source)
{
    return !((struct known_source *)source)->listed;
}

static bool list(struct prb_table_source *source, const struct prb_table *const **out,
                 size_t *count_out, struct prb_error *err)
{
    (void)err;
    ((struct known_source *)source)->listed = true;
    *out = prb_known_tables;
    *count_out = prb_known_count;
    return true;
}

static void source_free(struct prb_table_source *source) { free((struct known_source *)source); }

struct prb_table_source *prb_known_source(struct prb_error *err)
{
    struct known_source *known = calloc(1, sizeof *known);
    if (!known)
        return PRB_NULL(prb_nomem(err));
    known->source = (struct prb_table_source){changed, list, source_free, NULL};
    return &known->source;
}
