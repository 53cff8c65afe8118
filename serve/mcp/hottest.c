/* What agents are told of a profile: the hottest functions, and the heaviest paths. */
#include <string.h>

#include "format/json.h"
#include "serve/mcp/mcp.h"

#define PATHS 10
#define HOTTEST 20

static void add_to(json_t *table, const char *name, const char *key, json_int_t count)
{
    json_t *row = json_object_get(table, name);
    if (!row)
        json_object_set_new(table, name, row = json_pack("{s:i,s:i}", "own", 0, "total", 0));
    json_object_set_new(row, key,
                        json_integer(json_integer_value(json_object_get(row, key)) + count));
}

/* "outer;inner COUNT" */
static json_int_t take_line(char *line, json_t *functions, json_t *paths)
{
    char *space = strrchr(line, ' '), *save = NULL, *last = NULL;
    json_int_t count = space ? strtoll(space + 1, NULL, 10) : 0;
    if (!space || count <= 0)
        return 0;
    *space = '\0';
    json_array_append_new(paths,
                          json_pack("{s:o,s:I}", "path", prb_json_text(line), "samples", count));
    json_t *seen = json_object();
    for (char *at = strtok_r(line, ";", &save); at; at = strtok_r(NULL, ";", &save)) {
        json_t *safe = prb_json_text(at);
        const char *name = json_string_value(safe);
        if (name && !json_object_get(seen, name))
            add_to(functions, name, "total", count);
        if (name)
            json_object_set_new(seen, name, json_true());
        json_decref(safe);
        last = at;
    }
    json_t *safe = last ? prb_json_text(last) : NULL;
    if (safe && json_string_value(safe))
        add_to(functions, json_string_value(safe), "own", count);
    json_decref(safe);
    json_decref(seen);
    return count;
}

/* Take the row with the greatest number out of an array, or NULL. */
static json_t *take_greatest(json_t *rows, const char *key)
{
    size_t best = json_array_size(rows);
    json_int_t most = -1;
    for (size_t i = 0; i < json_array_size(rows); i++) {
        json_int_t value = json_integer_value(json_object_get(json_array_get(rows, i), key));
        if (value > most) {
            most = value;
            best = i;
        }
    }
    json_t *row = json_incref(json_array_get(rows, best));
    if (row)
        json_array_remove(rows, best);
    return row;
}

static void tell_hottest(struct prb_mcp_call *call, json_t *functions, json_t *paths,
                         json_int_t all)
{
    json_t *rows = json_array(), *hottest = json_array(), *best = json_array(), *value, *row;
    const char *name;
    json_object_foreach(functions, name, value)
    {
        json_object_set_new(value, "function", json_string(name));
        json_array_append(rows, value);
    }
    while (json_array_size(hottest) < HOTTEST && (row = take_greatest(rows, "own")))
        json_array_append_new(hottest, row);
    while (json_array_size(best) < PATHS && (row = take_greatest(paths, "samples")))
        json_array_append_new(best, row);
    json_decref(rows);
    prb_mcp_put(call, "samples", json_integer(all));
    prb_mcp_put(call, "hottest", hottest);
    prb_mcp_put(call, "paths", best);
}

json_t *prb_mcp_hottest_begin(void) { return json_pack("{s:{},s:[]}", "functions", "paths"); }

json_int_t prb_mcp_hottest_add(json_t *hottest, char *line)
{
    return take_line(line, json_object_get(hottest, "functions"),
                     json_object_get(hottest, "paths"));
}

void prb_mcp_hottest_tell(struct prb_mcp_call *call, json_t *hottest, json_int_t all)
{
    tell_hottest(call, json_object_get(hottest, "functions"), json_object_get(hottest, "paths"),
                 all);
    json_decref(hottest);
}
