/*
 * Hosts that are not there: one process joins the bus as many of them, whose ranks stand where
 * those of a real job stood (tests/fleet/corpus/stacks.json).  It answers looks (stacks, hang) as their agents
 * would, or fails as it is told.
 *
 *   fake_hosts BUS_FILE RECORD JOB[,JOB...] FIRST COUNT RANKS [CONNECTIONS]
 *
 * Hosts FIRST to FIRST + COUNT - 1 have RANKS ranks each of every job.  Rank r stands where view
 * 1 + (r * 7919 + r / 8) % (views - 1) of the record stands; view 0 is that of the rank that
 * `odd` names.  Its innermost frame has the id of the question (7 digits) as its line, once `marked`
 * is told, and its outermost the name of the job.  "ready" is printed when the server has all
 * subscriptions; each line that is read then is one order, answered by "done":
 *
 *   fault FIRST LAST NAME   how these hosts behave from now on (faults below)
 *   world N                 how many ranks they say that the job has; odd N; marked
 *   clock FIRST LAST S      how far their clocks are off
 */
#include <errno.h>
#include <jansson.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/protobuf.h"
#include "fleet/answers/packed.h"
#include "fleet/bus/bus.h"
#include "fleet/bus/roster.h"
#include "fleet/message/message.h"

#define JOBS_MAX 4
#define LATE 1.5 /* s */
#define TICK_MS 20
#define RECORD_MAX ((size_t)16 << 20)

enum fault {
#define FAULTS(FAULT)                                                                              \
    FAULT(honest)                                                                                  \
    FAULT(absent)    /* its agent ended: the server knows that nobody hears it */                  \
    FAULT(stopped)   /* hears nothing, and its connection stands */                                \
    FAULT(mute)      /* tells of itself, and answers no look */                                    \
    FAULT(busy)      /* does not tell of itself, gives signs of life, and answers late */          \
    FAULT(late)      /* answers when nobody waits any more */                                      \
    FAULT(midway)    /* ends in the middle of its answer */                                        \
    FAULT(stuck)     /* the same, and its connection stands */                                     \
    FAULT(twice)     /* sends its answer twice */                                                  \
    FAULT(cut)       /* the answer lacks its second half */                                        \
    FAULT(damaged)   /* its last byte is another */                                                \
    FAULT(noise)     /* any three of its bytes are */                                              \
    FAULT(old)       /* sends the answer to the question before */                                 \
    FAULT(thief)     /* answers for a rank of the next host, too */                                \
    FAULT(claims)    /* says that it has a rank of the next host */                                \
    FAULT(lost)      /* does not know of its first rank */                                         \
    FAULT(ended)     /* saw its first rank end */                                                  \
    FAULT(refused)   /* may not look at its first rank */                                          \
    FAULT(truncated) /* cut its first rank's part */                                               \
    FAULT(release)   /* is of another release */
#define FAULT(name) fault_##name,
    FAULTS(FAULT)
#undef FAULT
        fault_count
};
static const char *const faults[] = {
#define FAULT(name) #name,
    FAULTS(FAULT)
#undef FAULT
};

struct connection;

/* What all answers to a job have, behind the frame that has the question's number. */
struct part {
    size_t frames;
    struct prb_buf rest;
};

struct host {
    unsigned number;
    struct connection *connection;
    struct prb_roster_entry entry;
    char *text; /* the entry; NULL: is to be made */
    enum fault fault;
    double skew;                                  /* s */
    struct prb_bus_subscription *heard[JOBS_MAX]; /* what it alone hears */
    struct part parts[JOBS_MAX];
    struct prb_buf last; /* answer */
    char last_id[PRB_FLEET_ID];
    unsigned shard;
};

struct connection {
    struct prb_bus *bus;
    unsigned number;
    uint64_t shards; /* that it hears */
};

/* An answer that is sent later, or a host that ends then. */
struct letter {
    struct letter *next;
    double due; /* s, monotonic */
    struct host *host;
    struct prb_buf body;
    char *to, id[PRB_FLEET_ID];
    bool ends;
};

static struct {
    struct prb_merged_frame *frames;
    size_t frame_count;
    struct stack {
        const char *thread;
        bool main;
        const json_t *frames;
    } *stacks;
    size_t stack_count;
    const json_t *views;
} record;

/* Guarded by lock: callbacks are on a thread of libnats. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct prb_bus_file file;
static struct connection *connections;
static struct host *hosts;
static unsigned connection_count, host_count, first_host, ranks_each, job_count;
static char jobs[JOBS_MAX][128], *tokens[JOBS_MAX];
static int world, odd = -1;
static bool marked;
static struct letter *letters;
static uint64_t noise = 88172645463325252u;

static bool give_up(const char *what, const struct prb_error *err)
{
    fprintf(stderr, "fake_hosts: %s: %s\n", what, err && err->text[0] ? err->text : "no memory");
    exit(1);
}

/* ---- the record ---- */

static void read_record(const char *path)
{
    json_error_t why;
    const json_t *all = json_load_file(path, 0, &why), *one;
    const json_t *frames = json_object_get(all, "frames"), *stacks = json_object_get(all, "stacks");
    size_t i;
    record.views = json_object_get(all, "views");
    record.frame_count = json_array_size(frames);
    record.stack_count = json_array_size(stacks);
    record.frames = calloc(record.frame_count + 1, sizeof *record.frames);
    record.stacks = calloc(record.stack_count + 1, sizeof *record.stacks);
    if (!record.frame_count || json_array_size(record.views) < 2 || !record.frames ||
        !record.stacks) {
        fprintf(stderr, "fake_hosts: %s: %s\n", path, all ? "not a record" : why.text);
        exit(1);
    }
    json_array_foreach(frames, i, one) record.frames[i] = (struct prb_merged_frame){
        .kind = (enum prb_frame_kind)json_integer_value(json_array_get(one, 0)),
        .name = json_string_value(json_array_get(one, 1)),
        .file = json_string_value(json_array_get(one, 2)),
        .line = (int)json_integer_value(json_array_get(one, 3)),
        .locals = ""};
    json_array_foreach(stacks, i, one)
    {
        const char *thread = json_string_value(json_array_get(one, 0));
        record.stacks[i] = (struct stack){.thread = thread,
                                          .main = strcmp(thread, "MainThread") == 0,
                                          .frames = json_array_get(one, 1)};
    }
}

static const json_t *view_of(int rank)
{
    size_t others = json_array_size(record.views) - 1;
    size_t view = 1 + ((size_t)rank * 7919 + (size_t)rank / 8) % others;
    return json_array_get(record.views, rank == odd ? 0 : view);
}

/* ---- a host's part ---- */

#define FRAMES_MAX 4096
enum { QUESTION, OUTERMOST, FIRST };

static void add_group(struct prb_buf *out, const struct stack *stack,
                      const struct prb_rank_set *ranks, uint64_t threads, const uint32_t *numbers)
{
    uint32_t all[FRAMES_MAX];
    struct prb_merged_group group = {
        .thread = stack->thread, .frames = all, .ranks = *ranks, .threads = threads};
    const json_t *frame;
    size_t i;
    if (stack->main)
        all[group.frame_count++] = QUESTION;
    json_array_foreach(stack->frames, i, frame) if (group.frame_count + 1 < FRAMES_MAX)
        all[group.frame_count++] = numbers[json_integer_value(frame)];
    if (stack->main)
        all[group.frame_count++] = OUTERMOST;
    prb_merged_pack_group(out, &group);
}

static void make_part(const struct prb_rank_set *ranks, const char *job, struct part *out)
{
    PRB_AUTO(prb_buf) struct prb_buf groups = {0};
    PRB_AUTO_FREE uint32_t *numbers = calloc(record.frame_count, sizeof *numbers);
    PRB_AUTO_FREE uint64_t *threads = calloc(record.stack_count, sizeof *threads);
    PRB_AUTO_FREE struct prb_rank_set *at = calloc(record.stack_count, sizeof *at);
    char name[160];
    const struct prb_merged_frame outermost = {
        .name = name, .file = "job.py", .line = 1, .locals = ""};
    const json_t *one;
    size_t i, group_count = 0;
    if (!numbers || !threads || !at)
        give_up("a part", NULL);
    snprintf(name, sizeof name, "run_%s", job);
    for (int rank = prb_rank_set_next(ranks, -1); rank >= 0; rank = prb_rank_set_next(ranks, rank))
        json_array_foreach(view_of(rank), i, one)
        {
            size_t stack = (size_t)json_integer_value(one);
            group_count += !threads[stack]++;
            (void)prb_rank_set_add(&at[stack], rank, rank);
        }
    prb_buf_deinit(&out->rest);
    prb_merged_pack_frame(&out->rest, &outermost);
    out->frames = FIRST;
    for (size_t s = 0; s < record.stack_count; s++) {
        json_array_foreach(record.stacks[s].frames, i, one)
        {
            uint32_t *number = &numbers[json_integer_value(one)];
            if (*number || !threads[s])
                continue;
            *number = (uint32_t)out->frames++;
            prb_merged_pack_frame(&out->rest, &record.frames[json_integer_value(one)]);
        }
        if (threads[s])
            add_group(&groups, &record.stacks[s], &at[s], threads[s], numbers);
        prb_rank_set_deinit(&at[s]);
    }
    prb_proto_varint(&out->rest, group_count);
    prb_buf_add(&out->rest, groups.data, groups.len);
}

static void add_part(struct host *host, unsigned job, const struct prb_rank_set *ranks, bool all,
                     const char *id, struct prb_buf *out)
{
    char digits[8] = "0";
    struct part own = {0}, *part = all ? &host->parts[job] : &own;
    if (marked)
        snprintf(digits, sizeof digits, "%.7s", id);
    const struct prb_merged_frame question = {.name = "question",
                                              .file = "question.py",
                                              .line = (int)strtol(digits, NULL, 16),
                                              .locals = ""};
    if (!part->frames)
        make_part(ranks, jobs[job], part);
    prb_merged_pack_begin(out, part->frames);
    prb_merged_pack_frame(out, &question);
    prb_buf_add(out, part->rest.data, part->rest.len);
    prb_buf_deinit(&own.rest);
}

/* The same of `hang`: all wait in one collective but the odd one, which the record's view 0 shows. */
static void add_hang(const struct prb_rank_set *ranks, struct prb_buf *out)
{
    json_t *all = json_object(),
           *where = json_pack("[[[ssi][ssi]],[[ssi][ssi]]]", "sync_grads", "train.py", 47, "main",
                              "train.py", 73, "read_shard", "data.py", 20, "main", "train.py", 73);
    for (int rank = prb_rank_set_next(ranks, -1); rank >= 0;
         rank = prb_rank_set_next(ranks, rank)) {
        bool waits = rank != odd;
        char key[16];
        snprintf(key, sizeof key, "%d", rank);
        json_object_set_new(
            all, key,
            json_pack("{s:s, s:s, s:s, s:b, s:b, s:b, s:f, s:f, s:s, s:s, s:s, s:s, s:i, "
                      "s:[[s,i,b,s,s,f]]}",
                      "kind", waits ? "collective" : "sleep", "state", "S", "wchan", "", "moved", 0,
                      "looped", 0, "works", 0, "span", 2.0, "cpu", 0.0, "operation",
                      waits ? "all_reduce" : "", "site",
                      waits ? "sync_grads (train.py:47)" : "read_shard (data.py:20)", "inside", "",
                      "holder", "", "frames", !waits, "groups", "0", waits ? 21 : 20, waits,
                      "all_reduce", "[[4, 8]]", 1.7e9));
    }
    json_t *both = json_pack("{s:o, s:o}", "frames", where, "ranks", all);
    char *text = both ? json_dumps(both, JSON_COMPACT) : NULL;
    if (!text)
        give_up("what a hang is", NULL);
    prb_buf_adds(out, text);
    free(text);
    json_decref(both);
}

/* ---- answers ---- */

static void send_body(struct host *host, const char *to, const char *id, const struct prb_buf *body,
                      const char *part)
{
    struct prb_bus_message message = {.subject = to,
                                      .headers = {[PRB_BUS_HOST_HEADER] = host->entry.key,
                                                  [PRB_BUS_ID] = id,
                                                  [PRB_BUS_PART_HEADER] = part},
                                      .data = body->data,
                                      .len = body->len};
    if (part)
        prb_bus_publish(host->connection->bus, &message, NULL);
    else
        prb_bus_publish_parts(host->connection->bus, &message, NULL);
}

static void send_later(struct host *host, const char *to, const char *id, double after,
                       struct prb_buf *body)
{
    struct letter *letter = calloc(1, sizeof *letter);
    if (!letter)
        give_up("a letter", NULL);
    *letter = (struct letter){.next = letters,
                              .due = prb_clock_s() + after,
                              .host = host,
                              .to = strdup(to),
                              .ends = !body};
    snprintf(letter->id, sizeof letter->id, "%s", id);
    if (body) {
        letter->body = *body;
        *body = (struct prb_buf){0};
    }
    letters = letter;
}

static uint64_t next_noise(void)
{
    noise ^= noise << 13;
    noise ^= noise >> 7;
    return noise ^= noise << 17;
}

/* Sends it as its fault has it; the body may be taken. */
static void send_answer(struct host *host, const char *to, const char *id, struct prb_buf *body)
{
    struct prb_buf before = host->last;
    char old[PRB_FLEET_ID];
    host->last = (struct prb_buf){0};
    prb_buf_add(&host->last, body->data, body->len);
    snprintf(old, sizeof old, "%s", host->last_id);
    snprintf(host->last_id, sizeof host->last_id, "%s", id);
    switch (host->fault) {
    case fault_late:
    case fault_busy:
        send_later(host, to, id, LATE, body);
        break;
    case fault_midway:
    case fault_stuck:
        body->len /= 2;
        send_body(host, to, id, body, "1/2");
        if (host->fault == fault_midway)
            send_later(host, to, id, 0, NULL);
        break;
    case fault_twice:
        send_body(host, to, id, body, NULL);
        send_body(host, to, id, body, NULL);
        break;
    case fault_cut:
        body->len /= 2;
        send_body(host, to, id, body, NULL);
        break;
    case fault_damaged:
        body->data[body->len - 1] = (char)0x80; /* a number that goes on */
        send_body(host, to, id, body, NULL);
        break;
    case fault_noise:
        for (int i = 0; i < 3; i++)
            body->data[next_noise() % body->len] ^= (char)(1 + next_noise() % 255);
        send_body(host, to, id, body, NULL);
        break;
    case fault_old:
        if (before.len)
            send_body(host, to, next_noise() % 2 ? id : old, &before, NULL);
        break;
    default:
        send_body(host, to, id, body, NULL);
    }
    prb_buf_deinit(&before);
}

static void answer(struct host *host, unsigned job, const struct prb_fleet_request *request,
                   const char *to)
{
    PRB_AUTO(prb_buf) struct prb_buf part = {0}, body = {0};
    PRB_AUTO(prb_rank_set) struct prb_rank_set answered = {0};
    PRB_AUTO_FREE struct prb_fleet_state *states = calloc(ranks_each + 1, sizeof *states);
    struct prb_fleet_reply reply = {.states = states, .clock = host->entry.clock + host->skew};
    struct prb_error err = {0};
    struct prb_fleet_part one = {.rank = -1};
    if (host->fault == fault_absent || host->fault == fault_stopped || host->fault == fault_mute)
        return;
    snprintf(reply.host, sizeof reply.host, "%s", host->entry.host);
    for (unsigned i = 0; states && i < ranks_each + (host->fault == fault_thief); i++) {
        int rank = (int)(host->number * ranks_each + i);
        if (i < ranks_each && request->ranks.count && !prb_rank_set_has(&request->ranks, rank))
            continue;
        if (!i && host->fault == fault_lost)
            continue;
        struct prb_fleet_state *state = &states[reply.state_count++];
        *state = (struct prb_fleet_state){.rank = rank,
                                          .pid = 1000 + rank,
                                          .state = PRB_COVERAGE_ANSWERED,
                                          .ms = 1,
                                          .truncated = !i && host->fault == fault_truncated};
        if (!i && (host->fault == fault_ended || host->fault == fault_refused)) {
            state->state = host->fault == fault_ended ? PRB_COVERAGE_GONE : PRB_COVERAGE_FAILED;
            snprintf(state->reason, sizeof state->reason, "as %s has it", host->entry.host);
        } else {
            (void)prb_rank_set_add(&answered, rank, rank);
        }
    }
    if (!reply.state_count)
        return;
    bool hang = strcmp(request->kind->name, "hang") == 0;
    if (answered.count && hang)
        add_hang(&answered, &part);
    else if (answered.count)
        add_part(host, job, &answered,
                 prb_rank_set_size(&answered) == ranks_each && host->fault != fault_thief,
                 request->id, &part);
    if (answered.count) {
        one.data = part.data;
        one.len = part.len;
        reply.parts = &one;
        reply.part_count = 1;
    }
    if (!prb_fleet_reply_pack(&reply, request->id, &body, &err))
        give_up("an answer", &err);
    double every = json_number_value(json_object_get(request->args, "every"));
    if (hang) /* when the second view is taken */
        send_later(host, to, request->id, every, &body);
    else
        send_answer(host, to, request->id, &body);
}

/* That it is there. */
static void give_sign(struct connection *connection, const char *key, const char *to)
{
    const struct prb_bus_message sign = {.subject = to, .data = ""};
    pthread_mutex_lock(&lock);
    for (unsigned i = connection->number; i < host_count; i += connection_count)
        if (strcmp(hosts[i].entry.key, key) == 0 && hosts[i].fault != fault_stopped &&
            hosts[i].fault != fault_mute)
            prb_bus_publish(connection->bus, &sign, NULL);
    pthread_mutex_unlock(&lock);
}

/* On the subject of all, of a shard, or of a host. */
static void on_look(void *context, const struct prb_bus_message *message)
{
    struct connection *connection = context;
    PRB_AUTO(prb_fleet_request) struct prb_fleet_request request = {0};
    char key[PRB_ROSTER_KEY] = "";
    unsigned shard = PRB_BUS_SHARDS, job = 0;
    const char *how = strstr(message->subject, ".look.");
    if (!message->len && message->reply && how && strncmp(how, ".look.h.", 8) == 0)
        give_sign(connection, how + 8, message->reply);
    if (!message->len || !message->reply || !how ||
        !prb_fleet_request_parse(message->data, message->len, &request, NULL) ||
        (strcmp(request.kind->name, "stacks") != 0 && strcmp(request.kind->name, "hang") != 0))
        return;
    how += strlen(".look.");
    if (strncmp(how, "h.", 2) == 0)
        snprintf(key, sizeof key, "%s", how + 2);
    else if (*how == 's')
        shard = (unsigned)atoi(how + 1);
    while (job < job_count && strcmp(jobs[job], request.job) != 0)
        job++;
    pthread_mutex_lock(&lock);
    for (unsigned i = connection->number; i < host_count && job < job_count; i += connection_count)
        if ((!*key || strcmp(hosts[i].entry.key, key) == 0) &&
            (shard == PRB_BUS_SHARDS || hosts[i].shard == shard))
            answer(&hosts[i], job, &request, message->reply);
    pthread_mutex_unlock(&lock);
}

/* ---- what they tell of themselves ---- */

static double real_time(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void add_member(struct host *host, unsigned job, int rank)
{
    struct prb_fleet_members *members = &host->entry.members;
    if (!PRB_GROW(members->items, members->count, members->cap))
        give_up("a rank", NULL);
    struct prb_fleet_member *one = &members->items[members->count++];
    *one = (struct prb_fleet_member){.rank = rank,
                                     .local_rank = rank % (int)ranks_each,
                                     .world_size = world,
                                     .pid = 1000 + rank + (host->fault == fault_claims),
                                     .uid = geteuid(),
                                     .started = 1.7e9};
    snprintf(one->job, sizeof one->job, "%s", jobs[job]);
}

static const char *text_of(struct host *host)
{
    struct prb_error err = {0};
    if (host->text && host->skew == 0)
        return host->text;
    free(host->text);
    host->entry.members.count = 0;
    host->entry.clock = real_time() + host->skew;
    snprintf(host->entry.release, sizeof host->entry.release, "%s",
             host->fault == fault_release ? "0.0.0" : prb_version());
    for (unsigned job = 0; job < job_count; job++)
        for (unsigned i = host->fault == fault_lost; i < ranks_each + (host->fault == fault_claims);
             i++)
            add_member(host, job, (int)(host->number * ranks_each + i));
    host->text = prb_roster_pack(&host->entry, &err);
    return host->text ? host->text : PRB_NULL(give_up("an entry", &err));
}

static void on_find(void *context, const struct prb_bus_message *message)
{
    struct connection *connection = context;
    pthread_mutex_lock(&lock);
    for (unsigned i = connection->number; i < host_count && message->reply; i += connection_count) {
        if (hosts[i].fault == fault_absent || hosts[i].fault == fault_stopped ||
            hosts[i].fault == fault_busy)
            continue;
        const char *text = text_of(&hosts[i]);
        const struct prb_bus_message told = {
            .subject = message->reply, .data = text, .len = strlen(text)};
        prb_bus_publish(connection->bus, &told, NULL);
    }
    pthread_mutex_unlock(&lock);
}

static void put(struct host *host)
{
    prb_roster_put(host->connection->bus, host->entry.key, text_of(host), NULL);
}

/* ---- joining ---- */

static void hear(struct connection *connection, const char *subject, prb_bus_fn *fn)
{
    struct prb_error err = {0};
    if (!prb_bus_subscribe(connection->bus, subject, fn, connection, &err))
        give_up(subject, &err);
}

static void hear_own(struct host *host, bool hears)
{
    char subject[PRB_BUS_SUBJECT];
    struct prb_error err = {0};
    for (unsigned job = 0; job < job_count; job++) {
        snprintf(subject, sizeof subject, PRB_BUS_HOST, tokens[job], "look", host->entry.key);
        if (!hears && host->heard[job]) {
            prb_bus_unsubscribe(host->heard[job]);
            host->heard[job] = NULL;
        } else if (hears && !host->heard[job] &&
                   !(host->heard[job] = prb_bus_subscribe(host->connection->bus, subject, on_look,
                                                          host->connection, &err))) {
            give_up(subject, &err);
        }
    }
}

static void join(struct connection *connection)
{
    const struct prb_bus_options options = {
        .name = "fake hosts", .keep = true, .hosts = connection_count};
    char subject[PRB_BUS_SUBJECT];
    struct prb_error err = {0};
    connection->bus = prb_bus_open(&file, &options, &err);
    if (!connection->bus)
        give_up("the bus", &err);
    hear(connection, "probing.v1.find", on_find);
    for (unsigned job = 0; job < job_count; job++) {
        snprintf(subject, sizeof subject, PRB_BUS_ALL, tokens[job], "look");
        hear(connection, subject, on_look);
    }
}

/* Those of its hosts. */
static void hear_shard(struct connection *connection, unsigned shard)
{
    char subject[PRB_BUS_SUBJECT];
    for (unsigned job = 0; job < job_count && !(connection->shards >> shard & 1); job++) {
        snprintf(subject, sizeof subject, PRB_BUS_SHARD, tokens[job], "look", shard);
        hear(connection, subject, on_look);
    }
    connection->shards |= (uint64_t)1 << shard;
}

static void make_host(struct host *host, unsigned i)
{
    host->number = first_host + i;
    host->connection = &connections[i % connection_count];
    snprintf(host->entry.host, sizeof host->entry.host, "node%05u", host->number);
    snprintf(host->entry.key, sizeof host->entry.key, "node%05u-%016x", host->number, host->number);
    host->entry.uid = geteuid();
    host->entry.pid = 1;
    host->entry.started = 1.7e9;
    host->shard = prb_bus_shard(host->entry.key);
    hear_shard(host->connection, host->shard);
    hear_own(host, true);
    put(host);
}

static void begin(char **words, int count)
{
    struct prb_error err = {0};
    for (char *rest = words[2], *name; (name = strsep(&rest, ",")) && job_count < JOBS_MAX;) {
        snprintf(jobs[job_count], sizeof jobs[job_count], "%s", name);
        char token[PRB_BUS_TOKEN];
        prb_bus_token(name, token);
        tokens[job_count++] = strdup(token);
    }
    first_host = (unsigned)atoi(words[3]);
    host_count = (unsigned)atoi(words[4]);
    ranks_each = (unsigned)atoi(words[5]);
    connection_count = count > 6 ? (unsigned)atoi(words[6]) : 1;
    world = (int)((first_host + host_count) * ranks_each);
    read_record(words[1]);
    if (!prb_bus_file_read(words[0], &file, &err))
        give_up("the bus file", &err);
    hosts = calloc(host_count + 1, sizeof *hosts);
    connections = calloc(connection_count + 1, sizeof *connections);
    if (!hosts || !connections || !connection_count || !ranks_each)
        give_up("hosts", NULL);
    pthread_mutex_lock(&lock);
    for (unsigned i = 0; i < connection_count; i++) {
        connections[i].number = i;
        join(&connections[i]);
    }
    if (!prb_roster_begin(connections[0].bus, &err))
        give_up("the roster", &err);
    for (unsigned i = 0; i < host_count; i++)
        make_host(&hosts[i], i);
    pthread_mutex_unlock(&lock);
    for (unsigned i = 0; i < connection_count; i++)
        if (!prb_bus_flush(connections[i].bus, 30, &err))
            give_up("the bus", &err);
}

/* ---- orders ---- */

static void set_fault(struct host *host, enum fault fault)
{
    host->fault = fault;
    free(host->text);
    host->text = NULL;
    hear_own(host, fault != fault_absent);
    put(host);
}

static void obey(char *line)
{
    unsigned first, last;
    char name[32] = "";
    double skew;
    enum fault fault = fault_honest;
    if (sscanf(line, "fault %u %u %31s", &first, &last, name) == 3) {
        while (fault < fault_count && strcmp(faults[fault], name) != 0)
            fault++;
        if (fault == fault_count)
            give_up(name, NULL);
    } else if (sscanf(line, "clock %u %u %lf", &first, &last, &skew) == 3) {
        fault = fault_count;
    } else if (sscanf(line, "world %u", &first) == 1) {
        world = (int)first;
        first = 0, last = UINT32_MAX;
        fault = fault_count + 1;
    } else if (sscanf(line, "odd %d", &odd) == 1 || (marked = strncmp(line, "marked", 6) == 0)) {
        first = 0, last = UINT32_MAX;
        fault = fault_count + 1;
    } else {
        give_up(line, NULL);
    }
    for (unsigned i = 0; i < host_count; i++) {
        struct host *host = &hosts[i];
        if (host->number < first || host->number > last)
            continue;
        if (fault == fault_count)
            host->skew = skew;
        for (unsigned job = 0; job < job_count; job++) {
            prb_buf_deinit(&host->parts[job].rest);
            host->parts[job].frames = 0;
        }
        set_fault(host, fault < fault_count ? fault : host->fault);
    }
}

static void send_due(void)
{
    double now = prb_clock_s();
    for (struct letter **at = &letters, *letter; (letter = *at);) {
        if (letter->due > now) {
            at = &letter->next;
            continue;
        }
        *at = letter->next;
        if (letter->ends)
            hear_own(letter->host, false);
        else
            send_body(letter->host, letter->to, letter->id, &letter->body, NULL);
        prb_buf_deinit(&letter->body);
        free(letter->to);
        free(letter);
    }
}

int main(int argc, char **argv)
{
    char line[256];
    struct pollfd in = {.fd = 0, .events = POLLIN};
    if (argc < 7) {
        fprintf(stderr, "fake_hosts BUS_FILE RECORD JOBS FIRST COUNT RANKS [CONNECTIONS]\n");
        return 2;
    }
    setvbuf(stdin, NULL, _IONBF, 0);
    begin(argv + 1, argc - 1);
    puts("ready");
    fflush(stdout);
    for (;;) {
        if (poll(&in, 1, TICK_MS) > 0) {
            if (!fgets(line, sizeof line, stdin))
                break;
            pthread_mutex_lock(&lock);
            obey(line);
            pthread_mutex_unlock(&lock);
            for (unsigned i = 0; i < connection_count; i++)
                prb_bus_flush(connections[i].bus, 10, NULL);
            puts("done");
            fflush(stdout);
        }
        pthread_mutex_lock(&lock);
        send_due();
        pthread_mutex_unlock(&lock);
    }
    for (unsigned i = 0; i < connection_count; i++)
        prb_bus_close(connections[i].bus);
    return 0;
}
