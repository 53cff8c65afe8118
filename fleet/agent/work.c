/* What an agent is asked, and how it answers (agent.h). */
#include <errno.h>
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
#define LANES (CLASSES + 5)
#define SHARES 0.02                   /* s that a look serves those who ask the same */
#define SHARED 4                      /* looks that do */
#define SHARED_MOST ((size_t)4 << 20) /* bytes of one */
#define REST 0.1                      /* s without a question, and nothing is kept … */
#define REST_SQL 2.0                  /* … but children that have tables open */

static const char *const class_names[CLASSES] = {"look", "control", "eval"};

struct item {
    struct item *next;
    enum prb_fleet_class class;
    double came; /* s, monotonic */
    char *reply, *data;
    size_t len;
    char *same; /* of a question that was passed on: as of lane */
};

/* A look that serves those who ask the same, too. */
struct shared {
    char *same;
    double began; /* s, monotonic */
    struct prb_buf body;
};

/* Lanes of the looks of a pace; quick ones are worked on in that of their class. */
static const struct {
    int first, count;
} lanes_of[PRB_FLEET_PACES] = {
    [PRB_FLEET_SQL] = {CLASSES, 2}, /* beside one that is heavy */
    [PRB_FLEET_LONG] = {CLASSES + 2, LANES - CLASSES - 2},
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
    char *same;            /* what of it is the same with whoever asks it; NULL: none; guarded */
    double began;          /* s, monotonic; guarded */
    unsigned looked;       /* work->generation, when it looked for ranks */
    struct prb_fleet_host *host;
    struct prb_go go;
    struct shared shared[SHARED]; /* the thread's own */
    unsigned next_shared;
    bool keeps, children; /* the same: what is only kept for a moment: all but, and children */
};

struct prb_agent_work {
    struct prb_agent_work_options options;
    pthread_mutex_t lock;
    struct lane lanes[LANES];
    bool ends;                                /* guarded */
    char came[REMEMBERED][PRB_FLEET_ID];      /* guarded: ids, so that none is answered twice */
    char cancelled[REMEMBERED][PRB_FLEET_ID]; /* guarded */
    unsigned next_came, next_cancelled;
    struct prb_fleet_members ranks; /* guarded */
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
    free(item->same);
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

/* With the lock.  False: it waits for nobody, and is the caller's. */
static bool push(struct lane *lane, struct item *item)
{
    if (lane->count >= QUEUE_MAX || lane->work->ends)
        return false;
    item->next = NULL;
    *lane->last = item;
    lane->last = &item->next;
    lane->count++;
    pthread_cond_signal(&lane->more);
    return true;
}

/* Without a body a message only asks whether we are there: answered here and now, whatever is
 * worked on. */
static void give_sign(struct prb_agent_work *work, const char *reply)
{
    const struct prb_bus_message sign = {.subject = reply, .data = ""};
    pthread_rwlock_rdlock(&work->bus_lock);
    if (work->bus)
        prb_bus_publish(work->bus, &sign, NULL);
    pthread_rwlock_unlock(&work->bus_lock);
}

static void take(struct prb_agent_work *work, enum prb_fleet_class class,
                 const struct prb_bus_message *message)
{
    if (!message->reply || message->len > REQUEST_MAX)
        return;
    if (!message->len) {
        give_sign(work, message->reply);
        return;
    }
    struct item *item = item_of(class, message);
    struct lane *lane = &work->lanes[work->options.allowed[class] ? class : PRB_FLEET_LOOK];
    pthread_mutex_lock(&work->lock);
    bool taken = item && push(lane, item);
    pthread_mutex_unlock(&work->lock);
    if (!taken)
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

/* ---- those who ask the same ---- */

/* All of a question but whose it is. */
static char *same_of(const struct prb_fleet_request *request)
{
    struct prb_fleet_request other = *request;
    memset(other.id, '0', sizeof other.id - 1);
    return prb_fleet_request_text(&other, NULL);
}

static void forget_shared(struct lane *lane)
{
    for (size_t i = 0; i < SHARED; i++) {
        free(lane->shared[i].same);
        prb_buf_deinit(&lane->shared[i].body);
        lane->shared[i] = (struct shared){0};
    }
}

static const struct shared *find_shared(const struct lane *lane, const char *same, double came)
{
    for (size_t i = 0; i < SHARED && same; i++) {
        const struct shared *one = &lane->shared[i];
        if (one->same && came <= one->began + SHARES && strcmp(one->same, same) == 0)
            return one;
    }
    return NULL;
}

/* same and body become the lane's. */
static void share(struct lane *lane, char **same, double began, struct prb_buf *body)
{
    struct shared *one = &lane->shared[lane->next_shared++ % SHARED];
    free(one->same);
    prb_buf_deinit(&one->body);
    *one = (struct shared){.same = PRB_STEAL(*same), .began = began, .body = *body};
    *body = (struct prb_buf){0};
}

/* Where the same is asked already, and not yet for long; else where least is to do.  Its lock is
 * held. */
static struct lane *lane_of(struct prb_agent_work *work, const struct item *item,
                            enum prb_fleet_pace pace)
{
    struct lane *best = NULL, *first = &work->lanes[lanes_of[pace].first];
    size_t least = 0;
    for (struct lane *lane = first; lane < first + lanes_of[pace].count; lane++) {
        size_t load = lane->count + (lane->same != NULL);
        bool same =
            lane->same && item->came <= lane->began + SHARES && strcmp(lane->same, item->same) == 0;
        for (const struct item *other = lane->first; other && !same; other = other->next)
            same = strcmp(other->same, item->same) == 0;
        if (same)
            return lane;
        if (!best || load < least) {
            best = lane;
            least = load;
        }
    }
    return best;
}

/* False: the item is the caller's. */
static bool pass_on(struct prb_agent_work *work, struct item *item,
                    const struct prb_fleet_request *request)
{
    if (!(item->same = same_of(request)))
        return false;
    pthread_mutex_lock(&work->lock);
    bool taken = push(lane_of(work, item, request->kind->pace), item);
    pthread_mutex_unlock(&work->lock);
    return taken;
}

/* Its looks were passed on to it. */
static bool is_beside(const struct lane *lane) { return lane >= &lane->work->lanes[CLASSES]; }

static bool is_sql(const struct lane *lane)
{
    return is_beside(lane) && lane < &lane->work->lanes[lanes_of[PRB_FLEET_LONG].first];
}

/* ---- the thread's life ---- */

/* Memory and children are not kept for whoever may ask some day. */
static void rest(struct lane *lane)
{
    bool first = lane->keeps;
    forget_shared(lane);
    lane->keeps = false;
    if (!lane->children || (first && is_sql(lane)))
        return;
    prb_fleet_host_rest(lane->host);
    lane->children = false;
}

/* With the lock. */
static void wait_for_more(struct lane *lane)
{
    struct prb_agent_work *work = lane->work;
    double rests = lane->keeps ? REST : REST_SQL;
    struct timespec until = prb_clock_timespec(prb_clock_s() + rests);
    if (!lane->keeps && !lane->children) {
        pthread_cond_wait(&lane->more, &work->lock);
        return;
    }
    if (pthread_cond_timedwait(&lane->more, &work->lock, &until) != ETIMEDOUT)
        return;
    pthread_mutex_unlock(&work->lock);
    rest(lane);
    pthread_mutex_lock(&work->lock);
}

/* NULL: the end. */
static struct item *next_item(struct lane *lane)
{
    struct prb_agent_work *work = lane->work;
    pthread_mutex_lock(&work->lock);
    lane->id[0] = '\0';
    free(lane->same);
    lane->same = NULL;
    while (!lane->first && !work->ends)
        wait_for_more(lane);
    struct item *item = work->ends ? NULL : lane->first;
    if (item) {
        lane->first = item->next;
        lane->count--;
        if (!lane->first)
            lane->last = &lane->first;
        lane->same = item->same;
        lane->began = prb_clock_s();
        item->same = NULL;
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
        prb_log_file_add(work->options.log, "an answer is lost: %s", err.text);
    pthread_rwlock_unlock(&work->bus_lock);
}

static void send_refusal(struct lane *lane, const struct item *item, const char *id,
                         const struct prb_error *why)
{
    PRB_AUTO(prb_buf) struct prb_buf body = {0};
    prb_log_file_add(lane->work->options.log, "refused %s %s: %s", class_names[item->class],
                     *id ? id : "-", why->text);
    if (prb_fleet_reply_refuse(lane->work->options.host, id, why, &body))
        send_body(lane, item, id, body.data, body.len);
}

/* Ranks that are not of our user are none of ours, whoever asks, unless that was wanted. */
static bool may_see(const struct lane *lane, const struct prb_fleet_members *members,
                    const struct prb_fleet_request *request, struct prb_error *err)
{
    for (size_t i = 0; i < members->count && !lane->work->options.all_users; i++)
        if (members->items[i].uid != geteuid() &&
            prb_fleet_request_has_job(request, &members->items[i]))
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
    if (lane->looked != now) {
        pthread_mutex_lock(&lane->work->lock);
        bool known = prb_fleet_host_remember(lane->host, &lane->work->ranks, err);
        pthread_mutex_unlock(&lane->work->lock);
        if (!known || !(members = prb_fleet_host_look(lane->host, err)))
            return false;
    }
    lane->looked = now;
    return may_see(lane, members, request, err);
}

/* The same answer to another question.  False: there is none to give. */
static bool answer_again(struct lane *lane, const struct item *item, const char *id,
                         const struct shared *shared)
{
    struct prb_error why = {0};
    PRB_AUTO(prb_buf) struct prb_buf body = {0};
    PRB_AUTO(prb_fleet_reply) struct prb_fleet_reply reply = {0};
    if (!prb_fleet_reply_parse(shared->body.data, shared->body.len, NULL, &reply, &why) ||
        !prb_fleet_reply_pack(&reply, id, &body, &why))
        return false;
    send_body(lane, item, id, body.data, body.len);
    return true;
}

static void answer(struct lane *lane, struct item *item, struct prb_fleet_request *request)
{
    PRB_AUTO(prb_buf) struct prb_buf body = {0};
    struct prb_error err = {0};
    PRB_AUTO_FREE char *same = item->class == PRB_FLEET_LOOK ? same_of(request) : NULL;
    const struct shared *shared = find_shared(lane, same, item->came);
    if (shared && answer_again(lane, item, request->id, shared))
        return;
    double began = prb_clock_s();
    lane->keeps = true;
    lane->children = is_beside(lane);
    request->budget -= began - item->came;
    if (request->budget <= 0)
        return;
    /* Who asks is not this agent's user: files are made with the rights of each rank's. */
    json_object_set_new(request->args, "as_user", json_true());
    if (!look_for_ranks(lane, request, &err) ||
        !prb_fleet_host_answer(lane->host, request, goes_on, lane, &body, &err)) {
        if (goes_on(lane))
            send_refusal(lane, item, request->id, &err);
        return;
    }
    send_body(lane, item, request->id, body.data, body.len);
    if (same && body.len <= SHARED_MOST)
        share(lane, &same, began, &body);
}

static const struct prb_fleet_member *
one_member(const struct lane *lane, const struct prb_fleet_request *request, struct prb_error *err)
{
    const struct prb_fleet_members *members = prb_fleet_host_members(lane->host);
    for (size_t i = 0; i < members->count && prb_rank_set_size(&request->ranks) == 1; i++) {
        const struct prb_fleet_member *one = &members->items[i];
        if (!prb_fleet_request_has(request, one))
            continue;
        if (one->refused[0])
            return PRB_NULL(prb_fail(err, PRB_USAGE, "%s", one->refused));
        return one;
    }
    return PRB_NULL(prb_fail(err, PRB_NOT_FOUND, "it is not one rank of this host"));
}

/* {"stream", "exchange", "folder"} */
static bool lend_answer(const struct prb_fleet_member *member, const struct prb_lend_begun *begun,
                        const char *host, const char *request, struct prb_buf *body,
                        struct prb_error *err)
{
    char link[32], folder[512];
    snprintf(link, sizeof link, "/proc/%d/cwd", (int)member->pid);
    ssize_t len = readlink(link, folder, sizeof folder);
    len = len > 0 && (size_t)len < sizeof folder ? len : 0;
    PRB_AUTO(json_t) json_t *object = json_pack("{ss}", "stream", begun->id);
    json_t *name = json_stringn(folder, (size_t)len); /* NULL: it is not UTF-8 */
    if (object && name)
        json_object_set(object, "folder", name);
    if (object && begun->exchange[0])
        json_object_set_new(object, "exchange", json_string(begun->exchange));
    json_decref(name);
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
    struct prb_lend_begun begun;
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
        good = work->bus ? prb_lend_begin(work->lends, &wanted, &begun, &err)
                         : prb_fail(&err, PRB_IO, "the bus is lost");
    }
    pthread_rwlock_unlock(&work->bus_lock);
    if (good && lend_answer(member, &begun, work->options.host, request->id, &body, &err))
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

/* False: it is another lane's now. */
static bool look(struct lane *lane, struct item *item)
{
    PRB_AUTO(prb_fleet_request) struct prb_fleet_request request = {0};
    struct prb_error err = {0};
    if (!parse(item, item->data, item->len, &request, &err))
        send_refusal(lane, item, request.id, &err);
    else if (request.kind->pace != PRB_FLEET_QUICK && !is_beside(lane))
        return !pass_on(lane->work, item, &request);
    else if (begin_id(lane, request.id))
        answer(lane, item, &request);
    return true;
}

static bool is_allowed(const struct lane *lane, const struct item *item, struct prb_error *err)
{
    if (lane->work->options.allowed[item->class])
        return true;
    prb_fail(err, PRB_PERMISSION, "this host's agent does not allow %s", class_names[item->class]);
    return prb_error_remedy(err, "start it with `probing cluster attach --allow %s`",
                            class_names[item->class]);
}

static bool act(struct lane *lane, struct item *item)
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
        return true;
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
            prb_log_file_add(lane->work->options.log, "%s %s by %s: %s of ranks %s of %s: %.300s",
                             class_names[item->class], id, who, request.kind->name,
                             ranks && *ranks ? ranks : "all", request.job, out);
            if (request.kind->streams)
                lend(lane, item, &request);
            else
                answer(lane, item, &request);
        }
        break;
    }
    return true;
}

static void *run(void *context)
{
    struct lane *lane = context;
    for (struct item *item; (item = next_item(lane));)
        if (item->class == PRB_FLEET_LOOK ? look(lane, item) : act(lane, item))
            free_item(item);
    forget_shared(lane);
    /* Where they were made: children of a thread end with it. */
    prb_fleet_host_free(lane->host);
    lane->host = NULL;
    return NULL;
}

/* ---- life ---- */

static bool start(struct prb_agent_work *work, int number, struct prb_error *err)
{
    struct lane *lane = &work->lanes[number];
    lane->work = work;
    lane->last = &lane->first;
    lane->looked = (unsigned)-1;
    prb_clock_cond_init(&lane->more);
    if (number < CLASSES)
        lane->go =
            (struct prb_go){.agent = work->options.key, .trusted = work->options.trusted[number]};
    if (number < CLASSES && !work->options.allowed[number])
        return true;
    if (!(lane->host = prb_fleet_host_new(work->options.host, work->options.all_users, err)))
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
    bool good =
        !work->options.allowed[PRB_FLEET_EVAL] ||
        (work->lends = prb_lends_new(work->options.log, work->options.program, err)) != NULL;
    for (int i = 0; i < LANES; i++)
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
    for (int i = 0; i < LANES; i++)
        pthread_cond_signal(&work->lanes[i].more);
    pthread_mutex_unlock(&work->lock);
    for (int i = 0; i < LANES; i++) {
        struct lane *lane = &work->lanes[i];
        if (lane->runs)
            pthread_join(lane->thread, NULL);
        prb_fleet_host_free(lane->host);
        prb_go_deinit(&lane->go);
        for (struct item *item; (item = lane->first);) {
            lane->first = item->next;
            free_item(item);
        }
        free(lane->same);
        pthread_cond_destroy(&lane->more);
    }
    prb_lends_free(work->lends);
    prb_fleet_members_deinit(&work->ranks);
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

void prb_agent_work_ranks(struct prb_agent_work *work, const struct prb_fleet_members *members)
{
    struct prb_fleet_members copy = {.items = calloc(members->count + 1, sizeof *copy.items),
                                     .count = members->count};
    if (copy.items) {
        memcpy(copy.items, members->items, members->count * sizeof *copy.items);
        pthread_mutex_lock(&work->lock);
        struct prb_fleet_members before = work->ranks;
        work->ranks = copy;
        pthread_mutex_unlock(&work->lock);
        prb_fleet_members_deinit(&before);
    }
    atomic_fetch_add(&work->generation, 1);
}
