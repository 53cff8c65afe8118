/* Which processes of this machine are ranks, and of which job. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "fleet/host/host.h"
#include "inspect/ranks.h"
#include "proc/job_name.h"
#include "proc/stat.h"

#define ATTEMPT "TORCHELASTIC_RESTART_COUNT"
#define ROLE "ROLE_NAME"
#define DEPTH_MAX 64 /* of processes below a rank */

PRB_DEFINE_AUTO_PTR(prb_process_list, struct prb_process_list, prb_process_list_free)

void prb_fleet_members_deinit(struct prb_fleet_members *members)
{
    free(members->items);
    *members = (struct prb_fleet_members){0};
}

/* Whoever starts a process writes its environment: what no launcher says is as if it said nothing. */
static int known(int value) { return value <= PRB_RANKS_MAX ? value : -1; }

static int attempt_of(const char *text)
{
    long value = text ? strtol(text, NULL, 10) : 0;
    return value > 0 && value <= PRB_ATTEMPTS_MAX ? (int)value : 0;
}

static void describe(const struct prb_process *process, const char *environment, size_t len,
                     struct prb_fleet_member *out)
{
    const char *attempt = prb_environment_get(environment, len, ATTEMPT);
    const char *role = prb_environment_get(environment, len, ROLE);
    const char *folder = prb_environment_get(environment, len, "PROBING_CRASH_DIR");
    *out = (struct prb_fleet_member){.rank = process->rank,
                                     .local_rank = known(process->local_rank),
                                     .world_size = known(process->world_size),
                                     .attempt = attempt_of(attempt),
                                     .pid = process->pid,
                                     .uid = process->uid,
                                     .started = process->started};
    prb_environment_text(role ? role : "", out->role, sizeof out->role);
    if (folder && *folder == '/' && strlen(folder) < sizeof out->crash_dir)
        strcpy(out->crash_dir, folder);
    if (!prb_job_name(environment, len, out->job, sizeof out->job))
        snprintf(out->job, sizeof out->job, "launcher-%d", (int)process->ppid);
}

static int by_job(const struct prb_fleet_member *x, const struct prb_fleet_member *y)
{
    int order = strcmp(x->job, y->job);
    return order ? order : (x->uid > y->uid) - (x->uid < y->uid);
}

static int compare(const void *a, const void *b)
{
    const struct prb_fleet_member *x = a, *y = b;
    int order = by_job(x, y);
    if (!order)
        order = (x->attempt < y->attempt) - (x->attempt > y->attempt); /* the newest first */
    if (!order)
        order = (x->rank > y->rank) - (x->rank < y->rank);
    return order ? order : (x->pid > y->pid) - (x->pid < y->pid);
}

static bool is_below(pid_t pid, pid_t above)
{
    char folder[32];
    struct prb_stat stat;
    for (int depth = 0; depth < DEPTH_MAX && pid > 1; depth++) {
        snprintf(folder, sizeof folder, "/proc/%d", (int)pid);
        if (!prb_stat_of(folder, &stat))
            return false;
        pid = (pid_t)stat.field[PRB_STAT_PPID];
        if (pid == above)
            return true;
    }
    return false;
}

/* Two of one rank: what a rank started by way of a shell has its RANK, too, and is none. */
static void join(struct prb_fleet_member *kept, const struct prb_fleet_member *other)
{
    bool here = strcmp(kept->host, other->host) == 0;
    if (kept->ended > 0 || other->ended > 0) { /* who runs counts, else who ended last */
        if (kept->ended > 0 && (other->ended <= 0 || other->ended > kept->ended))
            *kept = *other;
        return;
    }
    if (here && is_below(other->pid, kept->pid))
        return;
    if (here && is_below(kept->pid, other->pid)) {
        *kept = *other;
        return;
    }
    snprintf(kept->refused, sizeof kept->refused, "processes %d and %d both say that they are it",
             (int)kept->pid, (int)other->pid);
}

/* Of each job the newest attempt, and each rank once. */
void prb_fleet_members_settle(struct prb_fleet_members *members)
{
    size_t kept = 0;
    qsort(members->items, members->count, sizeof *members->items, compare);
    for (size_t i = 0; i < members->count; i++) {
        const struct prb_fleet_member *one = &members->items[i];
        struct prb_fleet_member *last = kept ? &members->items[kept - 1] : NULL;
        if (last && by_job(last, one) == 0 && one->attempt < last->attempt)
            members->stale++;
        else if (last && by_job(last, one) == 0 && one->rank == last->rank)
            join(last, one);
        else
            members->items[kept++] = *one;
    }
    members->count = kept;
}

/* All that say that they are a rank, as the list of processes is made. */
struct found {
    struct prb_fleet_members members;
    bool nomem;
};

static void take_rank(void *context, const struct prb_process *process, const char *environment,
                      size_t len)
{
    struct found *found = context;
    struct prb_fleet_members *all = &found->members;
    if (process->rank >= PRB_RANKS_MAX)
        return;
    if (PRB_GROW(all->items, all->count, all->cap))
        describe(process, environment, len, &all->items[all->count++]);
    else
        found->nomem = true;
}

static int by_pid(const void *a, const void *b)
{
    const struct prb_fleet_member *x = a, *y = b;
    return (x->pid > y->pid) - (x->pid < y->pid);
}

static bool add_all(const struct prb_process_list *list, const bool *chosen, bool own,
                    const struct prb_fleet_members *found, struct prb_fleet_members *out)
{
    for (size_t i = 0; i < list->count; i++) {
        const struct prb_fleet_member key = {.pid = list->items[i].pid}, *one;
        if (!chosen[i] || (own && list->items[i].uid != geteuid()) ||
            !(one = bsearch(&key, found->items, found->count, sizeof key, by_pid)))
            continue;
        if (!PRB_GROW(out->items, out->count, out->cap))
            return false;
        out->items[out->count++] = *one;
    }
    return true;
}

static bool find(bool all_users, struct found *found, struct prb_fleet_members *out,
                 struct prb_error *err)
{
    PRB_AUTO(prb_process_list)
    struct prb_process_list *list = prb_process_list_ranks(take_rank, found, err);
    if (!list)
        return false;
    PRB_AUTO_FREE bool *chosen = calloc(list->count + 1, sizeof *chosen);
    if (!chosen || found->nomem)
        return prb_nomem(err);
    const struct prb_fleet_members *ranks = &found->members;
    if (ranks->count)
        qsort(ranks->items, ranks->count, sizeof *ranks->items, by_pid);
    out->count = out->stale = 0;
    prb_process_choose(list, 0, true, false, chosen);
    if (!add_all(list, chosen, !all_users, ranks, out) ||
        (!out->count && geteuid() == 0 && !add_all(list, chosen, false, ranks, out)))
        return prb_nomem(err);
    prb_fleet_members_settle(out);
    return true;
}

bool prb_fleet_members_find(bool all_users, struct prb_fleet_members *out, struct prb_error *err)
{
    struct found found = {0};
    bool ok = find(all_users, &found, out, err);
    prb_fleet_members_deinit(&found.members);
    return ok;
}
