/* Hosts as they tell of themselves, and the bucket that remembers them: roster.h. */
#include "fleet/bus/roster.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "fleet/bus/stream.h"
#include "proc/stat.h"

#define TEXT_MAX ((size_t)1 << 20)
#define MEMBERS_BYTES ((size_t)900 << 10) /* of an entry; what stands before them is short */
#define HOSTS_MAX 200000

void prb_roster_entry_deinit(struct prb_roster_entry *entry)
{
    prb_fleet_members_deinit(&entry->members);
    *entry = (struct prb_roster_entry){0};
}

/* ---- this host ---- */

/* FNV-1a */
static uint64_t add_hash(uint64_t hash, const void *data, size_t len)
{
    const unsigned char *at = data;
    while (len--)
        hash = (hash ^ *at++) * 0x100000001b3u;
    return hash;
}

static uint64_t identity(unsigned uid)
{
    static const char *const spaces[] = {"pid", "net", "uts"};
    char boot[64] = "", path[32];
    struct stat info;
    uint64_t hash = 0xcbf29ce484222325u;
    prb_read_text("/proc/sys/kernel/random/boot_id", boot, sizeof boot);
    hash = add_hash(hash, boot, strlen(boot));
    hash = add_hash(hash, &uid, sizeof uid);
    for (size_t i = 0; i < sizeof spaces / sizeof *spaces; i++) {
        snprintf(path, sizeof path, "/proc/self/ns/%s", spaces[i]);
        if (stat(path, &info) == 0)
            hash = add_hash(hash, &info.st_ino, sizeof info.st_ino);
    }
    return hash;
}

bool prb_roster_own(struct prb_roster_entry *out, struct prb_error *err)
{
    struct prb_stat stat;
    char token[PRB_BUS_TOKEN];
    *out = (struct prb_roster_entry){.uid = geteuid(), .pid = (int)getpid()};
    if (!prb_stat_of("/proc/self", &stat))
        return prb_fail(err, PRB_INTERNAL, "/proc/self/stat cannot be read");
    out->started = prb_stat_started(&stat);
    out->clock = prb_clock_epoch_s();
    snprintf(out->release, sizeof out->release, "%s", prb_version());
    if (gethostname(out->host, sizeof out->host - 1) != 0 || !out->host[0])
        snprintf(out->host, sizeof out->host, "localhost");
    prb_bus_token(out->host, token);
    snprintf(out->key, sizeof out->key, "%.*s-%016llx", (int)sizeof out->key - 20, token,
             (unsigned long long)identity(out->uid));
    return true;
}

/* ---- text ---- */

static json_t *member_object(const struct prb_fleet_member *one)
{
    return json_pack("{ss% si si si si si sI sf sf ss% ss%}", "job", one->job, strlen(one->job),
                     "rank", one->rank, "local_rank", one->local_rank, "world_size",
                     one->world_size, "attempt", one->attempt, "pid", (int)one->pid, "uid",
                     (json_int_t)one->uid, "started", one->started, "ended", one->ended, "refused",
                     one->refused, strlen(one->refused), "role", one->role, strlen(one->role));
}

/* What of one user is told. */
struct share {
    uid_t uid;
    size_t members, bytes;
};

static struct share *share_of(struct share *shares, size_t *count, uid_t uid)
{
    for (size_t i = 0; i < *count; i++)
        if (shares[i].uid == uid)
            return &shares[i];
    shares[*count] = (struct share){.uid = uid};
    return &shares[(*count)++];
}

/* An entry is one message.  Whoever starts a thousand processes that say they are ranks leaves room
 * for the ranks of other users. */
static json_t *members_array(const struct prb_fleet_members *members)
{
    PRB_AUTO_FREE struct share *shares = calloc(members->count + 1, sizeof *shares);
    json_t *list = shares ? json_array() : NULL;
    size_t users = 0;
    for (size_t i = 0; list && i < members->count; i++)
        share_of(shares, &users, members->items[i].uid);
    for (size_t i = 0; list && i < members->count; i++) {
        json_t *one = member_object(&members->items[i]);
        PRB_AUTO_FREE char *text = one ? json_dumps(one, JSON_COMPACT) : NULL;
        struct share *share = share_of(shares, &users, members->items[i].uid);
        if (text && share->members < PRB_ROSTER_MEMBERS / users &&
            share->bytes + strlen(text) <= MEMBERS_BYTES / users) {
            share->members++;
            share->bytes += strlen(text);
            json_array_append(list, one);
        }
        json_decref(one);
    }
    return list;
}

char *prb_roster_pack(const struct prb_roster_entry *entry, struct prb_error *err)
{
    json_t *members = members_array(&entry->members);
    json_t *object =
        json_pack("{si ss ss ss sI si sf sf so}", "v", 1, "host", entry->host, "key", entry->key,
                  "release", entry->release, "uid", (json_int_t)entry->uid, "pid", entry->pid,
                  "started", entry->started, "clock", entry->clock, "members", members);
    char *text = object ? json_dumps(object, JSON_COMPACT) : NULL;
    json_decref(object);
    return text ? text : PRB_NULL(prb_nomem(err));
}

/* False: it is no string, or does not fit. */
static bool take_text(const json_t *object, const char *name, char *out, size_t size)
{
    const json_t *value = json_object_get(object, name);
    const char *text = json_string_value(value);
    if (!text || json_string_length(value) >= size || strlen(text) != json_string_length(value))
        return false;
    memcpy(out, text, strlen(text) + 1);
    return true;
}

static bool take_number(const json_t *object, const char *name, json_int_t least, json_int_t most,
                        json_int_t *out)
{
    const json_t *value = json_object_get(object, name);
    *out = json_integer_value(value);
    return json_is_integer(value) && *out >= least && *out <= most;
}

static bool take_member(const json_t *object, const char *host, struct prb_fleet_member *out)
{
    json_int_t rank, local, world, attempt, pid, uid;
    *out = (struct prb_fleet_member){0};
    if (!take_number(object, "rank", 0, PRB_RANKS_MAX - 1, &rank) ||
        !take_number(object, "local_rank", -1, PRB_RANKS_MAX, &local) ||
        !take_number(object, "world_size", -1, PRB_RANKS_MAX, &world) ||
        !take_number(object, "attempt", 0, PRB_ATTEMPTS_MAX, &attempt) ||
        !take_number(object, "pid", 1, INT32_MAX, &pid) ||
        !take_number(object, "uid", 0, UINT32_MAX, &uid) ||
        !take_text(object, "job", out->job, sizeof out->job) ||
        !take_text(object, "refused", out->refused, sizeof out->refused))
        return false;
    if (!take_text(object, "role", out->role, sizeof out->role))
        out->role[0] = '\0'; /* an agent of an older release tells none */
    out->rank = (int)rank;
    out->local_rank = (int)local;
    out->world_size = (int)world;
    out->attempt = (int)attempt;
    out->pid = (pid_t)pid;
    out->uid = (uid_t)uid;
    out->started = json_number_value(json_object_get(object, "started"));
    out->ended = json_number_value(json_object_get(object, "ended"));
    snprintf(out->host, sizeof out->host, "%s", host);
    return true;
}

/* A key is a part of a subject. */
static bool is_key(const char *key)
{
    char token[PRB_BUS_TOKEN];
    const char *at = key;
    for (; *at; at++)
        if (*at != '=') {
            prb_bus_token((char[]){*at, '\0'}, token);
            if (token[1])
                return false;
        }
    return at != key;
}

static bool take_entry(const json_t *object, struct prb_roster_entry *out)
{
    json_int_t version, uid, pid;
    const json_t *members = json_object_get(object, "members");
    size_t count = json_array_size(members);
    if (!take_number(object, "v", 1, 1, &version) ||
        !take_number(object, "uid", 0, UINT32_MAX, &uid) ||
        !take_number(object, "pid", 1, INT32_MAX, &pid) ||
        !take_text(object, "host", out->host, sizeof out->host) || !out->host[0] ||
        !take_text(object, "key", out->key, sizeof out->key) || !is_key(out->key) ||
        !take_text(object, "release", out->release, sizeof out->release) ||
        !json_is_array(members) || count > PRB_ROSTER_MEMBERS)
        return false;
    out->uid = (unsigned)uid;
    out->pid = (int)pid;
    out->started = json_number_value(json_object_get(object, "started"));
    out->clock = json_number_value(json_object_get(object, "clock"));
    out->members.items = calloc(count + 1, sizeof *out->members.items);
    out->members.cap = count + 1;
    if (!out->members.items)
        return false;
    for (size_t i = 0; i < count; i++, out->members.count++)
        if (!take_member(json_array_get(members, i), out->host, &out->members.items[i]))
            return false;
    return true;
}

bool prb_roster_parse(const char *text, size_t len, struct prb_roster_entry *out,
                      struct prb_error *err)
{
    *out = (struct prb_roster_entry){0};
    json_t *object = len && len <= TEXT_MAX ? json_loadb(text, len, 0, NULL) : NULL;
    bool good = object && take_entry(object, out);
    json_decref(object);
    if (good)
        return true;
    prb_roster_entry_deinit(out);
    return prb_fail(err, PRB_CORRUPT, "what a host says of itself cannot be parsed");
}

/* ---- the bucket ---- */

/* As a key-value bucket is: one entry for each host, for a day. */
#define BUCKET                                                                                     \
    "{\"name\":\"" PRB_ROSTER_STREAM "\",\"subjects\":[\"" PRB_ROSTER_SUBJECT ">\"],"              \
    "\"retention\":\"limits\",\"max_consumers\":-1,\"max_msgs_per_subject\":1,\"max_msgs\":-1,"    \
    "\"max_bytes\":-1,\"max_age\":86400000000000,\"max_msg_size\":1048576,\"storage\":\"file\","   \
    "\"discard\":\"new\",\"num_replicas\":1,\"duplicate_window\":120000000000,"                    \
    "\"deny_delete\":true,\"allow_rollup_hdrs\":true,\"allow_direct\":true}"

bool prb_roster_begin(struct prb_bus *bus, struct prb_error *err)
{
    return prb_bus_make_stream(bus, PRB_ROSTER_STREAM, BUCKET, "hosts that end are not remembered",
                               err);
}

bool prb_roster_put(struct prb_bus *bus, const char *key, const char *text, struct prb_error *err)
{
    char subject[PRB_BUS_SUBJECT];
    snprintf(subject, sizeof subject, PRB_ROSTER_SUBJECT "%s", key);
    const struct prb_bus_message put = {
        .subject = subject, .data = text ? text : "", .len = text ? strlen(text) : 0};
    return prb_bus_publish(bus, &put, err);
}

bool prb_roster_ask_hosts(struct prb_bus *bus, struct prb_bus_inbox *inbox, unsigned tag,
                          struct prb_error *err)
{
    static const char filter[] = "{\"subjects_filter\":\"" PRB_ROSTER_SUBJECT ">\"}";
    char reply[PRB_BUS_SUBJECT];
    prb_bus_inbox_subject(inbox, tag, reply);
    const struct prb_bus_message ask = {.subject = "$JS.API.STREAM.INFO." PRB_ROSTER_STREAM,
                                        .reply = reply,
                                        .data = filter,
                                        .len = sizeof filter - 1};
    return prb_bus_publish(bus, &ask, err);
}

/* "2026-01-31T12:00:00.25Z", in UTC. */
static double time_of(const char *text)
{
    struct tm tm = {0};
    int used = 0;
    if (!text || sscanf(text, "%4d-%2d-%2dT%2d:%2d:%2d%n", &tm.tm_year, &tm.tm_mon, &tm.tm_mday,
                        &tm.tm_hour, &tm.tm_min, &tm.tm_sec, &used) != 6)
        return 0;
    double fraction = 0, scale = 0.1;
    if (text[used] == '.')
        for (used++; text[used] >= '0' && text[used] <= '9'; used++, scale /= 10)
            fraction += (text[used] - '0') * scale;
    tm.tm_year -= 1900;
    tm.tm_mon -= 1;
    return text[used] == 'Z' ? (double)timegm(&tm) + fraction : 0;
}

double prb_roster_taken(const struct prb_bus_message *message)
{
    return time_of(message->headers[PRB_BUS_TIME_STAMP]);
}

bool prb_roster_hosts(const struct prb_bus_message *message,
                      bool (*add)(void *context, const char *key), void *context, double *time_out)
{
    json_t *object = message->len ? json_loadb(message->data, message->len, 0, NULL) : NULL;
    json_t *subjects = json_object_get(json_object_get(object, "state"), "subjects");
    bool good = json_is_object(json_object_get(object, "state"));
    const json_t *now = json_object_get(object, "ts"); /* of servers from 2.10 on */
    *time_out = time_of(json_string_value(
        now ? now : json_object_get(json_object_get(object, "state"), "last_ts")));
    const char *subject;
    json_t *value;
    size_t count = 0, prefix = strlen(PRB_ROSTER_SUBJECT);
    json_object_foreach(subjects, subject, value)
    {
        (void)value;
        if (strncmp(subject, PRB_ROSTER_SUBJECT, prefix) != 0 || !is_key(subject + prefix) ||
            strlen(subject + prefix) >= PRB_ROSTER_KEY)
            continue;
        if (++count > HOSTS_MAX || !add(context, subject + prefix))
            break;
    }
    json_decref(object);
    return good;
}

bool prb_roster_ask_entry(struct prb_bus *bus, struct prb_bus_inbox *inbox, unsigned tag,
                          const char *key, struct prb_error *err)
{
    char subject[PRB_BUS_SUBJECT], reply[PRB_BUS_SUBJECT];
    prb_bus_inbox_subject(inbox, tag, reply);
    snprintf(subject, sizeof subject,
             "$JS.API.DIRECT.GET." PRB_ROSTER_STREAM "." PRB_ROSTER_SUBJECT "%s", key);
    const struct prb_bus_message ask = {.subject = subject, .reply = reply, .data = "", .len = 0};
    return prb_bus_publish(bus, &ask, err);
}
