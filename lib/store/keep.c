/* See keep.h. */
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
    struct prb_store_file *file;
    uint64_t bytes;
    double oldest; /* s since the epoch: the end of its oldest chunk; INFINITY: it has none */
    double written;
};

struct folder {
    struct kept *items;
    size_t count, cap;
};

static void folder_deinit(struct folder *folder)
{
    for (size_t i = 0; i < folder->count; i++) {
        prb_store_close(folder->items[i].file);
        free(folder->items[i].path);
    }
    free(folder->items);
}
PRB_DEFINE_AUTO(folder, struct folder, folder_deinit)

static void measure(struct kept *kept)
{
    struct stat st;
    if (stat(kept->path, &st) == 0) {
        kept->bytes = (uint64_t)st.st_size;
        kept->written = (double)st.st_mtime;
    }
    kept->oldest = prb_store_oldest(kept->file);
}

static bool add(struct folder *folder, const char *path)
{
    struct stat st;
    if (folder->count >= FILES_MAX || lstat(path, &st) != 0 || !S_ISREG(st.st_mode))
        return true;
    if (!PRB_GROW(folder->items, folder->count, folder->cap))
        return false;
    struct kept kept = {.path = strdup(path)};
    if (!kept.path || !(kept.file = prb_store_open(path, true, NULL))) {
        free(kept.path); /* what is not a file of the store is left alone */
        return true;
    }
    measure(&kept);
    folder->items[folder->count++] = kept;
    return true;
}

static bool is_stopped(const struct prb_store_limits *limits)
{
    return limits->stopped && limits->stopped(limits->context);
}

static bool list(const char *path, struct folder *folder, const struct prb_store_limits *limits,
                 struct prb_error *err)
{
    PRB_AUTO(dir) DIR *dir = opendir(path);
    size_t suffix = strlen(PRB_STORE_SUFFIX);
    if (!dir)
        return prb_fail_sys(err, errno, "%s", path);
    for (struct dirent *entry; !is_stopped(limits) && (entry = readdir(dir));) {
        PRB_AUTO_FREE char *file = NULL;
        size_t len = strlen(entry->d_name);
        if (len <= suffix || strcmp(entry->d_name + len - suffix, PRB_STORE_SUFFIX) != 0)
            continue;
        if (asprintf(&file, "%s/%s", path, entry->d_name) < 0 || !add(folder, file))
            return prb_nomem(err);
    }
    return true;
}

/* What the file's job wishes, else what holds for all. */
static double wish(const struct kept *kept, enum prb_store_wish which, double otherwise)
{
    double wished = prb_store_wish(kept->file, which);
    return wished >= 0 ? wished : otherwise;
}

static bool expire(struct folder *folder, const struct prb_store_limits *limits, double now,
                   struct prb_error *err)
{
    for (size_t i = 0; i < folder->count && !is_stopped(limits); i++) {
        struct kept *kept = &folder->items[i];
        double age = wish(kept, PRB_STORE_WISH_SECONDS, limits->seconds), before = now - age;
        if (age > 0 && kept->oldest < before) {
            if (!prb_store_remove(kept->file, before, 0, err))
                return false;
            measure(kept);
        }
    }
    return true;
}

/* So many chunks at once, few at first: no more are to go than have to. */
static int at_once(int turn) { return 1 << (turn < 5 ? turn : 5); }

/* A file that its job wishes smaller than the others. */
static bool shrink_own(struct kept *kept, struct prb_error *err)
{
    double most = wish(kept, PRB_STORE_WISH_MEMORY, 0);
    for (int turn = 0; turn < TURNS_MAX && most > 0; turn++) {
        if ((double)kept->bytes <= most || !isfinite(kept->oldest))
            return true;
        if (!prb_store_remove(kept->file, INFINITY, at_once(turn), err))
            return false;
        measure(kept);
    }
    return true;
}

/* The oldest chunks first, whichever file has them. */
static bool shrink(struct folder *folder, uint64_t most, struct prb_error *err)
{
    for (size_t i = 0; i < folder->count; i++)
        if (!shrink_own(&folder->items[i], err))
            return false;
    if (!most)
        return true;
    for (int turn = 0; turn < TURNS_MAX; turn++) {
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
        if (!prb_store_remove(oldest->file, INFINITY, at_once(turn), err))
            return false;
        measure(oldest);
    }
    return true;
}

/* A file that cannot be written, as of a full disk, keeps others from nothing. */
static bool thin(struct folder *folder, const struct prb_store_limits *limits, double now,
                 struct prb_error *err)
{
    bool good = true;
    for (size_t i = 0; i < folder->count && !is_stopped(limits); i++) {
        struct kept *kept = &folder->items[i];
        struct prb_thinned thinned;
        const struct prb_store_ages ages = {
            .join = limits->ages.join,
            .raw = wish(kept, PRB_STORE_WISH_RAW, limits->ages.raw),
            .minutes = wish(kept, PRB_STORE_WISH_MINUTES, limits->ages.minutes),
        };
        good = prb_store_thin(kept->file, limits->rules, limits->rule_count, &ages, now, &thinned,
                              err) &&
               good;
        if (thinned.chunks) {
            good = prb_store_vacuum(kept->file, err) && good;
            measure(kept);
        }
    }
    return good;
}

static void remove_empty(struct folder *folder, double now)
{
    for (size_t i = 0; i < folder->count; i++) {
        struct kept *kept = &folder->items[i];
        if (isfinite(kept->oldest) || kept->written > now - DAY)
            continue;
        prb_store_close(kept->file); /* takes the files beside it away */
        kept->file = NULL;
        unlink(kept->path);
    }
}

bool prb_store_keep(const char *folder, const struct prb_store_limits *limits,
                    struct prb_error *err)
{
    PRB_AUTO(folder) struct folder files = {0};
    double now = (double)time(NULL);
    if (!list(folder, &files, limits, err) || !expire(&files, limits, now, err))
        return false;
    bool thinned = thin(&files, limits, now, err);
    if (is_stopped(limits))
        return thinned;
    if (!shrink(&files, limits->bytes, err))
        return false;
    remove_empty(&files, now);
    return thinned;
}
