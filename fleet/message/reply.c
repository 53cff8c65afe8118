/* An answer as bytes: message.h. */
#include <string.h>

#include "base/error.h"
#include "fleet/message/message.h"

#define HEAD_MAX ((uint32_t)16 << 20)

void prb_fleet_reply_deinit(struct prb_fleet_reply *reply)
{
    free(reply->states);
    free(reply->parts);
    *reply = (struct prb_fleet_reply){0};
}

/* ---- to bytes ---- */

static json_t *text_json(const char *text)
{
    json_t *value = json_string(text);
    return value ? value : json_string("?"); /* not UTF-8 */
}

static json_t *states_json(const struct prb_fleet_reply *reply)
{
    json_t *list = json_array();
    for (size_t i = 0; i < reply->state_count; i++) {
        const struct prb_fleet_state *one = &reply->states[i];
        json_array_append_new(list,
                              json_pack("{s:i, s:i, s:s, s:b, s:f, s:o}", "rank", one->rank, "pid",
                                        (int)one->pid, "state", prb_coverage_state_name(one->state),
                                        "truncated", one->truncated, "ms", one->ms, "reason",
                                        text_json(one->reason)));
    }
    return list;
}

static json_t *parts_json(const struct prb_fleet_reply *reply)
{
    json_t *list = json_array();
    for (size_t i = 0; i < reply->part_count; i++)
        json_array_append_new(
            list, json_pack("[i, I]", reply->parts[i].rank, (json_int_t)reply->parts[i].len));
    return list;
}

/* Takes head. */
static bool add_head(json_t *head, struct prb_buf *out)
{
    PRB_AUTO_FREE char *text = head ? json_dumps(head, JSON_COMPACT) : NULL;
    json_decref(head);
    size_t len = text ? strlen(text) : 0;
    if (!text || len > HEAD_MAX)
        return false;
    const unsigned char size[4] = {(unsigned char)len, (unsigned char)(len >> 8),
                                   (unsigned char)(len >> 16), (unsigned char)(len >> 24)};
    prb_buf_add(out, size, sizeof size);
    prb_buf_add(out, text, len);
    return prb_buf_ok(out);
}

bool prb_fleet_reply_pack(const struct prb_fleet_reply *reply, const char *id, struct prb_buf *out,
                          struct prb_error *err)
{
    if (!add_head(json_pack("{s:s, s:o, s:f, s:o, s:o}", "id", id, "host", text_json(reply->host),
                            "clock", reply->clock, "ranks", states_json(reply), "parts",
                            parts_json(reply)),
                  out))
        return prb_nomem(err);
    for (size_t i = 0; i < reply->part_count; i++)
        prb_buf_add(out, reply->parts[i].data, reply->parts[i].len);
    return prb_buf_ok(out) || prb_nomem(err);
}

bool prb_fleet_reply_refuse(const char *host, const char *id, const struct prb_error *why,
                            struct prb_buf *out)
{
    return add_head(json_pack("{s:s, s:o, s:s, s:o}", "id", id, "host", text_json(host), "code",
                              prb_code_name(why->code), "error", text_json(why->text)),
                    out);
}

/* ---- from bytes ---- */

static bool take_state(const json_t *one, struct prb_fleet_state *out)
{
    const json_t *rank = json_object_get(one, "rank");
    const char *state = json_string_value(json_object_get(one, "state"));
    const char *reason = json_string_value(json_object_get(one, "reason"));
    if (!json_is_integer(rank) || json_integer_value(rank) < 0 ||
        json_integer_value(rank) >= PRB_RANKS_MAX || !state)
        return false;
    out->state = PRB_COVERAGE_STATES;
    for (unsigned i = 0; i < PRB_COVERAGE_STATES; i++)
        if (strcmp(state, prb_coverage_state_name((enum prb_coverage_state)i)) == 0)
            out->state = (enum prb_coverage_state)i;
    out->rank = (int)json_integer_value(rank);
    out->pid = (pid_t)json_integer_value(json_object_get(one, "pid"));
    out->ms = json_number_value(json_object_get(one, "ms"));
    out->truncated = json_is_true(json_object_get(one, "truncated"));
    snprintf(out->reason, sizeof out->reason, "%s", reason ? reason : "");
    return out->state == PRB_COVERAGE_ANSWERED || out->state == PRB_COVERAGE_FAILED ||
           out->state == PRB_COVERAGE_GONE;
}

static bool take_states(const json_t *head, struct prb_fleet_reply *out)
{
    const json_t *list = json_object_get(head, "ranks");
    size_t count = json_array_size(list);
    out->states = calloc(count + 1, sizeof *out->states);
    for (size_t i = 0; out->states && i < count; i++)
        if (!take_state(json_array_get(list, i), &out->states[out->state_count++]))
            return false;
    return out->states;
}

static bool take_parts(const json_t *head, const char *data, size_t len,
                       struct prb_fleet_reply *out)
{
    const json_t *list = json_object_get(head, "parts");
    size_t count = json_array_size(list);
    out->parts = calloc(count + 1, sizeof *out->parts);
    for (size_t i = 0; out->parts && i < count; i++) {
        const json_t *rank = json_array_get(json_array_get(list, i), 0);
        const json_t *size = json_array_get(json_array_get(list, i), 1);
        json_int_t bytes = json_integer_value(size);
        if (!json_is_integer(rank) || json_integer_value(rank) < -1 ||
            json_integer_value(rank) >= PRB_RANKS_MAX || !json_is_integer(size) || bytes < 0 ||
            (uint64_t)bytes > len)
            return false;
        out->parts[out->part_count++] =
            (struct prb_fleet_part){(int)json_integer_value(rank), data, (size_t)bytes};
        data += bytes;
        len -= (size_t)bytes;
    }
    return out->parts && len == 0;
}

static bool refused(const json_t *head, const char *host, struct prb_error *err)
{
    const char *error = json_string_value(json_object_get(head, "error"));
    const char *name = json_string_value(json_object_get(head, "code"));
    enum prb_code code = PRB_INTERNAL;
    for (unsigned i = PRB_USAGE; name && i <= PRB_INTERNAL; i++)
        if (strcmp(prb_code_name((enum prb_code)i), name) == 0)
            code = (enum prb_code)i;
    if (!error)
        return true;
    return prb_fail(err, code, "%.60s%s%s", host, *host ? ": " : "", error);
}

bool prb_fleet_reply_parse(const char *data, size_t len, const char *id,
                           struct prb_fleet_reply *out, struct prb_error *err)
{
    const unsigned char *size = (const unsigned char *)data;
    uint32_t head_len = len < 4 ? 0
                                : (uint32_t)size[0] | (uint32_t)size[1] << 8 |
                                      (uint32_t)size[2] << 16 | (uint32_t)size[3] << 24;
    *out = (struct prb_fleet_reply){0};
    if (len < 4 || head_len > HEAD_MAX || head_len > len - 4)
        return prb_fail(err, PRB_CORRUPT, "the reply is cut");
    PRB_AUTO(json_t) json_t *head = json_loadb(data + 4, head_len, 0, NULL);
    const char *own = json_string_value(json_object_get(head, "id"));
    const char *host = json_string_value(json_object_get(head, "host"));
    if (!own || !host || (id && strcmp(own, id) != 0))
        return prb_fail(err, PRB_CORRUPT,
                        own ? "the reply is to another question" : "the reply cannot be parsed");
    snprintf(out->host, sizeof out->host, "%s", host);
    out->clock = json_number_value(json_object_get(head, "clock"));
    if (!refused(head, host, err))
        return false;
    if (!take_states(head, out) || !take_parts(head, data + 4 + head_len, len - 4 - head_len, out))
        return prb_fail(err, PRB_CORRUPT, "the reply of %s cannot be parsed", out->host);
    return true;
}
