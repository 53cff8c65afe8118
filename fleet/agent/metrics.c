/*
 * What is measured of this host's ranks, in a file that node_exporter's textfile collector reads (agent.h,
 * format/metrics.h).  Each rank is measured in a child, as a look at it is: one that cannot be read holds up no other.
 */
#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/new_file.h"
#include "base/worker.h"
#include "fleet/agent/agent.h"
#include "fleet/host/host.h"
#include "format/metrics.h"

#define MODE 0644  /* node_exporter is another user */
#define BUDGET 5.0 /* s for a job's ranks */

/* The main thread of a rank, as it was last seen. */
struct seen {
    pid_t pid;
    double started;
    json_int_t stack;
    double since; /* s, monotonic: when it was first seen so */
    bool here;
};

struct prb_agent_metrics {
    const struct prb_agent_metrics_options *options;
    struct prb_worker worker;
    atomic_bool changed; /* ranks came or went */
    /* The thread's own. */
    struct prb_fleet_host *host;
    struct seen *seen;
    size_t seen_count, seen_cap;
    dev_t device; /* of the file that was written last */
    ino_t inode;  /* 0: none was */
    char told[360];
};

static void say(struct prb_agent_metrics *metrics, const char *text)
{
    if (strcmp(metrics->told, text) == 0)
        return;
    snprintf(metrics->told, sizeof metrics->told, "%s", text);
    if (*text)
        prb_log_file_add(metrics->options->log, "metrics: %s", text);
}

/* ---- the file ---- */

static bool write_file(struct prb_agent_metrics *metrics, const struct prb_metrics *of,
                       struct prb_error *err)
{
    const char *path = metrics->options->file;
    PRB_AUTO(prb_buf) struct prb_buf text = {0};
    PRB_AUTO(prb_new_file) struct prb_new_file file;
    struct stat info;
    prb_metrics_text(of, &text);
    if (!prb_new_file_begin(&file, path, MODE))
        return prb_fail_sys(err, errno, "%s", path);
    if (!prb_buf_ok(&text))
        return prb_nomem(err);
    /* Whatever the umask. */
    if (fchmod(file.fd, MODE) != 0 || !prb_write_all(file.fd, text.data, text.len) ||
        fstat(file.fd, &info) != 0 || !prb_new_file_end(&file))
        return prb_fail_sys(err, errno, "%s", path);
    metrics->device = info.st_dev;
    metrics->inode = info.st_ino;
    return true;
}

/* Unless somebody else's has its place. */
static void remove_file(const struct prb_agent_metrics *metrics)
{
    struct stat info;
    if (metrics->inode && lstat(metrics->options->file, &info) == 0 &&
        info.st_ino == metrics->inode && info.st_dev == metrics->device)
        unlink(metrics->options->file);
}

/* ---- a round ---- */

/* Seconds since the stack is so; below 0: it is not known. */
static double unchanged(struct prb_agent_metrics *metrics, const struct prb_fleet_member *member,
                        const json_t *stack, double now)
{
    struct seen *seen = NULL;
    if (!json_is_integer(stack))
        return -1;
    for (size_t i = 0; i < metrics->seen_count && !seen; i++)
        if (metrics->seen[i].pid == member->pid &&
            metrics->seen[i].started - member->started < 0.5 &&
            member->started - metrics->seen[i].started < 0.5)
            seen = &metrics->seen[i];
    if (!seen) {
        if (!PRB_GROW(metrics->seen, metrics->seen_count, metrics->seen_cap))
            return -1;
        seen = &metrics->seen[metrics->seen_count++];
        *seen = (struct seen){.pid = member->pid, .started = member->started, .since = now};
    } else if (seen->stack != json_integer_value(stack)) {
        seen->since = now;
    }
    seen->stack = json_integer_value(stack);
    seen->here = true;
    return now - seen->since;
}

static double number_of(const json_t *one, const char *name)
{
    const json_t *value = json_object_get(one, name);
    return json_is_number(value) ? json_number_value(value) : -1;
}

static void add_rank(struct prb_agent_metrics *metrics, const struct prb_fleet_member *member,
                     const struct prb_fleet_part *part, struct prb_metrics *out)
{
    PRB_AUTO(json_t) json_t *list = json_loadb(part->data, part->len, 0, NULL);
    const json_t *one = json_array_get(list, 0);
    double threads = number_of(one, "threads");
    const struct prb_measured measured = {
        .pid = member->pid,
        .rank = member->rank,
        .command = json_string_value(json_object_get(one, "command")),
        .cpu = number_of(one, "cpu"),
        .rss = number_of(one, "rss"),
        .threads = threads >= 0 && threads < INT_MAX ? (int)threads : -1,
        .step = json_is_integer(json_object_get(one, "step"))
                    ? json_integer_value(json_object_get(one, "step"))
                    : -1,
        .unchanged = unchanged(metrics, member, json_object_get(one, "stack"), prb_clock_s()),
    };
    prb_metrics_add(out, &measured);
}

static const struct prb_fleet_member *member_of(const struct prb_fleet_members *members,
                                                const char *job, int rank)
{
    for (size_t i = 0; i < members->count; i++)
        if (members->items[i].rank == rank && strcmp(members->items[i].job, job) == 0)
            return &members->items[i];
    return NULL;
}

static bool goes_on(void *metrics)
{
    return prb_worker_goes_on(&((struct prb_agent_metrics *)metrics)->worker);
}

static bool add_job(struct prb_agent_metrics *metrics, const struct prb_fleet_members *members,
                    const char *job, struct prb_metrics *out, struct prb_error *err)
{
    PRB_AUTO(prb_fleet_request) struct prb_fleet_request request = {0};
    PRB_AUTO(prb_buf) struct prb_buf bytes = {0};
    PRB_AUTO(prb_fleet_reply) struct prb_fleet_reply reply = {0};
    if (!prb_fleet_request_new(prb_fleet_kind_find("metrics"), job, NULL, &request, err))
        return false;
    request.budget = BUDGET;
    if (!prb_fleet_host_answer(metrics->host, &request, goes_on, metrics, &bytes, err) ||
        !prb_fleet_reply_parse(bytes.data, bytes.len, request.id, &reply, err))
        return false;
    for (size_t i = 0; i < reply.part_count; i++) {
        const struct prb_fleet_member *member = member_of(members, job, reply.parts[i].rank);
        if (member)
            add_rank(metrics, member, &reply.parts[i], out);
    }
    return true;
}

static void forget_gone(struct prb_agent_metrics *metrics)
{
    for (size_t i = 0; i < metrics->seen_count;)
        if (metrics->seen[i].here)
            metrics->seen[i++].here = false;
        else
            metrics->seen[i] = metrics->seen[--metrics->seen_count];
}

static void look(void *context)
{
    struct prb_agent_metrics *metrics = context;
    bool again = atomic_exchange(&metrics->changed, false);
    struct prb_error err = {0};
    PRB_AUTO(prb_metrics) struct prb_metrics all = {0};
    const struct prb_fleet_members *members =
        again ? prb_fleet_host_look(metrics->host, &err) : prb_fleet_host_members(metrics->host);
    bool good = members != NULL;
    for (size_t i = 0; good && i < members->count; i++)
        if (!i || strcmp(members->items[i].job, members->items[i - 1].job) != 0)
            good = add_job(metrics, members, members->items[i].job, &all, &err);
    forget_gone(metrics);
    good = good && write_file(metrics, &all, &err);
    say(metrics, good ? "" : err.text);
}

/* ---- life ---- */

static bool check_name(const char *file, struct prb_error *err)
{
    const char *end = strrchr(file, '.');
    if (end && strcmp(end, ".prom") == 0)
        return true;
    prb_fail(err, PRB_USAGE, "metrics: node_exporter does not read %s", file);
    return prb_error_remedy(err, "a name that ends in .prom");
}

struct prb_agent_metrics *prb_agent_metrics_new(const struct prb_agent_metrics_options *options,
                                                struct prb_error *err)
{
    const struct prb_metrics none = {0};
    if (!check_name(options->file, err))
        return NULL;
    struct prb_agent_metrics *metrics = calloc(1, sizeof *metrics);
    if (!metrics)
        return PRB_NULL(prb_nomem(err));
    metrics->options = options;
    metrics->changed = true;
    metrics->host = prb_fleet_host_new(options->host, options->all_users, err);
    if (metrics->host && write_file(metrics, &none, err) &&
        prb_worker_begin(&metrics->worker, options->every, look, metrics, err))
        return metrics;
    prb_agent_metrics_free(metrics);
    return NULL;
}

void prb_agent_metrics_free(struct prb_agent_metrics *metrics)
{
    if (!metrics)
        return;
    prb_worker_end(&metrics->worker);
    remove_file(metrics);
    prb_fleet_host_free(metrics->host);
    free(metrics->seen);
    free(metrics);
}

void prb_agent_metrics_ranks(struct prb_agent_metrics *metrics)
{
    if (metrics)
        atomic_store(&metrics->changed, true);
}
