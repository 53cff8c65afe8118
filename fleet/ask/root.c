/* The asker: which ranks there are, sending a question, and in which state each rank is after it. */
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/error.h"
#include "fleet/ask/address.h"
#include "fleet/ask/transport.h"
#include "fleet/cluster.h"
#include "fleet/settings.h"

#define FRESH 1.0 /* s: a look at the job serves so long */

struct prb_fleet {
    struct prb_fleet_address address;
    struct prb_fleet_transport *transport;
    char *bus;     /* as it was named, or NULL */
    double budget; /* s; 0: the kind's */
    bool over;     /* a job that has ended is one, too */
    struct prb_fleet_members members;
    struct prb_rank_set asked;
    double looked; /* by prb_clock_s */
    char job[128];
    uid_t uid;      /* whose job it is */
    char note[320]; /* "": none */
    struct prb_fleet_info info;
};

/* ---- which job ---- */

static bool same_job(const struct prb_fleet_member *a, const struct prb_fleet_member *b)
{
    return strcmp(a->job, b->job) == 0 && a->uid == b->uid;
}

/* "llama (8 ranks), …" */
static char *list_jobs(const struct prb_fleet_members *all)
{
    PRB_AUTO(prb_buf) struct prb_buf text = {0};
    for (size_t i = 0, end; i < all->count; i = end) {
        for (end = i + 1; end < all->count && same_job(&all->items[i], &all->items[end]);)
            end++;
        prb_buf_addf(&text, "%s@%s (%zu rank%s", i ? ", " : "", all->items[i].job, end - i,
                     end - i == 1 ? "" : "s");
        if (all->items[i].uid != geteuid())
            prb_buf_addf(&text, ", user %u", (unsigned)all->items[i].uid);
        prb_buf_addc(&text, ')');
    }
    return prb_buf_steal(&text);
}

/* Hosts that did not tell of their ranks in time may have the job. */
static bool not_told(const struct prb_fleet *fleet, const char *jobs, struct prb_error *err)
{
    const struct prb_fleet_transport *transport = fleet->transport;
    char who[60];
    snprintf(who, sizeof who, transport->unheard_all ? "no host" : "%zu host%s", transport->unheard,
             transport->unheard == 1 ? "" : "s");
    prb_fail(err, PRB_TIMEOUT, "%s%.120s%s was not found, and %s %s of %s ranks within %.1f s",
             *fleet->address.job ? "job \"" : "a job", fleet->address.job,
             *fleet->address.job ? "\"" : "", who, transport->unheard_all ? "told" : "did not tell",
             transport->unheard > 1 && !transport->unheard_all ? "their" : "its",
             transport->waited);
    return prb_error_remedy(err, "`probing cluster nodes` shows them; --timeout waits longer%s%s",
                            *jobs ? "; there is " : "", jobs);
}

static bool no_job(const struct prb_fleet *fleet, const struct prb_fleet_members *all,
                   struct prb_error *err)
{
    PRB_AUTO_FREE char *jobs = list_jobs(all);
    const struct prb_fleet_transport *transport = fleet->transport;
    bool bus = strcmp(transport->ops->name, "nats") == 0;
    if (transport->unheard || transport->unheard_all)
        return not_told(fleet, jobs, err);
    if (all->count || *fleet->address.job)
        prb_fail(err, PRB_NOT_FOUND, "there is no job \"%s\"", fleet->address.job);
    else if (bus)
        prb_fail(err, PRB_NOT_FOUND, "no host on the bus has a rank of a job");
    else
        prb_fail(err, PRB_NOT_FOUND, "no rank of a job was found: no RANK in its environment");
    return all->count ? prb_error_remedy(err, "there is %s", jobs ? jobs : "another")
           : bus
               ? prb_error_remedy(
                     err,
                     "no host on the bus has a rank now; `probing cluster nodes` shows the hosts")
               : prb_error_remedy(err, "`probing list` shows the Python processes and their ranks");
}

/* Without jobs all of whose ranks have ended. */
static void leave_over(struct prb_fleet_members *all)
{
    size_t kept = 0;
    for (size_t i = 0, end; i < all->count; i = end) {
        bool runs = false;
        for (end = i; end < all->count && same_job(&all->items[i], &all->items[end]); end++)
            runs = runs || all->items[end].ended <= 0;
        if (runs)
            memmove(&all->items[kept], &all->items[i], (end - i) * sizeof *all->items);
        kept += runs ? end - i : 0;
    }
    all->count = kept;
}

static bool any_runs(const struct prb_fleet_members *all, const char *name)
{
    for (size_t i = 0; i < all->count; i++)
        if (all->items[i].ended <= 0 && (!*name || strcmp(all->items[i].job, name) == 0))
            return true;
    return false;
}

/* Once a user's job was chosen, that of another is none. */
static bool is_meant(const struct prb_fleet *fleet, const struct prb_fleet_member *one,
                     const char *name)
{
    return strcmp(one->job, name) == 0 && (!fleet->job[0] || one->uid == fleet->uid);
}

/* Of the jobs of one name each user sees the own one. */
static void keep_own(struct prb_fleet *fleet, struct prb_fleet_members *all)
{
    size_t own = 0;
    uid_t other = 0;
    for (size_t i = 0; i < all->count; i++)
        if (all->items[i].uid == geteuid())
            own++;
        else
            other = all->items[i].uid;
    if (!own || own == all->count)
        return;
    for (size_t i = 0, kept = 0; kept < own; i++)
        if (all->items[i].uid == geteuid())
            all->items[kept++] = all->items[i];
    all->count = own;
    snprintf(fleet->note, sizeof fleet->note,
             "user %u has a job of this name, too: its ranks are "
             "not asked",
             (unsigned)other);
}

/* Jobs of one name are told apart by who asks alone. */
static bool several(const struct prb_fleet_members *all, const struct prb_fleet_member *first,
                    const struct prb_fleet_member *other, struct prb_error *err)
{
    if (strcmp(first->job, other->job) != 0) {
        PRB_AUTO_FREE char *jobs = list_jobs(all);
        prb_fail(err, PRB_USAGE, "there are several jobs");
        return prb_error_remedy(err, "name one: %s", jobs ? jobs : "");
    }
    prb_fail(err, PRB_USAGE, "users %u and %u each have a job \"%s\"", (unsigned)first->uid,
             (unsigned)other->uid, first->job);
    return prb_error_remedy(err,
                            "ask as one of them, who sees the own job: sudo -u '#%u' probing …",
                            (unsigned)first->uid);
}

/* Keep those of the one job that is meant. */
static bool choose(struct prb_fleet *fleet, struct prb_fleet_members *all, struct prb_error *err)
{
    size_t kept = 0;
    const char *name = fleet->job[0] ? fleet->job : fleet->address.job;
    if (!fleet->over || any_runs(all, name))
        leave_over(all);
    fleet->note[0] = '\0';
    for (size_t i = 1; i < all->count && !*name; i++)
        if (strcmp(all->items[0].job, all->items[i].job) != 0)
            return several(all, &all->items[0], &all->items[i], err);
    name = *name || !all->count ? name : all->items[0].job;
    for (size_t i = 0; i < all->count; i++)
        if (is_meant(fleet, &all->items[i], name))
            kept++;
    if (!kept)
        return no_job(fleet, all, err);
    for (size_t i = 0, to = 0; to < kept; i++)
        if (is_meant(fleet, &all->items[i], name))
            all->items[to++] = all->items[i];
    all->count = kept;
    keep_own(fleet, all);
    for (size_t i = 1; i < all->count; i++)
        if (all->items[i].uid != all->items[0].uid)
            return several(all, &all->items[0], &all->items[i], err);
    return true;
}

static int world_of(const struct prb_fleet_members *members)
{
    int world = 0;
    for (size_t i = 0; i < members->count; i++) {
        if (members->items[i].world_size > world && members->items[i].world_size < PRB_RANKS_MAX)
            world = members->items[i].world_size;
        if (members->items[i].rank >= world)
            world = members->items[i].rank + 1;
    }
    return world;
}

static bool choose_ranks(struct prb_fleet *fleet, struct prb_error *err)
{
    const struct prb_rank_set *wanted = &fleet->address.ranks;
    int world = fleet->info.world_size;
    prb_rank_set_deinit(&fleet->asked);
    if (wanted->count && wanted->ranges[wanted->count - 1].last >= world)
        return prb_fail(err, PRB_USAGE, "job %s has ranks 0 to %d, and %d was asked for",
                        fleet->job, world - 1, wanted->ranges[wanted->count - 1].last);
    if (wanted->count ? !prb_rank_set_unite(&fleet->asked, wanted)
                      : !prb_rank_set_add(&fleet->asked, 0, world - 1))
        return prb_nomem(err);
    return true;
}

static int by_host(const void *a, const void *b)
{
    const struct prb_fleet_member *const *x = a, *const *y = b;
    return strcmp((*x)->host, (*y)->host);
}

static bool count_hosts(const struct prb_fleet_members *members, unsigned *out)
{
    PRB_AUTO_FREE const struct prb_fleet_member **all = calloc(members->count + 1, sizeof *all);
    *out = 0;
    for (size_t i = 0; all && i < members->count; i++)
        all[i] = &members->items[i];
    if (all)
        qsort(all, members->count, sizeof *all, by_host);
    for (size_t i = 0; all && i < members->count; i++)
        *out += !i || strcmp(all[i]->host, all[i - 1]->host) != 0;
    return all;
}

static int by_rank(const void *a, const void *b)
{
    const struct prb_fleet_member *x = a, *y = b;
    return (x->rank > y->rank) - (x->rank < y->rank);
}

/* Those of a former look that a new one does not have: they ended. */
static bool keep_ended(const struct prb_fleet_members *before, struct prb_fleet_members *now)
{
    size_t count = now->count;
    for (size_t i = 0; i < before->count; i++) {
        const struct prb_fleet_member *one = &before->items[i];
        if (bsearch(one, now->items, count, sizeof *one, by_rank))
            continue;
        if (!PRB_GROW(now->items, now->count, now->cap))
            return false;
        now->items[now->count++] = *one;
    }
    if (now->count > count)
        qsort(now->items, now->count, sizeof *now->items, by_rank);
    return true;
}

/* What one look at the job says; the ranks that a former one knew, and this one does not, are kept:
 * they ended. */
static bool look(struct prb_fleet *fleet, struct prb_error *err)
{
    PRB_AUTO(prb_fleet_members) struct prb_fleet_members now = {0};
    unsigned hosts;
    const char *name = fleet->job[0] ? fleet->job : fleet->address.job;
    fleet->transport->job = *name ? name : NULL;
    fleet->transport->patience =
        fleet->budget > 0 ? fleet->budget : prb_fleet_setting(PRB_FLEET_look_budget);
    if (!fleet->transport->ops->find(fleet->transport, NULL, &now, err))
        return false;
    if (!choose(fleet, &now, err))
        return fleet->members.count > 0; /* all have ended since */
    if (!keep_ended(&fleet->members, &now) || !count_hosts(&now, &hosts))
        return prb_nomem(err);
    prb_fleet_members_deinit(&fleet->members);
    fleet->members = now;
    now = (struct prb_fleet_members){0};
    snprintf(fleet->job, sizeof fleet->job, "%s", fleet->members.items[0].job);
    fleet->uid = fleet->members.items[0].uid;
    if (fleet->transport->note[0])
        snprintf(fleet->note + strlen(fleet->note), sizeof fleet->note - strlen(fleet->note),
                 "%s%s", fleet->note[0] ? "\n" : "", fleet->transport->note);
    fleet->looked = prb_clock_s();
    fleet->info = (struct prb_fleet_info){
        .job = fleet->job,
        .world_size = world_of(&fleet->members),
        .hosts = hosts,
        .transport = fleet->transport->ops->name,
        .members = fleet->members.items,
        .member_count = fleet->members.count,
        .asked = &fleet->asked,
        .note = fleet->note[0] ? fleet->note : NULL,
    };
    return choose_ranks(fleet, err);
}

/* ---- open, close ---- */

void prb_fleet_close(struct prb_fleet *fleet)
{
    if (!fleet)
        return;
    if (fleet->transport)
        fleet->transport->ops->close(fleet->transport);
    prb_fleet_members_deinit(&fleet->members);
    prb_fleet_address_deinit(&fleet->address);
    prb_rank_set_deinit(&fleet->asked);
    free(fleet->bus);
    free(fleet);
}
PRB_DEFINE_AUTO_PTR(prb_fleet, struct prb_fleet, prb_fleet_close)

/* A bus where one is configured; a named one that cannot be used is an error, and nothing falls
 * back to this host. */
static struct prb_fleet_transport *open_transport(bool local, const char *bus,
                                                  struct prb_error *err)
{
    struct prb_error why = {0};
    struct prb_fleet_transport *nats = local ? NULL : prb_fleet_nats_open(bus, &why);
    if (nats || why.code == PRB_OK)
        return nats ? nats : prb_fleet_local_open(err);
    if (err)
        *err = why;
    return NULL;
}

static bool go_on_always(void *context)
{
    (void)context;
    return true;
}

struct prb_fleet *prb_fleet_open(const char *address, const struct prb_fleet_options *options,
                                 struct prb_error *err)
{
    PRB_AUTO(prb_fleet) struct prb_fleet *fleet = calloc(1, sizeof *fleet);
    if (!fleet)
        return PRB_NULL(prb_nomem(err));
    if (!prb_fleet_address_parse(address, &fleet->address, err) || !prb_fleet_settings_check(err) ||
        !(fleet->transport = open_transport(fleet->address.local || (options && options->local),
                                            options ? options->bus : NULL, err)))
        return NULL;
    fleet->transport->go_on = options && options->go_on ? options->go_on : go_on_always;
    fleet->transport->context = options ? options->context : NULL;
    fleet->budget = options ? options->budget : 0;
    fleet->over = options && options->over;
    if (options && options->bus && !(fleet->bus = strdup(options->bus)))
        return PRB_NULL(prb_nomem(err));
    return look(fleet, err) ? PRB_STEAL(fleet) : NULL;
}

struct prb_fleet_line prb_fleet_line(struct prb_fleet *fleet)
{
    const struct prb_fleet_transport_ops *ops = fleet->transport->ops;
    return ops->line ? ops->line(fleet->transport) : (struct prb_fleet_line){0};
}

const struct prb_fleet_info *prb_fleet_info(const struct prb_fleet *fleet) { return &fleet->info; }

bool prb_fleet_hosts(const struct prb_fleet *fleet, struct prb_cluster_hosts *out,
                     struct prb_error *err)
{
    return strcmp(fleet->info.transport, "nats") == 0 ? prb_cluster_hosts(fleet->bus, out, err)
                                                      : prb_cluster_own(out, err);
}

/* ---- asking ---- */

struct asking {
    const struct prb_fleet_request *request;
    struct prb_coverage *coverage;
    void *result;
};

static void set_state(struct prb_coverage *coverage, const struct prb_fleet_reply *reply,
                      const struct prb_fleet_state *state, enum prb_coverage_state as,
                      const char *reason)
{
    struct prb_coverage_rank *one = prb_coverage_find(coverage, state->rank);
    if (!one || !prb_coverage_set(coverage, state->rank, as, reason))
        return;
    one->pid = state->pid;
    one->ms = state->ms;
    one->truncated = state->truncated;
    free(one->host);
    one->host = strdup(reply->host);
}

/* A rank has one owner: who answers for one that has answered is not believed at all. */
static bool is_twice(const struct asking *asking, const struct prb_fleet_reply *reply)
{
    for (size_t i = 0; i < reply->state_count; i++) {
        const struct prb_coverage_rank *one =
            prb_coverage_find(asking->coverage, reply->states[i].rank);
        if (!one || one->state == PRB_COVERAGE_ANSWERED)
            return true;
    }
    return false;
}

static bool got(void *context, const struct prb_fleet_reply *reply, size_t len)
{
    struct asking *asking = context;
    struct prb_error why = {0};
    /* Hosts are asked about each rank that was theirs once. */
    bool twice = !asking->request->kind->of_host && is_twice(asking, reply), ok = !twice;
    (void)len;
    if (twice)
        prb_fail(&why, PRB_CORRUPT, "another host answers for one of the ranks of %s, too",
                 reply->host);
    else if (reply->part_count)
        ok = asking->request->kind->at_root(asking->request->args, reply, asking->result, &why);
    for (size_t i = 0; i < reply->state_count; i++) {
        const struct prb_fleet_state *one = &reply->states[i];
        bool spoilt = !ok && one->state == PRB_COVERAGE_ANSWERED;
        set_state(asking->coverage, reply, one, spoilt ? PRB_COVERAGE_FAILED : one->state,
                  spoilt ? why.text : one->reason);
    }
    return true;
}

/* Of those that nobody answered for: whose process was known is gone, where its host did answer, or
 * silent. */
static void settle(const struct prb_fleet *fleet, struct prb_coverage *coverage)
{
    bool local = strcmp(fleet->transport->ops->name, "local") == 0;
    for (size_t i = 0; i < fleet->members.count; i++) {
        const struct prb_fleet_member *member = &fleet->members.items[i];
        struct prb_coverage_rank *one = prb_coverage_find(coverage, member->rank);
        if (!one || one->state != PRB_COVERAGE_MISSING)
            continue;
        bool gone = local && kill(member->pid, 0) != 0 && errno == ESRCH;
        char text[sizeof member->host + 60] = "the process ended";
        if (!gone)
            snprintf(text, sizeof text, "%s was last heard of %.9g s ago", member->host,
                     (double)(int64_t)member->ago);
        prb_coverage_set(coverage, member->rank, gone ? PRB_COVERAGE_GONE : PRB_COVERAGE_SILENT,
                         gone || member->ago > 0 ? text : NULL);
        one->pid = member->pid;
    }
}

/* Whose state is known beforehand: two processes claim it, or it ended.  Its host is asked about it
 * all the same where that is what the question is about. */
static void set_known(const struct prb_fleet_member *member, struct prb_coverage *coverage)
{
    char text[80];
    struct prb_coverage_rank *one = prb_coverage_find(coverage, member->rank);
    if (!one || (!member->refused[0] && member->ended <= 0))
        return;
    double ago = prb_clock_epoch_s() - member->ended;
    snprintf(text, sizeof text, "process %d was seen to end %.0f s ago", (int)member->pid,
             ago > 0 ? ago : 0.0);
    prb_coverage_set(coverage, member->rank,
                     member->refused[0] ? PRB_COVERAGE_FAILED : PRB_COVERAGE_GONE,
                     member->refused[0] ? member->refused : text);
    one->pid = member->pid;
    free(one->host);
    one->host = strdup(member->host);
}

/* Who is asked: the others. */
static bool take_ranks(const struct prb_fleet *fleet, bool of_host, struct prb_coverage *coverage,
                       struct prb_rank_set *out)
{
    for (size_t i = 0; i < fleet->members.count && !of_host; i++)
        set_known(&fleet->members.items[i], coverage);
    for (size_t i = 0; i < coverage->count; i++)
        if (coverage->items[i].state == PRB_COVERAGE_MISSING &&
            !prb_rank_set_add(out, coverage->items[i].rank, coverage->items[i].rank))
            return false;
    return true;
}

/* Those of asked that are in only (NULL: all), too. */
static bool choose_asked(const struct prb_fleet *fleet, const struct prb_rank_set *only,
                         struct prb_rank_set *out)
{
    if (!only)
        return prb_rank_set_unite(out, &fleet->asked);
    for (int rank = prb_rank_set_next(only, -1); rank >= 0; rank = prb_rank_set_next(only, rank))
        if (prb_rank_set_has(&fleet->asked, rank) && !prb_rank_set_add(out, rank, rank))
            return false;
    return true;
}

bool prb_fleet_ask(struct prb_fleet *fleet, const char *kind, const char *args, void *result,
                   struct prb_coverage *coverage_out, struct prb_error *err)
{
    return prb_fleet_ask_ranks(fleet, NULL, kind, args, result, coverage_out, err);
}

/* As whoever opened the job says, else who asks, else the environment, else the kind. */
static double budget_of(const struct prb_fleet *fleet, const struct prb_fleet_kind *kind,
                        double wanted)
{
    double budget = fleet->budget > 0 ? fleet->budget : wanted;
    if (budget <= 0 && kind->needs == PRB_FLEET_LOOK)
        budget = prb_fleet_setting(PRB_FLEET_look_budget);
    if (budget <= 0 && kind->needs == PRB_FLEET_EVAL)
        budget = prb_fleet_setting(PRB_FLEET_eval_budget);
    return budget > 0 ? budget : kind->budget;
}

bool prb_fleet_ask_within(struct prb_fleet *fleet, const struct prb_rank_set *ranks,
                          const char *kind, const char *args, double budget, void *result,
                          struct prb_coverage *coverage_out, struct prb_error *err)
{
    const struct prb_fleet_kind *wanted = prb_fleet_kind_find(kind);
    PRB_AUTO(prb_fleet_request) struct prb_fleet_request request = {0};
    PRB_AUTO(prb_rank_set) struct prb_rank_set asked = {0};
    *coverage_out = (struct prb_coverage){0};
    if (!wanted)
        return prb_fail(err, PRB_UNSUPPORTED, "no kind of question \"%.40s\"", kind);
    if (prb_clock_s() - fleet->looked > FRESH && !look(fleet, err))
        return false;
    if (!choose_asked(fleet, ranks, &asked))
        return prb_nomem(err);
    if (!prb_fleet_request_new(wanted, fleet->job, args, &request, err) ||
        !prb_coverage_begin(coverage_out, &asked, err))
        return false;
    request.budget = budget_of(fleet, wanted, budget);
    request.of_user = true;
    request.uid = fleet->uid;
    if (!take_ranks(fleet, wanted->of_host, coverage_out, &request.ranks))
        return prb_nomem(err);
    if (!request.ranks.count)
        return true;
    struct asking asking = {&request, coverage_out, result};
    if (!fleet->transport->ops->ask(fleet->transport, &request, &fleet->members, got, &asking, err))
        return false;
    settle(fleet, coverage_out);
    return true;
}

bool prb_fleet_ask_ranks(struct prb_fleet *fleet, const struct prb_rank_set *ranks,
                         const char *kind, const char *args, void *result,
                         struct prb_coverage *coverage_out, struct prb_error *err)
{
    return prb_fleet_ask_within(fleet, ranks, kind, args, 0, result, coverage_out, err);
}
