/* The processes of a job on this machine: its ranks, and what processes start. */
#include "inspect/target.h"
#include "proc/stat.h"

#define DEPTH_MAX 64 /* of processes below one */

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

/* The ranks of a job have one parent, its launcher; the target may be that, one of them, or a
 * process of one. */
static bool is_same_job(const struct prb_process *one, const struct prb_process *target, pid_t pid)
{
    return !pid || one->pid == pid || one->ppid == pid ||
           (target && target->rank >= 0 && one->ppid == target->ppid &&
            one->world_size == target->world_size);
}

static void choose_ranks(const struct prb_process_list *list, pid_t pid, bool *chosen)
{
    const struct prb_process *target = prb_process_find(list, pid);
    if (target && target->rank >= 0)
        target = rank_of(list, target);
    for (size_t i = 0; i < list->count; i++) {
        const struct prb_process *one = &list->items[i];
        chosen[i] = one->rank >= 0 && rank_of(list, one) == one &&
                    is_same_job(one, target, target ? target->pid : pid);
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
