/* A question as text: message.h. */
#include <string.h>
#include <sys/random.h>

#include "base/error.h"
#include "fleet/message/message.h"
#include "fleet/settings.h"

#define BUDGET_MOST 3600.0 /* s */

const struct prb_fleet_kind *prb_fleet_kind_find(const char *name)
{
    static const struct prb_fleet_kind *const kinds[] = {
#define KIND(name) &prb_fleet_kind_##name,
#include "fleet/kind/kinds.inc"
#undef KIND
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(kinds[i]->name, name) == 0)
            return kinds[i];
    return NULL;
}

void prb_fleet_request_deinit(struct prb_fleet_request *request)
{
    prb_rank_set_deinit(&request->ranks);
    json_decref(request->args);
    *request = (struct prb_fleet_request){0};
}

static bool parse_args(const char *text, json_t **out, struct prb_error *err)
{
    json_error_t why;
    *out = text ? json_loads(text, 0, &why) : json_object();
    if (!*out)
        return text ? prb_fail(err, PRB_USAGE, "the arguments are not JSON: %s", why.text)
                    : prb_nomem(err);
    return json_is_object(*out) || prb_fail(err, PRB_USAGE, "the arguments are not a JSON object");
}

bool prb_fleet_request_new(const struct prb_fleet_kind *kind, const char *job, const char *args,
                           struct prb_fleet_request *out, struct prb_error *err)
{
    unsigned char random[PRB_FLEET_ID / 2];
    *out = (struct prb_fleet_request){.kind = kind,
                                      .budget = kind->budget,
                                      .max_bytes = (size_t)prb_fleet_setting(PRB_FLEET_host_bytes)};
    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
        return prb_fail(err, PRB_IO, "no random number for a question");
    for (size_t i = 0; i < sizeof random; i++)
        snprintf(out->id + 2 * i, 3, "%02x", random[i]);
    snprintf(out->job, sizeof out->job, "%s", job);
    return parse_args(args, &out->args, err);
}

bool prb_fleet_request_has_job(const struct prb_fleet_request *request,
                               const struct prb_fleet_member *member)
{
    return strcmp(member->job, request->job) == 0 &&
           (!request->of_user || member->uid == request->uid);
}

bool prb_fleet_request_has(const struct prb_fleet_request *request,
                           const struct prb_fleet_member *member)
{
    return prb_fleet_request_has_job(request, member) &&
           (!request->ranks.count || prb_rank_set_has(&request->ranks, member->rank));
}

char *prb_fleet_request_text(const struct prb_fleet_request *request, struct prb_error *err)
{
    PRB_AUTO_FREE char *ranks = prb_rank_set_text(&request->ranks);
    PRB_AUTO(json_t)
    json_t *object =
        ranks ? json_pack("{s:i, s:s, s:s, s:s%, s:s, s:f, s:I, s:O}", "v", PRB_FLEET_VERSION, "id",
                          request->id, "kind", request->kind->name, "job", request->job,
                          strlen(request->job), "ranks", ranks, "budget_ms", request->budget * 1000,
                          "max_bytes", (json_int_t)request->max_bytes, "args", request->args)
              : NULL;
    if (object && request->of_user)
        json_object_set_new(object, "uid", json_integer((json_int_t)request->uid));
    char *text = object ? json_dumps(object, JSON_COMPACT) : NULL;
    return text ? text : PRB_NULL(prb_nomem(err));
}

static bool take_id(const json_t *object, char out[PRB_FLEET_ID])
{
    const char *id = json_string_value(json_object_get(object, "id"));
    if (!id || strlen(id) != PRB_FLEET_ID - 1 || id[strspn(id, "0123456789abcdef")])
        return false;
    memcpy(out, id, PRB_FLEET_ID);
    return true;
}

static bool take_numbers(const json_t *object, struct prb_fleet_request *out)
{
    const json_t *budget = json_object_get(object, "budget_ms");
    const json_t *bytes = json_object_get(object, "max_bytes");
    const json_t *uid = json_object_get(object, "uid");
    out->budget = json_is_number(budget) ? json_number_value(budget) / 1000 : out->kind->budget;
    out->max_bytes = (size_t)prb_fleet_setting(PRB_FLEET_host_bytes);
    if (json_is_integer(bytes) && json_integer_value(bytes) > 0 &&
        (uint64_t)json_integer_value(bytes) < out->max_bytes)
        out->max_bytes = (size_t)json_integer_value(bytes);
    out->of_user = json_is_integer(uid) && json_integer_value(uid) >= 0 &&
                   json_integer_value(uid) <= UINT32_MAX;
    out->uid = out->of_user ? (uid_t)json_integer_value(uid) : 0;
    if (uid && !out->of_user)
        return false;
    return out->budget > 0 && out->budget <= BUDGET_MOST;
}

bool prb_fleet_request_parse(const char *text, size_t len, struct prb_fleet_request *out,
                             struct prb_error *err)
{
    PRB_AUTO(json_t) json_t *object = json_loadb(text, len, 0, NULL);
    const char *kind = json_string_value(json_object_get(object, "kind"));
    const char *job = json_string_value(json_object_get(object, "job"));
    const char *ranks = json_string_value(json_object_get(object, "ranks"));
    json_t *args = json_object_get(object, "args");
    *out = (struct prb_fleet_request){0};
    if (json_integer_value(json_object_get(object, "v")) != PRB_FLEET_VERSION || !kind)
        return prb_fail(err, object ? PRB_UNSUPPORTED : PRB_CORRUPT,
                        "the question is not of version %d", PRB_FLEET_VERSION);
    if (!(out->kind = prb_fleet_kind_find(kind)))
        return prb_fail(err, PRB_UNSUPPORTED, "no kind of question \"%.40s\"", kind);
    if (!take_id(object, out->id) || !job || !ranks || !take_numbers(object, out) ||
        (args && !json_is_object(args)))
        return prb_fail(err, PRB_CORRUPT, "the question cannot be parsed");
    snprintf(out->job, sizeof out->job, "%s", job);
    if (!prb_rank_set_parse(ranks, &out->ranks, err))
        return prb_fail(err, PRB_CORRUPT, "the question's ranks cannot be parsed");
    out->args = args ? json_incref(args) : json_object();
    return out->args || prb_nomem(err);
}
