/* The Flight Recorder of torch.distributed: see recorder.h. */
#include "table/shared/recorder.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "inject/control.h"
#include "inject/inject.h"
#include "inspect/target.h"
#include "table/shared/duration.h"
#include "table/shared/pickle.h"
#include "table/shared/thread_columns.h"

PRB_DEFINE_AUTO_PTR(prb_control, struct prb_control, prb_control_close)
PRB_DEFINE_AUTO(prb_recorder, struct prb_recorder, prb_recorder_free)

void prb_recording_deinit(struct prb_recording *recording) { json_decref(recording->texts); }

/* Gloo's collectives: not in that of 2.9.1, in that of 2.13. */
#define NO_ENTRIES                                                                                 \
    "the Flight Recorder of process %d is empty: it is off (TORCH_FR_BUFFER_SIZE=0), no "          \
    "collective has begun, or they are gloo's, which PyTorch 2.9 and before does not record; "     \
    "python.comm_collective has these while probing.torch.profiling is on"

static json_t *parse_text(const struct prb_recorder_text *text, struct prb_error *err)
{
    json_error_t why;
    if (prb_is_pickle(text->data, text->len))
        return prb_pickle_parse(text->data, text->len, err);
    json_t *json = json_loadb(text->data, text->len, 0, &why);
    return json ? json : PRB_NULL(prb_fail(err, PRB_CORRUPT, "no JSON object: %s", why.text));
}

static bool parse(const struct prb_recorder *recorder, struct prb_recording *out,
                  struct prb_error *err)
{
    out->entries = 0;
    if (!(out->texts = json_array()))
        return prb_nomem(err);
    for (size_t i = 0; i < recorder->count; i++) {
        PRB_AUTO(json_t) json_t *one = parse_text(&recorder->texts[i], err);
        if (!one)
            return prb_error_prefix(err, "what the Flight Recorder wrote");
        if (!json_is_object(one))
            return prb_fail(err, PRB_CORRUPT, "what the Flight Recorder wrote is no JSON object");
        out->entries += json_array_size(json_object_get(one, "entries"));
        if (json_array_append(out->texts, one) != 0)
            return prb_nomem(err);
    }
    return true;
}

static bool take(struct prb_rows *rows, struct prb_control *control, bool pickle,
                 struct prb_recording *out, struct prb_error *err)
{
    PRB_AUTO(prb_recorder) struct prb_recorder recorder = {0};
    if (!prb_control_recorder(control, pickle, prb_rows_in_time, rows, &recorder, err))
        return false;
    if (recorder.with_gil)
        prb_rows_warn(rows, "this torch writes its Flight Recorder under the GIL only");
    prb_recording_deinit(out);
    return parse(&recorder, out, err);
}

bool prb_recording_take(struct prb_rows *rows, struct prb_target *target, struct prb_recording *out,
                        struct prb_error *err)
{
    pid_t pid = (pid_t)target->info.pid;
    struct prb_inject_report report;
    struct prb_process process = {0};
    if (prb_target_info(target)->kind != PRB_TARGET_PROCESS)
        return prb_fail(err, PRB_USAGE,
                        "the Flight Recorder can be read from a process that lives only");
    PRB_AUTO(prb_control) struct prb_control *control = prb_ensure_probe(pid, &report, err);
    if (!control)
        return false;
    if (!report.already)
        prb_rows_warn(rows, "the probe was loaded into process %d for this", (int)pid);
    prb_process_ranks(target->proc, &process);
    *out = (struct prb_recording){
        .time = prb_clock_epoch_s(), .rank = process.rank, .world_size = process.world_size};
    struct prb_error why = {0};
    if (take(rows, control, true, out, &why) ||
        (why.code == PRB_CORRUPT && take(rows, control, false, out, &why)))
        return true;
    prb_explain_gil(pid, &why);
    if (err)
        *err = why;
    return false;
}

void prb_recording_note_empty(struct prb_rows *rows, const struct prb_recording *recording)
{
    if (!recording->entries)
        prb_rows_warn(rows, NO_ENTRIES, (int)prb_rows_target(rows)->info.pid);
}

void prb_recording_row(struct prb_rows *rows, const struct prb_recording *recording)
{
    prb_row_begin(rows);
    prb_row_real(rows, recording->time);
    prb_row_int(rows, (int64_t)(recording->time * 1000));
    prb_row_int(rows, prb_rows_target(rows)->info.pid);
    prb_row_int_unless(rows, recording->rank, -1);
    prb_row_int_unless(rows, recording->world_size, -1);
}

/* ---- cells ---- */

static bool integer_of(const json_t *value, int64_t *out)
{
    char *end = NULL;
    const char *text = json_string_value(value);
    if (json_is_integer(value))
        *out = json_integer_value(value);
    else if (text && *text)
        *out = strtoll(text, &end, 10);
    else
        return false;
    return !end || !*end;
}

void prb_row_json_int(struct prb_rows *rows, const json_t *object, const char *key)
{
    int64_t value;
    if (integer_of(json_object_get(object, key), &value))
        prb_row_int(rows, value);
    else
        prb_row_null(rows);
}

void prb_row_json_time(struct prb_rows *rows, const json_t *object, const char *key)
{
    int64_t value = 0;
    integer_of(json_object_get(object, key), &value);
    prb_row_int_unless(rows, value, 0);
}

void prb_row_json_text(struct prb_rows *rows, const json_t *value)
{
    if (json_is_string(value)) {
        prb_row_textn(rows, json_string_value(value), json_string_length(value));
        return;
    }
    char *text =
        value && !json_is_null(value) ? json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
    prb_row_text(rows, text);
    free(text);
}
