/*
 * A record: what the stream of the bus keeps, in a file of the store, which every command that takes
 * a store reads.  How far the stream was read stands in the same transaction as the rows, so that
 * each row is there once, also when the record is killed and begun again.
 */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "fleet/cluster.h"
#include "fleet/history/history.h"
#include "store/file.h"
#include "store/host.h"

#define ANSWERS 5.0        /* s */
#define PAUSE_MS 500       /* between two looks at a stream that has nothing more */
#define POSITION "history" /* of the mark that no process has */

struct record {
    const struct prb_cluster_record_options *options;
    struct prb_bus_file file;
    struct prb_bus *bus;
    struct prb_bus_inbox *inbox;
    struct prb_store_file *store;
    struct prb_packer *packer;
    uint64_t stream, position; /* which stream, and up to which of its messages */
    uint64_t rows;
    bool named; /* the file knows its job */
};

static uint64_t add_hash(uint64_t hash, const char *text)
{
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * 0x100000001b3u; /* FNV-1a */
    return hash;
}

/* ---- asking the server ---- */

static bool ask(struct record *record, const char *subject, const char *text,
                struct prb_bus_message *out, struct prb_error *err)
{
    char reply[PRB_BUS_SUBJECT];
    prb_bus_inbox_subject(record->inbox, 0, reply);
    const struct prb_bus_message message = {
        .subject = subject, .reply = reply, .data = text, .len = strlen(text)};
    if (!prb_bus_publish(record->bus, &message, err))
        return false;
    double end = prb_clock_s() + ANSWERS;
    while (!prb_bus_inbox_next(record->inbox, 0.1, out, err)) {
        if (err->code != PRB_TIMEOUT || !prb_bus_check(record->bus, err))
            return false;
        if (prb_clock_s() > end)
            return prb_fail(err, PRB_TIMEOUT, "the bus does not answer");
    }
    return true;
}

/* Of one that was made anew, the numbers begin anew.  The file is opened once there is a stream. */
static bool know_stream(struct record *record, struct prb_error *err)
{
    struct prb_bus_message answer;
    if (!ask(record, "$JS.API.STREAM.INFO." PRB_HISTORY_STREAM, "", &answer, err))
        return false;
    PRB_AUTO(json_t)
    json_t *object = answer.nobody ? NULL : json_loadb(answer.data, answer.len, 0, NULL);
    const char *created = json_string_value(json_object_get(object, "created"));
    prb_bus_message_free(&answer);
    if (!created) {
        prb_fail(err, PRB_NOT_FOUND, "no agent of this bus has published history");
        return prb_error_remedy(err, "`probing cluster attach --history TABLES` on the hosts");
    }
    record->stream = add_hash(0xcbf29ce484222325u, created);
    if (!(record->store = prb_store_open(record->options->file, true, err)))
        return false;
    PRB_AUTO(prb_ring_mark) struct prb_ring_mark mark = {0};
    if (!prb_store_mark(record->store, 0, POSITION, record->stream, &mark, err))
        return false;
    record->position = mark.count ? mark.places[0].rows : 0;
    return true;
}

/* ---- a message's rows ---- */

struct table {
    struct prb_ring_column columns[PRB_RING_COLUMNS_MAX];
    size_t count;
    char *names; /* owned; columns point into it */
    char name[PRB_RING_NAME_MAX + 1];
};

static bool take_type(const char *text, enum prb_ring_type *out)
{
    static const struct {
        const char *name;
        enum prb_ring_type type;
    } types[] = {{"integer", PRB_RING_INTEGER},
                 {"real", PRB_RING_REAL},
                 {"text", PRB_RING_TEXT},
                 {"boolean", PRB_RING_BOOLEAN},
                 {"time", PRB_RING_TIME}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(text, types[i].name) == 0) {
            *out = types[i].type;
            return true;
        }
    return false;
}

static bool is_name(const char *text)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_";
    static const char all[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789";
    return *text && strlen(text) <= PRB_RING_NAME_MAX && strchr(letters, *text) &&
           text[strspn(text, all)] == '\0';
}

/* "NAME:TYPE,…", and the last part of the subject. */
static bool take_table(const struct prb_bus_message *message, struct table *out)
{
    const char *subject = message->headers[PRB_BUS_STREAM_SUBJECT_HEADER];
    const char *columns = message->headers[PRB_BUS_COLUMNS];
    const char *dot = subject ? strrchr(subject, '.') : NULL;
    char *save = NULL;
    if (!dot || !columns || !is_name(dot + 1) || !(out->names = strdup(columns)))
        return false;
    snprintf(out->name, sizeof out->name, "%s", dot + 1);
    for (char *one = strtok_r(out->names, ",", &save); one; one = strtok_r(NULL, ",", &save)) {
        char *colon = strchr(one, ':');
        if (!colon || out->count == PRB_RING_COLUMNS_MAX)
            return false;
        *colon = '\0';
        struct prb_ring_column *column = &out->columns[out->count++];
        *column = (struct prb_ring_column){.name = one, .unit = "", .doc = ""};
        if (!is_name(one) || !take_type(colon + 1, &column->type))
            return false;
    }
    return out->count > 0;
}

static double real_of(const json_t *value)
{
    const char *text = json_string_value(value);
    if (!text)
        return json_number_value(value);
    return strcmp(text, "NaN") == 0 ? NAN : strcmp(text, "-Infinity") == 0 ? -INFINITY : INFINITY;
}

static void take_value(const json_t *value, enum prb_ring_type type, struct prb_ring_value *out)
{
    *out = (struct prb_ring_value){.null = !value || json_is_null(value)};
    if (out->null)
        return;
    switch (type) {
    case PRB_RING_INTEGER:
        out->integer = json_integer_value(value);
        break;
    case PRB_RING_BOOLEAN:
        out->integer = json_is_true(value);
        break;
    case PRB_RING_REAL:
    case PRB_RING_TIME:
        out->real = real_of(value);
        break;
    case PRB_RING_TEXT:
        out->text = json_string_value(value);
        out->len = json_string_length(value);
        out->null = !out->text;
        break;
    }
}

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static bool add_rows(const struct prb_bus_message *message, const struct table *table,
                     struct prb_store_rows *rows, struct prb_error *err)
{
    struct prb_ring_value values[PRB_RING_COLUMNS_MAX];
    for (const char *at = message->data, *end = at + message->len; at < end;) {
        const char *line = memchr(at, '\n', (size_t)(end - at));
        size_t len = line ? (size_t)(line - at) : (size_t)(end - at);
        PRB_AUTO(json_t) json_t *object = json_loadb(at, len, JSON_ALLOW_NUL, NULL);
        at += len + 1;
        if (!json_is_object(object))
            continue;
        for (size_t i = 0; i < table->count; i++)
            take_value(json_object_get(object, table->columns[i].name), table->columns[i].type,
                       &values[i]);
        if (!prb_store_rows_add(rows, values, err))
            return false;
    }
    return true;
}

/* ---- into the file ---- */

static int64_t take_process(struct record *record, const json_t *object, struct prb_error *err)
{
    char text[400], identity[200];
    const char *host = json_string_value(json_object_get(object, "host"));
    const char *key = json_string_value(json_object_get(object, "key"));
    const char *job = json_string_value(json_object_get(object, "job"));
    json_int_t pid = json_integer_value(json_object_get(object, "pid"));
    json_int_t rank = json_integer_value(json_object_get(object, "rank"));
    if (!host || !key || !job || pid <= 0) {
        prb_fail(err, PRB_CORRUPT, "a message does not say whose rows it has");
        return 0;
    }
    if (!record->named && !prb_store_set_job(record->store, job, err))
        return 0;
    record->named = true;
    snprintf(text, sizeof text, "%.80s: rank %lld of @%.128s", host, (long long)rank, job);
    snprintf(identity, sizeof identity, "%.120s %lld %lld", key, (long long)pid,
             (long long)json_integer_value(json_object_get(object, "started")));
    /* The same pid and start may be there on two hosts. */
    const struct prb_store_process process = {
        .pid = pid,
        .started = (int64_t)(add_hash(0xcbf29ce484222325u, identity) >> 1),
        .rank = (int)rank,
        .world_size = (int)json_integer_value(json_object_get(object, "world_size")),
        .command = text,
    };
    return prb_store_add_process(record->store, &process, err);
}

static bool write_rows(struct record *record, const struct prb_store_shape *shape, int64_t process,
                       const struct prb_store_rows *rows, struct prb_error *err)
{
    PRB_AUTO(prb_buf) struct prb_buf bytes = {0};
    struct prb_store_chunk made;
    double now = now_s();
    struct prb_store_new_chunk chunk = {.process = process, .first = now, .last = now};
    size_t column = prb_store_time_column(shape->columns, shape->count);
    double least, most;
    if (!(chunk.rows = prb_store_rows_count(rows)))
        return true;
    if (!(chunk.shape = prb_store_add_shape(record->store, shape, err)) ||
        !prb_store_chunk_make(rows, record->packer, &bytes, err) ||
        !prb_store_chunk_open(bytes.data, bytes.len, &made, err))
        return false;
    if (column < made.columns && prb_store_chunk_bounds(&made, column, &least, &most)) {
        chunk.first = least;
        chunk.last = most;
    }
    chunk.bytes = bytes.data;
    chunk.len = bytes.len;
    record->rows += chunk.rows;
    return prb_store_add_chunk(record->store, &chunk, err);
}

static bool write_lost(struct record *record, const struct prb_bus_message *message,
                       const struct prb_store_shape *shape, int64_t process, struct prb_error *err)
{
    const char *lost = message->headers[PRB_BUS_LOST_HEADER];
    char name[2 * PRB_RING_NAME_MAX + 2];
    if (!lost)
        return true;
    snprintf(name, sizeof name, "%s.%s", shape->schema, shape->name);
    struct prb_store_gap gap = {
        .table = name, .process = process, .to = now_s(), .rows = strtoll(lost, NULL, 10)};
    return prb_store_add_gap(record->store, &gap, err);
}

/* What cannot be used is passed over: anybody with an agent's key may have written it. */
static bool take_message(struct record *record, const struct prb_bus_message *message,
                         struct prb_error *err)
{
    struct table table = {0};
    const char *about = message->headers[PRB_BUS_PROCESS];
    PRB_AUTO(json_t) json_t *object = about ? json_loads(about, 0, NULL) : NULL;
    PRB_AUTO(prb_store_rows) struct prb_store_rows *rows = NULL;
    bool good = true;
    if (object && take_table(message, &table)) {
        const struct prb_store_shape shape = {
            .schema = prb_host_is_ring(table.name) ? PRB_HOST_SCHEMA : "python",
            .name = table.name,
            .columns = table.columns,
            .count = table.count};
        int64_t process = take_process(record, object, err);
        rows = process ? prb_store_rows_new(table.columns, table.count, err) : NULL;
        good = rows && add_rows(message, &table, rows, err) &&
               write_rows(record, &shape, process, rows, err) &&
               write_lost(record, message, &shape, process, err);
    }
    free(table.names);
    return good;
}

static bool keep(struct record *record, const struct prb_bus_message *message, uint64_t number,
                 struct prb_error *err)
{
    struct prb_ring_place place = {.state = 1, .rows = number};
    const struct prb_ring_mark mark = {&place, 1};
    struct prb_error why = {0};
    if (!prb_store_begin(record->store, err))
        return false;
    if (!take_message(record, message, &why) && why.code != PRB_CORRUPT && why.code != PRB_USAGE) {
        prb_store_rollback(record->store);
        *err = why;
        return false;
    }
    if (prb_store_set_mark(record->store, 0, POSITION, record->stream, &mark, err) &&
        prb_store_commit(record->store, err)) {
        record->position = number;
        return true;
    }
    prb_store_rollback(record->store);
    return false;
}

/* The next one, if there is one. */
static bool next(struct record *record, bool *found, struct prb_error *err)
{
    char text[120];
    struct prb_bus_message answer;
    snprintf(text, sizeof text,
             "{\"seq\":%" PRIu64 ",\"next_by_subj\":\"" PRB_HISTORY_SUBJECTS "\"}",
             record->position + 1);
    *found = false;
    if (!ask(record, "$JS.API.DIRECT.GET." PRB_HISTORY_STREAM, text, &answer, err))
        return false;
    const char *number = answer.nobody ? NULL : answer.headers[PRB_BUS_SEQUENCE];
    uint64_t at = number ? strtoull(number, NULL, 10) : 0;
    *found = at > record->position;
    bool good = !*found || keep(record, &answer, at, err);
    prb_bus_message_free(&answer);
    return good;
}

static bool run(struct record *record, struct prb_error *err)
{
    struct pollfd stop = {.fd = record->options->stop_fd, .events = POLLIN};
    const struct prb_bus_options bus = {.name = "probing record", .keep = true, .hosts = 1};
    bool found;
    if (!prb_bus_file_find(record->options->bus, PRB_BUS_look, &record->file, &found, err))
        return false;
    if (!found)
        return prb_fail(err, PRB_NOT_FOUND, "no bus is configured");
    if (!(record->packer = prb_packer_new(err)) ||
        !(record->bus = prb_bus_open(&record->file, &bus, err)) ||
        !(record->inbox = prb_bus_inbox_new(record->bus, err)) || !know_stream(record, err))
        return false;
    do {
        if (!next(record, &found, err))
            return false;
        if (!found && record->options->once)
            return true;
    } while (poll(&stop, 1, found ? 0 : PAUSE_MS) <= 0);
    return true;
}

bool prb_cluster_record(const struct prb_cluster_record_options *options, uint64_t *rows_out,
                        struct prb_error *err)
{
    struct record record = {.options = options};
    bool good = run(&record, err);
    *rows_out = record.rows;
    prb_bus_inbox_free(record.inbox);
    prb_bus_close(record.bus);
    prb_bus_file_deinit(&record.file);
    prb_packer_free(record.packer);
    prb_store_close(record.store);
    return good;
}
