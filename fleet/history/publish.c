/* Rows of the ranks of this host to the bus: history.h. */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/clock.h"
#include "base/json_text.h"
#include "fleet/history/history.h"
#include "proc/proc.h"
#include "proc/stat.h"
#include "ring/format.h"
#include "ring/ring.h"
#include "table/recorded/folder.h"

#define BATCH ((uint64_t)64 << 10)      /* bytes of rows in a message: as JSON it is longer */
#define MESSAGE_MAX ((size_t)900 << 10) /* bytes; the server takes 1 MB */
#define BATCHES_MAX 64                  /* of a table in one round */
#define ACKNOWLEDGED 5.0                /* s */
#define RINGS_MAX 4096                  /* of this host */

PRB_DEFINE_AUTO_PTR(prb_ring_reader, struct prb_ring_reader, prb_ring_close)

/* How far a ring was published. */
struct place {
    pid_t pid;
    uint64_t inode;
    struct prb_ring_mark mark;
    bool seen; /* in this round */
};

struct prb_publisher {
    const struct prb_publisher_options *options;
    pthread_t thread;
    bool runs;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool ends; /* guarded by lock */
    pthread_rwlock_t bus_lock;
    struct prb_bus *bus; /* guarded by bus_lock */
    bool begun;          /* the stream is there; the same */
    /* The thread's own: */
    struct place *places;
    size_t count, cap;
    bool first; /* what was written before the agent began is not its to tell */
    char told[200];
};

static void say(struct prb_publisher *publisher, const char *text)
{
    if (strcmp(publisher->told, text) == 0)
        return;
    snprintf(publisher->told, sizeof publisher->told, "%s", text);
    if (*text)
        publisher->options->say(publisher->options->context, text);
}

/* ---- rows as text ---- */

struct batch {
    const struct prb_ring_column *columns;
    size_t count;
    struct prb_buf text;
};

static const char *const types[] = {[PRB_RING_INTEGER] = "integer",
                                    [PRB_RING_REAL] = "real",
                                    [PRB_RING_TEXT] = "text",
                                    [PRB_RING_BOOLEAN] = "boolean",
                                    [PRB_RING_TIME] = "time"};

static void add_value(struct prb_buf *out, enum prb_ring_type type,
                      const struct prb_ring_value *value)
{
    if (value->null) {
        prb_buf_adds(out, "null");
        return;
    }
    switch (type) {
    case PRB_RING_INTEGER:
        prb_buf_addf(out, "%" PRId64, value->integer);
        break;
    case PRB_RING_BOOLEAN:
        prb_buf_adds(out, value->integer ? "true" : "false");
        break;
    case PRB_RING_REAL:
    case PRB_RING_TIME:
        if (isfinite(value->real))
            prb_buf_addf(out, "%.17g", value->real);
        else /* JSON has none; readers of JSON lines take it as text */
            prb_buf_adds(out, isnan(value->real) ? "\"NaN\""
                              : value->real > 0  ? "\"Infinity\""
                                                 : "\"-Infinity\"");
        break;
    case PRB_RING_TEXT:
        prb_json_add_text(out, value->text, value->len);
        break;
    }
}

static bool add_row(void *context, const struct prb_ring_value *values)
{
    struct batch *batch = context;
    for (size_t i = 0; i < batch->count; i++) {
        prb_buf_addc(&batch->text, i ? ',' : '{');
        prb_json_add_text(&batch->text, batch->columns[i].name, strlen(batch->columns[i].name));
        prb_buf_addc(&batch->text, ':');
        add_value(&batch->text, batch->columns[i].type, &values[i]);
    }
    prb_buf_adds(&batch->text, "}\n");
    return prb_buf_ok(&batch->text);
}

static bool skip_row(void *context, const struct prb_ring_value *values)
{
    (void)context, (void)values;
    return true;
}

/* ---- one batch ---- */

static char *process_text(const struct prb_publisher *publisher,
                          const struct prb_fleet_member *member)
{
    char folder[32];
    struct prb_stat stat;
    snprintf(folder, sizeof folder, "/proc/%d", (int)member->pid);
    if (!prb_stat_of(folder, &stat))
        return NULL;
    json_t *object =
        json_pack("{ss ss ss% si si si sI}", "host", publisher->options->host, "key",
                  publisher->options->key, "job", member->job, strlen(member->job), "rank",
                  member->rank, "world_size", member->world_size, "pid", (int)member->pid,
                  "started", (json_int_t)stat.field[PRB_STAT_STARTTIME]);
    char *text = object ? json_dumps(object, JSON_COMPACT) : NULL;
    json_decref(object);
    return text;
}

static bool columns_text(const struct batch *batch, struct prb_buf *out)
{
    for (size_t i = 0; i < batch->count; i++)
        prb_buf_addf(out, "%s%s:%s", i ? "," : "", batch->columns[i].name,
                     types[batch->columns[i].type]);
    return prb_buf_ok(out);
}

/* The server has it: it says at which place of the stream. */
static bool is_kept(struct prb_bus *bus, struct prb_bus_message *message, struct prb_error *err)
{
    char reply[PRB_BUS_SUBJECT];
    struct prb_bus_message answer;
    PRB_AUTO(prb_bus_inbox) struct prb_bus_inbox *inbox = prb_bus_inbox_new(bus, err);
    if (!inbox)
        return false;
    prb_bus_inbox_subject(inbox, 0, reply);
    message->reply = reply;
    if (!prb_bus_publish(bus, message, err))
        return false;
    if (!prb_bus_inbox_next(inbox, ACKNOWLEDGED, &answer, err))
        return prb_bus_check(bus, err) &&
               prb_fail(err, PRB_TIMEOUT, "the server does not confirm what was published");
    json_t *object = answer.nobody ? NULL : json_loadb(answer.data, answer.len, 0, NULL);
    bool kept = json_integer_value(json_object_get(object, "seq")) > 0;
    if (!kept)
        prb_fail(err, PRB_IO, "the server keeps no history: %.120s",
                 answer.nobody ? "there is no stream " PRB_HISTORY_STREAM
                 : answer.len  ? answer.data
                               : "");
    json_decref(object);
    prb_bus_message_free(&answer);
    return kept;
}

static bool send_batch(struct prb_publisher *publisher, const struct prb_fleet_member *member,
                       const struct batch *batch, const char *table, const struct place *from,
                       uint64_t lost, struct prb_error *err)
{
    char subject[PRB_BUS_SUBJECT], job[PRB_BUS_TOKEN], id[200], number[24];
    PRB_AUTO(prb_buf) struct prb_buf columns = {0};
    PRB_AUTO_FREE char *process = process_text(publisher, member);
    uint64_t rows = 0;
    if (!process)
        return prb_fail(err, PRB_GONE, "rank %d has ended", member->rank);
    if (!columns_text(batch, &columns))
        return prb_nomem(err);
    for (size_t i = 0; i < from->mark.count; i++)
        rows += from->mark.places[i].rows;
    prb_bus_token(member->job, job);
    snprintf(subject, sizeof subject, PRB_HISTORY_SUBJECT, job, table);
    snprintf(id, sizeof id, "%s-%d-%" PRIu64 "-%" PRIu64, publisher->options->key, (int)member->pid,
             from->inode, rows);
    snprintf(number, sizeof number, "%" PRIu64, lost);
    struct prb_bus_message message = {
        .subject = subject,
        .headers = {[PRB_BUS_COLUMNS] = columns.data,
                    [PRB_BUS_PROCESS] = process,
                    [PRB_BUS_MESSAGE_ID] = id,
                    [PRB_BUS_LOST_HEADER] = lost ? number : NULL},
        .data = batch->text.data ? batch->text.data : "",
        .len = batch->text.len,
    };
    pthread_rwlock_rdlock(&publisher->bus_lock);
    bool good = publisher->bus ? is_kept(publisher->bus, &message, err)
                               : prb_fail(err, PRB_IO, "the bus is lost");
    pthread_rwlock_unlock(&publisher->bus_lock);
    return good;
}

/* ---- one ring ---- */

static struct place *place_of(struct prb_publisher *publisher, pid_t pid, uint64_t inode,
                              bool *new_out)
{
    for (size_t i = 0; i < publisher->count; i++)
        if (publisher->places[i].pid == pid && publisher->places[i].inode == inode)
            return &publisher->places[i];
    if (publisher->count >= RINGS_MAX ||
        !PRB_GROW(publisher->places, publisher->count, publisher->cap))
        return NULL;
    *new_out = true;
    publisher->places[publisher->count] = (struct place){.pid = pid, .inode = inode};
    return &publisher->places[publisher->count++];
}

/* Rows wait in the ring until the server has them: nothing is held here but one batch. */
static bool publish_ring(struct prb_publisher *publisher, const struct prb_fleet_member *member,
                         struct prb_ring_reader *reader, struct prb_error *err)
{
    bool new = false;
    struct place *place = place_of(publisher, member->pid, prb_ring_inode(reader), &new);
    struct prb_ring_counts counts = {.more = true};
    if (!place)
        return prb_fail(err, PRB_NOMEM, "there are too many tables");
    place->seen = true;
    if (new && publisher->first)
        return prb_ring_each_from(reader, NULL, 0, skip_row, NULL, &counts, &place->mark, err);
    for (unsigned i = 0; i < BATCHES_MAX && counts.more; i++) {
        struct batch batch = {0};
        struct prb_ring_mark to = {0};
        batch.columns = prb_ring_columns(reader, &batch.count);
        bool good = prb_ring_each_from(reader, place->mark.count ? &place->mark : NULL, BATCH,
                                       add_row, &batch, &counts, &to, err);
        if (good && batch.text.len > MESSAGE_MAX) {
            say(publisher, "rows of one table are too long for a message, and are left out");
            batch.text.len = 0;
        }
        if (good && (batch.text.len || counts.lost))
            good = send_batch(publisher, member, &batch, prb_ring_name(reader), place, counts.lost,
                              err);
        prb_buf_deinit(&batch.text);
        if (!good) {
            prb_ring_mark_deinit(&to);
            return false;
        }
        prb_ring_mark_deinit(&place->mark);
        place->mark = to;
    }
    return true;
}

/* ---- one round ---- */

static bool is_wanted(const struct prb_publisher *publisher, const char *name, size_t len)
{
    for (const char *at = publisher->options->tables; *at;) {
        size_t part = strcspn(at, ",");
        if ((part == 1 && *at == '*') || (part == len && strncmp(at, name, len) == 0))
            return true;
        at += part + (at[part] == ',');
    }
    return false;
}

static bool publish_member(struct prb_publisher *publisher, const struct prb_fleet_member *member,
                           struct prb_error *err)
{
    PRB_AUTO(prb_proc) struct prb_proc *proc = prb_proc_open(member->pid, NULL);
    int folder = proc ? prb_recorded_folder_of(proc) : -1;
    PRB_AUTO(dir) DIR *dir = folder >= 0 ? fdopendir(folder) : NULL;
    bool good = true;
    if (!dir && folder >= 0)
        close(folder);
    for (struct dirent *entry; good && dir && (entry = readdir(dir));) {
        size_t len = strlen(entry->d_name), suffix = strlen(PRB_RING_SUFFIX);
        if (len <= suffix || strcmp(entry->d_name + len - suffix, PRB_RING_SUFFIX) != 0 ||
            !is_wanted(publisher, entry->d_name, len - suffix))
            continue;
        PRB_AUTO(prb_ring_reader)
        struct prb_ring_reader *reader = prb_ring_open(dirfd(dir), entry->d_name, NULL);
        good = !reader || publish_ring(publisher, member, reader, err);
    }
    return good;
}

static void forget_unseen(struct prb_publisher *publisher)
{
    for (size_t i = 0; i < publisher->count;) {
        if (publisher->places[i].seen) {
            publisher->places[i++].seen = false;
            continue;
        }
        prb_ring_mark_deinit(&publisher->places[i].mark);
        publisher->places[i] = publisher->places[--publisher->count];
    }
}

static bool begin_stream(struct prb_publisher *publisher, struct prb_error *err)
{
    pthread_rwlock_rdlock(&publisher->bus_lock);
    bool good = publisher->bus != NULL || prb_fail(err, PRB_IO, "the bus is lost");
    if (good && !publisher->begun)
        good = publisher->begun = prb_history_begin(publisher->bus, err);
    pthread_rwlock_unlock(&publisher->bus_lock);
    return good;
}

static void round_of(struct prb_publisher *publisher)
{
    PRB_AUTO(prb_fleet_members) struct prb_fleet_members members = {0};
    struct prb_error err = {0};
    bool good = begin_stream(publisher, &err) && prb_fleet_members_find(&members, &err);
    for (size_t i = 0; good && i < members.count; i++)
        if ((publisher->options->all_users || members.items[i].uid == geteuid()) &&
            !members.items[i].refused[0])
            good = publish_member(publisher, &members.items[i], &err) || err.code == PRB_GONE;
    if (good) {
        forget_unseen(publisher);
        publisher->first = false;
    }
    say(publisher, good ? "" : err.text);
}

static void *run(void *context)
{
    struct prb_publisher *publisher = context;
    pthread_mutex_lock(&publisher->lock);
    while (!publisher->ends) {
        struct timespec until;
        pthread_mutex_unlock(&publisher->lock);
        round_of(publisher);
        double end = prb_clock_s() + publisher->options->every;
        until.tv_sec = (time_t)end;
        until.tv_nsec = (long)((end - (double)until.tv_sec) * 1e9);
        pthread_mutex_lock(&publisher->lock);
        if (!publisher->ends)
            pthread_cond_timedwait(&publisher->wake, &publisher->lock, &until);
    }
    pthread_mutex_unlock(&publisher->lock);
    return NULL;
}

/* ---- life ---- */

struct prb_publisher *prb_publisher_new(const struct prb_publisher_options *options,
                                        struct prb_error *err)
{
    struct prb_publisher *publisher = calloc(1, sizeof *publisher);
    pthread_condattr_t monotonic;
    if (!publisher)
        return PRB_NULL(prb_nomem(err));
    publisher->options = options;
    publisher->first = true;
    pthread_mutex_init(&publisher->lock, NULL);
    pthread_rwlock_init(&publisher->bus_lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&publisher->wake, &monotonic);
    pthread_condattr_destroy(&monotonic);
    publisher->runs = pthread_create(&publisher->thread, NULL, run, publisher) == 0;
    if (publisher->runs)
        return publisher;
    prb_fail(err, PRB_NOMEM, "no thread can be made");
    prb_publisher_free(publisher);
    return NULL;
}

void prb_publisher_free(struct prb_publisher *publisher)
{
    if (!publisher)
        return;
    pthread_mutex_lock(&publisher->lock);
    publisher->ends = true;
    pthread_cond_signal(&publisher->wake);
    pthread_mutex_unlock(&publisher->lock);
    if (publisher->runs)
        pthread_join(publisher->thread, NULL);
    for (size_t i = 0; i < publisher->count; i++)
        prb_ring_mark_deinit(&publisher->places[i].mark);
    free(publisher->places);
    pthread_cond_destroy(&publisher->wake);
    pthread_rwlock_destroy(&publisher->bus_lock);
    pthread_mutex_destroy(&publisher->lock);
    free(publisher);
}

void prb_publisher_use(struct prb_publisher *publisher, struct prb_bus *bus)
{
    if (!publisher)
        return;
    pthread_rwlock_wrlock(&publisher->bus_lock);
    publisher->bus = bus;
    publisher->begun = false;
    pthread_rwlock_unlock(&publisher->bus_lock);
    pthread_mutex_lock(&publisher->lock);
    pthread_cond_signal(&publisher->wake);
    pthread_mutex_unlock(&publisher->lock);
}
