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

#define ANSWERS 5.0             /* s */
#define AT_ONCE 16              /* messages in one transaction; a power of two */
#define TURNS 65536u            /* of asking, until their numbers begin anew */
#define ALONE (TURNS * AT_ONCE) /* the number of an answer that is none of these */
#define PAUSE_MS 500            /* between two looks at a stream that has nothing more */
#define AGAIN_MS 1000           /* until a server that went is tried again */

struct record {
    const struct prb_cluster_record_options *options;
    struct prb_bus_file file;
    struct prb_bus *bus;
    struct prb_bus_inbox *inbox;
    struct prb_sink *sink;
    uint64_t stream, position; /* which stream, and up to which of its messages */
    bool known;                /* where we are in it */
    bool away;                 /* the sink's server is, and that was told */
    size_t wanted;             /* messages to ask for at once */
    unsigned turn;             /* of asking */
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
    prb_bus_inbox_subject(record->inbox, ALONE, reply);
    const struct prb_bus_message message = {
        .subject = subject, .reply = reply, .data = text, .len = strlen(text)};
    if (!prb_bus_publish(record->bus, &message, err))
        return false;
    double end = prb_clock_s() + ANSWERS;
    for (;;) {
        if (prb_bus_inbox_next(record->inbox, 0.1, out, err)) {
            if (prb_bus_inbox_tag(record->inbox, out->subject) == ALONE)
                return true;
            prb_bus_message_free(out); /* asked for before */
        } else if (err->code != PRB_TIMEOUT || !prb_bus_check(record->bus, err)) {
            return false;
        } else if (prb_clock_s() > end) {
            return prb_fail(err, PRB_TIMEOUT, "the bus does not answer");
        }
    }
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

/* Messages that are taken together, in the stream's order. */
struct batch {
    struct prb_bus_message messages[AT_ONCE];
    uint64_t numbers[AT_ONCE];
    bool spoilt[AT_ONCE]; /* what cannot be used is passed over, whole */
    size_t count;
};

static void batch_deinit(struct batch *batch)
{
    while (batch->count)
        prb_bus_message_free(&batch->messages[--batch->count]);
}
PRB_DEFINE_AUTO(batch, struct batch, batch_deinit)

static bool take_one(struct record *record, const struct prb_bus_message *message, uint64_t *rows,
                     struct prb_error *err)
{
    PRB_AUTO(prb_taken) struct prb_taken taken = {0};
    *rows = 0;
    return prb_taken_parse(message, &taken, err) &&
           record->sink->take(record->sink, &taken, rows, err);
}

static bool is_spoilt(const struct prb_error *why)
{
    return why->code == PRB_CORRUPT || why->code == PRB_USAGE;
}

/* What is in [from, to) is kept, or nothing of it.  *at: the message at fault, to: it is not known. */
static bool keep_once(struct record *record, const struct batch *batch, size_t from, size_t to,
                      uint64_t *rows, size_t *at, bool *again, struct prb_error *err)
{
    uint64_t more;
    *rows = 0;
    for (*at = from; *at < to; ++*at) {
        if (batch->spoilt[*at])
            continue;
        if (!take_one(record, &batch->messages[*at], &more, err)) {
            *again = err->code == PRB_GONE;
            record->sink->rollback(record->sink);
            return false;
        }
        *rows += more;
    }
    if (record->sink->commit(record->sink, record->stream, batch->numbers[to - 1], again, err))
        return true;
    record->sink->rollback(record->sink);
    record->known = record->known && is_spoilt(err); /* else it may be there all the same */
    return false;
}

static void count_gone(struct record *record, uint64_t number)
{
    if (record->position && number > record->position + 1)
        say(record, "%" PRIu64 " messages had left the stream before they were taken",
            number - record->position - 1);
    record->position = number;
}

/* The same until it is done.  *kept false, without an error: what is in the sink is not what we
 * thought: another record. */
static bool keep(struct record *record, struct batch *batch, size_t from, size_t to, bool *kept,
                 bool *again, struct prb_error *err)
{
    for (*kept = true; from < to && *kept;) {
        struct prb_error why = {0};
        uint64_t position, rows;
        size_t at;
        if (!begin(record, &position, again, err))
            return false;
        if (position != record->position) {
            record->sink->rollback(record->sink);
            record->position = position;
            *kept = false;
            return true;
        }
        if (keep_once(record, batch, from, to, &rows, &at, again, &why)) {
            for (; from < to; from++)
                count_gone(record, batch->numbers[from]);
            record->rows += rows;
        } else if (!is_spoilt(&why)) {
            *err = why;
            return false;
        } else if (at == to && to - from > 1) {
            /* One of them is at fault: which, is seen when each is alone. */
            for (; from < to && *kept; from++)
                if (!keep(record, batch, from, from + 1, kept, again, err))
                    return false;
        } else {
            at = at == to ? from : at;
            say(record, "message %" PRIu64 " is left out: %s", batch->numbers[at], why.text);
            batch->spoilt[at] = true;
        }
    }
    return true;
}

/* ---- from the stream ---- */

static bool ask_next(struct record *record, size_t number, struct prb_error *err)
{
    char text[120], reply[PRB_BUS_SUBJECT];
    snprintf(text, sizeof text,
             "{\"seq\":%" PRIu64 ",\"next_by_subj\":\"" PRB_HISTORY_SUBJECTS "\"}",
             record->position + 1 + number);
    prb_bus_inbox_subject(record->inbox, record->turn * AT_ONCE + (unsigned)number, reply);
    const struct prb_bus_message message = {.subject = "$JS.API.DIRECT.GET." PRB_HISTORY_STREAM,
                                            .reply = reply,
                                            .data = text,
                                            .len = strlen(text)};
    return prb_bus_publish(record->bus, &message, err);
}

/* Answers in the order in which they were asked for. */
static bool hear(struct record *record, size_t count, struct prb_bus_message answers[],
                 bool answered[], struct prb_error *err)
{
    double end = prb_clock_s() + ANSWERS;
    for (size_t got = 0; got < count;) {
        struct prb_bus_message one;
        if (prb_bus_inbox_next(record->inbox, 0.1, &one, err)) {
            unsigned tag = prb_bus_inbox_tag(record->inbox, one.subject);
            size_t at = tag % AT_ONCE;
            if (tag / AT_ONCE != record->turn || at >= count || answered[at]) {
                prb_bus_message_free(&one); /* of another time */
                continue;
            }
            answers[at] = one;
            answered[at] = true;
            got++;
        } else if (err->code != PRB_TIMEOUT || !prb_bus_check(record->bus, err)) {
            return false;
        } else if (prb_clock_s() > end) {
            return prb_fail(err, PRB_TIMEOUT, "the bus does not answer");
        }
    }
    return true;
}

/* Those behind our place, as many as were asked for at the most. */
static bool fetch(struct record *record, struct batch *out, struct prb_error *err)
{
    struct prb_bus_message answers[AT_ONCE];
    bool answered[AT_ONCE] = {0}, good = true;
    size_t count = record->wanted ? record->wanted : 1;
    record->turn = (record->turn + 1) % TURNS;
    for (size_t i = 0; i < count && good; i++)
        good = ask_next(record, i, err);
    good = good && hear(record, count, answers, answered, err);
    uint64_t last = record->position;
    for (size_t i = 0; i < count; i++) {
        const char *number =
            answered[i] && good && !answers[i].nobody ? answers[i].headers[PRB_BUS_SEQUENCE] : NULL;
        uint64_t at = number ? strtoull(number, NULL, 10) : 0;
        if (at > last) {
            out->numbers[out->count] = last = at;
            out->messages[out->count++] = answers[i];
        } else if (answered[i]) {
            prb_bus_message_free(&answers[i]); /* none, or where some are missing the same again */
        }
    }
    /* One who waits for what comes asks for one. */
    record->wanted = out->count < count ? 1 : count < AT_ONCE ? 2 * count : AT_ONCE;
    return good;
}

/* The next ones, if there are any. */
static bool next(struct record *record, bool *found, bool *again, struct prb_error *err)
{
    PRB_AUTO(batch) struct batch batch = {0};
    bool kept;
    *found = *again = false;
    if (!know_position(record, again, err) || !fetch(record, &batch, err))
        return false;
    *found = batch.count > 0;
    /* A stream that was made anew has smaller numbers, and nothing for us. */
    return *found ? keep(record, &batch, 0, batch.count, &kept, again, err)
                  : know_stream(record, err);
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
