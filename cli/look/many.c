/* The processes of --ranks and --subprocesses, opened one by one before any is read, so that their
 * moments lie close together. */
#include "cli/look/many.h"

#include <stdio.h>

#include "cli/print/out.h"

PRB_DEFINE_AUTO_PTR(prb_process_list, struct prb_process_list, prb_process_list_free)

void prb_many_free(struct prb_many *many)
{
    for (size_t i = 0; many && i < many->count; i++)
        prb_target_close(many->items[i].target);
    if (many)
        free(many->items);
    free(many);
}

void prb_many_left_out(const struct prb_one *one, const struct prb_error *why)
{
    char text[sizeof why->text + 80], rank[32] = "";
    if (one->rank >= 0)
        snprintf(rank, sizeof rank, "rank %d, ", one->rank);
    snprintf(text, sizeof text, "%sprocess %d is left out: %s", rank, (int)one->pid, why->text);
    prb_out_note(text);
}

static int by_rank(const void *a, const void *b)
{
    const struct prb_one *x = a, *y = b;
    unsigned rank = (unsigned)x->rank, other = (unsigned)y->rank; /* none comes last */
    if (rank != other)
        return rank > other ? 1 : -1;
    return (x->pid > y->pid) - (x->pid < y->pid);
}

static void open_all(struct prb_many *many, struct prb_error *why)
{
    size_t opened = 0;
    for (size_t i = 0; i < many->count; i++) {
        struct prb_one one = many->items[i];
        one.target = prb_target_open_pid(one.pid, why);
        if (one.target)
            many->items[opened++] = one;
        else
            prb_many_left_out(&one, why);
    }
    many->count = opened;
}

static bool none_found(bool ranks, pid_t pid, struct prb_error *err)
{
    if (ranks)
        return prb_cli_fail(err, PRB_NOT_FOUND, "`probing list` shows which process is which rank",
                            "no rank of a job was found: no RANK in its environment");
    return prb_cli_fail(err, PRB_NOT_FOUND, "`probing list --tree` shows the Python processes",
                        "process %d and those that it started are not Python", (int)pid);
}

struct prb_many *prb_many_open(const struct prb_run *run, bool ranks, bool subprocesses,
                               struct prb_error *err)
{
    pid_t pid = 0;
    const char *socket = NULL;
    if ((prb_run_has_target(run) || !ranks) &&
        !prb_run_process_or_job(run, ranks, &pid, &socket, err))
        return NULL;
    if (socket) {
        prb_usage(run, err, "--ranks and --subprocesses go with a process id");
        return NULL;
    }
    PRB_AUTO(prb_process_list) struct prb_process_list *list = prb_process_list(err);
    PRB_AUTO(prb_many) struct prb_many *many = calloc(1, sizeof *many);
    PRB_AUTO_FREE bool *chosen = list ? calloc(list->count + 1, sizeof *chosen) : NULL;
    if (!list)
        return NULL;
    if (many && chosen)
        many->items = calloc(list->count + 1, sizeof *many->items);
    if (!many || !many->items) {
        prb_cli_fail(err, PRB_NOMEM, "", "out of memory");
        return NULL;
    }
    if (!prb_process_choose(list, pid, ranks, subprocesses, chosen)) {
        none_found(ranks, pid, err);
        return NULL;
    }
    for (size_t i = 0; i < list->count; i++)
        if (chosen[i])
            many->items[many->count++] =
                (struct prb_one){.pid = list->items[i].pid, .rank = list->items[i].rank};
    qsort(many->items, many->count, sizeof *many->items, by_rank);
    struct prb_error why = {0};
    open_all(many, &why);
    if (many->count)
        return PRB_STEAL(many);
    *err = why;
    return NULL;
}

struct prb_db *prb_many_db(const struct prb_many *many, struct prb_error *err)
{
    PRB_AUTO_FREE struct prb_db_process *all = calloc(many->count + 1, sizeof *all);
    if (!all) {
        prb_cli_fail(err, PRB_NOMEM, "", "out of memory");
        return NULL;
    }
    for (size_t i = 0; i < many->count; i++)
        all[i] =
            (struct prb_db_process){many->items[i].target, many->items[i].pid, many->items[i].rank};
    return prb_db_open_processes(all, many->count, err);
}
