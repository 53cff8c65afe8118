/* GET /api/v1/p/{}/object/{address}: an object and its parts, read without running code. */
#include <errno.h>
#include <string.h>

#include "base/secret.h"
#include "format/json.h"
#include "serve/work/targets.h"

#define PARTS_MAX 1000

/* What looks secret by its name or its form is not shown. */
static json_t *value_of(const struct prb_part *part)
{
    PRB_AUTO(prb_buf) struct prb_buf masked = {0};
    if (!part->repr)
        return json_null();
    if (part->name && prb_secret_name(part->name))
        return json_string(PRB_MASK);
    prb_secret_mask(PRB_SECRET_TEXT, part->repr, strlen(part->repr), &masked);
    return prb_json_text(prb_buf_ok(&masked) && masked.data ? masked.data : "");
}

static json_t *part_json(const struct prb_part *part)
{
    char address[24];
    snprintf(address, sizeof address, "0x%llx", (unsigned long long)part->addr);
    return json_pack("{s:o,s:o,s:o,s:o,s:o,s:I,s:I}", "name", prb_json_text(part->name), "access",
                     prb_json_text(part->access), "value", value_of(part), "type",
                     prb_json_text(part->type), "address",
                     part->addr ? json_string(address) : json_null(), "elements",
                     (json_int_t)part->indexed, "attributes", (json_int_t)part->named);
}

static bool answer(struct prb_serve_job *job, struct prb_error *err)
{
    double start = 0, count = 100;
    prb_addr address;
    if (!prb_question_number(job->question, "start", 0, 1e15, &start, err) ||
        !prb_question_number(job->question, "count", 0, PARTS_MAX, &count, err) ||
        !prb_question_address(job, &address, err))
        return false;
    PRB_AUTO(prb_serve_target) struct prb_serve_target *held = prb_serve_target_hold(job, err);
    if (!held)
        return false;
    const struct prb_parts_options options = {.indexed = count > 0,
                                              .named = count > 0,
                                              .start = (uint64_t)start,
                                              .count = (uint64_t)count};
    struct prb_parts *parts = prb_parts_take(prb_serve_target_open(held), address, &options, err);
    if (!parts)
        return false;
    json_t *rows = json_array();
    size_t shown = parts->count < 2 * PARTS_MAX ? parts->count : 2 * PARTS_MAX;
    for (size_t i = 0; i < shown; i++)
        json_array_append_new(rows, part_json(parts->items + i));
    json_t *whole = part_json(&parts->whole);
    prb_parts_free(parts);
    return prb_answer_json(job->answer, json_pack("{s:o,s:o}", "object", whole, "parts", rows),
                           err);
}

const struct prb_route prb_route_object = {
    .methods = PRB_GET,
    .path = "/api/v1/p/{}/object/{}",
    .summary = "an object by its address, and its parts",
    .grant = PRB_MAY_LOOK,
    .formats = "json",
    .parameters = "start count",
    .seconds = 10,
    .answer = answer,
};
