/* What an agent is asked, and how it answers (agent.h). */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "fleet/agent/agent.h"
#include "fleet/agent/lend.h"

#define QUEUE_MAX 256           /* requests that wait */
#define REQUEST_MAX (512 << 10) /* bytes */
#define REMEMBERED 256          /* ids of questions that came */
#define CLASSES (PRB_FLEET_EVAL + 1)

static const char *const class_names[CLASSES] = {"look", "control", "eval"};

struct item {
    struct item *next;
    enum prb_fleet_class class;
    double came; /* s, monotonic */
    char *reply, *data;
    size_t len;
};

/* One thread, with the ranks and children that are its own. */
struct lane {
    struct prb_agent_work *work;
    pthread_t thread;
    bool runs;
    struct item *first, **last; /* guarded by work->lock */
    size_t count;
    pthread_cond_t more;
    char id[PRB_FLEET_ID]; /* of the question it answers; "": none; guarded */
    unsigned looked;       /* work->generation, when it looked for ranks */
    struct prb_fleet_host *host;
    struct prb_go go;
};

struct prb_agent_work {
    struct prb_agent_work_options options;
    pthread_mutex_t lock;
    struct lane lanes[CLASSES];
    bool ends;                                /* guarded */
    char came[REMEMBERED][PRB_FLEET_ID];      /* guarded: ids, so that none is answered twice */
    char cancelled[REMEMBERED][PRB_FLEET_ID]; /* guarded */
    unsigned next_came, next_cancelled;
    atomic_uint generation;
    pthread_rwlock_t bus_lock;
    struct prb_bus *bus;
    struct prb_lends *lends; /* NULL: eval is not allowed */
};

/* ---- queues ---- */

static void free_item(struct item *item)
{
    if (!item)
        return;
    free(item->reply);
    free(item->data);
    free(item);
}

static struct item *item_of(enum prb_fleet_class class, const struct prb_bus_message *message)
{
    struct item *item = calloc(1, sizeof *item);
    if (!item)
        return NULL;
    *item = (struct item){.class = class,
                          .came = prb_clock_s(),
                          .len = message->len,
                          .reply = strdup(message->reply),
                          .data = malloc(message->len + 1)};
    if (!item->reply || !item->data) {
        free_item(item);
        return NULL;
    }
    memcpy(item->data, message->data, message->len);
    item->data[message->len] = '\0';
    return item;
}

static void take(struct prb_agent_work *work, enum prb_fleet_class class,
                 const struct prb_bus_message *message)
{
    /* Without a body it only asks whether we are there. */
    if (!message->len || !message->reply || message->len > REQUEST_MAX)
        return;
    struct item *item = item_of(class, message);
    struct lane *lane = &work->lanes[work->options.allowed[class] ? class : PRB_FLEET_LOOK];
    pthread_mutex_lock(&work->lock);
    bool full = !item || lane->count >= QUEUE_MAX || work->ends;
    if (!full) {
        *lane->last = item;
        lane->last = &item->next;
        lane->count++;
        pthread_cond_signal(&lane->more);
    }
    pthread_mutex_unlock(&work->lock);
    if (full)
        free_item(item);
}

void prb_agent_work_look(void *context, const struct prb_bus_message *message)
{
    take(context, PRB_FLEET_LOOK, message);
}

void prb_agent_work_control(void *context, const struct prb_bus_message *message)
{
    take(context, PRB_FLEET_CONTROL, message);
}

void prb_agent_work_eval(void *context, const struct prb_bus_message *message)
{
    take(context, PRB_FLEET_EVAL, message);
}

static bool has_id(char ids[REMEMBERED][PRB_FLEET_ID], const char *id)
{
    for (int i = 0; i < REMEMBERED; i++)
        if (strcmp(ids[i], id) == 0)
            return true;
    return false;
}

void prb_agent_work_cancel(void *context, const struct prb_bus_message *message)
{
    struct prb_agent_work *work = context;
    PRB_AUTO(json_t)
    json_t *object = message->len < 1024 ? json_loadb(message->data, message->len, 0, NULL) : NULL;
    const char *id = json_string_value(json_object_get(object, "id"));
    if (!id || strlen(id) != PRB_FLEET_ID - 1)
        return;
    pthread_mutex_lock(&work->lock);
    snprintf(work->cancelled[work->next_cancelled++ % REMEMBERED], PRB_FLEET_ID, "%s", id);
    pthread_mutex_unlock(&work->lock);
}

/* NULL: the end. */
static struct item *next_item(struct lane *lane)
{
    struct prb_agent_work *work = lane->work;
    pthread_mutex_lock(&work->lock);
    lane->id[0] = '\0';
    while (!lane->first && !work->ends)
        pthread_cond_wait(&lane->more, &work->lock);
    struct item *item = work->ends ? NULL : lane->first;
    if (item) {
        lane->first = item->next;
        lane->count--;
        if (!lane->first)
            lane->last = &lane->first;
    }
    pthread_mutex_unlock(&work->lock);
    return item;
}

/* False: it came before, or was cancelled. */
static bool begin_id(struct lane *lane, const char *id)
{
    struct prb_agent_work *work = lane->work;
    pthread_mutex_lock(&work->lock);
    bool new = !has_id(work->came, id) && !has_id(work->cancelled, id);
    if (new) {
        snprintf(work->came[work->next_came++ % REMEMBERED], PRB_FLEET_ID, "%s", id);
        snprintf(lane->id, sizeof lane->id, "%s", id);
    }
    pthread_mutex_unlock(&work->lock);
    return new;
}

static bool goes_on(void *context)
{
    struct lane *lane = context;
    pthread_mutex_lock(&lane->work->lock);
    bool ends = lane->work->ends || has_id(lane->work->cancelled, lane->id);
    pthread_mutex_unlock(&lane->work->lock);
    return !ends;
}

/* ---- answers ---- */

static void send_body(struct lane *lane, const struct item *item, const char *id, const char *data,
                      size_t len)
{
    struct prb_agent_work *work = lane->work;
    struct prb_error err = {0};
    const struct prb_bus_message message = {
        .subject = item->reply,
        .headers = {[PRB_BUS_HOST_HEADER] = work->options.key, [PRB_BUS_ID] = *id ? id : NULL},
        .data = data,
        .len = len};
    pthread_rwlock_rdlock(&work->bus_lock);
    if (work->bus && !prb_bus_publish_parts(work->bus, &message, &err))
        prb_agent_log(work->options.log, "an answer is lost: %s", err.text);
    pthread_rwlock_unlock(&work->bus_lock);
}

static void send_refusal(struct lane *lane, const struct item *item, const char *id,
                         const struct prb_error *why)
{
    PRB_AUTO(prb_buf) struct prb_buf body = {0};
    prb_agent_log(lane->work->options.log, "refused %s %s: %s", class_names[item->class],
                  *id ? id : "-", why->text);
    if (prb_fleet_reply_refuse(lane->work->options.host, id, why, &body))
        send_body(lane, item, id, body.data, body.len);
}

/* Ranks that are not of our user are none of ours, whoever asks, unless that was wanted. */
static bool may_see(const struct lane *lane, const struct prb_fleet_members *members,
                    const struct prb_fleet_request *request, struct prb_error *err)
{
    for (size_t i = 0; i < members->count && !lane->work->options.all_users; i++)
        if (members->items[i].uid != geteuid() && strcmp(members->items[i].job, request->job) == 0)
            return prb_fail(err, PRB_PERMISSION,
                            "the job is of another user, and this host's agent "
                            "runs without --all-users");
    return true;
}

static bool look_for_ranks(struct lane *lane, const struct prb_fleet_request *request,
                           struct prb_error *err)
{
    unsigned now = atomic_load(&lane->work->generation);
    const struct prb_fleet_members *members = prb_fleet_host_members(lane->host);
    if (lane->looked != now && !(members = prb_fleet_host_look(lane->host, err)))
        return false;
    lane->looked = now;
    return may_see(lane, members, request, err);
}

static void answer(struct lane *lane, struct item *item, struct prb_fleet_request *request)
{
    PRB_AUTO(prb_buf) struct prb_buf body = {0};
    struct prb_error err = {0};
    request->budget -= prb_clock_s() - item->came;
    if (request->budget <= 0)
        return;
    if (!look_for_ranks(lane, request, &err) ||
        !prb_fleet_host_answer(lane->host, request, goes_on, lane, &body, &err)) {
        if (goes_on(lane))
            send_refusal(lane, item, request->id, &err);
        return;
    }
    send_body(lane, item, request->id, body.data, body.len);
}

static const struct prb_fleet_member *
one_member(const struct lane *lane, const struct prb_fleet_request *request, struct prb_error *err)
{
    const struct prb_fleet_members *members = prb_fleet_host_members(lane->host);
    for (size_t i = 0; i < members->count && prb_rank_set_size(&request->ranks) == 1; i++) {
        const struct prb_fleet_member *one = &members->items[i];
        if (strcmp(one->job, request->job) != 0 || !prb_rank_set_has(&request->ranks, one->rank))
            continue;
        if (one->refused[0])
            return PRB_NULL(prb_fail(err, PRB_USAGE, "%s", one->refused));
        return one;
    }
    return PRB_NULL(prb_fail(err, PRB_NOT_FOUND, "it is not one rank of this host"));
}

/* {"stream", "folder"} */
static bool lend_answer(const struct prb_fleet_member *member, const char *id, const char *host,
                        const char *request, struct prb_buf *body, struct prb_error *err)
{
    char link[32], folder[512];
    snprintf(link, sizeof link, "/proc/%d/cwd", (int)member->pid);
    ssize_t len = readlink(link, folder, sizeof folder);
    len = len > 0 && (size_t)len < sizeof folder ? len : 0;
    PRB_AUTO(json_t) json_t *object = json_pack("{ss ss%}", "stream", id, "folder", folder, len);
    if (!object) /* it is not UTF-8 */
        object = json_pack("{ss}", "stream", id);
    PRB_AUTO_FREE char *text = object ? json_dumps(object, JSON_COMPACT) : NULL;
    if (!text)
        return prb_nomem(err);
    struct prb_fleet_state state = {
        .rank = member->rank, .pid = member->pid, .state = PRB_COVERAGE_ANSWERED};
    struct prb_fleet_part part = {.rank = member->rank, .data = text, .len = strlen(text)};
    struct prb_fleet_reply reply = {
        .states = &state, .state_count = 1, .parts = &part, .part_count = 1};
    snprintf(reply.host, sizeof reply.host, "%s", host);
    return prb_fleet_reply_pack(&reply, request, body, err);
}

/* A debugger is let in: its bytes come as a stream of their own. */
static void lend(struct lane *lane, struct item *item, struct prb_fleet_request *request)
{
    struct prb_agent_work *work = lane->work;
    PRB_AUTO(prb_buf) struct prb_buf body = {0};
    struct prb_error err = {0};
    char id[PRB_STREAM_ID];
    const struct prb_fleet_member *member =
        look_for_ranks(lane, request, &err) ? one_member(lane, request, &err) : NULL;
    bool good = member != NULL;
    pthread_rwlock_rdlock(&work->bus_lock);
    if (good) {
        const struct prb_lend_wanted wanted = {
            .bus = work->bus,
            .job = request->job,
            .pid = member->pid,
            .rank = member->rank,
            .args = request->args,
            .trusted = work->options.trusted[PRB_FLEET_EVAL],
            .budget = request->budget * 0.8,
        };
        good = work->bus ? prb_lend_begin(work->lends, &wanted, id, &err)
                         : prb_fail(&err, PRB_IO, "the bus is lost");
    }
    pthread_rwlock_unlock(&work->bus_lock);
    if (good && lend_answer(member, id, work->options.host, request->id, &body, &err))
        send_body(lane, item, request->id, body.data, body.len);
    else
        send_refusal(lane, item, request->id, &err);
}

static bool parse(struct item *item, const char *text, size_t len, struct prb_fleet_request *out,
                  struct prb_error *err)
{
    if (!prb_fleet_request_parse(text, len, out, err))
        return false;
    if (out->kind->needs != item->class)
        return prb_fail(err, PRB_PERMISSION, "\"%s\" is not asked as %s", out->kind->name,
                        class_names[item->class]);
    return true;
}

static void look(struct lane *lane, struct item *item)
{
    PRB_AUTO(prb_fleet_request) struct prb_fleet_request request = {0};
    struct prb_error err = {0};
    if (!parse(item, item->data, item->len, &request, &err))
        send_refusal(lane, item, request.id, &err);
    else if (begin_id(lane, request.id))
        answer(lane, item, &request);
}

static bool is_allowed(const struct lane *lane, const struct item *item, struct prb_error *err)
{
    if (lane->work->options.allowed[item->class])
        return true;
    prb_fail(err, PRB_PERMISSION, "this host's agent does not allow %s", class_names[item->class]);
    return prb_error_remedy(err, "start it with `probing cluster attach --allow %s`",
                            class_names[item->class]);
}

static void act(struct lane *lane, struct item *item)
{
    PRB_AUTO_FREE char *out = NULL;
    PRB_AUTO(prb_fleet_request) struct prb_fleet_request request = {0};
    struct prb_error err = {0};
    char id[PRB_FLEET_ID] = "", who[PRB_NKEY_TEXT_SIZE] = "";
    if (!is_allowed(lane, item, &err)) {
        PRB_AUTO(json_t) json_t *object = json_loadb(item->data, item->len, 0, NULL);
        const char *of = json_string_value(json_object_get(object, "id"));
        snprintf(id, sizeof id, "%s", of && strlen(of) == sizeof id - 1 ? of : "");
        send_refusal(lane, item, id, &err);
        return;
    }
    switch (prb_go_take(&lane->go, item->data, item->len, &out, id, who, &err)) {
    case PRB_GO_REFUSED:
        send_refusal(lane, item, id, &err);
        break;
    case PRB_GO_READY:
        send_body(lane, item, id, out, strlen(out));
        break;
    case PRB_GO_RUN:
        if (!parse(item, out, strlen(out), &request, &err) ||
            (strcmp(request.id, id) != 0 && !prb_fail(&err, PRB_CORRUPT, "two ids"))) {
            send_refusal(lane, item, id, &err);
        } else if (begin_id(lane, id)) {
            PRB_AUTO_FREE char *ranks = prb_rank_set_text(&request.ranks);
            prb_agent_log(lane->work->options.log, "%s %s by %s: %s of ranks %s of %s: %.300s",
                          class_names[item->class], id, who, request.kind->name,
                          ranks && *ranks ? ranks : "all", request.job, out);
            if (request.kind->streams)
                lend(lane, item, &request);
            else
                answer(lane, item, &request);
        }
        break;
    }
}

static void *run(void *context)
{
    struct lane *lane = context;
    for (struct item *item; (item = next_item(lane)); free_item(item))
        if (item->class == PRB_FLEET_LOOK)
            look(lane, item);
        else
            act(lane, item);
    /* Where they were made: children end with the thread. */
    prb_fleet_host_free(lane->host);
    lane->host = NULL;
    return NULL;
}

/* ---- life ---- */

static bool start(struct prb_agent_work *work, enum prb_fleet_class class, struct prb_error *err)
{
    struct lane *lane = &work->lanes[class];
    lane->work = work;
    lane->last = &lane->first;
    lane->looked = (unsigned)-1;
    lane->go = (struct prb_go){.agent = work->options.key, .trusted = work->options.trusted[class]};
    pthread_cond_init(&lane->more, NULL);
    if (class != PRB_FLEET_LOOK && !work->options.allowed[class])
        return true;
    if (!(lane->host = prb_fleet_host_new(work->options.host, err)))
        return false;
    lane->runs = pthread_create(&lane->thread, NULL, run, lane) == 0;
    return lane->runs || prb_fail(err, PRB_NOMEM, "no thread can be made");
}

struct prb_agent_work *prb_agent_work_new(const struct prb_agent_work_options *options,
                                          struct prb_error *err)
{
    struct prb_agent_work *work = calloc(1, sizeof *work);
    if (!work)
        return PRB_NULL(prb_nomem(err));
    work->options = *options;
    work->options.allowed[PRB_FLEET_LOOK] = true;
    pthread_mutex_init(&work->lock, NULL);
    pthread_rwlock_init(&work->bus_lock, NULL);
    bool good = !work->options.allowed[PRB_FLEET_EVAL] ||
                (work->lends = prb_lends_new(work->options.log, err)) != NULL;
    for (int i = 0; i < CLASSES; i++)
        good = start(work, i, good ? err : NULL) && good;
    if (good)
        return work;
    prb_agent_work_free(work);
    return NULL;
}

void prb_agent_work_free(struct prb_agent_work *work)
{
    if (!work)
        return;
    pthread_mutex_lock(&work->lock);
    work->ends = true;
    for (int i = 0; i < CLASSES; i++)
        pthread_cond_signal(&work->lanes[i].more);
    pthread_mutex_unlock(&work->lock);
    for (int i = 0; i < CLASSES; i++) {
        struct lane *lane = &work->lanes[i];
        if (lane->runs)
            pthread_join(lane->thread, NULL);
        prb_fleet_host_free(lane->host);
        prb_go_deinit(&lane->go);
        for (struct item *item; (item = lane->first);) {
            lane->first = item->next;
            free_item(item);
        }
        pthread_cond_destroy(&lane->more);
    }
    prb_lends_free(work->lends);
    pthread_rwlock_destroy(&work->bus_lock);
    pthread_mutex_destroy(&work->lock);
    free(work);
}

void prb_agent_work_use(struct prb_agent_work *work, struct prb_bus *bus)
{
    pthread_rwlock_wrlock(&work->bus_lock);
    work->bus = bus;
    pthread_rwlock_unlock(&work->bus_lock);
    if (!bus && work->lends)
        prb_lends_end(work->lends);
}

void prb_agent_work_stale(struct prb_agent_work *work) { atomic_fetch_add(&work->generation, 1); }
