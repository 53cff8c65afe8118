/* What an agent is asked, and how it answers (agent.h). */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "fleet/agent/lane.h"

static const char *const class_names[PRB_LANE_CLASSES] = {"look", "control", "eval"};

/* ---- answers ---- */

static void send_body(struct prb_lane *lane, const struct prb_item *item, const char *id,
                      const char *data, size_t len)
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

static void send_refusal(struct prb_lane *lane, const struct prb_item *item, const char *id,
                         const struct prb_error *why)
{
    PRB_AUTO(prb_buf) struct prb_buf body = {0};
    prb_log_file_add(lane->work->options.log, "refused %s %s: %s", class_names[item->class],
                     *id ? id : "-", why->text);
    if (prb_fleet_reply_refuse(lane->work->options.host, id, why, &body))
        send_body(lane, item, id, body.data, body.len);
}

/* Ranks that are not of our user are none of ours, whoever asks, unless that was wanted. */
static bool may_see(const struct prb_lane *lane, const struct prb_fleet_members *members,
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

static bool look_for_ranks(struct prb_lane *lane, const struct prb_fleet_request *request,
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
static bool answer_again(struct prb_lane *lane, const struct prb_item *item, const char *id,
                         const struct prb_shared *shared)
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

static void answer(struct prb_lane *lane, struct prb_item *item, struct prb_fleet_request *request)
{
    PRB_AUTO(prb_buf) struct prb_buf body = {0};
    struct prb_error err = {0};
    PRB_AUTO_FREE char *same = item->class == PRB_FLEET_LOOK ? prb_lane_same(request) : NULL;
    const struct prb_shared *shared = prb_lane_shared(lane, same, item->came);
    if (shared && answer_again(lane, item, request->id, shared))
        return;
    double began = prb_clock_s();
    lane->keeps = true;
    lane->children = prb_lane_is_beside(lane);
    request->budget -= began - item->came;
    if (request->budget <= 0)
        return;
    /* Who asks is not this agent's user: files are made with the rights of each rank's. */
    json_object_set_new(request->args, "as_user", json_true());
    if (!look_for_ranks(lane, request, &err) ||
        !prb_fleet_host_answer(lane->host, request, prb_lane_goes_on, lane, &body, &err)) {
        if (prb_lane_goes_on(lane))
            send_refusal(lane, item, request->id, &err);
        return;
    }
    send_body(lane, item, request->id, body.data, body.len);
    prb_lane_share(lane, &same, began, &body);
}

static const struct prb_fleet_member *one_member(const struct prb_lane *lane,
                                                 const struct prb_fleet_request *request,
                                                 struct prb_error *err)
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
static void lend(struct prb_lane *lane, struct prb_item *item, struct prb_fleet_request *request)
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

static bool parse(struct prb_item *item, const char *text, size_t len,
                  struct prb_fleet_request *out, struct prb_error *err)
{
    if (!prb_fleet_request_parse(text, len, out, err))
        return false;
    if (out->kind->needs != item->class)
        return prb_fail(err, PRB_PERMISSION, "\"%s\" is not asked as %s", out->kind->name,
                        class_names[item->class]);
    return true;
}

/* False: it is another lane's now. */
static bool look(struct prb_lane *lane, struct prb_item *item)
{
    PRB_AUTO(prb_fleet_request) struct prb_fleet_request request = {0};
    struct prb_error err = {0};
    if (!parse(item, item->data, item->len, &request, &err))
        send_refusal(lane, item, request.id, &err);
    else if (request.kind->pace != PRB_FLEET_QUICK && !prb_lane_is_beside(lane))
        return !prb_lane_pass_on(lane->work, item, &request);
    else if (prb_lane_begin(lane, request.id))
        answer(lane, item, &request);
    return true;
}

static bool is_allowed(const struct prb_lane *lane, const struct prb_item *item,
                       struct prb_error *err)
{
    if (lane->work->options.allowed[item->class])
        return true;
    prb_fail(err, PRB_PERMISSION, "this host's agent does not allow %s", class_names[item->class]);
    return prb_error_remedy(err, "start it with `probing cluster attach --allow %s`",
                            class_names[item->class]);
}

static bool act(struct prb_lane *lane, struct prb_item *item)
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
        } else if (prb_lane_begin(lane, id)) {
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
    struct prb_lane *lane = context;
    for (struct prb_item *item; (item = prb_lane_next(lane));)
        if (item->class == PRB_FLEET_LOOK ? look(lane, item) : act(lane, item))
            prb_item_free(item);
    prb_lane_forget_shared(lane);
    /* Where they were made: children of a thread end with it. */
    prb_fleet_host_free(lane->host);
    lane->host = NULL;
    return NULL;
}

/* ---- life ---- */

static bool start(struct prb_agent_work *work, int number, struct prb_error *err)
{
    struct prb_lane *lane = &work->lanes[number];
    lane->work = work;
    lane->last = &lane->first;
    lane->looked = (unsigned)-1;
    prb_clock_cond_init(&lane->more);
    if (number < PRB_LANE_CLASSES)
        lane->go =
            (struct prb_go){.agent = work->options.key, .trusted = work->options.trusted[number]};
    if (number < PRB_LANE_CLASSES && !work->options.allowed[number])
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
    for (int i = 0; i < PRB_LANES; i++)
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
    for (int i = 0; i < PRB_LANES; i++)
        pthread_cond_signal(&work->lanes[i].more);
    pthread_mutex_unlock(&work->lock);
    for (int i = 0; i < PRB_LANES; i++) {
        struct prb_lane *lane = &work->lanes[i];
        if (lane->runs)
            pthread_join(lane->thread, NULL);
        prb_fleet_host_free(lane->host);
        prb_go_deinit(&lane->go);
        for (struct prb_item *item; (item = lane->first);) {
            lane->first = item->next;
            prb_item_free(item);
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
