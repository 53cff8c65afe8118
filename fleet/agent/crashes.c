/*
 * Crash dumps of this host's ranks, told on the bus as they are written (agent.h, bus/events.h).
 * Folders are watched by inotify(7); what a dump says is read in a child, as a look at it would.
 */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/file.h"
#include "fleet/agent/agent.h"
#include "fleet/agent/told.h"
#include "fleet/bus/events.h"

#define TOGETHER_MS 200 /* ranks crash together: their dumps are read at once */
#define FOLDERS_MAX 64
#define BUDGET 30.0 /* s: nobody waits for it */

struct prb_agent_crashes {
    const struct prb_agent_crashes_options *options;
    pthread_t thread;
    bool runs;
    int wake, inotify;
    pthread_mutex_t lock;
    struct prb_fleet_members ranks; /* guarded, and the three below */
    bool changed, ends;
    /* Held while something is published. */
    pthread_rwlock_t bus_lock;
    struct prb_bus *bus;
    bool begun; /* the stream is there */
    /* The thread's own. */
    struct prb_fleet_host *host;
    struct prb_told told;
};

/* ---- folders ---- */

/* Again is the same watch. */
static void watch(struct prb_agent_crashes *crashes, const char *folder)
{
    if (*folder)
        inotify_add_watch(crashes->inotify, folder, IN_MOVED_TO | IN_CLOSE_WRITE | IN_ONLYDIR);
}

static void watch_all(struct prb_agent_crashes *crashes, const struct prb_fleet_members *ranks)
{
    char folder[PRB_CRASH_PATH_MAX];
    const char *own = getenv("PROBING_CRASH_DIR");
    if (prb_crash_dump_folder("", folder, NULL))
        watch(crashes, folder);
    if (own)
        watch(crashes, own);
    for (size_t i = 0; i < ranks->count && i < FOLDERS_MAX; i++)
        watch(crashes, ranks->items[i].crash_dir);
}

/* ---- telling ---- */

static uint64_t hash_of(const char *text)
{
    uint64_t sum = 0xcbf29ce484222325u; /* FNV-1a */
    for (; *text; text++)
        sum = (sum ^ (unsigned char)*text) * 0x100000001b3u;
    return sum;
}

static bool begin_stream(struct prb_agent_crashes *crashes)
{
    struct prb_error why = {0};
    pthread_rwlock_rdlock(&crashes->bus_lock);
    bool there = crashes->bus != NULL;
    if (there && !crashes->begun) {
        crashes->begun = true; /* without it, who listens hears them all the same */
        if (!prb_events_begin(crashes->bus, &why))
            prb_log_file_add(crashes->options->log, "events: %s", why.text);
    }
    pthread_rwlock_unlock(&crashes->bus_lock);
    return there;
}

static bool publish(struct prb_agent_crashes *crashes, const char *job, const char *text,
                    uint64_t hash)
{
    char token[PRB_BUS_TOKEN], subject[PRB_BUS_SUBJECT], id[PRB_ROSTER_KEY + 40];
    struct prb_error why = {0};
    prb_bus_token(job, token);
    snprintf(subject, sizeof subject, PRB_EVENTS_CRASH, token);
    snprintf(id, sizeof id, "%s crash %016llx", crashes->options->key, (unsigned long long)hash);
    const struct prb_bus_message message = {.subject = subject,
                                            .headers = {[PRB_BUS_MESSAGE_ID] = id},
                                            .data = text,
                                            .len = strlen(text)};
    pthread_rwlock_rdlock(&crashes->bus_lock);
    bool good = crashes->bus && prb_bus_publish(crashes->bus, &message, &why);
    pthread_rwlock_unlock(&crashes->bus_lock);
    if (why.code)
        prb_log_file_add(crashes->options->log, "a crash could not be told: %s", why.text);
    return good;
}

static void tell(struct prb_agent_crashes *crashes, const char *job, json_t *dump)
{
    const char *path = json_string_value(json_object_get(dump, "path"));
    const char *title = json_string_value(json_object_get(dump, "title"));
    char name[PRB_CRASH_PATH_MAX + 400];
    if (!path || !title)
        return;
    snprintf(name, sizeof name, "%s %.6f", path, json_number_value(json_object_get(dump, "time")));
    uint64_t hash = hash_of(name);
    if (prb_told_has(&crashes->told, hash))
        return;
    json_object_set_new(dump, "v", json_integer(1));
    json_object_set_new(dump, "host", json_string(crashes->options->host));
    json_object_set_new(dump, "key", json_string(crashes->options->key));
    json_object_set_new(dump, "job", json_string(job));
    PRB_AUTO_FREE char *text = json_dumps(dump, JSON_COMPACT);
    if (!text || !publish(crashes, job, text, hash))
        return;
    prb_told_add(&crashes->told, hash); /* without memory it is told again */
    prb_log_file_add(crashes->options->log, "crash of rank %d of %s, process %d: %.200s (%.300s)",
                     (int)json_integer_value(json_object_get(dump, "rank")), job,
                     (int)json_integer_value(json_object_get(dump, "pid")), title, path);
}

/* The dumps of one job that are here. */
static bool look_at(struct prb_agent_crashes *crashes, const char *job, struct prb_error *err)
{
    PRB_AUTO(prb_fleet_request) struct prb_fleet_request request = {0};
    PRB_AUTO(prb_buf) struct prb_buf bytes = {0};
    PRB_AUTO(prb_fleet_reply) struct prb_fleet_reply reply = {0};
    if (!prb_fleet_request_new(prb_fleet_kind_find("crash"), job, NULL, &request, err))
        return false;
    request.budget = BUDGET;
    if (!prb_fleet_host_answer(crashes->host, &request, NULL, NULL, &bytes, err) ||
        !prb_fleet_reply_parse(bytes.data, bytes.len, request.id, &reply, err))
        return false;
    if (!reply.part_count)
        return !reply.state_count || prb_fail(err, PRB_IO, "%s", reply.states[0].reason);
    PRB_AUTO(json_t) json_t *list = json_loadb(reply.parts[0].data, reply.parts[0].len, 0, NULL);
    const json_t *dumps = json_object_get(list, "dumps");
    for (size_t i = 0; i < json_array_size(dumps); i++)
        tell(crashes, job, json_array_get(dumps, i));
    return true;
}

static void look(struct prb_agent_crashes *crashes, const struct prb_fleet_members *ranks)
{
    struct prb_error err = {0};
    if (!begin_stream(crashes))
        return; /* once the bus is there */
    prb_told_look(&crashes->told);
    bool good = prb_fleet_host_remember(crashes->host, ranks, &err) &&
                prb_fleet_host_look(crashes->host, &err);
    for (size_t i = 0; good && i < ranks->count; i++)
        if (!i || strcmp(ranks->items[i].job, ranks->items[i - 1].job) != 0)
            good = look_at(crashes, ranks->items[i].job, &err);
    if (good)
        prb_told_looked(&crashes->told);
    else
        prb_log_file_add(crashes->options->log, "crash dumps: %s", err.text);
    prb_fleet_host_rest(crashes->host);
}

/* ---- the thread ---- */

/* Whether a file came that may be a dump. */
static bool drain(struct prb_agent_crashes *crashes)
{
    char events[16 * (sizeof(struct inotify_event) + NAME_MAX + 1)]
        __attribute__((aligned(__alignof__(struct inotify_event))));
    bool dump = false;
    for (ssize_t got; (got = read(crashes->inotify, events, sizeof events)) > 0;)
        for (char *at = events; at < events + got;) {
            const struct inotify_event *event = (const void *)at;
            dump = dump || event->len == 0 || strncmp(event->name, "crash-", 6) == 0;
            at += sizeof *event + event->len;
        }
    return dump;
}

static bool copy_ranks(struct prb_agent_crashes *crashes, struct prb_fleet_members *out,
                       bool *changed)
{
    pthread_mutex_lock(&crashes->lock);
    bool ends = crashes->ends;
    *changed = crashes->changed;
    crashes->changed = false;
    for (size_t i = 0; *changed && i < crashes->ranks.count; i++) {
        if (!PRB_GROW(out->items, out->count, out->cap))
            break;
        out->items[out->count++] = crashes->ranks.items[i];
    }
    pthread_mutex_unlock(&crashes->lock);
    return !ends;
}

static void *run(void *context)
{
    struct prb_agent_crashes *crashes = context;
    PRB_AUTO(prb_fleet_members) struct prb_fleet_members ranks = {0};
    struct pollfd fds[] = {{.fd = crashes->wake, .events = POLLIN},
                           {.fd = crashes->inotify, .events = POLLIN}};
    for (bool changed;;) {
        PRB_AUTO(prb_fleet_members) struct prb_fleet_members now = {0};
        uint64_t count;
        if (!copy_ranks(crashes, &now, &changed))
            return NULL;
        if (changed) {
            prb_fleet_members_deinit(&ranks);
            ranks = now;
            now = (struct prb_fleet_members){0};
            watch_all(crashes, &ranks);
        }
        if (changed || drain(crashes))
            look(crashes, &ranks);
        poll(fds, 2, -1);
        if (fds[1].revents)
            poll(fds, 1, TOGETHER_MS);
        if (read(crashes->wake, &count, sizeof count) < 0)
            continue;
    }
}

static void wake(struct prb_agent_crashes *crashes)
{
    uint64_t one = 1;
    prb_write_all(crashes->wake, &one, sizeof one);
}

/* ---- life ---- */

struct prb_agent_crashes *prb_agent_crashes_new(const struct prb_agent_crashes_options *options,
                                                struct prb_error *err)
{
    struct prb_agent_crashes *crashes = calloc(1, sizeof *crashes);
    if (!crashes)
        return PRB_NULL(prb_nomem(err));
    crashes->options = options;
    pthread_mutex_init(&crashes->lock, NULL);
    pthread_rwlock_init(&crashes->bus_lock, NULL);
    crashes->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    /* Without one (there are few for a user) the end of a rank is what is seen. */
    crashes->inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    crashes->host = prb_fleet_host_new(options->host, options->all_users, err);
    if (crashes->host && crashes->wake < 0)
        prb_fail_sys(err, errno, "an eventfd");
    else if (crashes->host)
        crashes->runs = pthread_create(&crashes->thread, NULL, run, crashes) == 0 ||
                        prb_fail(err, PRB_NOMEM, "no thread can be made");
    if (crashes->runs)
        return crashes;
    prb_agent_crashes_free(crashes);
    return NULL;
}

void prb_agent_crashes_free(struct prb_agent_crashes *crashes)
{
    if (!crashes)
        return;
    pthread_mutex_lock(&crashes->lock);
    crashes->ends = true;
    pthread_mutex_unlock(&crashes->lock);
    if (crashes->runs) {
        wake(crashes);
        pthread_join(crashes->thread, NULL);
    }
    prb_fleet_host_free(crashes->host);
    if (crashes->wake >= 0)
        close(crashes->wake);
    if (crashes->inotify >= 0)
        close(crashes->inotify);
    prb_fleet_members_deinit(&crashes->ranks);
    pthread_rwlock_destroy(&crashes->bus_lock);
    pthread_mutex_destroy(&crashes->lock);
    prb_told_deinit(&crashes->told);
    free(crashes);
}

void prb_agent_crashes_use(struct prb_agent_crashes *crashes, struct prb_bus *bus)
{
    if (!crashes)
        return;
    pthread_rwlock_wrlock(&crashes->bus_lock);
    crashes->bus = bus;
    crashes->begun = false;
    pthread_rwlock_unlock(&crashes->bus_lock);
    pthread_mutex_lock(&crashes->lock);
    crashes->changed = true; /* what could not be told */
    pthread_mutex_unlock(&crashes->lock);
    wake(crashes);
}

void prb_agent_crashes_ranks(struct prb_agent_crashes *crashes,
                             const struct prb_fleet_members *ranks)
{
    if (!crashes)
        return;
    pthread_mutex_lock(&crashes->lock);
    crashes->ranks.count = 0;
    for (size_t i = 0; i < ranks->count; i++) {
        if (!PRB_GROW(crashes->ranks.items, crashes->ranks.count, crashes->ranks.cap))
            break;
        crashes->ranks.items[crashes->ranks.count++] = ranks->items[i];
    }
    crashes->changed = true;
    pthread_mutex_unlock(&crashes->lock);
    wake(crashes);
}
