/* Ranks of this host, their children, and a reply of all of them: host.h. */
#include "fleet/host/host.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "fleet/host/child.h"

#define FOR_CHILDREN 0.8 /* of a question's budget; the rest is for merging and the way back */
#define TICK_MS 50

struct prb_fleet_host {
    char name[80];
    bool all_users;
    struct prb_fleet_members members, ended;
    struct prb_fleet_child *children; /* those of members are found by pid and start */
    size_t count, cap;
};

/* A question as it is worked on. */
struct work {
    const struct prb_fleet_request *request;
    struct prb_fleet_child **children; /* that are asked */
    size_t count;
    const struct prb_fleet_member **all; /* of a question about the host: who it is for */
    size_t all_count;
    struct prb_fleet_reply reply;
};

struct prb_fleet_host *prb_fleet_host_new(const char *name, bool all_users, struct prb_error *err)
{
    struct prb_fleet_host *host = calloc(1, sizeof *host);
    if (!host)
        return PRB_NULL(prb_nomem(err));
    host->all_users = all_users;
    if (name)
        snprintf(host->name, sizeof host->name, "%s", name);
    else if (gethostname(host->name, sizeof host->name - 1) != 0)
        snprintf(host->name, sizeof host->name, "localhost");
    return host;
}

void prb_fleet_host_rest(struct prb_fleet_host *host)
{
    prb_fleet_children_end(host->children, host->count);
    host->count = 0;
}

void prb_fleet_host_free(struct prb_fleet_host *host)
{
    if (!host)
        return;
    prb_fleet_host_rest(host);
    free(host->children);
    prb_fleet_members_deinit(&host->members);
    prb_fleet_members_deinit(&host->ended);
    free(host);
}

static bool same_process(const struct prb_fleet_member *a, const struct prb_fleet_member *b)
{
    return a->pid == b->pid && a->rank == b->rank && strcmp(a->job, b->job) == 0 &&
           a->started - b->started < 0.5 && b->started - a->started < 0.5;
}

static void end_strangers(struct prb_fleet_host *host)
{
    for (size_t i = 0; i < host->count;) {
        bool known = false;
        for (size_t k = 0; k < host->members.count && !known; k++)
            known = same_process(&host->children[i].member, &host->members.items[k]);
        if (known) {
            i++;
            continue;
        }
        prb_fleet_child_end(&host->children[i]);
        host->children[i] = host->children[--host->count];
    }
}

const struct prb_fleet_members *prb_fleet_host_look(struct prb_fleet_host *host,
                                                    struct prb_error *err)
{
    if (!prb_fleet_members_find(host->all_users, &host->members, err))
        return NULL;
    for (size_t i = 0; i < host->members.count; i++)
        snprintf(host->members.items[i].host, sizeof host->members.items[i].host, "%s", host->name);
    end_strangers(host);
    return &host->members;
}

const struct prb_fleet_members *prb_fleet_host_members(const struct prb_fleet_host *host)
{
    return &host->members;
}

bool prb_fleet_host_remember(struct prb_fleet_host *host, const struct prb_fleet_members *members,
                             struct prb_error *err)
{
    host->ended.count = 0;
    for (size_t i = 0; i < members->count; i++) {
        if (members->items[i].ended <= 0)
            continue;
        if (!PRB_GROW(host->ended.items, host->ended.count, host->ended.cap))
            return prb_nomem(err);
        host->ended.items[host->ended.count++] = members->items[i];
    }
    return true;
}

static struct prb_fleet_child *child_of(struct prb_fleet_host *host,
                                        const struct prb_fleet_member *member)
{
    for (size_t i = 0; i < host->count; i++)
        if (same_process(&host->children[i].member, member))
            return &host->children[i];
    if (!PRB_GROW(host->children, host->count, host->cap))
        return NULL;
    host->children[host->count] = (struct prb_fleet_child){.member = *member, .fd = -1};
    return &host->children[host->count++];
}

/* ---- states ---- */

static void add_state(struct work *work, const struct prb_fleet_member *member,
                      enum prb_coverage_state state, const char *reason)
{
    struct prb_fleet_state *one = &work->reply.states[work->reply.state_count++];
    *one = (struct prb_fleet_state){.rank = member->rank, .pid = member->pid, .state = state};
    snprintf(one->reason, sizeof one->reason, "%s", reason);
}

/* Its child did not answer: the rank may have ended. */
static void add_failed(struct work *work, const struct prb_fleet_member *member, const char *reason)
{
    for (size_t i = 0; i < work->all_count; i++)
        add_state(work, work->all[i], PRB_COVERAGE_FAILED, reason);
    if (work->all_count)
        return;
    bool gone = kill(member->pid, 0) != 0 && errno == ESRCH;
    add_state(work, member, gone ? PRB_COVERAGE_GONE : PRB_COVERAGE_FAILED,
              gone ? "the process ended" : reason);
}

/* One child's answer is that of all. */
static void take_whole(struct work *work, const struct prb_fleet_reply *one)
{
    bool answered = one->states[0].state == PRB_COVERAGE_ANSWERED;
    for (size_t i = 0; i < work->all_count; i++) {
        add_state(work, work->all[i], answered ? PRB_COVERAGE_ANSWERED : PRB_COVERAGE_FAILED,
                  one->states[0].reason);
        work->reply.states[i].ms = one->states[0].ms;
    }
    if (answered) {
        work->reply.parts[0] = one->parts[0];
        work->reply.parts[0].rank = -1;
        work->reply.part_count = 1;
    }
}

static void take_reply(struct work *work, struct prb_fleet_child *child)
{
    size_t len;
    struct prb_error why = {0};
    const char *data = prb_fleet_child_reply(child, &len);
    PRB_AUTO(prb_fleet_reply) struct prb_fleet_reply one = {0};
    if (!prb_fleet_reply_parse(data, len, work->request->id, &one, &why) || one.state_count != 1 ||
        one.states[0].rank != child->member.rank ||
        (one.states[0].state == PRB_COVERAGE_ANSWERED && one.part_count != 1)) {
        add_failed(work, &child->member, "the process that looks at it sent nonsense");
        return;
    }
    struct prb_fleet_reply *reply = &work->reply;
    if (work->all_count) {
        take_whole(work, &one);
        return;
    }
    reply->states[reply->state_count++] = one.states[0];
    if (one.states[0].state == PRB_COVERAGE_ANSWERED) {
        reply->parts[reply->part_count] = one.parts[0];
        reply->parts[reply->part_count++].rank = child->member.rank;
    }
}

/* ---- asking ---- */

static void ask_child(struct prb_fleet_host *host, struct work *work, const char *text,
                      const struct prb_fleet_member *member)
{
    struct prb_error why = {0};
    struct prb_fleet_child *child = child_of(host, member);
    if (child && prb_fleet_child_start(child, &why) &&
        prb_fleet_child_ask(child, text, strlen(text), &why)) {
        work->children[work->count++] = child;
        return;
    }
    add_failed(work, member, child ? why.text : "out of memory");
    if (child)
        prb_fleet_child_end(child);
}

static void ask_one(struct prb_fleet_host *host, struct work *work, const char *text,
                    const struct prb_fleet_member *member)
{
    if (member->refused[0]) {
        add_state(work, member, PRB_COVERAGE_FAILED, member->refused);
        return;
    }
    ask_child(host, work, text, member);
}

/* ---- a question about the host ---- */

static void add_whole(struct work *work, const struct prb_fleet_member *member)
{
    if (!prb_fleet_request_has(work->request, member))
        return;
    for (size_t i = 0; i < work->all_count; i++)
        if (work->all[i]->rank == member->rank)
            return; /* it runs again */
    work->all[work->all_count++] = member;
}

static void add_folder(json_t *folders, const struct prb_fleet_member *member, const char *folder)
{
    if (!folder || (*folder && *folder != '/'))
        return;
    for (size_t i = 0; i < json_array_size(folders); i++) {
        const json_t *one = json_array_get(folders, i);
        if (json_integer_value(json_object_get(one, "uid")) == (json_int_t)member->uid &&
            strcmp(json_string_value(json_object_get(one, "folder")), folder) == 0)
            return;
    }
    json_array_append_new(folders,
                          json_pack("{sI ss}", "uid", (json_int_t)member->uid, "folder", folder));
}

/* What its child is to know of the host, whatever the asker says of it. */
static bool add_host(const struct work *work, json_t *args)
{
    json_t *folders = json_array(), *ranks = json_array();
    for (size_t i = 0; folders && ranks && i < work->all_count; i++) {
        const struct prb_fleet_member *one = work->all[i];
        add_folder(folders, one, "");
        add_folder(folders, one, one->crash_dir[0] ? one->crash_dir : NULL);
        add_folder(folders, one, one->uid == geteuid() ? getenv("PROBING_CRASH_DIR") : NULL);
        json_array_append_new(ranks, json_pack("{si si sI sf sf}", "rank", one->rank, "pid",
                                               (int)one->pid, "uid", (json_int_t)one->uid,
                                               "started", one->started, "ended", one->ended));
    }
    return json_object_set_new(args, "host",
                               json_pack("{ss so so}", "job", work->request->job, "folders",
                                         folders, "ranks", ranks)) == 0;
}

static bool ask_host(struct prb_fleet_host *host, struct work *work,
                     struct prb_fleet_request *to_child, struct prb_error *err)
{
    size_t most = host->members.count + host->ended.count + 1;
    PRB_AUTO(json_t) json_t *args = json_deep_copy(work->request->args);
    work->children = calloc(1, sizeof(struct prb_fleet_child *));
    work->all = calloc(most, sizeof(struct prb_fleet_member *));
    work->reply.states = calloc(most, sizeof *work->reply.states);
    work->reply.parts = calloc(1, sizeof *work->reply.parts);
    if (!args || !work->children || !work->all || !work->reply.states || !work->reply.parts)
        return prb_nomem(err);
    for (size_t i = 0; i < host->members.count; i++)
        add_whole(work, &host->members.items[i]);
    for (size_t i = 0; i < host->ended.count; i++)
        add_whole(work, &host->ended.items[i]);
    if (!add_host(work, args))
        return prb_nomem(err);
    to_child->args = args;
    PRB_AUTO_FREE char *text = prb_fleet_request_text(to_child, err);
    if (!text || (work->all_count && !child_of(host, work->all[0])))
        return text ? prb_nomem(err) : false;
    if (work->all_count)
        ask_child(host, work, text, work->all[0]);
    return true;
}

/* The children of this question; room was made before, as they may not move while they are asked. */
static bool ask_all(struct prb_fleet_host *host, struct work *work, struct prb_error *err)
{
    const struct prb_fleet_members *members = &host->members;
    struct prb_fleet_request to_child = *work->request;
    to_child.budget *= FOR_CHILDREN;
    if (work->request->kind->of_host)
        return ask_host(host, work, &to_child, err);
    PRB_AUTO_FREE char *text = prb_fleet_request_text(&to_child, err);
    work->children = calloc(members->count + 1, sizeof(struct prb_fleet_child *));
    work->reply.states = calloc(members->count + 1, sizeof *work->reply.states);
    work->reply.parts = calloc(members->count + 1, sizeof *work->reply.parts);
    if (!text || !work->children || !work->reply.states || !work->reply.parts)
        return prb_nomem(err);
    for (size_t i = 0; i < members->count; i++)
        if (prb_fleet_request_has(work->request, &members->items[i]) &&
            !child_of(host, &members->items[i]))
            return prb_nomem(err);
    for (size_t i = 0; i < members->count; i++)
        if (prb_fleet_request_has(work->request, &members->items[i]))
            ask_one(host, work, text, &members->items[i]);
    return true;
}

static size_t wait_some(struct work *work, struct pollfd *polls, double left)
{
    size_t open = 0;
    for (size_t i = 0; i < work->count; i++) {
        struct prb_fleet_child *child = work->children[i];
        bool waits = child->asked && !child->answered;
        polls[i] = (struct pollfd){.fd = waits ? child->fd : -1, .events = POLLIN};
        open += waits;
    }
    if (open)
        poll(polls, work->count, left * 1000 < TICK_MS ? (int)(left * 1000) + 1 : TICK_MS);
    return open;
}

/* Until all have answered or the time is over. */
static bool wait_all(struct work *work, bool (*go_on)(void *), void *context, struct prb_error *err)
{
    double end = prb_clock_s() + work->request->budget * FOR_CHILDREN, left;
    PRB_AUTO_FREE struct pollfd *polls = calloc(work->count + 1, sizeof *polls);
    if (!polls)
        return prb_nomem(err);
    while ((left = end - prb_clock_s()) > 0 && wait_some(work, polls, left)) {
        if (go_on && !go_on(context))
            return prb_fail(err, PRB_TIMEOUT, "ended before all ranks answered");
        for (size_t i = 0; i < work->count; i++) {
            struct prb_error why = {0};
            struct prb_fleet_child *child = work->children[i];
            if (polls[i].fd < 0 || !polls[i].revents || prb_fleet_child_read(child, &why))
                continue;
            add_failed(work, &child->member, why.text);
            prb_fleet_child_end(child);
        }
    }
    return true;
}

static void collect(struct work *work)
{
    char overrun[120];
    snprintf(overrun, sizeof overrun, "it could not be read within %.3g s",
             work->request->budget * FOR_CHILDREN);
    for (size_t i = 0; i < work->count; i++) {
        struct prb_fleet_child *child = work->children[i];
        if (child->answered) {
            take_reply(work, child);
        } else if (child->asked) {
            add_failed(work, &child->member, overrun);
            prb_fleet_child_end(child);
        }
    }
}

/* ---- merging ---- */

static void fail_part(struct prb_fleet_reply *reply, int rank, const char *reason)
{
    for (size_t i = 0; i < reply->state_count; i++) {
        if (reply->states[i].rank != rank)
            continue;
        reply->states[i].state = PRB_COVERAGE_FAILED;
        snprintf(reply->states[i].reason, sizeof reply->states[i].reason, "%s", reason);
    }
    for (size_t i = 0; i < reply->part_count; i++)
        if (reply->parts[i].rank == rank) {
            memmove(&reply->parts[i], &reply->parts[i + 1],
                    (--reply->part_count - i) * sizeof *reply->parts);
            break;
        }
}

/* A part that cannot be used is a fault of its rank; the others are merged again without it. */
static bool merge(struct work *work, struct prb_buf *merged, struct prb_error *err)
{
    struct prb_fleet_reply *reply = &work->reply;
    const struct prb_fleet_kind *kind = work->request->kind;
    while (kind->at_host && reply->part_count) {
        int faulty = -1;
        struct prb_error why = {0};
        merged->len = 0;
        if (kind->at_host(work->request->args, reply->parts, reply->part_count, merged, &faulty,
                          &why)) {
            reply->parts[0] = (struct prb_fleet_part){-1, merged->data, merged->len};
            reply->part_count = 1;
            return prb_buf_ok(merged) || prb_nomem(err);
        }
        size_t before = reply->part_count;
        fail_part(reply, faulty, why.text);
        if (reply->part_count == before) {
            *err = why;
            return false;
        }
    }
    return true;
}

static bool answer(struct prb_fleet_host *host, struct work *work, bool (*go_on)(void *),
                   void *context, struct prb_buf *out, struct prb_error *err)
{
    PRB_AUTO(prb_buf) struct prb_buf merged = {0};
    work->reply.clock = prb_clock_epoch_s();
    snprintf(work->reply.host, sizeof work->reply.host, "%s", host->name);
    bool ok = ask_all(host, work, err) && wait_all(work, go_on, context, err);
    if (ok)
        collect(work);
    for (size_t i = 0; i < work->count && !ok; i++) /* none is left with an old question */
        prb_fleet_child_end(work->children[i]);
    size_t most = work->request->max_bytes;
    return ok && merge(work, &merged, err) &&
           prb_fleet_reply_pack(&work->reply, work->request->id, out, err) &&
           (out->len <= most || prb_fail(err, PRB_TIMEOUT,
                                         "the host's answer has %zu bytes, and %zu are allowed "
                                         "(probing.cluster.host_bytes)",
                                         out->len, most));
}

bool prb_fleet_host_answer(struct prb_fleet_host *host, const struct prb_fleet_request *request,
                           bool (*go_on)(void *context), void *context, struct prb_buf *reply,
                           struct prb_error *err)
{
    struct work work = {.request = request};
    bool ok = answer(host, &work, go_on, context, reply, err);
    free(work.children);
    free(work.all);
    free(work.reply.states);
    free(work.reply.parts);
    return ok;
}
