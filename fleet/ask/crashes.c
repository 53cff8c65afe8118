/* Crash dumps of a job: of its hosts, of what the server remembers, and fetched (fleet/crashes.h). */
#include "fleet/crashes.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/new_file.h"
#include "fleet/ask/address.h"
#include "fleet/ask/transport.h"
#include "fleet/bus/events.h"

#define EVENTS_MAX 10000
#define EVENTS_S 5.0 /* s for all of them */
#define ANSWERS 1.0  /* s for one */

/* ---- what the server remembers ---- */

/* The next one from a number on; *number 0: there is none. */
static bool next_event(struct prb_bus *bus, struct prb_bus_inbox *inbox, const char *subject,
                       uint64_t *number, struct prb_bus_message *out)
{
    char text[PRB_BUS_SUBJECT + 60], reply[PRB_BUS_SUBJECT];
    snprintf(text, sizeof text, "{\"seq\":%" PRIu64 ",\"next_by_subj\":\"%s\"}", *number + 1,
             subject);
    prb_bus_inbox_subject(inbox, 0, reply);
    const struct prb_bus_message ask = {.subject = "$JS.API.DIRECT.GET." PRB_EVENTS_STREAM,
                                        .reply = reply,
                                        .data = text,
                                        .len = strlen(text)};
    if (!prb_bus_publish(bus, &ask, NULL) || !prb_bus_inbox_next(inbox, ANSWERS, out, NULL))
        return false;
    const char *at = out->nobody ? NULL : out->headers[PRB_BUS_SEQUENCE];
    uint64_t found = at ? strtoull(at, NULL, 10) : 0;
    bool good = !out->nobody;
    *number = found > *number ? found : 0;
    if (!*number)
        prb_bus_message_free(out);
    return good;
}

static bool take_event(struct prb_fleet_crashes *crashes, const struct prb_bus_message *message)
{
    PRB_AUTO(json_t) json_t *object = json_loadb(message->data, message->len, 0, NULL);
    const char *host = json_string_value(json_object_get(object, "host"));
    const char *job = json_string_value(json_object_get(object, "job"));
    if (!host || !job || strlen(job) >= sizeof crashes->job)
        return true; /* whoever wrote it */
    if (!crashes->count)
        snprintf(crashes->job, sizeof crashes->job, "%s", job);
    else if (strcmp(crashes->job, job) != 0)
        crashes->job[0] = '\0';
    struct prb_error why = {0};
    return prb_fleet_crashes_add(crashes, host, object, true, &why) || why.code != PRB_NOMEM;
}

/* False: out of memory.  That there are none, or that they may not be read, is said by events. */
static bool take_events(struct prb_bus *bus, const char *job, struct prb_fleet_crashes *crashes)
{
    char token[PRB_BUS_TOKEN], subject[PRB_BUS_SUBJECT];
    uint64_t number = 0;
    bool good = true;
    double end = prb_clock_s() + EVENTS_S;
    prb_bus_token(job, token);
    snprintf(subject, sizeof subject, PRB_EVENTS_CRASH, *job ? token : "*");
    PRB_AUTO(prb_bus_inbox) struct prb_bus_inbox *inbox = prb_bus_inbox_new(bus, NULL);
    for (unsigned i = 0; inbox && good && i < EVENTS_MAX && prb_clock_s() < end; i++) {
        struct prb_bus_message message;
        if (!next_event(bus, inbox, subject, &number, &message))
            break;
        crashes->events = true;
        if (!number)
            break;
        good = take_event(crashes, &message);
        prb_bus_message_free(&message);
    }
    prb_bus_check(bus, NULL); /* that these may not be read is no fault of the next question */
    return good;
}

/* Those of hosts that answered are theirs to tell. */
static void leave_answered(struct prb_fleet_crashes *events, const struct prb_coverage *coverage)
{
    for (size_t i = 0; i < events->count; i++)
        for (size_t k = 0; k < coverage->count; k++) {
            const struct prb_coverage_rank *one = &coverage->items[k];
            if (one->state != PRB_COVERAGE_ANSWERED || !one->host ||
                strcmp(one->host, events->items[i].host) != 0)
                continue;
            prb_fleet_crashes_drop(events, i--);
            break;
        }
}

static bool add_events(struct prb_fleet *fleet, const struct prb_coverage *coverage,
                       struct prb_fleet_crashes *out, struct prb_error *err)
{
    PRB_AUTO(prb_fleet_crashes) struct prb_fleet_crashes events = {0};
    struct prb_bus *bus = prb_fleet_line(fleet).bus;
    if (!bus)
        return true;
    if (!take_events(bus, prb_fleet_info(fleet)->job, &events))
        return prb_nomem(err);
    out->events = events.events;
    leave_answered(&events, coverage);
    return prb_fleet_crashes_join(out, &events) || prb_nomem(err);
}

static void leave_unasked(struct prb_fleet_crashes *crashes, const struct prb_rank_set *asked)
{
    for (size_t i = 0; i < crashes->count; i++)
        if (crashes->items[i].rank >= 0 && !prb_rank_set_has(asked, crashes->items[i].rank))
            prb_fleet_crashes_drop(crashes, i--);
}

bool prb_fleet_crashes_take(struct prb_fleet *fleet, struct prb_fleet_crashes *out,
                            struct prb_coverage *coverage_out, struct prb_error *err)
{
    struct prb_crash_answers answers = {.list = out};
    *out = (struct prb_fleet_crashes){0};
    if (!prb_fleet_ask(fleet, "crash", NULL, &answers, coverage_out, err) ||
        !add_events(fleet, coverage_out, out, err))
        return false;
    snprintf(out->job, sizeof out->job, "%s", prb_fleet_info(fleet)->job);
    leave_unasked(out, prb_fleet_info(fleet)->asked);
    prb_fleet_crashes_settle(out);
    return true;
}

bool prb_fleet_crashes_told(const char *address, const char *bus, struct prb_fleet_crashes *out,
                            struct prb_error *err)
{
    PRB_AUTO(prb_fleet_address) struct prb_fleet_address parsed = {0};
    PRB_AUTO(prb_bus_file) struct prb_bus_file file = {0};
    const struct prb_bus_options options = {.name = "probing"};
    bool found = false;
    *out = (struct prb_fleet_crashes){0};
    if (!prb_fleet_address_parse(address, &parsed, err) ||
        (!parsed.local && !prb_bus_file_find(bus, PRB_BUS_look, &file, &found, err)))
        return false;
    PRB_AUTO(prb_bus) struct prb_bus *opened = found ? prb_bus_open(&file, &options, err) : NULL;
    if (found && !opened)
        return false;
    if (opened && !take_events(opened, parsed.job, out))
        return prb_nomem(err);
    prb_fleet_crashes_settle(out);
    return out->count || prb_fail(err, PRB_NOT_FOUND, "no crash of this job is remembered");
}

/* ---- fetching one ---- */

static bool plain(const char *text)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
    return *text && *text != '.' && text[strspn(text, letters)] == '\0';
}

/* FOLDER/HOST-NAME, whatever these say. */
static char *own_path(const struct prb_fleet_crash *crash, const char *folder,
                      struct prb_error *err)
{
    char host[sizeof crash->host];
    const char *name = prb_base_name(crash->path);
    char *path;
    snprintf(host, sizeof host, "%s", crash->host);
    for (char *at = host; *at; at++)
        if (!plain((char[]){*at, '\0'}))
            *at = '_';
    if (!plain(name))
        return PRB_NULL(prb_fail(err, PRB_CORRUPT, "%s is no name of a dump", name));
    return asprintf(&path, "%s/%s-%s", folder, host, name) < 0 ? PRB_NULL(prb_nomem(err)) : path;
}

static int rank_on(const struct prb_fleet *fleet, const char *host)
{
    const struct prb_fleet_info *info = prb_fleet_info(fleet);
    for (size_t i = 0; i < info->member_count; i++)
        if (strcmp(info->members[i].host, host) == 0 && !info->members[i].refused[0])
            return info->members[i].rank;
    return -1;
}

static bool ask_part(struct prb_fleet *fleet, const struct prb_fleet_crash *crash, uint64_t offset,
                     struct prb_crash_answers *answers, struct prb_error *err)
{
    PRB_AUTO(prb_rank_set) struct prb_rank_set one = {0};
    PRB_AUTO(prb_coverage) struct prb_coverage coverage = {0};
    int rank = rank_on(fleet, crash->host);
    if (rank < 0)
        return prb_fail(err, PRB_PARTIAL, "%s does not answer, and has %s", crash->host,
                        crash->path);
    PRB_AUTO(json_t)
    json_t *args = json_pack("{ss sI}", "file", crash->path, "offset", (json_int_t)offset);
    PRB_AUTO_FREE char *text = args ? json_dumps(args, JSON_COMPACT) : NULL;
    if (!text || !prb_rank_set_add(&one, rank, rank))
        return prb_nomem(err);
    if (!prb_fleet_ask_ranks(fleet, &one, "crash", text, answers, &coverage, err))
        return false;
    if (answers->found)
        return true;
    struct prb_error why = {0};
    if (!prb_coverage_check(&coverage, &why))
        return prb_fail(err, PRB_PARTIAL, "%s: %s", crash->path, why.text);
    return prb_fail(err, PRB_PARTIAL, "%s has no %s that it gives", crash->host, crash->path);
}

static bool fetch(struct prb_fleet *fleet, const struct prb_fleet_crash *crash, int fd,
                  struct prb_error *err)
{
    uint64_t total = 0, done = 0;
    do {
        PRB_AUTO(prb_buf) struct prb_buf bytes = {0};
        struct prb_crash_answers answers = {.host = crash->host, .bytes = &bytes};
        if (!ask_part(fleet, crash, done, &answers, err))
            return false;
        if (done && answers.total != total)
            return prb_fail(err, PRB_PARTIAL, "%s changed while it was fetched", crash->path);
        total = answers.total;
        if (total > PRB_FLEET_DUMP_MOST || !bytes.len || bytes.len > total - done)
            return prb_fail(err, PRB_CORRUPT, "%s sent no such part of %s", crash->host,
                            crash->path);
        if (!prb_write_all(fd, bytes.data, bytes.len))
            return prb_fail_sys(err, errno, "the fetched dump");
        done += bytes.len;
    } while (done < total);
    return true;
}

char *prb_fleet_crash_pull(struct prb_fleet *fleet, const struct prb_fleet_crash *crash,
                           const char *folder, bool *was_there, struct prb_error *err)
{
    struct stat info;
    PRB_AUTO_FREE char *path = own_path(crash, folder, err);
    PRB_AUTO(prb_new_file) struct prb_new_file file = {0};
    *was_there = false;
    if (!path)
        return NULL;
    if (lstat(path, &info) == 0 && S_ISREG(info.st_mode) &&
        (uint64_t)info.st_size == crash->bytes) {
        *was_there = true;
        return PRB_STEAL(path);
    }
    if (crash->bytes > PRB_FLEET_DUMP_MOST)
        return PRB_NULL(prb_fail(err, PRB_PARTIAL, "%s has %" PRIu64 " bytes, more than is fetched",
                                 crash->path, crash->bytes));
    if (!prb_new_file_begin(&file, path, 0600))
        return PRB_NULL(prb_fail_sys(err, errno, "%s", path));
    if (!fetch(fleet, crash, file.fd, err))
        return NULL;
    return prb_new_file_end(&file) ? PRB_STEAL(path)
                                   : PRB_NULL(prb_fail_sys(err, errno, "%s", path));
}
