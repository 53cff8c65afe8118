/* python.torch_nccl_pg_status: how far each process group has come, as torch.distributed says. */
#include "table/shared/recorder.h"

static const struct prb_column columns[] = {
    PRB_RECORDING_COLUMNS,
    {"pg_id", PRB_INTEGER, "id", "process group, counted in the process"},
    {"pg_name", PRB_TEXT, "", "its name: the same in all ranks"},
    {"pg_desc", PRB_TEXT, "", "what the program calls it: default_pg and the like"},
    {"ranks", PRB_TEXT, "", "JSON: its members; NULL: the recorder does not say (gloo's does not)"},
    {"last_enqueued_collective", PRB_INTEGER, "", "the last one that was called; NULL: none"},
    {"last_started_collective", PRB_INTEGER, "", "the last one seen to start; NULL: none"},
    {"last_completed_collective", PRB_INTEGER, "", "the last one that was over; NULL: none"},
    {0},
};

/* Name and description stand with each entry, too. */
static const json_t *group_of(const json_t *recorder, int64_t id)
{
    size_t i;
    json_t *entry;
    json_array_foreach(json_object_get(recorder, "entries"), i,
                       entry) if (json_integer_value(json_object_get(entry, "pg_id")) ==
                                  id) return json_object_get(entry, "process_group");
    return NULL;
}

static void put_last(struct prb_rows *rows, const json_t *status, const char *key)
{
    const char *text = json_string_value(json_object_get(status, key));
    int64_t value = text ? strtoll(text, NULL, 10) : -1;
    if (!text && json_is_integer(json_object_get(status, key)))
        value = json_integer_value(json_object_get(status, key));
    if (value >= 0)
        prb_row_int(rows, value);
    else
        prb_row_null(rows);
}

static void put(struct prb_rows *rows, const struct prb_recording *recording,
                const json_t *recorder, const char *id, const json_t *status)
{
    const json_t *group = group_of(recorder, strtoll(id, NULL, 10));
    const char *name = json_string_value(json_array_get(group, 0));
    const json_t *config =
        json_object_get(json_object_get(recorder, "pg_config"), name ? name : id);
    const json_t *desc = json_object_get(config, "desc");
    prb_recording_row(rows, recording);
    prb_row_int(rows, strtoll(id, NULL, 10));
    prb_row_json_text(rows, json_array_get(group, 0));
    prb_row_json_text(rows, desc ? desc : json_array_get(group, 1));
    prb_row_json_text(rows, json_object_get(config, "ranks"));
    put_last(rows, status, "last_enqueued_collective");
    put_last(rows, status, "last_started_collective");
    put_last(rows, status, "last_completed_collective");
}

static bool fill(struct prb_rows *rows, struct prb_error *err)
{
    PRB_AUTO(prb_recording) struct prb_recording recording = {0};
    if (!prb_recording_take(rows, prb_rows_target(rows), &recording, err))
        return false;
    prb_recording_note_empty(rows, &recording);
    size_t i;
    json_t *recorder, *status;
    const char *id;
    json_array_foreach(recording.texts, i, recorder)
        json_object_foreach(json_object_get(recorder, "pg_status"), id, status)
            put(rows, &recording, recorder, id, status);
    return true;
}

const struct prb_table prb_table_python_torch_nccl_pg_status = {
    .schema = "python",
    .name = "torch_nccl_pg_status",
    .doc = "the process groups of torch.distributed, and how far each has come (Flight Recorder), "
           "read as the query runs",
    .columns = columns,
    .needs_target = true,
    .fill = fill,
};
