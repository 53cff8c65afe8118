/* Code that runs in each rank, in names of its own.  args: code, name_space, gil_timeout (s).  result: struct prb_eval_answers. */
#include <string.h>

#include "base/error.h"
#include "fleet/eval_answers.h"
#include "fleet/message/kind.h"
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
    PRB_AUTO(json_t)
    json_t *object =
        json_pack("{s:b, s:s}", "raised", result.raised, "text", text.data ? text.data : "");
    if (!object) /* what it printed is not UTF-8 */
        object = json_pack("{s:b, s:s}", "raised", result.raised, "text", "(not UTF-8)");
    PRB_AUTO_FREE char *dumped = object ? json_dumps(object, JSON_COMPACT) : NULL;
    if (!dumped)
        return prb_nomem(err);
    prb_buf_adds(out, dumped);
    return true;
}

static bool add(struct prb_eval_answers *answers, int rank, const char *text, bool raised)
{
    for (size_t i = 0; i < answers->count; i++)
        if (answers->items[i].raised == raised && strcmp(answers->items[i].text, text) == 0)
            return prb_rank_set_add(&answers->items[i].ranks, rank, rank);
    struct prb_eval_answer one = {.text = strdup(text), .raised = raised};
    if (!one.text || !prb_rank_set_add(&one.ranks, rank, rank) ||
        !PRB_GROW(answers->items, answers->count, answers->cap)) {
        free(one.text);
        prb_rank_set_deinit(&one.ranks);
        return false;
    }
    answers->items[answers->count++] = one;
    return true;
}

/* First all parts are looked at, then all are added. */
static bool at_root(const json_t *args, const struct prb_fleet_reply *reply, void *result,
                    struct prb_error *err)
{
    (void)args;
    for (int dry = 1; dry >= 0; dry--) {
        for (size_t i = 0; i < reply->part_count; i++) {
            const struct prb_fleet_part *part = &reply->parts[i];
            PRB_AUTO(json_t) json_t *one = json_loadb(part->data, part->len, 0, NULL);
            const char *text = json_string_value(json_object_get(one, "text"));
            if (!text || part->rank < 0)
                return prb_fail(err, PRB_CORRUPT, "the reply of %s cannot be parsed", reply->host);
            if (!dry &&
                !add(result, part->rank, text, json_is_true(json_object_get(one, "raised"))))
                return prb_nomem(err);
        }
    }
    return true;
}

const struct prb_fleet_kind prb_fleet_kind_eval = {
    .name = "eval",
    .needs = PRB_FLEET_EVAL,
    .budget = BUDGET,
    .of_rank = of_rank,
    .at_root = at_root,
};
