/* probing crash list: the dumps of a folder, equal crashes together, the earliest first. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "cli/crash/crash.h"
#include "cli/print/out.h"

#define FILES_MAX 10000
#define RANKS_SHOWN 6

void prb_crash_files_deinit(struct prb_crash_files *files)
{
    for (size_t i = 0; i < files->count; i++) {
        free(files->items[i].path);
        free(files->items[i].title);
        free(files->items[i].place);
        free(files->items[i].group);
    }
    free(files->items);
}

static int by_time(const void *a, const void *b)
{
    const struct prb_crash_file *x = a, *y = b;
    if (x->time != y->time && x->time > 0 && y->time > 0)
        return x->time < y->time ? -1 : 1;
    return strcmp(strrchr(x->path, '/'), strrchr(y->path, '/'));
}

static bool has_ending(const char *name, const char *ending)
{
    size_t n = strlen(name), m = strlen(ending);
    return n > m && strcmp(name + n - m, ending) == 0;
}

/* A text report whose dump exists is not a crash of its own. */
static bool is_wanted(int folder, const char *name)
{
    char dump[NAME_MAX + 8];
    if (strncmp(name, "crash-", 6) != 0)
        return false;
    if (has_ending(name, ".snap"))
        return true;
    if (!has_ending(name, ".txt"))
        return false;
    snprintf(dump, sizeof dump, "%.*s.snap", (int)(strlen(name) - 4), name);
    return faccessat(folder, dump, F_OK, 0) != 0;
}

static bool grow(struct prb_crash_files *files)
{
    if (files->count < files->cap)
        return true;
    size_t cap = files->cap ? 2 * files->cap : 16;
    struct prb_crash_file *grown = reallocarray(files->items, cap, sizeof *grown);
    if (!grown)
        return false;
    files->items = grown;
    files->cap = cap;
    return true;
}

static bool keep(char **out, const char *text) { return !text || (*out = strdup(text)); }

/* A folder holds thousands: each is closed at once.  False: out of memory. */
static bool read_account(struct prb_crash_file *file)
{
    PRB_AUTO(prb_target) struct prb_target *target = prb_target_open(file->path, NULL, NULL);
    const struct prb_crash *crash = target ? prb_target_crash(target) : NULL;
    file->opened = target != NULL;
    if (!crash)
        return true;
    file->crashed = true;
    file->time = crash->time;
    file->pid = crash->pid;
    file->rank = crash->rank;
    return keep(&file->title, crash->title) && keep(&file->place, crash->place) &&
           keep(&file->group, crash->group);
}

bool prb_crash_files_read(const char *folder, struct prb_crash_files *out, struct prb_error *err)
{
    PRB_AUTO(dir) DIR *dir = opendir(folder);
    if (!dir)
        return prb_cli_fail(err, errno == ENOENT ? PRB_NOT_FOUND : PRB_IO,
                            errno == ENOTDIR ? "`probing crash show FILE` shows one dump"
                                             : "PROBING_CRASH_DIR, or an argument, names another "
                                               "folder",
                            "no crash dumps: %s: %s", folder, strerror(errno));
    for (struct dirent *entry; out->count < FILES_MAX && (entry = readdir(dir));) {
        struct stat st;
        if (!is_wanted(dirfd(dir), entry->d_name) ||
            fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
            !S_ISREG(st.st_mode))
            continue;
        if (!grow(out))
            return prb_cli_fail(err, PRB_NOMEM, "", "out of memory");
        struct prb_crash_file *file = &out->items[out->count];
        *file = (struct prb_crash_file){.bytes = (uint64_t)st.st_size, .rank = -1};
        if (asprintf(&file->path, "%s/%s", folder, entry->d_name) < 0)
            return prb_cli_fail(err, PRB_NOMEM, "", "out of memory");
        out->count++;
        if (has_ending(entry->d_name, ".snap") && !read_account(file))
            return prb_cli_fail(err, PRB_NOMEM, "", "out of memory");
    }
    if (out->count)
        qsort(out->items, out->count, sizeof *out->items, by_time);
    return true;
}

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
    const char *slash = strrchr(file->path, '/');
    return prb_grid_adds(grid, when) &&
           prb_grid_addf(grid, "%zu", all ? (size_t)1 : count_equal(files, i)) &&
           prb_grid_adds(grid, ranks) &&
           (file->crashed ? prb_grid_addf(grid, "%d", (int)file->pid) : prb_grid_adds(grid, "")) &&
           prb_grid_adds(grid, file->crashed                    ? file->title
                               : file->opened                   ? "(a snapshot of no crash)"
                               : has_ending(file->path, ".txt") ? "(a text only)"
                                                                : "(it cannot be read)") &&
           prb_grid_adds(grid, file->place) && prb_grid_add(grid, bytes, strlen(bytes), true) &&
           prb_grid_adds(grid, slash + 1);
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
