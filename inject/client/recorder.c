/* Reading the Flight Recorder of torch.distributed: see control.h. */
#include <stdlib.h>
#include <string.h>

#include "inject/client/ask.h"

#define TEXT_MAX ((size_t)256 << 20) /* bytes of each */
#define WAIT_MS 20000

struct reading {
    struct prb_buf texts[PRB_RECORDERS_MAX];
    bool (*go_on)(void *context);
    void *context;
};

static void reading_deinit(struct reading *reading)
{
    for (size_t i = 0; i < PRB_RECORDERS_MAX; i++)
        prb_buf_deinit(&reading->texts[i]);
}
PRB_DEFINE_AUTO(reading, struct reading, reading_deinit)

static bool add(struct reading *reading, uint64_t stream, const char *text, size_t len)
{
    if (stream < 1 || stream > PRB_RECORDERS_MAX || reading->texts[stream - 1].len + len > TEXT_MAX)
        return false;
    prb_buf_add(&reading->texts[stream - 1], text, len);
    return prb_buf_ok(&reading->texts[stream - 1]);
}

static bool hear(void *context, const struct prb_message *part)
{
    const char *text;
    size_t len;
    uint64_t stream = 1;
    prb_message_number(part, PRB_FLD_STREAM, &stream);
    return !prb_message_text(part, PRB_FLD_OUTPUT, &text, &len) || add(context, stream, text, len);
}

static bool is_cancelled(void *context)
{
    const struct reading *reading = context;
    return reading->go_on && !reading->go_on(reading->context);
}

/* ---- with Python, where torch writes it for Python only ---- */

/* Stack traces are left out: naming their functions may take the GIL within torch. */
static const char code[] =
    "def _recorder():\n"
    "    import json, pickle, sys\n"
    "    torch = sys.modules.get('torch')\n"
    "    c10d = getattr(getattr(torch, '_C', None), '_distributed_c10d', None)\n"
    "    for name in ('_dump_fr_trace_json', '_dump_nccl_trace_json'):\n"
    "        if hasattr(c10d, name):\n"
    "            text = getattr(c10d, name)()\n"
    "            return text if isinstance(text, str) else text.decode()\n"
    "    if hasattr(c10d, '_dump_nccl_trace'):\n"
    "        try:\n"
    "            told = c10d._dump_nccl_trace(includeStackTraces=False)\n"
    "        except TypeError:\n"
    "            told = c10d._dump_nccl_trace()\n"
    "        told = pickle.loads(told)\n"
    "        return json.dumps(told if isinstance(told, dict) else {'entries': told}, "
    "default=str)\n"
    "    return ''\n"
    "import sys\n"
    "sys.stdout.write(_recorder())\n";

static bool hear_code(void *context, int stream, const char *text, size_t len)
{
    return stream != 1 || add(context, 1, text, len);
}

static bool ask_python(struct prb_control *control, struct reading *reading, struct prb_error *err)
{
    struct prb_eval_options options = {.code = code,
                                       .code_len = sizeof code - 1,
                                       .name_space = "",
                                       .output = hear_code,
                                       .cancelled = is_cancelled,
                                       .context = reading};
    struct prb_eval_result result = {0};
    if (!prb_control_eval(control, &options, &result, err))
        return false;
    bool ok =
        !result.raised || prb_fail(err, PRB_NOT_FOUND, "the Flight Recorder: %s", result.text);
    prb_eval_result_free(&result);
    return ok;
}

/* ---- both ---- */

static bool ask_probe(struct prb_control *control, bool pickle, struct reading *reading,
                      struct prb_error *err)
{
    PRB_AUTO(prb_buf) struct prb_buf fields = {0};
    struct prb_ask ask = {
        .wait_ms = WAIT_MS, .part = hear, .cancelled = is_cancelled, .context = reading};
    struct prb_message end;
    prb_fields_number(&fields, PRB_FLD_PICKLE, pickle);
    return (prb_buf_ok(&fields) || prb_nomem(err)) &&
           prb_control_ask(control, PRB_MSG_RECORDER, &fields, &ask, &end, err);
}

static bool keep(struct reading *reading, struct prb_recorder *out, struct prb_error *err)
{
    for (size_t i = 0; i < PRB_RECORDERS_MAX; i++) {
        size_t len = reading->texts[i].len;
        if (!prb_buf_ok(&reading->texts[i]))
            return prb_nomem(err);
        if (len)
            out->texts[out->count++] =
                (struct prb_recorder_text){prb_buf_steal(&reading->texts[i]), len};
    }
    return out->count ||
           prb_fail(err, PRB_NOT_FOUND, "this torch has no Flight Recorder that can be read");
}

bool prb_control_recorder(struct prb_control *control, bool pickle, bool (*go_on)(void *context),
                          void *context, struct prb_recorder *out, struct prb_error *err)
{
    PRB_AUTO(reading) struct reading reading = {.go_on = go_on, .context = context};
    struct prb_error why = {0};
    *out = (struct prb_recorder){0};
    if (!ask_probe(control, pickle, &reading, &why)) {
        out->with_gil = why.code == PRB_UNSUPPORTED;
        if (!out->with_gil && err)
            *err = why;
        if (!out->with_gil || !ask_python(control, &reading, err))
            return false;
    }
    if (keep(&reading, out, err))
        return true;
    prb_recorder_free(out);
    return false;
}

void prb_recorder_free(struct prb_recorder *recorder)
{
    for (size_t i = 0; i < recorder->count; i++)
        free(recorder->texts[i].data);
    *recorder = (struct prb_recorder){0};
}
