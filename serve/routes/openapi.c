/* GET /api/v1/openapi.json: the routes as OpenAPI 3.1, made of the same table that answers. */
#include <string.h>

#include "serve/http/fields.h"
#include "serve/http/route.h"

/* What a part of a path is called, by the word before it. */
static const char *part_name(const char *before, size_t len)
{
    static const struct {
        const char *word, *name;
    } names[] = {{"p", "t"},
                 {"config", "key"},
                 {"eval", "id"},
                 {"object", "address"},
                 {"tensor", "address"},
                 {"tables", "name"},
                 {"profiles", "id"},
                 {"diff", "other"},
                 {"skills", "name"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strlen(names[i].word) == len && strncmp(names[i].word, before, len) == 0)
            return names[i].name;
    return "value";
}

static json_t *parameter(const char *name, const char *in, const char *doc, bool needed,
                         json_t *schema)
{
    return json_pack("{s:s,s:s,s:s,s:b,s:o}", "name", name, "in", in, "description", doc,
                     "required", needed, "schema", schema);
}

/* "/p/{}" with names in its braces; each is a parameter, too. */
static void name_parts(const char *form, struct prb_buf *path, json_t *parameters)
{
    const char *segment = form;
    for (const char *at = form; *at; at++) {
        if (*at != '{') {
            prb_buf_addc(path, *at);
            continue;
        }
        const char *before = at - 1;
        for (segment = before; segment > form && segment[-1] != '/'; segment--)
            ;
        const char *name = part_name(segment, (size_t)(before - segment));
        prb_buf_addf(path, "{%s}", name);
        json_array_append_new(parameters, parameter(name, "path", "a part of the path", true,
                                                    json_pack("{s:s}", "type", "string")));
        at++;
    }
}

static json_t *schema_of(enum prb_field_type type, bool query)
{
    switch (type) {
    case PRB_FIELD_FLAG:
        return query ? json_pack("{s:[s,s,s,s]}", "enum", "1", "0", "true", "false")
                     : json_pack("{s:s}", "type", "boolean");
    case PRB_FIELD_INTEGER:
        return json_pack("{s:s,s:i}", "type", "integer", "minimum", 0);
    case PRB_FIELD_NUMBER:
        return json_pack("{s:s}", "type", "number");
    case PRB_FIELD_SECONDS:
        return query ? json_pack("{s:s,s:s}", "type", "string", "pattern", "^-?[0-9.]+[smh]?$")
                     : json_pack("{s:s,s:i}", "type", "number", "minimum", 0);
    case PRB_FIELD_TEXT:
        break;
    case PRB_FIELD_OBJECT:
        return json_pack("{s:s,s:{s:s}}", "type", "object", "additionalProperties", "type",
                         "string");
    case PRB_FIELD_WORDS:
        return json_pack("{s:s,s:{s:s}}", "type", "array", "items", "type", "string");
    }
    return json_pack("{s:s}", "type", "string");
}

/* ?format= with its choices. */
static json_t *formats_schema(const char *formats)
{
    json_t *choices = json_array();
    for (const char *at = formats; *at; at += strspn(at, " ")) {
        size_t len = strcspn(at, " ");
        json_array_append_new(choices, json_stringn(at, len));
        at += len;
    }
    return json_pack("{s:o}", "enum", choices);
}

static void add_query(const struct prb_route *route, const char *words, json_t *parameters)
{
    char name[40];
    for (const char *at = words; at && *at; at += strspn(at, " ")) {
        size_t len = strcspn(at, " ");
        const struct prb_field *field = prb_field_named(at, len);
        snprintf(name, sizeof name, "%.*s", (int)len, at);
        json_t *schema = strcmp(name, "format") == 0
                             ? formats_schema(route->formats)
                             : schema_of(field ? field->type : PRB_FIELD_TEXT, true);
        json_array_append_new(parameters,
                              parameter(name, "query", field ? field->doc : "", false, schema));
        at += len;
    }
}

static json_t *body_schema(const char *keys)
{
    json_t *properties = json_object(), *needed = json_array();
    char name[40];
    for (const char *at = keys; at && *at; at += strspn(at, " ")) {
        size_t len = strcspn(at, "! ");
        const struct prb_field *field = prb_field_named(at, len);
        snprintf(name, sizeof name, "%.*s", (int)len, at);
        json_t *schema = schema_of(field ? field->type : PRB_FIELD_TEXT, false);
        json_object_set_new(schema, "description", json_string(field ? field->doc : ""));
        json_object_set_new(properties, name, schema);
        if (at[len] == '!')
            json_array_append_new(needed, json_string(name));
        at += len + (at[len] == '!');
    }
    return json_pack("{s:s,s:o,s:o,s:b}", "type", "object", "properties", properties, "required",
                     needed, "additionalProperties", 0);
}

static json_t *responses(const struct prb_route *route)
{
    json_t *content = json_object();
    for (const char *at = route->formats; *at; at += strspn(at, " ")) {
        size_t len = strcspn(at, " ");
        bool json = len == 4 && strncmp(at, "json", 4) == 0;
        const char *type = json                             ? "application/json"
                           : strncmp(at, "jsonl", len) == 0 ? "application/jsonl"
                           : strncmp(at, "csv", len) == 0   ? "text/csv"
                           : strncmp(at, "text", len) == 0  ? "text/plain"
                                                            : "application/octet-stream";
        json_object_set_new(content, type, json_object());
        at += len;
    }
    return json_pack("{s:{s:s,s:o},s:{s:s,s:{s:{s:{s:s}}}}}", "200", "description", route->summary,
                     "content", content, "default", "description", "an error", "content",
                     "application/json", "schema", "$ref", "#/components/schemas/Error");
}

static json_t *operation(const struct prb_route *route, json_t *parameters, bool body)
{
    const char *grant = route->grant & PRB_MAY_EVAL      ? "eval"
                        : route->grant & PRB_MAY_CONTROL ? "control"
                                                         : "look";
    json_t *one = json_pack("{s:s,s:s,s:O,s:o}", "summary", route->summary, "x-grant", grant,
                            "parameters", parameters, "responses", responses(route));
    if (body)
        json_object_set_new(one, "requestBody",
                            json_pack("{s:b,s:{s:{s:o}}}", "required", 1, "content",
                                      "application/json", "schema", body_schema(route->body)));
    return one;
}

static void add_route(const struct prb_route *route, json_t *paths)
{
    static const struct {
        enum prb_method method;
        const char *name;
    } methods[] = {{PRB_GET, "get"}, {PRB_POST, "post"}, {PRB_PUT, "put"}, {PRB_DELETE, "delete"}};
    PRB_AUTO(prb_buf) struct prb_buf path = {0};
    json_auto_t *parameters = json_array();
    name_parts(route->path, &path, parameters);
    add_query(route, "format timeout", parameters);
    add_query(route, route->parameters, parameters);
    if (!path.data)
        return;
    json_t *item = json_object_get(paths, path.data);
    if (!item)
        json_object_set_new(paths, path.data, item = json_object());
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        if (route->methods & methods[i].method)
            json_object_set_new(
                item, methods[i].name,
                operation(route, parameters, methods[i].method & (PRB_POST | PRB_PUT)));
}

static bool answer(struct prb_serve_job *job, struct prb_error *err)
{
    json_t *paths = json_object();
    for (size_t i = 0; prb_routes[i]; i++)
        if (!prb_routes[i]->upstream)
            add_route(prb_routes[i], paths);
    json_t *error =
        json_pack("{s:s,s:{s:{s:s,s:[s,s,s,s],s:{s:{s:s},s:{s:s},s:{s:s},s:{s:s}}}}}", "type",
                  "object", "properties", "error", "type", "object", "required", "code", "message",
                  "remedy", "retryable", "properties", "code", "type", "string", "message", "type",
                  "string", "remedy", "type", "string", "retryable", "type", "boolean");
    return prb_answer_json(job->answer,
                           json_pack("{s:s,s:{s:s,s:s},s:o,s:{s:{s:o},s:{s:{s:s,s:s}}},s:[{s:[]}]}",
                                     "openapi", "3.1.0", "info", "title", "Probing", "version",
                                     prb_version(), "paths", paths, "components", "schemas",
                                     "Error", error, "securitySchemes", "token", "type", "http",
                                     "scheme", "bearer", "security", "token"),
                           err);
}

const struct prb_route prb_route_openapi = {
    .methods = PRB_GET,
    .path = "/api/v1/openapi.json",
    .summary = "these routes as OpenAPI 3.1",
    .grant = PRB_MAY_LOOK,
    .formats = "json",
    .seconds = 10,
    .answer = answer,
};
