/* What commands and skills say of a verdict alike: hang.h. */
#include <string.h>

#include "fleet/hang.h"

void prb_hang_since_text(const struct prb_hang *hang, char *out, size_t size)
{
    const char *least = hang->since_exact ? "" : "at least ";
    double s = hang->since;
    long whole = (long)s;
    if (s >= 3600)
        snprintf(out, size, "hung for %s%ld h %ld min", least, whole / 3600, whole % 3600 / 60);
    else if (s >= 60)
        snprintf(out, size, "hung for %s%ld min %ld s", least, whole / 60, whole % 60);
    else
        snprintf(out, size, "hung for %s%.1f s", least, s);
}

/* A process id says nothing where there are several hosts. */
static bool several_hosts(const struct prb_hang *hang)
{
    for (size_t i = 1; i < hang->count; i++)
        if (strcmp(hang->ranks[i].host, hang->ranks[0].host) != 0)
            return true;
    return false;
}

void prb_hang_next(const struct prb_hang *hang, const struct prb_hang_part *part, const char *job,
                   char *out, size_t size)
{
    PRB_AUTO_FREE char *ranks = prb_rank_set_text(&part->ranks);
    const struct prb_hang_rank *rank = part->example;
    char target[200];
    if (job)
        snprintf(target, sizeof target, "-t %.150s:%.40s", job, ranks ? ranks : "");
    else
        snprintf(target, sizeof target, "%d", (int)rank->pid);
    if (part->kind == PRB_HANG_STOPPED && several_hosts(hang))
        snprintf(out, size, "on %.80s: kill -CONT %d", rank->host, (int)rank->pid);
    else if (part->kind == PRB_HANG_STOPPED)
        snprintf(out, size, "kill -CONT %d", (int)rank->pid);
    else if (part->kind == PRB_HANG_GONE)
        snprintf(out, size, "probing %s%scrash list", job ? target : "", job ? " " : "");
    else if (rank->rank < 0 && part->kind == PRB_HANG_COLLECTIVE)
        snprintf(out, size, "probing -t @ hang");
    else
        snprintf(out, size, "probing %s backtrace --native%s", target,
                 prb_rank_set_size(&part->ranks) <= 1 ? " --locals" : "");
}
