/* A crash that an agent told (bus/events.h) as a row of the history: see sink.h. */
#include <string.h>

#include "fleet/history/sink.h"
#include "ring/columns.h"

#define TABLE "crash_events"
#define TEXT_MOST 2000 /* bytes of one */

/* As system.crashes has them; its pid and rank are the process's, as of every row. */
static const struct {
    const char *name, *key; /* key: in the event */
    enum prb_ring_type type;
} columns[] = {
    {"time", "time", PRB_RING_TIME},         {"kind", "kind", PRB_RING_TEXT},
    {"title", "title", PRB_RING_TEXT},       {"place", "place", PRB_RING_TEXT},
    {"crash_group", "group", PRB_RING_TEXT}, {"path", "path", PRB_RING_TEXT},
    {"bytes", "bytes", PRB_RING_INTEGER},
};

static bool take_row(const json_t *event, struct prb_taken *out)
{
    PRB_AUTO(json_t) json_t *row = json_object();
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++) {
        json_t *value = json_object_get(event, columns[i].key);
        bool text = columns[i].type == PRB_RING_TEXT;
        if (text ? !json_is_string(value) || json_string_length(value) > TEXT_MOST
                 : !json_is_number(value))
            return false;
        if (!text || json_string_length(value))
            json_object_set(row, columns[i].name, value);
        out->columns[out->count++] = (struct prb_ring_column){
            .name = columns[i].name, .unit = "", .doc = "", .type = columns[i].type};
    }
    if (!(out->text = json_dumps(row, JSON_COMPACT)))
        return false;
    out->rows = out->text;
    out->len = strlen(out->text);
    return true;
}

static json_int_t number_of(const json_t *event, const char *name)
{
    return json_integer_value(json_object_get(event, name));
}

static bool take_process(const json_t *event, struct prb_taken *out)
{
    json_int_t rank =
        json_is_integer(json_object_get(event, "rank")) ? number_of(event, "rank") : -1;
    out->host = json_string_value(json_object_get(event, "host"));
    out->key = json_string_value(json_object_get(event, "key"));
    out->job = json_string_value(json_object_get(event, "job"));
    out->pid = number_of(event, "pid");
    out->rank = rank >= 0 && rank <= INT32_MAX ? (int)rank : -1;
    out->world_size = -1;
    return out->host && out->key && out->job && out->pid >= 0 && out->pid <= INT32_MAX;
}

bool prb_taken_crash(const struct prb_bus_message *message, struct prb_taken *out,
                     struct prb_error *err)
{
    *out = (struct prb_taken){.schema = "python", .name = TABLE};
    out->object = json_loadb(message->data, message->len, 0, NULL);
    if (take_process(out->object, out) && take_row(out->object, out))
        return true;
    prb_taken_deinit(out);
    return prb_fail(err, PRB_CORRUPT, "an event does not say what crashed");
}
