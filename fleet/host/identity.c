/* Which processes of this machine are ranks, and of which job. */
#include <string.h>

#include "base/error.h"
#include "fleet/host/host.h"
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

static void describe(const struct prb_process *process, struct prb_fleet_member *out)
{
    size_t len = 0;
    PRB_AUTO_FREE char *environment = prb_process_environment(process->pid, &len, NULL);
    const char *attempt = environment ? prb_environment_get(environment, len, ATTEMPT) : NULL;
    *out = (struct prb_fleet_member){.rank = process->rank,
                                     .local_rank = process->local_rank,
                                     .world_size = process->world_size,
                                     .attempt = attempt ? atoi(attempt) : 0,
                                     .pid = process->pid,
                                     .uid = process->uid,
                                     .started = process->started};
    const char *role = environment ? prb_environment_get(environment, len, ROLE) : NULL;
    snprintf(out->role, sizeof out->role, "%s", role ? role : "");
    const char *folder =
        environment ? prb_environment_get(environment, len, "PROBING_CRASH_DIR") : NULL;
    if (folder && *folder == '/' && strlen(folder) < sizeof out->crash_dir)
        strcpy(out->crash_dir, folder);
    if (!environment || !prb_job_name(environment, len, out->job, sizeof out->job))
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

static bool add_all(const struct prb_process_list *list, const bool *chosen, bool own,
                    struct prb_fleet_members *out)
{
    for (size_t i = 0; i < list->count; i++) {
        const struct prb_process *one = &list->items[i];
        if (!chosen[i] || (own && one->uid != geteuid()) || one->rank >= PRB_RANKS_MAX)
            continue;
        if (!PRB_GROW(out->items, out->count, out->cap))
            return false;
        describe(one, &out->items[out->count++]);
    }
    return true;
}

bool prb_fleet_members_find(bool all_users, struct prb_fleet_members *out, struct prb_error *err)
{
    PRB_AUTO(prb_process_list) struct prb_process_list *list = prb_process_list(err);
    if (!list)
        return false;
    PRB_AUTO_FREE bool *chosen = calloc(list->count + 1, sizeof *chosen);
    if (!chosen)
        return prb_nomem(err);
    out->count = out->stale = 0;
    prb_process_choose(list, 0, true, false, chosen);
    if (!add_all(list, chosen, !all_users, out) ||
        (!out->count && geteuid() == 0 && !add_all(list, chosen, false, out)))
        return prb_nomem(err);
    prb_fleet_members_settle(out);
    return true;
}
