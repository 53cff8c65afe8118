/*
 * The process that a part of a command line means.  A job has its name several times: a launcher, its
 * ranks, their workers.  Of these the natural one is taken, and said; of processes that do not belong
 * together none is.
 */
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "inspect/target.h"

#define SHOWN 5        /* rows in a message */
#define ROW_MAX 60     /* bytes of a command there */
#define DEPTH_MAX 64   /* of processes below one */
#define FOLDERS_MAX 32 /* bytes of a script's path that is shown whole */

PRB_DEFINE_AUTO_PTR(prb_process_list, struct prb_process_list, prb_process_list_free)

/* The processes that have the part, ascending pids. */
struct matches {
    const struct prb_process_list *list;
    const struct prb_process **items;
    size_t count;
};

static bool is_match(const struct prb_process *process, const char *part)
{
    return strstr(process->command, part) != NULL && process->pid != getppid();
}

const struct prb_process *prb_process_find(const struct prb_process_list *list, pid_t pid)
{
    size_t low = 0, high = list->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (list->items[middle].pid == pid)
            return &list->items[middle];
        if (list->items[middle].pid < pid)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

static bool is_among(const struct matches *matches, const struct prb_process *one)
{
    for (size_t i = 0; i < matches->count; i++)
        if (matches->items[i] == one)
            return true;
    return false;
}

/* The outermost match that one descends from, through Pythons of any name; or one itself. */
static const struct prb_process *root_of(const struct matches *matches,
                                         const struct prb_process *one)
{
    const struct prb_process *root = one;
    for (int depth = 0; depth < DEPTH_MAX; depth++) {
        one = prb_process_find(matches->list, one->ppid);
        if (!one)
            break;
        if (is_among(matches, one))
            root = one;
    }
    return root;
}

/* Of one job: the lowest rank.  NULL: no match has a rank. */
static const struct prb_process *first_rank(const struct matches *matches, size_t *ranks_out)
{
    const struct prb_process *first = NULL;
    *ranks_out = 0;
    for (size_t i = 0; i < matches->count; i++) {
        const struct prb_process *one = matches->items[i];
        const struct prb_process *above = prb_process_find(matches->list, one->ppid);
        if (one->rank < 0 || (above && above->rank == one->rank && is_among(matches, above)))
            continue; /* workers of a rank have its number, too */
        ++*ranks_out;
        if (!first || one->rank < first->rank)
            first = one;
    }
    return first;
}

/* Whether two matches are parts of one job: below one match, or ranks that one process started. */
static bool is_same_job(const struct matches *matches, const struct prb_process *one,
                        const struct prb_process *other)
{
    const struct prb_process *a = root_of(matches, one), *b = root_of(matches, other);
    return a == b || (a->rank >= 0 && b->rank >= 0 && a->rank != b->rank && a->ppid == b->ppid &&
                      a->world_size == b->world_size);
}

static const struct prb_process *natural(const struct matches *matches, char note[PRB_NOTE_MAX])
{
    for (size_t i = 1; i < matches->count; i++)
        if (!is_same_job(matches, matches->items[0], matches->items[i]))
            return NULL;
    const struct prb_process *root = root_of(matches, matches->items[0]);
    size_t ranks;
    const struct prb_process *rank = first_rank(matches, &ranks);
    /* A launcher waits for its ranks: one of them is meant. */
    const struct prb_process *one = rank && (root->rank < 0 || ranks > 1) ? rank : root;
    if (matches->count == 1)
        return one;
    if (rank)
        snprintf(note, PRB_NOTE_MAX, "%zu processes of one job match: rank %d of %zu, process %d",
                 matches->count, one->rank, ranks, (int)one->pid);
    else
        snprintf(note, PRB_NOTE_MAX,
                 "%zu processes match: process %d is taken, the others descend from it",
                 matches->count, (int)one->pid);
    return one;
}

/* Where the name in a path of so many bytes begins. */
static size_t base_of(const char *path, size_t len)
{
    while (len && path[len - 1] != '/')
        len--;
    return len;
}

/* Append so many bytes of text to out, at most room in all, whole characters only; false: cut. */
static bool append(char *out, size_t room, const char *text, size_t len)
{
    size_t used = strlen(out), fits = len < room - used ? len : room - used;
    while (fits < len && fits && ((unsigned char)text[fits] & 0xc0) == 0x80)
        fits--;
    memcpy(out + used, text, fits);
    out[used + fits] = '\0';
    return fits == len;
}

void prb_process_short_command(const struct prb_process *process, size_t most, char *out,
                               size_t size)
{
    static const char ellipsis[] = "…";
    const char *at = process->command ? process->command : process->name;
    at = at ? at : "";
    size_t room = size - sizeof ellipsis < most ? size - sizeof ellipsis : most;
    size_t len = strcspn(at, " "), base = base_of(at, len);
    out[0] = '\0';
    bool whole = append(out, room, at + base, len - base);
    at += len;
    /* The script: the first argument that is no option. */
    while (whole && *at) {
        size_t space = strspn(at, " ");
        whole = append(out, room, at, space);
        at += space;
        len = strcspn(at, " ");
        base = *at == '-' ? 0 : base_of(at, len);
        bool option = *at == '-', far = len > FOLDERS_MAX && base;
        if (far)
            whole = whole && append(out, room, "…/", strlen("…/"));
        whole = whole && append(out, room, at + (far ? base : 0), len - (far ? base : 0));
        at += len;
        if (!option)
            break;
    }
    if (!whole || !append(out, room, at, strlen(at)))
        strcat(out, ellipsis);
}

/* The outermost processes are what one chooses among. */
static void too_many(const struct matches *matches, const char *part, struct prb_error *err)
{
    char rows[sizeof err->remedy - 40] = "", command[ROW_MAX + 8], rank[24];
    size_t used = 0, shown = 0;
    bool cut = false;
    for (size_t i = 0; i < matches->count; i++) {
        const struct prb_process *one = matches->items[i];
        if (root_of(matches, one) != one)
            continue;
        prb_process_short_command(one, ROW_MAX, command, sizeof command);
        snprintf(rank, sizeof rank, one->rank < 0 ? "" : "rank %d  ", one->rank);
        size_t len = strlen(command) + strlen(rank) + 24;
        cut = cut || shown++ == SHOWN || used + len > sizeof rows;
        if (!cut)
            used += (size_t)sprintf(rows + used, "\n  %d  %s%s", (int)one->pid, rank, command);
    }
    prb_fail(err, PRB_USAGE, "%zu Python processes have \"%.80s\" in their command line",
             matches->count, part);
    prb_error_remedy(err, "give one pid:%s%s", rows, cut ? "\n  …" : "");
}

pid_t prb_process_by_name(const char *part, char note[PRB_NOTE_MAX], struct prb_error *err)
{
    note[0] = '\0';
    PRB_AUTO(prb_process_list) struct prb_process_list *list = prb_process_list(err);
    if (!list)
        return 0;
    PRB_AUTO_FREE const struct prb_process **items = calloc(list->count + 1, sizeof *items);
    if (!items) {
        prb_nomem(err);
        return 0;
    }
    struct matches matches = {.list = list, .items = items};
    for (size_t i = 0; i < list->count; i++)
        if (is_match(&list->items[i], part))
            items[matches.count++] = &list->items[i];
    if (matches.count == 0) {
        prb_fail(err, PRB_NOT_FOUND, "no Python process has \"%.80s\" in its command line", part);
        prb_error_remedy(err, "`probing list` shows the Python processes of this machine");
        return 0;
    }
    const struct prb_process *one = natural(&matches, note);
    if (!one)
        too_many(&matches, part, err);
    return one ? one->pid : 0;
}
