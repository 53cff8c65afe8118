/* Answers: JSON, and errors with the status of HTTP that fits. */
#include <string.h>

#include "format/json.h"
#include "serve/http/route.h"

void prb_answer_deinit(struct prb_answer *answer)
{
    prb_buf_deinit(&answer->body);
    *answer = (struct prb_answer){0};
}

static int append(const char *data, size_t size, void *context)
{
    struct prb_buf *out = context;
    if (out->len + size > PRB_SERVE_ANSWER_MAX)
        return -1;
    prb_buf_add(out, data, size);
    return prb_buf_ok(out) ? 0 : -1;
}

bool prb_answer_json(struct prb_answer *answer, json_t *value, struct prb_error *err)
{
    if (!value)
        return prb_nomem(err);
    answer->type = "application/json";
    bool ok = json_dump_callback(value, append, &answer->body, JSON_COMPACT) == 0;
    json_decref(value);
    prb_buf_addc(&answer->body, '\n');
    return ok || prb_fail(err, PRB_UNSUPPORTED, "the answer is larger than %u MB",
                          PRB_SERVE_ANSWER_MAX >> 20);
}

void prb_answer_spare(const struct prb_question *question, struct prb_answer *answer)
{
    if (!*answer->etag)
        return;
    answer->caching = "no-cache";
    if (strcmp(question->known, answer->etag) != 0)
        return;
    answer->status = 304;
    prb_buf_deinit(&answer->body);
    answer->body = (struct prb_buf){0};
}

int prb_http_status(enum prb_code code)
{
    static const struct {
        enum prb_code code;
        int status;
    } statuses[] = {
        {PRB_USAGE, 400},       {PRB_QUERY, 400},   {PRB_PERMISSION, 403}, {PRB_NOT_FOUND, 404},
        {PRB_BUSY, 409},        {PRB_GONE, 410},    {PRB_NOT_PYTHON, 422}, {PRB_CORRUPT, 422},
        {PRB_UNSUPPORTED, 422}, {PRB_TIMEOUT, 504}, {PRB_NOMEM, 503},      {PRB_FAULT, 422},
    };
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++)
        if (statuses[i].code == code)
            return statuses[i].status;
    return 500;
}

void prb_answer_error(struct prb_answer *answer, const struct prb_error *err)
{
    int status = answer->status ? answer->status : prb_http_status(err->code);
    bool retryable = status == 409 || status == 429 || status == 503 || status == 504;
    json_t *value = json_pack("{s:{s:s,s:o,s:o,s:b}}", "error", "code", prb_code_name(err->code),
                              "message", prb_json_text(err->text), "remedy",
                              prb_json_text(err->remedy), "retryable", retryable);
    prb_buf_deinit(&answer->body);
    answer->body = (struct prb_buf){0};
    answer->etag[0] = '\0';
    answer->status = status;
    if (!prb_answer_json(answer, value, NULL)) {
        answer->type = "text/plain";
        answer->status = 503;
    }
}
