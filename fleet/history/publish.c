/* Rows of the ranks of this host to the bus: history.h. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/json_text.h"
#include "base/worker.h"
#include "fleet/history/history.h"
#include "fleet/history/places.h"
#include "proc/proc.h"
#include "proc/stat.h"
#include "ring/columns.h"
#include "ring/format.h"
#include "ring/ring.h"
#include "table/recorded/folder.h"

#define BATCH ((uint64_t)64 << 10)      /* bytes of rows in a message: as JSON it is longer */
#define MESSAGE_MAX ((size_t)900 << 10) /* bytes; the server takes 1 MB */
#define BATCHES_MAX 64                  /* of a table in one round */
#define ACKNOWLEDGED 5.0                /* s */
#define REMEMBERS 540.0 /* s that the server knows a message again: stream.c has 600 */

PRB_DEFINE_AUTO_PTR(prb_ring_reader, struct prb_ring_reader, prb_ring_close)

struct prb_publisher {
    const struct prb_publisher_options *options;
    struct prb_worker worker;
    pthread_rwlock_t bus_lock;
    struct prb_bus *bus; /* guarded by bus_lock */
    bool begun;          /* the stream is there; the same */
    /* The thread's own: */
    struct prb_places places;
    bool first; /* what was written before an agent began is not its to tell */
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
    const struct prb_placed *process;
    struct prb_buf text;
};

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

static bool has_column(const struct batch *batch, const char *name)
{
    for (size_t i = 0; i < batch->count; i++)
        if (strcmp(batch->columns[i].name, name) == 0)
            return true;
    return false;
}

/* For those who take rows without headers: whose it is, where no column of it is named so. */
static void add_own(struct batch *batch)
{
    prb_buf_adds(&batch->text, "{\"_job\":");
    prb_json_add_text(&batch->text, batch->process->job, strlen(batch->process->job));
    prb_buf_addf(&batch->text, ",\"_process\":\"%d-%" PRId64 "\"", (int)batch->process->pid,
                 batch->process->started);
    if (!has_column(batch, "rank"))
        prb_buf_addf(&batch->text, ",\"rank\":%d", batch->process->rank);
    if (!has_column(batch, "host")) {
        prb_buf_adds(&batch->text, ",\"host\":");
        prb_json_add_text(&batch->text, batch->process->host, strlen(batch->process->host));
    }
}

static bool add_row(void *context, const struct prb_ring_value *values)
{
    struct batch *batch = context;
    add_own(batch);
    for (size_t i = 0; i < batch->count; i++) {
        prb_buf_addc(&batch->text, ',');
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

static bool set_text(const struct prb_publisher *publisher, const struct prb_fleet_member *member,
                     struct prb_placed *out)
{
    json_t *object = json_pack("{ss ss ss% si si si sI}", "host", publisher->options->host, "key",
                               publisher->options->key, "job", member->job, strlen(member->job),
                               "rank", member->rank, "world_size", member->world_size, "pid",
                               (int)member->pid, "started", (json_int_t)out->started);
    char *text = object ? json_dumps(object, JSON_COMPACT) : NULL;
    json_decref(object);
    bool good = text && strlen(text) < sizeof out->text;
    if (good) {
        snprintf(out->text, sizeof out->text, "%s", text);
        snprintf(out->job, sizeof out->job, "%s", member->job);
        snprintf(out->host, sizeof out->host, "%s", publisher->options->host);
        out->rank = member->rank;
    }
    free(text);
    return good;
}

static bool columns_text(const struct batch *batch, struct prb_buf *out)
{
    for (size_t i = 0; i < batch->count; i++)
        prb_buf_addf(out, "%s%s:%s", i ? "," : "", batch->columns[i].name,
                     prb_ring_type_name(batch->columns[i].type));
    return prb_buf_ok(out);
}

/* The server has it: it says at which place of the stream.  *known: it had it before. */
static bool is_kept(struct prb_bus *bus, struct prb_bus_message *message, bool *known,
                    struct prb_error *err)
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
    *known = json_is_true(json_object_get(object, "duplicate"));
    if (!kept)
        prb_fail(err, PRB_IO, "the server keeps no history: %.120s",
                 answer.nobody ? "there is no stream " PRB_HISTORY_STREAM
                 : answer.len  ? answer.data
                               : "");
    json_decref(object);
    prb_bus_message_free(&answer);
    return kept;
}

/* A message's name, by which the server knows it again: whose rows from where to where. */
static void name_message(const struct prb_publisher *publisher, const struct prb_placed *process,
                         const struct prb_place *place, char out[260])
{
    const struct prb_ring_mark *marks[] = {&place->mark, &place->next};
    uint64_t sum = 0xcbf29ce484222325u ^ place->tries, rows = 0; /* FNV-1a, a number at a time */
    for (int m = 0; m < 2; m++)
        for (size_t i = 0; i < marks[m]->count; i++) {
            sum = (sum ^ marks[m]->places[i].state) * 0x100000001b3u;
            sum = (sum ^ marks[m]->places[i].rows) * 0x100000001b3u;
            rows += m ? marks[m]->places[i].rows : 0;
        }
    snprintf(out, 260, "%s-%d-%" PRId64 "-%" PRIu64 "-%" PRIu64 "-%016" PRIx64,
             publisher->options->key, (int)process->pid, process->started, place->inode, rows, sum);
}

/* batch NULL: only ask whether the server has it. */
static bool send_batch(struct prb_publisher *publisher, const struct prb_placed *process,
                       const struct prb_place *place, const struct batch *batch, uint64_t lost,
                       bool *known, struct prb_error *err)
{
    char subject[PRB_BUS_SUBJECT], job[PRB_BUS_TOKEN], id[260], number[24];
    PRB_AUTO(prb_buf) struct prb_buf columns = {0};
    if (batch && !columns_text(batch, &columns))
        return prb_nomem(err);
    prb_bus_token(process->job, job);
    snprintf(subject, sizeof subject, PRB_HISTORY_SUBJECT, job, place->name);
    snprintf(number, sizeof number, "%" PRIu64, lost);
    name_message(publisher, process, place, id);
    struct prb_bus_message message = {
        .subject = subject,
        .headers = {[PRB_BUS_COLUMNS] = columns.data,
                    [PRB_BUS_PROCESS] = batch ? process->text : NULL,
                    [PRB_BUS_MESSAGE_ID] = id,
                    [PRB_BUS_LOST_HEADER] = lost ? number : NULL},
        .data = batch && batch->text.data ? batch->text.data : "",
        .len = batch ? batch->text.len : 0,
    };
    pthread_rwlock_rdlock(&publisher->bus_lock);
    bool good = publisher->bus ? is_kept(publisher->bus, &message, known, err)
                               : prb_fail(err, PRB_IO, "the bus is lost");
    pthread_rwlock_unlock(&publisher->bus_lock);
    return good;
}

/* ---- one ring ---- */

static bool is_among(const char *tables, const char *name, size_t len)
{
    for (const char *at = tables; *at;) {
        size_t part = strcspn(at, ",");
        if ((part == 1 && *at == '*') || (part == len && strncmp(at, name, len) == 0))
            return true;
        at += part + (at[part] == ',');
    }
    return false;
}

/* An agent before has published this table: what it did not know came later. */
static bool was_published(const struct prb_publisher *publisher, const char *name)
{
    return publisher->places.tables && is_among(publisher->places.tables, name, strlen(name));
}

static void move_mark(struct prb_ring_mark *to, struct prb_ring_mark *from)
{
    prb_ring_mark_deinit(to);
    *to = *from;
    *from = (struct prb_ring_mark){0};
}

/* The server has what was on its way, or not; the next begins there. */
static void settled(struct prb_publisher *publisher, const struct prb_placed *process,
                    struct prb_place *place, bool kept)
{
    if (kept)
        move_mark(&place->mark, &place->next);
    else
        place->tries++; /* the same rows need another name: that one is used up */
    prb_ring_mark_deinit(&place->next);
    place->next = (struct prb_ring_mark){0};
    place->asked = false;
    prb_buf_deinit(&place->rows);
    place->rows = (struct prb_buf){0};
    prb_place_save(&publisher->places, process, place);
}

/*
 * A message went, and no answer came.  When the bus was lost, it goes once more: the server knows it
 * again.  When an agent before was killed, an empty one of the same name says whether the server has
 * it; when it has not, the name is used up now, and one that is still on its way comes too late.
 */
static bool settle(struct prb_publisher *publisher, const struct prb_placed *process,
                   struct prb_place *place, struct batch *batch, struct prb_error *err)
{
    bool known = false, asked = place->asked, old = prb_clock_epoch_s() - place->sent > REMEMBERS;
    if (!place->next.count)
        return true;
    if (place->rows.data) {
        batch->text = place->rows;
        if (!send_batch(publisher, process, place, batch, place->lost, &known, err))
            return false;
        settled(publisher, process, place, true);
    } else {
        place->asked = true;
        prb_place_save(&publisher->places, process, place);
        if (!old && !send_batch(publisher, process, place, NULL, 0, &known, err))
            return false;
        old = old || (known && asked);
        settled(publisher, process, place, known && !old);
    }
    if (old)
        say(publisher, "rows of a message that was not confirmed may be there twice");
    return true;
}

/* Rows wait in the ring until the server has them: what is held here is a batch of one ring. */
static bool publish_some(struct prb_publisher *publisher, const struct prb_placed *process,
                         struct prb_place *place, struct prb_ring_reader *reader,
                         struct batch *batch, bool *more, struct prb_error *err)
{
    struct prb_ring_counts counts = {0};
    bool known;
    batch->text = (struct prb_buf){0};
    if (!prb_ring_each_from(reader, place->mark.count ? &place->mark : NULL, BATCH, add_row, batch,
                            &counts, &place->next, err)) {
        prb_buf_deinit(&batch->text);
        place->next = (struct prb_ring_mark){0};
        return false;
    }
    *more = counts.more;
    if (batch->text.len > MESSAGE_MAX) {
        say(publisher, "rows of one table are too long for a message, and are left out");
        batch->text.len = 0;
    }
    place->rows = batch->text;
    if (!batch->text.len && !counts.lost) {
        prb_buf_deinit(&place->rows);
        place->rows = (struct prb_buf){0};
        move_mark(&place->mark, &place->next);
        return true;
    }
    place->lost = counts.lost;
    place->sent = prb_clock_epoch_s();
    prb_place_save(&publisher->places, process, place);
    if (!send_batch(publisher, process, place, batch, counts.lost, &known, err))
        return false;
    settled(publisher, process, place, true);
    return true;
}

static bool publish_ring(struct prb_publisher *publisher, struct prb_placed *process,
                         struct prb_ring_reader *reader, struct prb_error *err)
{
    bool new, more = true;
    const char *name = prb_ring_name(reader);
    struct prb_place *place = prb_places_ring(process, prb_ring_inode(reader), name, &new);
    struct prb_ring_counts counts = {0};
    struct batch batch = {.process = process};
    if (!place)
        return prb_fail(err, PRB_NOMEM, "there are too many tables");
    if (new && publisher->first && !was_published(publisher, name))
        return prb_ring_each_from(reader, NULL, 0, skip_row, NULL, &counts, &place->mark, err) &&
               (prb_place_save(&publisher->places, process, place), true);
    batch.columns = prb_ring_columns(reader, &batch.count);
    if (!settle(publisher, process, place, &batch, err))
        return false;
    for (unsigned i = 0; i < BATCHES_MAX && more; i++)
        if (!publish_some(publisher, process, place, reader, &batch, &more, err))
            return false;
    return true;
}

/* ---- one round ---- */

/* Also of a process that has ended: its folder is open. */
static bool publish_process(struct prb_publisher *publisher, struct prb_placed *process,
                            struct prb_error *err)
{
    int copy = process->folder >= 0
                   ? openat(process->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
                   : -1;
    PRB_AUTO(dir) DIR *dir = copy >= 0 ? fdopendir(copy) : NULL;
    bool good = true;
    if (!dir && copy >= 0)
        close(copy);
    for (struct dirent *entry; good && dir && (entry = readdir(dir));) {
        size_t len = strlen(entry->d_name), suffix = strlen(PRB_RING_SUFFIX);
        if (len <= suffix || strcmp(entry->d_name + len - suffix, PRB_RING_SUFFIX) != 0 ||
            !is_among(publisher->options->tables, entry->d_name, len - suffix))
            continue;
        PRB_AUTO(prb_ring_reader)
        struct prb_ring_reader *reader = prb_ring_open(dirfd(dir), entry->d_name, NULL);
        good = !reader || publish_ring(publisher, process, reader, err);
    }
    return good;
}

/* What is known of a rank that runs, and its folder, as soon as it has one. */
static void see_member(struct prb_publisher *publisher, const struct prb_fleet_member *member)
{
    char path[32];
    struct prb_stat stat;
    snprintf(path, sizeof path, "/proc/%d", (int)member->pid);
    struct prb_placed *process =
        prb_stat_of(path, &stat)
            ? prb_places_process(&publisher->places, member->pid, stat.field[PRB_STAT_STARTTIME])
            : NULL;
    if (!process || !set_text(publisher, member, process))
        return;
    process->lives = true;
    PRB_AUTO(prb_proc) struct prb_proc *proc = prb_proc_open(member->pid, NULL);
    int folder = proc ? prb_recorded_folder_of(proc) : -1;
    if (folder < 0)
        return;
    if (process->folder >= 0)
        close(process->folder);
    process->folder = folder;
}

/* The last rows of those that ended, too; after them they are forgotten. */
static bool publish_all(struct prb_publisher *publisher, struct prb_error *err)
{
    for (size_t i = 0; i < publisher->places.count;) {
        if (!publish_process(publisher, &publisher->places.items[i], err))
            return false;
        if (publisher->places.items[i].lives)
            i++;
        else
            prb_places_forget(&publisher->places, i);
    }
    return true;
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

static void round_of(void *context)
{
    struct prb_publisher *publisher = context;
    PRB_AUTO(prb_fleet_members) struct prb_fleet_members members = {0};
    struct prb_error err = {0};
    bool good = begin_stream(publisher, &err) &&
                prb_fleet_members_find(publisher->options->all_users, &members, &err);
    for (size_t i = 0; good && i < publisher->places.count; i++)
        publisher->places.items[i].lives = false;
    for (size_t i = 0; good && i < members.count; i++)
        if (publisher->options->all_users || members.items[i].uid == geteuid())
            see_member(publisher, &members.items[i]);
    if (good && (good = publish_all(publisher, &err)) && publisher->first) {
        publisher->first = false;
        prb_places_set_tables(&publisher->places, publisher->options->tables);
    }
    say(publisher, good ? "" : err.text);
}

/* ---- life ---- */

struct prb_publisher *prb_publisher_new(const struct prb_publisher_options *options,
                                        struct prb_error *err)
{
    struct prb_publisher *publisher = calloc(1, sizeof *publisher);
    if (!publisher)
        return PRB_NULL(prb_nomem(err));
    publisher->options = options;
    publisher->first = true;
    prb_places_open(&publisher->places);
    pthread_rwlock_init(&publisher->bus_lock, NULL);
    if (prb_worker_begin(&publisher->worker, options->every, round_of, publisher, err))
        return publisher;
    prb_publisher_free(publisher);
    return NULL;
}

void prb_publisher_free(struct prb_publisher *publisher)
{
    if (!publisher)
        return;
    prb_worker_end(&publisher->worker);
    prb_places_close(&publisher->places);
    pthread_rwlock_destroy(&publisher->bus_lock);
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
    prb_worker_wake(&publisher->worker);
}
