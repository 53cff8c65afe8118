/* What tools have in common: their schemas, and results that a model can take. */
#include <string.h>

#include "format/format.h"
#include "serve/mcp/mcp.h"

const struct prb_mcp_tool *const prb_mcp_tools[] = {
    &prb_mcp_processes, &prb_mcp_diagnose, &prb_mcp_stacks, &prb_mcp_query,
    &prb_mcp_schema,    &prb_mcp_profile,  &prb_mcp_eval,   NULL,
};

json_t *prb_mcp_tool_json(const struct prb_mcp_tool *tool)
{
    return json_pack("{s:s,s:s,s:s,s:o,s:o,s:{s:b,s:b,s:b,s:b}}", "name", tool->name, "title",
                     tool->title, "description", tool->description, "inputSchema",
                     json_loads(tool->input, 0, NULL), "outputSchema",
                     json_loads(tool->output, 0, NULL), "annotations", "readOnlyHint", !tool->acts,
                     "destructiveHint", tool->acts, "idempotentHint", !tool->acts, "openWorldHint",
                     0);
}

/* ---- arguments: the part of JSON Schema that the tools use ---- */

static bool fits_type(const json_t *value, const char *type)
{
    return strcmp(type, "string") == 0    ? json_is_string(value)
           : strcmp(type, "boolean") == 0 ? json_is_boolean(value)
           : strcmp(type, "integer") == 0 ? json_is_integer(value)
                                          : json_is_number(value);
}

static bool is_within(const json_t *value, const json_t *rule, const char *least, const char *most,
                      double number)
{
    const json_t *low = json_object_get(rule, least), *high = json_object_get(rule, most);
    (void)value;
    return !(low && number < json_number_value(low)) && !(high && number > json_number_value(high));
}

static bool check_one(const char *key, const json_t *value, const json_t *rule,
                      struct prb_error *err)
{
    const char *type = json_string_value(json_object_get(rule, "type"));
    if (!fits_type(value, type))
        return prb_fail(err, PRB_USAGE, "`%.60s` must be of type %s", key, type);
    bool fits =
        json_is_string(value)
            ? is_within(value, rule, "minLength", "maxLength", (double)json_string_length(value)) &&
                  strlen(json_string_value(value)) == json_string_length(value)
            : is_within(value, rule, "minimum", "maximum", json_number_value(value));
    return fits || prb_fail(err, PRB_USAGE, "`%.60s` is out of its bounds", key);
}

bool prb_mcp_check(const struct prb_mcp_tool *tool, const json_t *arguments, struct prb_error *err)
{
    json_auto_t *schema = json_loads(tool->input, 0, NULL);
    const json_t *rules = json_object_get(schema, "properties"), *needed;
    const char *key;
    json_t *value;
    size_t i;
    json_object_foreach((json_t *)arguments, key, value)
    {
        const json_t *rule = json_object_get(rules, key);
        if (!rule)
            return prb_fail(err, PRB_USAGE, "%s has no argument `%.60s`", tool->name, key);
        if (!check_one(key, value, rule, err))
            return false;
    }
    json_array_foreach(
        json_object_get(schema, "required"), i,
        needed) if (!json_object_get(arguments,
                                     json_string_value(
                                         needed))) return prb_fail(err, PRB_USAGE,
                                                                   "%s needs the argument `%s`",
                                                                   tool->name,
                                                                   json_string_value(needed));
    return true;
}

/* ---- results ---- */

static size_t length_of(const json_t *value)
{
    return json_dumpb(value, NULL, 0, JSON_COMPACT | JSON_ENCODE_ANY);
}

/* Texts longer than most, also within: their first characters. */
static void cut_texts(json_t *value, size_t most)
{
    const char *key;
    json_t *part;
    size_t i;
    if (json_is_string(value) && json_string_length(value) > most) {
        size_t len = most;
        const char *text = json_string_value(value);
        while (len && ((unsigned char)text[len] & 0xc0) == 0x80)
            len--;
        char *copy = strndup(text, len);
        PRB_AUTO(prb_buf) struct prb_buf cut = {0};
        prb_buf_addf(&cut, "%s… (%zu characters left out)", copy ? copy : "",
                     json_string_length(value) - len);
        free(copy);
        if (prb_buf_ok(&cut))
            json_string_set(value, cut.data);
    } else if (json_is_object(value)) {
        json_object_foreach(value, key, part) cut_texts(part, most);
    } else {
        json_array_foreach(value, i, part) cut_texts(part, most);
    }
}

/* The array that takes most room, also within tables; NULL: none has an element. */
static json_t *largest(json_t *value, size_t *room)
{
    const char *key;
    json_t *part, *best = NULL;
    size_t i, size = 0;
    if (json_is_object(value)) {
        json_object_foreach(value, key, part)
        {
            json_t *one = largest(part, &size);
            if (one && size > *room) {
                *room = size;
                best = one;
            }
        }
        return best;
    }
    if (!json_is_array(value) || json_array_size(value) == 0)
        return NULL;
    if (json_array_size(value) <= 4) /* few: something in one of them is large */
        json_array_foreach(value, i, part)
        {
            size = 0;
            json_t *one = largest(part, &size);
            if (one && size > *room) {
                *room = size;
                best = one;
            }
        }
    size = length_of(value);
    if (!best) {
        *room = size;
        best = value;
    }
    return best;
}

void prb_mcp_fit(json_t *result)
{
    size_t left_out = 0;
    if (length_of(result) <= PRB_MCP_RESULT_MAX - 200)
        return;
    cut_texts(result, 2000);
    for (int tries = 0; length_of(result) > PRB_MCP_RESULT_MAX - 200 && tries < 200; tries++) {
        size_t room = 0;
        json_t *array = largest(result, &room);
        size_t count = json_array_size(array), keep = count - (count + 3) / 4;
        if (!array)
            break;
        left_out += count - keep;
        while (json_array_size(array) > keep)
            json_array_remove(array, json_array_size(array) - 1);
    }
    for (size_t most = 1000; length_of(result) > PRB_MCP_RESULT_MAX - 200 && most > 10; most /= 2)
        cut_texts(result, most);
    json_object_set_new(result, "truncated", json_true());
    if (left_out)
        json_object_set_new(result, "left_out",
                            json_sprintf("%zu rows: ask for fewer, or for less of each", left_out));
}

static void add_safe(struct prb_buf *out, const char *text, size_t len)
{
    PRB_AUTO_FREE char *safe = prb_text_safe(text, len, 0);
    prb_buf_adds(out, safe ? safe : "");
}

static void add_scalar(struct prb_buf *out, const json_t *value)
{
    if (json_is_string(value)) {
        add_safe(out, json_string_value(value), json_string_length(value));
        return;
    }
    PRB_AUTO_FREE char *text =
        json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(6));
    prb_buf_adds(out, json_is_null(value) ? "" : text ? text : "");
}

static bool is_scalar(const json_t *value)
{
    return !json_is_object(value) && !json_is_array(value);
}

/* Lists as lines, objects as "key: value", rows with tabs. */
static void add_value(struct prb_buf *out, json_t *value, unsigned depth)
{
    const char *key;
    json_t *part;
    size_t i;
    if (is_scalar(value)) {
        add_scalar(out, value);
    } else if (json_is_object(value)) {
        const char *before = "";
        json_object_foreach(value, key, part)
        {
            if (json_is_null(part) || (json_is_array(part) && json_array_size(part) == 0))
                continue;
            prb_buf_adds(out, before);
            add_safe(out, key, strlen(key));
            prb_buf_adds(out, is_scalar(part) ? ": " : ":\n");
            add_value(out, part, depth + 1);
            before = depth ? "; " : "\n";
        }
    } else {
        json_array_foreach(value, i, part)
        {
            bool flat = is_scalar(part) && depth > 0;
            prb_buf_adds(out, i == 0 ? "" : flat ? "\t" : "\n");
            add_value(out, part, depth + 1);
        }
    }
}

char *prb_mcp_text(const json_t *result, const char *about)
{
    PRB_AUTO(prb_buf) struct prb_buf out = {0};
    prb_buf_adds(&out, about);
    add_value(&out, (json_t *)result, 0);
    size_t most = PRB_MCP_RESULT_MAX - 100;
    if (prb_buf_ok(&out) && out.len > most) {
        size_t left_out = out.len - most;
        while (most && ((unsigned char)out.data[most] & 0xc0) == 0x80)
            most--;
        out.len = most;
        prb_buf_addf(&out, "\n… %zu characters left out: ask for less", left_out);
    }
    return prb_buf_steal(&out);
}
