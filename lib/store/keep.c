/* See keep.h.  One file is open at a time: a machine may have more than a process may open. */
#include "store/keep.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "store/file_parts.h"

#define FILES_MAX 10000
#define TURNS_MAX 100000
#define DAY 86400.0

struct kept {
    char *path;
    uint64_t bytes;
    double oldest; /* s since the epoch: the end of its oldest chunk; INFINITY: it has none */
    double written;
};

struct folder {
    struct kept *items;
    size_t count, cap;
    const struct kept *opened; /* whose file is open; NULL: none's */
    struct prb_store_file *file;
};

static void folder_deinit(struct folder *folder)
{
    prb_store_close(folder->file);
    for (size_t i = 0; i < folder->count; i++)
        free(folder->items[i].path);
    free(folder->items);
}
PRB_DEFINE_AUTO(folder, struct folder, folder_deinit)

static void close_file(struct folder *folder)
{
    prb_store_close(folder->file); /* takes the files beside it away */
    folder->file = NULL;
    folder->opened = NULL;
}

/* Its file, open until another one's is.  NULL: it is none of the store, and is left alone. */
static struct prb_store_file *open_file(struct folder *folder, const struct kept *kept)
{
    if (folder->opened != kept) {
        close_file(folder);
        folder->file = prb_store_open(kept->path, true, NULL);
        folder->opened = kept;
    }
    return folder->file;
}

static void measure(struct kept *kept, struct prb_store_file *file)
{
    struct stat st;
    if (stat(kept->path, &st) == 0) {
        kept->bytes = (uint64_t)st.st_size;
        kept->written = (double)st.st_mtime;
    }
    kept->oldest = prb_store_oldest(file);
}

static bool is_stopped(const struct prb_store_limits *limits)
{
    return limits->stopped && limits->stopped(limits->context);
}

static bool list(const char *path, struct folder *folder, struct prb_error *err)
{
    PRB_AUTO(dir) DIR *dir = opendir(path);
    size_t suffix = strlen(PRB_STORE_SUFFIX);
    if (!dir)
        return prb_fail_sys(err, errno, "%s", path);
    for (struct dirent *entry; folder->count < FILES_MAX && (entry = readdir(dir));) {
        PRB_AUTO_FREE char *file = NULL;
        size_t len = strlen(entry->d_name);
        struct stat st;
        if (len <= suffix || strcmp(entry->d_name + len - suffix, PRB_STORE_SUFFIX) != 0)
            continue;
        if (asprintf(&file, "%s/%s", path, entry->d_name) < 0)
            return prb_nomem(err);
        if (lstat(file, &st) != 0 || !S_ISREG(st.st_mode))
            continue;
        if (!PRB_GROW(folder->items, folder->count, folder->cap))
            return prb_nomem(err);
        folder->items[folder->count++] = (struct kept){.path = PRB_STEAL(file), .oldest = INFINITY};
    }
    return true;
}

/* What the file's job wishes, else what holds for all. */
static double wish(const struct prb_store_file *file, enum prb_store_wish which, double otherwise)
{
    double wished = prb_store_wish(file, which);
    return wished >= 0 ? wished : otherwise;
}

static bool expire(struct kept *kept, struct prb_store_file *file,
                   const struct prb_store_limits *limits, double now, struct prb_error *err)
{
    double age = wish(file, PRB_STORE_WISH_SECONDS, limits->seconds), before = now - age;
    if (age <= 0 || kept->oldest >= before)
        return true;
    bool good = prb_store_remove(file, before, 0, err);
    measure(kept, file);
    return good;
}

static bool thin(struct kept *kept, struct prb_store_file *file,
                 const struct prb_store_limits *limits, double now, struct prb_error *err)
{
    struct prb_thinned thinned;
    const struct prb_store_ages ages = {
        .join = limits->ages.join,
        .raw = wish(file, PRB_STORE_WISH_RAW, limits->ages.raw),
        .minutes = wish(file, PRB_STORE_WISH_MINUTES, limits->ages.minutes),
    };
    bool good = prb_store_thin(file, limits->rules, limits->rule_count, &ages, now, &thinned, err);
    if (thinned.chunks) {
        good = prb_store_vacuum(file, err) && good;
        measure(kept, file);
    }
    return good;
}

/* So many chunks at once, few at first: no more are to go than have to. */
static int at_once(int turn) { return 1 << (turn < 5 ? turn : 5); }

/* A file that its job wishes smaller than the others. */
static bool shrink_own(struct kept *kept, struct prb_store_file *file, struct prb_error *err)
{
    double most = wish(file, PRB_STORE_WISH_MEMORY, 0);
    for (int turn = 0; turn < TURNS_MAX && most > 0; turn++) {
        if ((double)kept->bytes <= most || !isfinite(kept->oldest))
            return true;
        if (!prb_store_remove(file, INFINITY, at_once(turn), err))
            return false;
        measure(kept, file);
    }
    return true;
}

/* Each file by itself.  One that cannot be written, as of a full disk, keeps others from nothing. */
static bool keep_each(struct folder *folder, const struct prb_store_limits *limits, double now,
                      struct prb_error *err)
{
    bool good = true;
    for (size_t i = 0; i < folder->count && !is_stopped(limits); i++) {
        struct kept *kept = &folder->items[i];
        struct prb_store_file *file = open_file(folder, kept);
        if (!file)
            continue;
        measure(kept, file);
        good = expire(kept, file, limits, now, err) && good;
        good = thin(kept, file, limits, now, err) && good;
        good = shrink_own(kept, file, err) && good;
    }
    return good;
}

/* The oldest chunks first, whichever file has them. */
static bool shrink(struct folder *folder, uint64_t most, struct prb_error *err)
{
    for (int turn = 0; most && turn < TURNS_MAX; turn++) {
        uint64_t bytes = 0;
        struct kept *oldest = NULL;
        for (size_t i = 0; i < folder->count; i++) {
            bytes += folder->items[i].bytes;
            if (isfinite(folder->items[i].oldest) &&
                (!oldest || folder->items[i].oldest < oldest->oldest))
                oldest = &folder->items[i];
        }
        if (bytes <= most || !oldest)
            return true;
        struct prb_store_file *file = open_file(folder, oldest);
        if (!file) {
            oldest->oldest = INFINITY; /* gone meanwhile */
            continue;
        }
        if (!prb_store_remove(file, INFINITY, at_once(turn), err))
            return false;
        measure(oldest, file);
    }
    return true;
}

static void remove_empty(struct folder *folder, double now)
{
    close_file(folder);
    for (size_t i = 0; i < folder->count; i++) {
        const struct kept *kept = &folder->items[i];
        if (kept->written > 0 && kept->written <= now - DAY && !isfinite(kept->oldest))
            unlink(kept->path);
    }
}

bool prb_store_keep(const char *folder, const struct prb_store_limits *limits,
                    struct prb_error *err)
{
    PRB_AUTO(folder) struct folder files = {0};
    double now = (double)time(NULL);
    if (!list(folder, &files, err))
        return false;
    bool kept = keep_each(&files, limits, now, err);
    if (is_stopped(limits))
        return kept;
    if (!shrink(&files, limits->bytes, err))
        return false;
    remove_empty(&files, now);
    return kept;
}
