/* See job_roster.h. */
#include "serve/routes/job_roster.h"

#include <math.h>
#include <string.h>

#include "fleet/ask/address.h"
#include "fleet/cluster.h"
#include "format/json.h"
#include "proc/stat.h"
#include "serve/doors/life.h"
#include "serve/work/targets.h"

PRB_DEFINE_AUTO(prb_cluster_hosts, struct prb_cluster_hosts, prb_cluster_hosts_deinit)

#define SAME_START 2.0 /* s that two readings of one start may differ: clocks are set */

/* A rank with the host that told of it. */
struct seat {
    const struct prb_cluster_host *host;
    const struct prb_fleet_member *member;
    bool here; /* a process of this machine, which this server may look at */
};

static int by_rank(const void *a, const void *b)
{
    const struct seat *x = a, *y = b;
    int order = strcmp(x->member->job, y->member->job);
    if (!order) /* the own one first */
        order = (x->member->uid != geteuid()) - (y->member->uid != geteuid());
    if (!order)
        order = (x->member->uid > y->member->uid) - (x->member->uid < y->member->uid);
    return order ? order
                 : (x->member->rank > y->member->rank) - (x->member->rank < y->member->rank);
}

static bool has_some(const struct prb_serve *serve) { return serve && serve->options->target; }

/* Its pid is that of its host, which may be another one: the start tells. */
static bool is_here(const struct prb_serve *serve, const struct prb_fleet_member *member)
{
    char folder[32];
    struct prb_stat stat;
    snprintf(folder, sizeof folder, "/proc/%d", (int)member->pid);
    return prb_stat_of(folder, &stat) &&
           fabs(prb_stat_started(&stat) - member->started) < SAME_START &&
           (!serve || prb_serve_has(serve, member->pid));
}

/* Those of a job (NULL: of all), by job and rank. */
static bool take_seats(const struct prb_serve *serve, const struct prb_cluster_hosts *hosts,
                       const char *name, struct seat **out, size_t *count, struct prb_error *err)
{
    size_t all = 0;
    for (size_t i = 0; i < hosts->count; i++)
        all += hosts->items[i].count;
    struct seat *seats = calloc(all + 1, sizeof *seats);
    if (!seats)
        return prb_nomem(err);
    *count = 0;
    for (size_t i = 0; i < hosts->count; i++)
        for (size_t k = 0; k < hosts->items[i].count; k++) {
            struct seat seat = {&hosts->items[i], &hosts->items[i].members[k], false};
            if (name && strcmp(name, seat.member->job) != 0)
                continue;
            seat.here = is_here(serve, seat.member);
            if (seat.here || !has_some(serve))
                seats[(*count)++] = seat;
        }
    qsort(seats, *count, sizeof *seats, by_rank);
    *out = seats;
    return true;
}

static json_t *rank_json(const struct seat *seat)
{
    const struct prb_fleet_member *one = seat->member;
    json_t *target = seat->here ? json_sprintf("%d.%llu", (int)one->pid,
                                               (unsigned long long)prb_serve_started(one->pid))
                                : json_null();
    return json_pack("{s:i,s:o,s:i,s:o,s:o,s:b,s:b,s:o}", "rank", one->rank, "local_rank",
                     one->local_rank < 0 ? json_null() : json_integer(one->local_rank), "pid",
                     (int)one->pid, "host", prb_json_text(seat->host->host), "target", target,
                     "silent", seat->host->silent, "gone", one->ended > 0, "refused",
                     *one->refused ? prb_json_text(one->refused) : json_null());
}

static bool same_job(const struct prb_fleet_member *a, const struct prb_fleet_member *b)
{
    return strcmp(a->job, b->job) == 0 && a->uid == b->uid;
}

/* The ranks from first on that are of one job; *next: behind them. */
static json_t *job_json(const struct seat *seats, size_t count, size_t first, size_t *next)
{
    json_t *ranks = json_array(), *hosts = json_object();
    int world = -1;
    size_t i = first;
    for (; i < count && same_job(seats[i].member, seats[first].member); i++) {
        const struct prb_fleet_member *one = seats[i].member;
        world = one->world_size > world ? one->world_size : world;
        json_array_append_new(ranks, rank_json(seats + i));
        json_object_set_new(hosts, seats[i].host->host, json_true());
    }
    *next = i;
    json_t *told = json_pack("{s:o,s:o,s:I,s:o}", "id", prb_json_text(seats[first].member->job),
                             "world_size", world < 0 ? json_null() : json_integer(world), "hosts",
                             (json_int_t)json_object_size(hosts), "ranks", ranks);
    json_decref(hosts);
    return told;
}

/* Without jobs all of whose ranks have ended: whoever asks `@NAME` hears that there is none. */
static void leave_over(struct seat *seats, size_t *count)
{
    size_t kept = 0;
    for (size_t i = 0, end; i < *count; i = end) {
        bool runs = false;
        for (end = i; end < *count && same_job(seats[end].member, seats[i].member); end++)
            runs = runs || seats[end].member->ended <= 0;
        for (; runs && i < end; i++)
            seats[kept++] = seats[i];
    }
    *count = kept;
}

json_t *prb_serve_jobs(const struct prb_serve *serve, const char *name, struct prb_error *err)
{
    PRB_AUTO(prb_cluster_hosts) struct prb_cluster_hosts hosts = {0};
    PRB_AUTO_FREE struct seat *seats = NULL;
    size_t count = 0;
    if (!prb_cluster_hosts(NULL, &hosts, err) ||
        !take_seats(serve, &hosts, name, &seats, &count, err))
        return NULL;
    leave_over(seats, &count);
    json_t *jobs = json_array();
    for (size_t i = 0; i < count;) {
        /* Of the jobs of one name each user sees the own one: whoever asks `@NAME` gets that. */
        size_t first = i;
        json_t *job = job_json(seats, count, first, &i);
        if (first && strcmp(seats[first].member->job, seats[first - 1].member->job) == 0)
            json_decref(job);
        else
            json_array_append_new(jobs, job);
    }
    return jobs ? jobs : PRB_NULL(prb_nomem(err));
}

/* ---- asking ---- */

/* The ranks that are asked for and are its own, as text. */
static char *own_ranks(const struct prb_serve *serve, const struct prb_fleet_address *address,
                       struct prb_error *err)
{
    PRB_AUTO(prb_rank_set) struct prb_rank_set own = {0};
    json_auto_t *jobs = prb_serve_jobs(serve, address->job, err);
    const json_t *ranks = json_object_get(json_array_get(jobs, 0), "ranks"), *one;
    bool all = prb_rank_set_size(&address->ranks) == 0;
    size_t i;
    if (!jobs)
        return NULL;
    json_array_foreach(ranks, i, one)
    {
        int rank = (int)json_integer_value(json_object_get(one, "rank"));
        if ((all || prb_rank_set_has(&address->ranks, rank)) && !prb_rank_set_add(&own, rank, rank))
            return PRB_NULL(prb_nomem(err));
    }
    char *text = prb_rank_set_size(&own) ? prb_rank_set_text(&own) : NULL;
    return text ? text
                : PRB_NULL(prb_fail(err, PRB_PERMISSION, "this server has no rank of @%s",
                                    address->job));
}

char *prb_serve_job_address(const struct prb_serve *serve, const char *word, struct prb_error *err)
{
    char *text = NULL;
    PRB_AUTO(prb_fleet_address) struct prb_fleet_address address = {0};
    if (!prb_fleet_address_parse(word, &address, err))
        return NULL;
    if (!has_some(serve))
        return (text = strdup(word)) ? text : PRB_NULL(prb_nomem(err));
    PRB_AUTO_FREE char *ranks = own_ranks(serve, &address, err);
    if (ranks && asprintf(&text, "@%s:%s", address.job, ranks) < 0)
        return PRB_NULL(prb_nomem(err));
    return ranks ? text : NULL;
}

bool prb_serve_job_answer(struct prb_serve_job *job, const char **words, struct prb_error *err)
{
    char word[sizeof job->part[0] + 2];
    snprintf(word, sizeof word, "@%s", job->part[0]);
    PRB_AUTO_FREE char *address = prb_serve_job_address(job->serve, word, err);
    bool json = strcmp(job->format, "json") == 0;
    words[0] = "-t";
    words[1] = address;
    return address && prb_serve_job_shared(
                          job, words, json ? "application/json" : "text/plain; charset=utf-8", err);
}
