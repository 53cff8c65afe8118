/* The ranks of a job on this machine, sampled together: by RANK and WORLD_SIZE of their
 * environments and their launcher. */
#include "cli/profile/ranks.h"

#include <stdio.h>

#include "cli/command.h"
#include "cli/print/out.h"

#define DEPTH_MAX 64 /* of processes below a rank */

static const struct prb_process *find_process(const struct prb_process_list *list, pid_t pid)
{
    for (size_t i = 0; i < list->count; i++)
        if (list->items[i].pid == pid)
            return &list->items[i];
    return NULL;
}

/* What a rank starts has its RANK, too: workers of a DataLoader are not ranks. */
static const struct prb_process *rank_of(const struct prb_process_list *list,
                                         const struct prb_process *process)
{
    const struct prb_process *above = process;
    for (int depth = 0; depth < DEPTH_MAX && (above = find_process(list, above->ppid)); depth++)
        if (above->rank == process->rank && above->world_size == process->world_size)
            process = above;
    return process;
}

/* The ranks of a job have one parent, its launcher; the target may be that, one of them, or a
 * process of one. */
static bool same_job(const struct prb_process *one, const struct prb_process *target, pid_t pid)
{
    return !pid || one->pid == pid || one->ppid == pid ||
           (target && target->rank >= 0 && one->ppid == target->ppid &&
            one->world_size == target->world_size);
}

static void note_left_out(const struct prb_process *one, const struct prb_error *why)
{
    char text[sizeof why->text + 80];
    snprintf(text, sizeof text, "rank %d, process %d, is left out: %s", one->rank, (int)one->pid,
             why->text);
    prb_out_note(text);
}

/* What starts ranks anew when some fail is Python: torchrun and its likes. */
static void follow_launcher(struct prb_profiler *profiler, const struct prb_process_list *list,
                            const struct prb_process *rank)
{
    if (find_process(list, rank->ppid))
        prb_profiler_follow(profiler, rank->ppid);
}

bool prb_run_ranks(struct prb_profiler *profiler, pid_t pid, struct prb_error *err)
{
    struct prb_process_list *list = prb_process_list(err);
    if (!list)
        return false;
    PRB_AUTO_FREE const struct prb_process **ranks = calloc(list->count + 1, sizeof *ranks);
    size_t found = 0, added = 0;
    struct prb_error why = {0};
    const struct prb_process *target = find_process(list, pid);
    if (target && target->rank >= 0)
        target = rank_of(list, target);
    for (size_t i = 0; ranks && i < list->count; i++) {
        const struct prb_process *one = &list->items[i];
        if (one->rank < 0 || rank_of(list, one) != one ||
            !same_job(one, target, target ? target->pid : pid))
            continue;
        found++;
        if (prb_profiler_add(profiler, one->pid, &why))
            ranks[added++] = one;
        else
            note_left_out(one, &why);
    }
    for (size_t i = 0; i < added; i++)
        follow_launcher(profiler, list, ranks[i]);
    prb_process_list_free(list);
    if (!ranks)
        return prb_cli_fail(err, PRB_NOMEM, "", "ranks");
    if (!found)
        return prb_cli_fail(err, PRB_NOT_FOUND, "`probing list` shows which process is which rank",
                            "no rank of a job was found: no RANK in its environment");
    if (!added && err)
        *err = why;
    return added > 0;
}
