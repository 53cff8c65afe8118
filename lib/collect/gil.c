/*
 * Who holds the GIL of the processes that wish to know it (probing.gil): looks from outside between
 * two turns.  Of others nothing is opened, and nobody wakes for them.
 */
#include <stdlib.h>

#include "collect/parts.h"
#include "inspect/gil_watch.h"

#define AGAIN 10.0 /* s: until one that had no GIL to look at is tried again */

struct prb_collect_gil {
    struct prb_target *target; /* NULL: it has none */
    struct prb_gil_watch *watch;
    struct prb_gil_shares shares; /* since the last sample */
    double opened;                /* s, monotonic */
};

static void stop(struct prb_collect_gil *gil)
{
    prb_gil_shares_deinit(&gil->shares);
    prb_gil_watch_free(gil->watch);
    gil->watch = NULL;
    prb_target_close(gil->target);
    gil->target = NULL;
}

void prb_collect_gil_free(struct prb_collect_gil *gil)
{
    if (gil)
        stop(gil);
    free(gil);
}

static void start(struct prb_collect_gil *gil, pid_t pid, double time)
{
    struct prb_proc *proc = prb_proc_open(pid, NULL);
    gil->opened = time;
    gil->target = proc ? prb_target_over(proc, false, NULL) : NULL;
    gil->watch = gil->target ? prb_gil_watch_new(gil->target, NULL) : NULL;
    if (!gil->watch)
        stop(gil);
}

bool prb_collect_gil_look(const struct prb_collection *collection)
{
    bool any = false;
    for (size_t i = 0; i < collection->count; i++) {
        const struct prb_collected *process = &collection->items[i];
        if (process->ended || !process->gil || !process->gil->watch)
            continue;
        prb_gil_watch_look(process->gil->watch);
        any = true;
    }
    return any;
}

/* The process may have ended, or run another program. */
static bool take(struct prb_collect_gil *gil)
{
    prb_gil_shares_deinit(&gil->shares);
    return prb_proc_check(gil->target->proc, NULL) &&
           prb_gil_watch_take(gil->watch, &gil->shares, NULL);
}

void prb_collect_gil(struct prb_collected *process, double time)
{
    struct prb_collect_gil *gil = process->gil;
    if (!process->wants_gil || (!gil && !(gil = process->gil = calloc(1, sizeof *gil))))
        return;
    if (gil->watch && !take(gil))
        stop(gil);
    else if (!gil->watch && (gil->opened <= 0 || time >= gil->opened + AGAIN))
        start(gil, process->pid, time);
}

double prb_collect_gil_share(const struct prb_collected *process, pid_t tid)
{
    return process->gil ? prb_gil_share_of(&process->gil->shares, tid) : -1;
}
