/* The ranks of a job on this machine, sampled together: by RANK and WORLD_SIZE of their
 * environments and their launcher. */
#include "cli/profile/ranks.h"

#include "cli/command.h"

static const struct prb_process *find_process(const struct prb_process_list *list, pid_t pid)
{
    for (size_t i = 0; i < list->count; i++)
        if (list->items[i].pid == pid)
            return &list->items[i];
    return NULL;
}

/* The ranks of a job have one parent, its launcher; the target may be that, or one of them. */
static bool same_job(const struct prb_process *one, const struct prb_process *target, pid_t pid)
{
    if (one->rank < 0)
        return false;
    return !pid || one->pid == pid || one->ppid == pid ||
           (target && target->rank >= 0 && one->ppid == target->ppid &&
            one->world_size == target->world_size);
}

bool prb_run_ranks(struct prb_profiler *profiler, pid_t pid, struct prb_error *err)
{
    struct prb_process_list *list = prb_process_list(err);
    if (!list)
        return false;
    size_t found = 0, added = 0;
    const struct prb_process *target = find_process(list, pid);
    for (size_t i = 0; i < list->count; i++) {
        if (!same_job(&list->items[i], target, pid))
            continue;
        found++;
        added += prb_profiler_add(profiler, list->items[i].pid, err);
    }
    prb_process_list_free(list);
    if (!found)
        return prb_cli_fail(err, PRB_NOT_FOUND, "`probing list` shows which process is which rank",
                            "no rank of a job was found: no RANK in its environment");
    return added > 0;
}
