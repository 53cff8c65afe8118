/*
 * A folder of crash dumps.  Others may write there: a name is opened once, by the folder's descriptor
 * and without following a link, and must be a regular file; the target is opened by that descriptor.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "probing.h"

#define NAMES_MAX 20000 /* of a folder; more are not looked at */

PRB_DEFINE_AUTO_PTR(prb_target, struct prb_target, prb_target_close)

void prb_crash_files_free(struct prb_crash_files *files)
{
    for (size_t i = 0; i < files->count; i++) {
        free(files->items[i].name);
        free(files->items[i].kind);
        free(files->items[i].title);
        free(files->items[i].place);
        free(files->items[i].group);
    }
    free(files->items);
    *files = (struct prb_crash_files){0};
}

static bool has_ending(const char *name, const char *ending)
{
    size_t n = strlen(name), m = strlen(ending);
    return n > m && strcmp(name + n - m, ending) == 0;
}

/* A text report whose dump exists is not a crash of its own. */
static bool is_wanted(int folder, const char *name, bool *text)
{
    char dump[NAME_MAX + 8];
    if (strncmp(name, "crash-", 6) != 0)
        return false;
    *text = has_ending(name, ".txt");
    if (!*text)
        return has_ending(name, ".snap");
    snprintf(dump, sizeof dump, "%.*s.snap", (int)(strlen(name) - 4), name);
    return faccessat(folder, dump, F_OK, 0) != 0;
}

static int newest_first(const void *a, const void *b)
{
    const struct prb_crash_file *x = a, *y = b;
    return x->written != y->written ? (x->written < y->written ? 1 : -1) : strcmp(x->name, y->name);
}

static int earliest_first(const void *a, const void *b)
{
    const struct prb_crash_file *x = a, *y = b;
    if (x->time != y->time && x->time > 0 && y->time > 0)
        return x->time < y->time ? -1 : 1;
    return strcmp(x->name, y->name);
}

/* False: out of memory. */
static bool add(struct prb_crash_files *files, size_t *cap, const char *name, bool text,
                const struct stat *info)
{
    if (!PRB_GROW(files->items, files->count, *cap))
        return false;
    files->items[files->count] = (struct prb_crash_file){
        .name = strdup(name),
        .text = text,
        .bytes = (uint64_t)info->st_size,
        .written = (double)info->st_mtim.tv_sec + (double)info->st_mtim.tv_nsec * 1e-9,
        .rank = -1};
    return files->items[files->count++].name != NULL;
}

static bool keep(char **out, const char *text) { return !text || (*out = strdup(text)); }

/* What a dump says; each is closed at once.  False: out of memory. */
static bool read_account(int folder, struct prb_crash_file *file)
{
    char path[40];
    struct stat info;
    PRB_AUTO_FD int fd =
        openat(folder, file->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
    if (fd < 0 || fstat(fd, &info) != 0 || !S_ISREG(info.st_mode))
        return true;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    PRB_AUTO(prb_target) struct prb_target *target = prb_target_open(path, NULL, NULL);
    const struct prb_crash *crash = target ? prb_target_crash(target) : NULL;
    file->opened = target != NULL;
    if (!crash)
        return true;
    file->crashed = true;
    file->time = crash->time;
    file->pid = crash->pid;
    file->rank = crash->rank;
    return keep(&file->kind, crash->kind) && keep(&file->title, crash->title) &&
           keep(&file->place, crash->place) && keep(&file->group, crash->group);
}

static bool read_names(DIR *dir, struct prb_crash_files *out, struct prb_error *err)
{
    size_t cap = 0;
    for (struct dirent *entry; out->count < NAMES_MAX && (entry = readdir(dir));) {
        struct stat info;
        bool text;
        if (is_wanted(dirfd(dir), entry->d_name, &text) &&
            fstatat(dirfd(dir), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISREG(info.st_mode) && !add(out, &cap, entry->d_name, text, &info))
            return prb_nomem(err);
    }
    return true;
}

/* The newest stay. */
static void leave_out(struct prb_crash_files *files, size_t most)
{
    if (files->count > 1)
        qsort(files->items, files->count, sizeof *files->items, newest_first);
    while (files->count > most) {
        free(files->items[--files->count].name);
        files->left_out++;
    }
}

bool prb_crash_files_read(const char *folder, size_t most, bool (*go_on)(void *context),
                          void *context, struct prb_crash_files *out, struct prb_error *err)
{
    *out = (struct prb_crash_files){0};
    PRB_AUTO(dir) DIR *dir = opendir(folder);
    if (!dir)
        return prb_fail_sys(err, errno, "reading the crash dumps in %s", folder);
    if (!read_names(dir, out, err))
        return false;
    leave_out(out, most);
    for (size_t i = 0; i < out->count; i++) {
        if (go_on && !go_on(context)) {
            leave_out(out, i);
            break;
        }
        if (!out->items[i].text && !read_account(dirfd(dir), out->items + i))
            return prb_nomem(err);
    }
    if (out->count > 1)
        qsort(out->items, out->count, sizeof *out->items, earliest_first);
    return true;
}
