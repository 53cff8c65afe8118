/*
 * A record: what the stream of the bus keeps, in a file or a database.  How far the stream was read
 * stands in the same transaction as the rows, so that each row is there once, also when the record
 * is killed and begun again.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "fleet/cluster.h"
#include "fleet/history/sink.h"

#define ANSWERS 5.0   /* s */
#define PAUSE_MS 500  /* between two looks at a stream that has nothing more */
#define AGAIN_MS 1000 /* until a server that went is tried again */

struct record {
    const struct prb_cluster_record_options *options;
    struct prb_bus_file file;
    struct prb_bus *bus;
    struct prb_bus_inbox *inbox;
    struct prb_sink *sink;
    uint64_t stream, position; /* which stream, and up to which of its messages */
    bool known;                /* where we are in it */
    bool away;                 /* the sink's server is, and that was told */
    uint64_t rows;
};

static void say(struct record *record, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void say(struct record *record, const char *format, ...)
{
    char line[500];
    va_list args;
    if (!record->options->say)
        return;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    record->options->say(record->options->context, line);
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

static uint64_t hash(const char *text)
{
    uint64_t sum = 0xcbf29ce484222325u; /* FNV-1a */
    for (; *text; text++)
        sum = (sum ^ (unsigned char)*text) * 0x100000001b3u;
    return sum;
}

/* Of one that was made anew, the numbers begin anew. */
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
    uint64_t stream = hash(created);
    record->known = record->known && stream == record->stream;
    record->stream = stream;
    return true;
}

/* ---- into the sink ---- */

static bool begin(struct record *record, uint64_t *position, bool *again, struct prb_error *err)
{
    return record->sink->begin(record->sink, record->stream, position, again, err);
}

static bool know_position(struct record *record, bool *again, struct prb_error *err)
{
    if (record->known)
        return true;
    if (!begin(record, &record->position, again, err))
        return false;
    record->sink->rollback(record->sink);
    return record->known = true;
}

/* *kept false, without an error: what is in the sink is not what we thought: another record. */
static bool keep(struct record *record, const struct prb_bus_message *message, uint64_t number,
                 bool *kept, bool *again, struct prb_error *err)
{
    struct prb_error why = {0};
    PRB_AUTO(prb_taken) struct prb_taken taken = {0};
    bool usable = prb_taken_parse(message, &taken, &why);
    uint64_t position, rows = 0;
    *kept = false;
    for (int turn = 0; turn < 2; turn++) {
        if (!begin(record, &position, again, err))
            return false;
        if (position != record->position) {
            record->sink->rollback(record->sink);
            record->position = position;
            return true;
        }
        if (!usable || record->sink->take(record->sink, &taken, &rows, &why))
            break;
        record->sink->rollback(record->sink);
        if (why.code != PRB_CORRUPT && why.code != PRB_USAGE) {
            *again = why.code == PRB_GONE;
            if (err)
                *err = why;
            return false;
        }
        /* What cannot be used is passed over, whole. */
        say(record, "message %" PRIu64 " is left out: %s", number, why.text);
        usable = false;
        rows = 0;
    }
    if (!record->sink->commit(record->sink, record->stream, number, again, err)) {
        record->sink->rollback(record->sink);
        record->known = false; /* it may be there all the same */
        return false;
    }
    if (record->position && number > record->position + 1)
        say(record, "%" PRIu64 " messages had left the stream before they were taken",
            number - record->position - 1);
    record->position = number;
    record->rows += rows;
    return *kept = true;
}

/* The next one, if there is one. */
static bool next(struct record *record, bool *found, bool *again, struct prb_error *err)
{
    char text[120];
    struct prb_bus_message answer;
    bool kept;
    *found = *again = false;
    if (!know_position(record, again, err))
        return false;
    snprintf(text, sizeof text,
             "{\"seq\":%" PRIu64 ",\"next_by_subj\":\"" PRB_HISTORY_SUBJECTS "\"}",
             record->position + 1);
    if (!ask(record, "$JS.API.DIRECT.GET." PRB_HISTORY_STREAM, text, &answer, err))
        return false;
    const char *number = answer.nobody ? NULL : answer.headers[PRB_BUS_SEQUENCE];
    uint64_t at = number ? strtoull(number, NULL, 10) : 0;
    *found = at > record->position;
    bool good = !*found || keep(record, &answer, at, &kept, again, err);
    prb_bus_message_free(&answer);
    /* A stream that was made anew has smaller numbers, and nothing for us. */
    return good && (*found || know_stream(record, err));
}

static bool begin_all(struct record *record, struct prb_error *err)
{
    const struct prb_cluster_record_options *options = record->options;
    const struct prb_bus_options bus = {.name = "probing record", .keep = true, .hosts = 1};
    bool found;
    if (!prb_bus_file_find(options->bus, PRB_BUS_look, &record->file, &found, err))
        return false;
    if (!found)
        return prb_fail(err, PRB_NOT_FOUND, "no bus is configured");
    /* The sink once there is a stream. */
    return (record->bus = prb_bus_open(&record->file, &bus, err)) &&
           (record->inbox = prb_bus_inbox_new(record->bus, err)) && know_stream(record, err) &&
           (record->sink = prb_sink_is_postgres(options->file)
                               ? prb_sink_postgres(options->file, options->stop_fd, err)
                               : prb_sink_store(options->file, err));
}

static bool run(struct record *record, struct prb_error *err)
{
    struct pollfd stop = {.fd = record->options->stop_fd, .events = POLLIN};
    bool found, again;
    int pause;
    if (!begin_all(record, err))
        return false;
    do {
        bool good = next(record, &found, &again, err);
        if (!good && poll(&stop, 1, 0) > 0)
            break; /* waiting was given up */
        if (!good && (!again || record->options->once))
            return false;
        if (!good && !record->away)
            say(record, "%s; it is tried again", err->text);
        if (good && record->away)
            say(record, "%s is back", record->sink->name);
        record->away = !good;
        if (good && !found && record->known && record->options->once)
            return true;
        pause = !good ? AGAIN_MS : found || !record->known ? 0 : PAUSE_MS;
    } while (poll(&stop, 1, pause) <= 0);
    return true;
}

bool prb_cluster_record(const struct prb_cluster_record_options *options,
                        struct prb_cluster_recorded *out, struct prb_error *err)
{
    struct record record = {.options = options};
    bool good = run(&record, err);
    *out = (struct prb_cluster_recorded){.rows = record.rows};
    if (record.sink) {
        snprintf(out->name, sizeof out->name, "%s", record.sink->name);
        record.sink->free(record.sink);
    }
    prb_bus_inbox_free(record.inbox);
    prb_bus_close(record.bus);
    prb_bus_file_deinit(&record.file);
    return good;
}
