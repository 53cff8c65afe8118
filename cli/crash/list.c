/* probing crash list: the dumps of a folder, equal crashes together, the earliest first. */
#include <string.h>
#include <time.h>

#include "cli/crash/crash.h"
#include "cli/print/out.h"

#define RANKS_SHOWN 6

/* ---- the table ---- */

static bool equal(const struct prb_crash_file *a, const struct prb_crash_file *b)
{
    return a->group && b->group && strcmp(a->group, b->group) == 0;
}

/* "0 3 5 …": of the group that begins at first; "" when none has a rank. */
static void ranks_text(const struct prb_crash_files *files, size_t first, bool all, char *out,
                       size_t cap)
{
    size_t used = 0, shown = 0;
    out[0] = '\0';
    for (size_t i = first; i < files->count && used < cap; i++) {
        const struct prb_crash_file *file = &files->items[i];
        if (i != first && (all || !equal(file, &files->items[first])))
            continue;
        if (file->rank < 0)
            continue;
        if (shown++ == RANKS_SHOWN) {
            snprintf(out + used, cap - used, " …");
            return;
        }
        used += (size_t)snprintf(out + used, cap - used, "%s%d", shown > 1 ? " " : "", file->rank);
    }
}

static size_t count_equal(const struct prb_crash_files *files, size_t first)
{
    size_t count = 1;
    for (size_t i = first + 1; i < files->count; i++)
        count += equal(&files->items[i], &files->items[first]);
    return count;
}

static bool was_listed(const struct prb_crash_files *files, size_t index)
{
    for (size_t i = 0; i < index; i++)
        if (equal(&files->items[i], &files->items[index]))
            return true;
    return false;
}

static bool add_row(struct prb_grid *grid, const struct prb_crash_files *files, size_t i, bool all)
{
    const struct prb_crash_file *file = &files->items[i];
    char when[32] = "", ranks[80], bytes[16];
    time_t seconds = (time_t)file->time;
    struct tm parts;
    if (seconds && localtime_r(&seconds, &parts))
        strftime(when, sizeof when, "%Y-%m-%d %H:%M:%S", &parts);
    ranks_text(files, i, all, ranks, sizeof ranks);
    prb_out_bytes(bytes, sizeof bytes, (double)file->bytes);
    return prb_grid_adds(grid, when) &&
           prb_grid_addf(grid, "%zu", all ? (size_t)1 : count_equal(files, i)) &&
           prb_grid_adds(grid, ranks) &&
           (file->crashed ? prb_grid_addf(grid, "%d", (int)file->pid) : prb_grid_adds(grid, "")) &&
           prb_grid_adds(grid, file->crashed  ? file->title
                               : file->opened ? "(a snapshot of no crash)"
                               : file->text   ? "(a text only)"
                                              : "(it cannot be read)") &&
           prb_grid_adds(grid, file->place) && prb_grid_add(grid, bytes, strlen(bytes), true) &&
           prb_grid_adds(grid, file->name);
}

bool prb_crash_list(const struct prb_crash_files *files, bool all, struct prb_error *err)
{
    static const char *const names[] = {"FIRST", "COUNT", "RANKS", "PID",
                                        "WHAT",  "WHERE", "SIZE",  "FILE"};
    PRB_AUTO(prb_grid) struct prb_grid *grid = prb_grid_new(names, sizeof names / sizeof *names);
    for (size_t i = 0; grid && i < files->count; i++)
        if ((all || !was_listed(files, i)) && !add_row(grid, files, i, all))
            return prb_cli_fail(err, PRB_NOMEM, "", "out of memory");
    if (!grid)
        return prb_cli_fail(err, PRB_NOMEM, "", "out of memory");
    prb_grid_print(grid, stdout, prb_out_columns(), prb_out_is_colored());
    return true;
}
