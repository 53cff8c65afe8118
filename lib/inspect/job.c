/* The processes of a job on this machine: its ranks, and what processes start. */
#include <string.h>

#include "inspect/target.h"
#include "proc/job_name.h"
#include "proc/stat.h"

#define DEPTH_MAX 64     /* of processes below one */
#define NAME_MAX_LEN 128 /* bytes of a job's name that are compared */

/* "": its environment says none, or may not be read. */
static void name_of(pid_t pid, char out[NAME_MAX_LEN])
{
    size_t len = 0;
    PRB_AUTO_FREE char *environment = prb_process_environment(pid, &len, NULL);
    if (!environment || !prb_job_name(environment, len, out, NAME_MAX_LEN))
        out[0] = '\0';
}

/* Of any process, Python or not: a shell may stand between two. 0: none, or it ended. */
static pid_t parent_of(const struct prb_process_list *list, pid_t pid)
{
    const struct prb_process *one = prb_process_find(list, pid);
    char folder[32];
    struct prb_stat stat;
    if (one)
        return one->ppid;
    snprintf(folder, sizeof folder, "/proc/%d", (int)pid);
    return prb_stat_of(folder, &stat) ? (pid_t)stat.field[PRB_STAT_PPID] : 0;
}

/* What a rank starts has its RANK, too: workers of a DataLoader are not ranks. */
static const struct prb_process *rank_of(const struct prb_process_list *list,
                                         const struct prb_process *process)
{
    const struct prb_process *above = process;
    for (int depth = 0; depth < DEPTH_MAX && (above = prb_process_find(list, above->ppid)); depth++)
        if (above->rank == process->rank && above->world_size == process->world_size)
            process = above;
    return process;
}

/* What a rank is looked for by. */
struct wanted {
    pid_t pid;                        /* 0: every job's */
    const struct prb_process *target; /* a rank, or NULL */
    char name[NAME_MAX_LEN];          /* of its job, or "" */
};

/*
 * The ranks of a job have one parent, its launcher; the target may be that, one of them, or a
 * process of one.  Ranks of several jobs whose launchers have ended have one parent, too: these
 * differ in their names.
 */
static bool is_same_job(const struct prb_process *one, const struct wanted *wanted)
{
    const struct prb_process *target = wanted->target;
    char name[NAME_MAX_LEN];
    if (!wanted->pid || one->pid == wanted->pid || one->ppid == wanted->pid)
        return true;
    if (!target || one->ppid != target->ppid || one->world_size != target->world_size)
        return false;
    if (!wanted->name[0])
        return true;
    name_of(one->pid, name);
    return !name[0] || strcmp(name, wanted->name) == 0;
}

static void choose_ranks(const struct prb_process_list *list, pid_t pid, bool *chosen)
{
    const struct prb_process *target = prb_process_find(list, pid);
    struct wanted wanted = {.pid = pid};
    if (target && target->rank >= 0) {
        wanted.target = rank_of(list, target);
        wanted.pid = wanted.target->pid;
        name_of(wanted.pid, wanted.name);
    }
    for (size_t i = 0; i < list->count; i++) {
        const struct prb_process *one = &list->items[i];
        chosen[i] = one->rank >= 0 && rank_of(list, one) == one && is_same_job(one, &wanted);
    }
}

static bool is_below(const struct prb_process_list *list, pid_t pid, const bool *roots, pid_t root)
{
    for (int depth = 0; depth < DEPTH_MAX && (pid = parent_of(list, pid)) > 0; depth++) {
        const struct prb_process *one = prb_process_find(list, pid);
        if (pid == root || (one && roots[one - list->items]))
            return true;
    }
    return false;
}

size_t prb_process_choose(const struct prb_process_list *list, pid_t pid, bool ranks,
                          bool subprocesses, bool *chosen)
{
    size_t count = 0;
    const struct prb_process *target = prb_process_find(list, pid);
    for (size_t i = 0; i < list->count; i++)
        chosen[i] = !ranks && &list->items[i] == target;
    if (ranks)
        choose_ranks(list, pid, chosen);
    /* What was chosen meanwhile is below a root, too: marks may grow while they are read. */
    for (size_t i = 0; subprocesses && i < list->count; i++)
        if (!chosen[i])
            chosen[i] = is_below(list, list->items[i].pid, chosen, ranks ? 0 : pid);
    for (size_t i = 0; i < list->count; i++)
        count += chosen[i];
    return count;
}
