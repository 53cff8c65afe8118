/* Code that runs in each rank, in names of its own.  args: code, name_space, gil_timeout (s).  result: struct prb_eval_answers. */
#include <string.h>

#include "base/error.h"
#include "fleet/kind/answers.h"
#include "inject/control.h"
#include "inject/inject.h"

#define TEXT_MOST 4096 /* bytes of one rank's answer */
#define BUDGET 30.0    /* s */

PRB_DEFINE_AUTO_PTR(prb_control, struct prb_control, prb_control_close)
PRB_DEFINE_AUTO(prb_eval_result, struct prb_eval_result, prb_eval_result_free)

static bool keep_output(void *context, int stream, const char *text, size_t len)
{
    struct prb_buf *out = context;
    size_t room = out->len < TEXT_MOST ? TEXT_MOST - out->len : 0;
    (void)stream;
    prb_buf_add(out, text, len < room ? len : room);
    return true;
}

/* Cut where no character is cut in two. */
static void add_answer(struct prb_buf *out, const char *text)
{
    size_t room = out->len < TEXT_MOST ? TEXT_MOST - out->len : 0, len = strlen(text);
    if (len > room) {
        while (room && ((unsigned char)text[room] & 0xc0) == 0x80)
            room--;
        prb_buf_add(out, text, room);
        prb_buf_adds(out, "…");
    } else {
        prb_buf_add(out, text, len);
    }
}

static bool of_rank(struct prb_fleet_seat *seat, const json_t *args, struct prb_buf *out,
                    struct prb_error *err)
{
    const char *code = json_string_value(json_object_get(args, "code"));
    struct prb_inject_report report;
    PRB_AUTO(prb_buf) struct prb_buf text = {0};
    PRB_AUTO(prb_eval_result) struct prb_eval_result result = {0};
    if (!code)
        return prb_fail(err, PRB_USAGE, "there is no code to run");
    PRB_AUTO(prb_control)
    struct prb_control *control = prb_ensure_probe(seat->member.pid, &report, err);
    const struct prb_eval_options options = {
        .mode = PRB_EVAL_AUTO,
        .code = code,
        .code_len = strlen(code),
        .name_space = json_string_value(json_object_get(args, "name_space")),
        .gil_timeout = json_number_value(json_object_get(args, "gil_timeout")),
        .timeout = seat->budget * 0.9,
        .output = keep_output,
        .context = &text,
    };
    if (!control)
        return false;
    if (!prb_control_eval(control, &options, &result, err)) {
        prb_explain_gil(seat->member.pid, err);
        return false;
    }
    if (result.text && (result.raised || !result.none))
        add_answer(&text, result.text);
    prb_buf_adds(&text, "");
    return prb_text_part(out, text.data ? text.data : "", result.raised, err);
}

const struct prb_fleet_kind prb_fleet_kind_eval = {
    .name = "eval",
    .needs = PRB_FLEET_EVAL,
    .budget = BUDGET,
    .of_rank = of_rank,
    .at_root = prb_texts_of_host,
};
