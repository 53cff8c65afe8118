/* The ranks of a job on this machine, sampled together: by RANK and WORLD_SIZE of their
 * environments and their launcher. */
#include "cli/profile/ranks.h"

#include <stdio.h>

#include "cli/command.h"
#include "cli/print/out.h"

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
    if (prb_process_find(list, rank->ppid))
        prb_profiler_follow(profiler, rank->ppid);
}

bool prb_run_ranks(struct prb_profiler *profiler, pid_t pid, struct prb_error *err)
{
    struct prb_process_list *list = prb_process_list(err);
    if (!list)
        return false;
    PRB_AUTO_FREE const struct prb_process **ranks = calloc(list->count + 1, sizeof *ranks);
    PRB_AUTO_FREE bool *chosen = calloc(list->count + 1, sizeof *chosen);
    size_t found = 0, added = 0;
    struct prb_error why = {0};
    if (ranks && chosen)
        found = prb_process_choose(list, pid, true, false, chosen);
    for (size_t i = 0; found && i < list->count; i++) {
        if (!chosen[i])
            continue;
        if (prb_profiler_add(profiler, list->items[i].pid, &why))
            ranks[added++] = &list->items[i];
        else
            note_left_out(&list->items[i], &why);
    }
    for (size_t i = 0; i < added; i++)
        follow_launcher(profiler, list, ranks[i]);
    prb_process_list_free(list);
    if (!ranks || !chosen)
        return prb_cli_fail(err, PRB_NOMEM, "", "ranks");
    if (!found)
        return prb_cli_fail(err, PRB_NOT_FOUND, "`probing list` shows which process is which rank",
                            "no rank of a job was found: no RANK in its environment");
    if (!added && err)
        *err = why;
    return added > 0;
}
