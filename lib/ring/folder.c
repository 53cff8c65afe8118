/*
 * Where rings lie, and which of them are still wanted.
 *
 * A folder is named by pid and start time, and locked (flock(2)) until the last process that has
 * the lock ends: a sweeper in another pid namespace cannot see the process, but it sees the lock.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/file.h"
#include "proc/stat.h"
#include "ring/folder.h"
#include "ring/format.h"

/* ---- making ---- */

/* A folder of ours that nobody else may write to, made when it is not there. */
static bool own_folder(const char *path, struct prb_error *err)
{
    struct stat st;
    if (mkdir(path, 0700) != 0 && errno != EEXIST)
        return prb_fail_sys(err, errno, "%s", path);
    if (lstat(path, &st) != 0)
        return prb_fail_sys(err, errno, "%s", path);
    if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 022)) {
        prb_fail(err, PRB_PERMISSION, "%s is not a folder that only this user can write to", path);
        return prb_error_remedy(err, "remove it, or set PROBING_DATA_DIR to a folder of yours");
    }
    return true;
}

const char *const prb_ring_parents[PRB_RING_PARENTS] = {"/dev/shm", "/tmp"};

void prb_ring_place(size_t which, unsigned uid, uint64_t user_namespace,
                    char out[PRB_RING_PATH_MAX])
{
    size_t cap = PRB_RING_PATH_MAX;
    if (which < PRB_RING_PARENTS)
        snprintf(out, cap, "%s/probing-%u", prb_ring_parents[which], uid);
    else
        snprintf(out, cap, "%s/probing-%u-%" PRIu64, prb_ring_parents[0], uid, user_namespace);
}

uint64_t prb_ring_user_namespace(const char *proc)
{
    char path[64];
    struct stat st;
    snprintf(path, sizeof path, "%s/ns/user", proc);
    return fstatat(AT_FDCWD, path, &st, 0) == 0 ? st.st_ino : 0;
}

bool prb_ring_data_dir(char out[PRB_RING_PATH_MAX], struct prb_error *err)
{
    const char *wanted = getenv(PRB_RING_DATA_VARIABLE);
    char path[PRB_RING_PATH_MAX];
    if (wanted && *wanted) {
        if (wanted[0] != '/' || snprintf(path, sizeof path, "%s", wanted) >= (int)sizeof path - 64)
            return prb_fail(err, PRB_USAGE,
                            PRB_RING_DATA_VARIABLE
                            " must be an absolute path of less than %d bytes",
                            PRB_RING_PATH_MAX - 64);
        if (!own_folder(path, err))
            return false;
        memcpy(out, path, sizeof path);
        return true;
    }
    for (size_t i = 0; i < PRB_RING_PLACES; i++) {
        prb_ring_place(i, (unsigned)geteuid(), prb_ring_user_namespace("/proc/self"), path);
        if (own_folder(path, err)) {
            memcpy(out, path, sizeof path);
            return true;
        }
    }
    return false;
}

bool prb_ring_started(const char *proc, uint64_t *out)
{
    struct prb_stat stat;
    if (!prb_stat_of(proc, &stat) || stat.count < PRB_STAT_STARTTIME)
        return false;
    *out = (uint64_t)stat.field[PRB_STAT_STARTTIME];
    return true;
}

bool prb_ring_folder_new(char out[PRB_RING_PATH_MAX], int *lock_out, struct prb_error *err)
{
    char dir[PRB_RING_PATH_MAX], path[PRB_RING_PATH_MAX];
    uint64_t started;
    if (!prb_ring_data_dir(dir, err))
        return false;
    if (!prb_ring_started("/proc/self", &started))
        return prb_fail(err, PRB_NOT_FOUND, "/proc/self/stat cannot be read");
    if (snprintf(path, sizeof path, "%s/%d-%" PRIu64, dir, (int)getpid(), started) >=
        (int)sizeof path)
        return prb_fail(err, PRB_USAGE, "%s: the path is too long", dir);
    if (!own_folder(path, err))
        return false;
    int lock = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (lock < 0)
        return prb_fail_sys(err, errno, "%s", path);
    flock(lock, LOCK_SH | LOCK_NB); /* of a file system without locks, pid and start time must do */
    memcpy(out, path, sizeof path);
    *lock_out = lock;
    return true;
}

/* ---- sweeping ---- */

struct dead {
    char name[64];
    double latest;
    uint64_t bytes;
};

bool prb_ring_folder_name(const char *name, pid_t *pid_out, uint64_t *started_out)
{
    static const char digits[] = "0123456789";
    size_t pid = strspn(name, digits);
    size_t started = name[pid] == '-' ? strspn(name + pid + 1, digits) : 0;
    if (pid < 1 || pid > 9 || name[0] == '0' || started < 1 || started > 19 ||
        name[pid + 1 + started])
        return false;
    *pid_out = (pid_t)strtol(name, NULL, 10);
    *started_out = strtoull(name + pid + 1, NULL, 10);
    return true;
}

static bool alive(pid_t pid, uint64_t started)
{
    char proc[32];
    uint64_t now;
    snprintf(proc, sizeof proc, "/proc/%d", (int)pid);
    return prb_ring_started(proc, &now) && now == started;
}

static bool is_ring(const char *name)
{
    size_t len = strlen(name), suffix = strlen(PRB_RING_SUFFIX);
    return len > suffix && strcmp(name + len - suffix, PRB_RING_SUFFIX) == 0;
}

/* A stream of its own over a folder's entries. */
static DIR *entries(int folder)
{
    int copy = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = copy >= 0 ? fdopendir(copy) : NULL;
    if (!dir && copy >= 0)
        close(copy);
    return dir;
}

static void measure(int folder, struct dead *out)
{
    struct stat st;
    out->latest = fstat(folder, &st) == 0 ? (double)st.st_mtime : 0;
    PRB_AUTO(dir) DIR *dir = entries(folder);
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        if (!is_ring(entry->d_name))
            continue;
        if (fstatat(folder, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0)
            out->bytes += (uint64_t)st.st_blocks * 512;
        struct prb_ring_reader *reader = prb_ring_open(folder, entry->d_name, NULL);
        double latest = reader ? prb_ring_latest(reader) : 0;
        prb_ring_close(reader);
        if (latest > out->latest)
            out->latest = latest;
    }
}

static bool remove_folder(int data, const char *name)
{
    PRB_AUTO_FD int folder = openat(data, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    PRB_AUTO(dir) DIR *dir = folder >= 0 ? entries(folder) : NULL;
    for (struct dirent *entry; dir && (entry = readdir(dir));)
        if (strstr(entry->d_name, PRB_RING_SUFFIX))
            unlinkat(folder, entry->d_name, 0);
    return unlinkat(data, name, AT_REMOVEDIR) == 0;
}

bool prb_ring_folder_ended(int folder, pid_t pid, uint64_t started)
{
    if (alive(pid, started) || flock(folder, LOCK_EX | LOCK_NB) != 0)
        return false;
    flock(folder, LOCK_UN);
    return true;
}

bool prb_ring_about_read(int folder, struct prb_ring_about *out)
{
    char text[4096];
    PRB_AUTO_FD int fd =
        openat(folder, PRB_RING_ABOUT, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    size_t len = fd >= 0 ? prb_read_at(fd, text, sizeof text - 1, 0) : 0;
    int used = 0;
    text[len] = '\0';
    *out = (struct prb_ring_about){.rank = -1, .world_size = -1};
    if (sscanf(text, "%d %d %n", &out->rank, &out->world_size, &used) < 2 || !used)
        return false;
    return (out->command = strdup(text + used)) != NULL;
}

/* Whether the folder is of an ended process that no other process holds; then what it has. */
static bool look(int data, const char *name, struct dead *out)
{
    pid_t pid;
    uint64_t started;
    if (strlen(name) >= sizeof out->name || !prb_ring_folder_name(name, &pid, &started) ||
        alive(pid, started))
        return false;
    PRB_AUTO_FD int folder = openat(data, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder < 0 || flock(folder, LOCK_EX | LOCK_NB) != 0)
        return false;
    *out = (struct dead){0};
    snprintf(out->name, sizeof out->name, "%.*s", (int)sizeof out->name - 1, name);
    measure(folder, out);
    return true;
}

static int oldest_first(const void *a, const void *b)
{
    double x = ((const struct dead *)a)->latest, y = ((const struct dead *)b)->latest;
    return (x > y) - (x < y);
}

size_t prb_ring_sweep(const char *data_dir, double retention, uint64_t bytes_max)
{
    PRB_AUTO_FD int data = open(data_dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    PRB_AUTO(dir) DIR *dir = data >= 0 ? entries(data) : NULL;
    PRB_AUTO_FREE struct dead *dead = NULL;
    size_t count = 0, cap = 0, removed = 0;
    uint64_t bytes = 0;
    double now = prb_clock_epoch_s();
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        if (!PRB_GROW(dead, count, cap))
            return 0;
        if (look(data, entry->d_name, &dead[count]))
            bytes += dead[count++].bytes;
    }
    if (count)
        qsort(dead, count, sizeof *dead, oldest_first);
    for (size_t i = 0; i < count; i++) {
        bool old = retention > 0 && dead[i].latest < now - retention;
        if ((old || (bytes_max && bytes > bytes_max)) && remove_folder(data, dead[i].name)) {
            bytes -= dead[i].bytes;
            removed++;
        }
    }
    return removed;
}
