/*
 * The folder of crash dumps.  The default one lies in /tmp, where anybody can make any name, so it
 * must be this user's alone, and there is another name where somebody else has the first; one that
 * the user named is taken as it is.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

#include "crash/crash.h"

#define FILES_MAX 100000
#define WRITING_S 60 /* who writes a dump pauses for less */
#define JOB_GAP_S 60 /* crashes of one job, restarted or not, come faster than that */

static bool is_own(const char *path, struct prb_error *err)
{
    struct stat st;
    if (lstat(path, &st) != 0)
        return prb_fail_sys(err, errno, "%s", path);
    if (S_ISDIR(st.st_mode) && st.st_uid == geteuid() && !(st.st_mode & 077))
        return true;
    prb_fail(err, PRB_PERMISSION, "%s is not a folder that only this user can enter", path);
    return prb_error_remedy(err, "remove it, or set PROBING_CRASH_DIR to a folder of yours");
}

static bool make(const char *path, struct prb_error *err)
{
    return mkdir(path, 0700) == 0 || errno == EEXIST ||
           prb_fail_sys(err, errno, "cannot make the folder %s", path);
}

/* Of one place, by its number; what lies above it, too. */
static void name_place(size_t which, char above[64], char out[80])
{
    struct stat space;
    bool known = fstatat(AT_FDCWD, "/proc/self/ns/user", &space, 0) == 0;
    unsigned user = (unsigned)geteuid();
    if (prb_crash_places[which].of_namespace)
        snprintf(above, 64, "%s%u-%llu", prb_crash_places[which].path, user,
                 known ? (unsigned long long)space.st_ino : 0);
    else
        snprintf(above, 64, "%s%u", prb_crash_places[which].path, user);
    snprintf(out, 80, "%s/crash", above);
}

static bool default_folder(char out[PRB_CRASH_PATH_MAX], struct prb_error *err)
{
    char above[64], own[80];
    for (size_t i = 0; i < PRB_CRASH_PLACES; i++) {
        struct prb_error other, *why = i ? &other : err; /* the first error is reported */
        name_place(i, above, own);
        if (make(above, why) && is_own(above, why) && make(own, why) && is_own(own, why)) {
            snprintf(out, PRB_CRASH_PATH_MAX, "%s", own);
            return true;
        }
    }
    return false;
}

static bool is_default(const char *wanted)
{
    char above[64], own[80];
    for (size_t i = 0; i < PRB_CRASH_PLACES; i++) {
        name_place(i, above, own);
        if (strcmp(wanted, own) == 0)
            return true;
    }
    return !*wanted;
}

bool prb_crash_dump_folder(const char *wanted, char out[PRB_CRASH_PATH_MAX], struct prb_error *err)
{
    struct stat st;
    if (is_default(wanted))
        return default_folder(out, err);
    snprintf(out, PRB_CRASH_PATH_MAX, "%s", wanted);
    if (!make(out, err))
        return false;
    return (stat(out, &st) == 0 && S_ISDIR(st.st_mode)) ||
           prb_fail(err, PRB_IO, "%s is not a folder", out);
}

/* ---- the budget ---- */

struct dump {
    char name[256];
    uint64_t bytes;
    bool kept; /* removed only when no other is left */
};

struct dumps {
    struct dump *items;
    size_t count, cap;
    uint64_t bytes;
};
static void dumps_deinit(struct dumps *dumps) { free(dumps->items); }
PRB_DEFINE_AUTO(dumps, struct dumps, dumps_deinit)

/* A dump that is not finished (prb_proc_save). */
static bool is_part(const char *dot)
{
    return strncmp(dot, ".snap.", 6) == 0 && strlen(dot) == strlen(".snap.XXXXXX");
}

static bool is_dump(const char *name)
{
    const char *dot = strchr(name, '.');
    return strncmp(name, "crash-", 6) == 0 && dot &&
           (strcmp(dot, ".snap") == 0 || strcmp(dot, ".txt") == 0 || is_part(dot));
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
            (is_part(strchr(entry->d_name, '.')) && time(NULL) - st.st_mtime < WRITING_S) ||
            !PRB_GROW(dumps->items, dumps->count, dumps->cap))
            continue;
        struct dump *dump = &dumps->items[dumps->count++];
        *dump = (struct dump){.bytes = (uint64_t)st.st_size};
        strcpy(dump->name, entry->d_name);
        dumps->bytes += dump->bytes;
    }
}

/* When it was, s since the epoch, as its name says; 0: it does not. */
static time_t time_of(const char *name)
{
    struct tm parts = {0};
    const char *end = strptime(name, "crash-%Y%m%dT%H%M%SZ", &parts);
    return end ? timegm(&parts) : 0;
}

/* The first crash of a job is the cause of the others; each after a pause begins another job. */
static void keep_first(struct dumps *dumps)
{
    time_t before = 0;
    const char *first = "";
    for (size_t i = 0; i < dumps->count; i++) {
        const char *name = dumps->items[i].name;
        if (is_part(strchr(name, '.')))
            continue;
        time_t now = time_of(name);
        if (before == 0 || now - before > JOB_GAP_S)
            first = name;
        /* A dump's text goes with it. */
        dumps->items[i].kept = strncmp(name, first, strcspn(name, ".")) == 0;
        before = now;
    }
}

static void remove_one(int folder, struct dumps *dumps, struct dump *dump)
{
    /* One that somebody else removed is gone, too. */
    if (unlinkat(folder, dump->name, 0) == 0 || errno == ENOENT) {
        dumps->bytes -= dump->bytes;
        dump->bytes = 0;
    }
}

void prb_crash_sweep(const char *newest, uint64_t bytes_max)
{
    PRB_AUTO(dumps) struct dumps dumps = {0};
    char folder[PRB_CRASH_PATH_MAX];
    const char *slash = strrchr(newest, '/');
    snprintf(folder, sizeof folder, "%.*s", (int)(slash - newest), newest);
    PRB_AUTO(dir) DIR *dir = bytes_max ? opendir(folder) : NULL;
    /* Another writer is still at work, and sweeps after that; unless there is always another. */
    if (dir && flock(dirfd(dir), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        bytes_max *= 2;
    if (dir)
        collect(dir, &dumps);
    if (dumps.count)
        qsort(dumps.items, dumps.count, sizeof *dumps.items, by_name);
    keep_first(&dumps);
    for (int round = 0; round < 2; round++)
        for (size_t i = 0; i < dumps.count && dumps.bytes > bytes_max; i++)
            if (dumps.items[i].kept == (round == 1) && strcmp(dumps.items[i].name, slash + 1) != 0)
                remove_one(dirfd(dir), &dumps, &dumps.items[i]);
}
