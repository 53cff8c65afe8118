/*
 * A record: what the streams of the bus keep, history and events, in a file or a database.  How far a
 * stream was read stands in the same transaction as its rows, so that each row is there once, also
 * when the record is killed and begun again.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "fleet/bus/events.h"
#include "fleet/cluster.h"
#include "fleet/history/sink.h"

#define ANSWERS 5.0             /* s */
#define AT_ONCE 32              /* messages in one transaction; a power of two */
#define TURNS 65536u            /* of asking, until their numbers begin anew */
#define ALONE (TURNS * AT_ONCE) /* the number of an answer that is none of these */
#define PAUSE_MS 500            /* between two looks at a stream that has nothing more */
#define AGAIN_MS 1000           /* until a server that went is tried again */

/* A stream that is read. */
struct source {
    const char *subjects, *info, *get; /* info, get: how the server is asked about it */
    bool (*parse)(const struct prb_bus_message *message, struct prb_taken *out,
                  struct prb_error *err);
    bool there;
    bool refused;              /* this bus does not let it be read */
    bool known;                /* where we are in it */
    uint64_t stream, position; /* which stream, and up to which of its messages */
    size_t wanted;             /* messages to ask for at once */
};
enum { HISTORY, EVENTS, SOURCES };
#define SOURCE(stream, subject, how)                                                               \
    {.subjects = (subject),                                                                        \
     .info = "$JS.API.STREAM.INFO." stream,                                                        \
     .get = "$JS.API.DIRECT.GET." stream,                                                          \
     .parse = (how)}

struct record {
    const struct prb_cluster_record_options *options;
    struct prb_bus_file file;
    struct prb_bus *bus;
    struct prb_bus_inbox *inbox;
    struct prb_sink *sink;
    struct source sources[SOURCES];
    bool away;     /* the sink's server is, and that was told */
    unsigned turn; /* of asking */
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
static bool know_stream(struct record *record, struct source *source, struct prb_error *err)
{
    struct prb_bus_message answer;
    if (!ask(record, source->info, "", &answer, err))
        return false;
    PRB_AUTO(json_t)
    json_t *object = answer.nobody ? NULL : json_loadb(answer.data, answer.len, 0, NULL);
    const char *created = json_string_value(json_object_get(object, "created"));
    prb_bus_message_free(&answer);
    uint64_t stream = created ? hash(created) : 0;
    source->there = created != NULL;
    source->known = source->known && source->there && stream == source->stream;
    source->stream = stream;
    return true;
}

/* A server that was started by an older release allows less. */
static bool know_events(struct record *record, struct prb_error *err)
{
    struct source *events = &record->sources[EVENTS];
    struct prb_error why = {0};
    if (events->refused || know_stream(record, events, &why))
        return true;
    if (why.code != PRB_PERMISSION) {
        if (err)
            *err = why;
        return false;
    }
    events->refused = true;
    say(record, "crashes are not recorded: %s", why.text);
    return true;
}

static bool know_streams(struct record *record, struct prb_error *err)
{
    if (!know_stream(record, &record->sources[HISTORY], err) || !know_events(record, err))
        return false;
    if (record->sources[HISTORY].there)
        return true;
    if (record->sources[EVENTS].there) {
        say(record, "no agent of this bus has published history (attach --history TABLES): only "
                    "crashes are recorded");
        return true;
    }
    prb_fail(err, PRB_NOT_FOUND, "no agent of this bus has published history");
    return prb_error_remedy(err, "`probing cluster attach --history TABLES` on the hosts");
}

/* ---- into the sink ---- */

static bool begin(struct record *record, const struct source *source, uint64_t *position,
                  bool *again, struct prb_error *err)
{
    return record->sink->begin(record->sink, source->stream, position, again, err);
}

static bool know_position(struct record *record, struct source *source, bool *again,
                          struct prb_error *err)
{
    if (source->known)
        return true;
    if (!begin(record, source, &source->position, again, err))
        return false;
    record->sink->rollback(record->sink);
    return source->known = true;
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

static bool take_one(struct record *record, const struct source *source,
                     const struct prb_bus_message *message, uint64_t *rows, struct prb_error *err)
{
    PRB_AUTO(prb_taken) struct prb_taken taken = {0};
    *rows = 0;
    return source->parse(message, &taken, err) &&
           record->sink->take(record->sink, &taken, rows, err);
}

static bool is_spoilt(const struct prb_error *why)
{
    return why->code == PRB_CORRUPT || why->code == PRB_USAGE;
}

/* What is in [from, to) is kept, or nothing of it.  *at: the message at fault, to: it is not known. */
static bool keep_once(struct record *record, struct source *source, const struct batch *batch,
                      size_t from, size_t to, uint64_t *rows, size_t *at, bool *again,
                      struct prb_error *err)
{
    uint64_t more;
    *rows = 0;
    for (*at = from; *at < to; ++*at) {
        if (batch->spoilt[*at])
            continue;
        if (!take_one(record, source, &batch->messages[*at], &more, err)) {
            *again = err->code == PRB_GONE;
            *at = record->sink->earlier ? to : *at;
            record->sink->rollback(record->sink);
            return false;
        }
        *rows += more;
    }
    if (record->sink->commit(record->sink, source->stream, batch->numbers[to - 1], again, err))
        return true;
    record->sink->rollback(record->sink);
    source->known = source->known && is_spoilt(err); /* else it may be there all the same */
    return false;
}

static void count_gone(struct record *record, struct source *source, uint64_t number)
{
    if (source->position && number > source->position + 1)
        say(record, "%" PRIu64 " messages had left the stream before they were taken",
            number - source->position - 1);
    source->position = number;
}

/* The same until it is done.  *kept false, without an error: what is in the sink is not what we
 * thought: another record. */
static bool keep(struct record *record, struct source *source, struct batch *batch, size_t from,
                 size_t to, bool *kept, bool *again, struct prb_error *err)
{
    for (*kept = true; from < to && *kept;) {
        struct prb_error why = {0};
        uint64_t position, rows;
        size_t at;
        if (!begin(record, source, &position, again, err))
            return false;
        if (position != source->position) {
            record->sink->rollback(record->sink);
            source->position = position;
            *kept = false;
            return true;
        }
        if (keep_once(record, source, batch, from, to, &rows, &at, again, &why)) {
            for (; from < to; from++)
                count_gone(record, source, batch->numbers[from]);
            record->rows += rows;
        } else if (!is_spoilt(&why)) {
            *err = why;
            return false;
        } else if (at == to && to - from > 1) {
            /* One of them is at fault: which, is seen when each is alone. */
            for (; from < to && *kept; from++)
                if (!keep(record, source, batch, from, from + 1, kept, again, err))
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

static bool ask_next(struct record *record, const struct source *source, size_t number,
                     struct prb_error *err)
{
    char text[120], reply[PRB_BUS_SUBJECT];
    snprintf(text, sizeof text, "{\"seq\":%" PRIu64 ",\"next_by_subj\":\"%s\"}",
             source->position + 1 + number, source->subjects);
    prb_bus_inbox_subject(record->inbox, record->turn * AT_ONCE + (unsigned)number, reply);
    const struct prb_bus_message message = {
        .subject = source->get, .reply = reply, .data = text, .len = strlen(text)};
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
static bool fetch(struct record *record, struct source *source, struct batch *out,
                  struct prb_error *err)
{
    struct prb_bus_message answers[AT_ONCE];
    bool answered[AT_ONCE] = {0}, good = true;
    size_t count = source->wanted ? source->wanted : 1;
    record->turn = (record->turn + 1) % TURNS;
    for (size_t i = 0; i < count && good; i++)
        good = ask_next(record, source, i, err);
    good = good && hear(record, count, answers, answered, err);
    uint64_t last = source->position;
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
    source->wanted = out->count < count ? 1 : count < AT_ONCE ? 2 * count : AT_ONCE;
    return good;
}

static bool know_again(struct record *record, struct source *source, struct prb_error *err)
{
    return source == &record->sources[EVENTS] ? know_events(record, err)
                                              : know_stream(record, source, err);
}

/* The next ones, if there are any. */
static bool next_of(struct record *record, struct source *source, bool *found, bool *again,
                    struct prb_error *err)
{
    PRB_AUTO(batch) struct batch batch = {0};
    bool kept;
    if (!source->there)
        return know_again(record, source, err); /* it may come */
    if (!know_position(record, source, again, err) || !fetch(record, source, &batch, err))
        return false;
    *found = *found || batch.count > 0;
    /* A stream that was made anew has smaller numbers, and nothing for us. */
    return batch.count ? keep(record, source, &batch, 0, batch.count, &kept, again, err)
                       : know_again(record, source, err);
}

static bool next(struct record *record, bool *found, bool *again, struct prb_error *err)
{
    *found = *again = false;
    return next_of(record, &record->sources[HISTORY], found, again, err) &&
           next_of(record, &record->sources[EVENTS], found, again, err);
}

static bool is_settled(const struct record *record)
{
    for (int i = 0; i < SOURCES; i++)
        if (record->sources[i].there && !record->sources[i].known)
            return false;
    return true;
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
           (record->inbox = prb_bus_inbox_new(record->bus, err)) && know_streams(record, err) &&
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
        if (good && !found && is_settled(record) && record->options->once)
            return true;
        pause = !good ? AGAIN_MS : found || !is_settled(record) ? 0 : PAUSE_MS;
    } while (poll(&stop, 1, pause) <= 0);
    return true;
}

bool prb_cluster_record(const struct prb_cluster_record_options *options,
                        struct prb_cluster_recorded *out, struct prb_error *err)
{
    struct record record = {
        .options = options,
        .sources = {[HISTORY] = SOURCE(PRB_HISTORY_STREAM, PRB_HISTORY_SUBJECTS, prb_taken_parse),
                    [EVENTS] = SOURCE(PRB_EVENTS_STREAM, PRB_EVENTS_CRASHES, prb_taken_crash)},
    };
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
