/*
 * The folder of crash dumps.  The default one lies in /tmp, where anybody can make any name, so it
 * must be this user's alone; one that the user named is taken as it is.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "crash/crash.h"

#define FILES_MAX 100000

static bool is_own(const char *path, struct prb_error *err)
{
    struct stat st;
    if (lstat(path, &st) != 0)
        return prb_fail_sys(err, errno, "%s", path);
    if (S_ISDIR(st.st_mode) && st.st_uid == geteuid() && !(st.st_mode & 077))
        return true;
    prb_fail(err, PRB_PERMISSION, "%s is no folder of this user alone", path);
    return prb_error_remedy(err, "remove it, or set PROBING_CRASH_DIR to a folder of yours");
}

static bool make(const char *path, struct prb_error *err)
{
    return mkdir(path, 0700) == 0 || errno == EEXIST ||
           prb_fail_sys(err, errno, "cannot make the folder %s", path);
}

bool prb_crash_dump_folder(const char *wanted, char out[PRB_CRASH_PATH_MAX], struct prb_error *err)
{
    struct stat st;
    char above[64], own[80];
    snprintf(above, sizeof above, "/tmp/probing-%u", (unsigned)geteuid());
    snprintf(own, sizeof own, "%s/crash", above);
    if (*wanted && strcmp(wanted, own) != 0) {
        snprintf(out, PRB_CRASH_PATH_MAX, "%s", wanted);
        if (!make(out, err))
            return false;
        return (stat(out, &st) == 0 && S_ISDIR(st.st_mode)) ||
               prb_fail(err, PRB_IO, "%s is no folder", out);
    }
    snprintf(out, PRB_CRASH_PATH_MAX, "%s", own);
    return make(above, err) && is_own(above, err) && make(own, err) && is_own(own, err);
}

/* ---- the budget ---- */

struct dump {
    char name[256];
    uint64_t bytes;
};

struct dumps {
    struct dump *items;
    size_t count, cap;
    uint64_t bytes;
};
static void dumps_deinit(struct dumps *dumps) { free(dumps->items); }
PRB_DEFINE_AUTO(dumps, struct dumps, dumps_deinit)

/* The last one: a dump that was not finished (prb_proc_save). */
static bool is_dump(const char *name)
{
    const char *dot = strchr(name, '.');
    return strncmp(name, "crash-", 6) == 0 && dot &&
           (strcmp(dot, ".snap") == 0 || strcmp(dot, ".txt") == 0 ||
            (strncmp(dot, ".snap.", 6) == 0 && strlen(dot) == strlen(".snap.XXXXXX")));
}

/* The names begin with the time. */
static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct dump *)a)->name, ((const struct dump *)b)->name);
}

static void collect(DIR *dir, struct dumps *dumps)
{
    for (struct dirent *entry; dumps->count < FILES_MAX && (entry = readdir(dir));) {
        struct stat st;
        if (!is_dump(entry->d_name) || strlen(entry->d_name) >= sizeof dumps->items->name ||
            fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
            !S_ISREG(st.st_mode) || st.st_uid != geteuid() ||
            !PRB_GROW(dumps->items, dumps->count, dumps->cap))
            continue;
        struct dump *dump = &dumps->items[dumps->count++];
        strcpy(dump->name, entry->d_name);
        dump->bytes = (uint64_t)st.st_size;
        dumps->bytes += dump->bytes;
    }
}

void prb_crash_sweep(const char *newest, uint64_t bytes_max)
{
    PRB_AUTO(dumps) struct dumps dumps = {0};
    char folder[PRB_CRASH_PATH_MAX];
    const char *slash = strrchr(newest, '/');
    snprintf(folder, sizeof folder, "%.*s", (int)(slash - newest), newest);
    PRB_AUTO(dir) DIR *dir = bytes_max ? opendir(folder) : NULL;
    if (dir)
        collect(dir, &dumps);
    if (dumps.count)
        qsort(dumps.items, dumps.count, sizeof *dumps.items, by_name);
    for (size_t i = 0; i < dumps.count && dumps.bytes > bytes_max; i++)
        if (strcmp(dumps.items[i].name, slash + 1) != 0 &&
            unlinkat(dirfd(dir), dumps.items[i].name, 0) == 0)
            dumps.bytes -= dumps.items[i].bytes;
}
