/* The processes that record: their folders of rings, and the files that these go to. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/syscalls.h"
#include "collect/parts.h"
#include "ring/folder.h"
#include "store/folder.h"

/* ---- files ---- */

static struct prb_store_file *take_file(struct prb_collection *collection, const char *path,
                                        struct prb_error *err)
{
    for (size_t i = 0; i < collection->file_count; i++)
        if (strcmp(collection->files[i].path, path) == 0) {
            collection->files[i].users++;
            return collection->files[i].file;
        }
    if (!PRB_GROW(collection->files, collection->file_count, collection->file_cap))
        return PRB_NULL(prb_nomem(err));
    struct file *file = &collection->files[collection->file_count];
    *file = (struct file){.path = strdup(path), .users = 1};
    if (!file->path)
        return PRB_NULL(prb_nomem(err));
    if (!(file->file = prb_store_open(path, true, err))) {
        free(file->path);
        return NULL;
    }
    collection->file_count++;
    return file->file;
}

static void leave_file(struct prb_collection *collection, struct prb_store_file *file)
{
    for (size_t i = 0; i < collection->file_count; i++) {
        if (collection->files[i].file != file || --collection->files[i].users)
            continue;
        prb_store_close(file);
        free(collection->files[i].path);
        collection->files[i] = collection->files[--collection->file_count];
        return;
    }
}

/* ---- processes ---- */

static void forget(struct prb_collection *collection, size_t index)
{
    struct prb_collected *process = &collection->items[index];
    if (process->file)
        leave_file(collection, process->file);
    prb_collected_deinit(process);
    collection->items[index] = collection->items[--collection->count];
}

void prb_collection_deinit(struct prb_collection *collection)
{
    while (collection->count)
        forget(collection, collection->count - 1);
    free(collection->items);
    free(collection->files);
    if (collection->proc)
        closedir(collection->proc);
    prb_cgroup_mounts_deinit(&collection->mounts);
}

/* Say to readers which file the rows go to: they look there first (table/recorded/history.h). */
static void point_to(const struct prb_collected *process)
{
    PRB_AUTO_FREE char *text = NULL;
    int len = asprintf(&text, "%lld %s\n", (long long)process->id, prb_store_path(process->file));
    unlinkat(process->folder, PRB_RING_STORE ".new", 0);
    PRB_AUTO_FD int fd = len > 0
                             ? openat(process->folder, PRB_RING_STORE ".new",
                                      O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600)
                             : -1;
    if (fd >= 0 && prb_write_all(fd, text, (size_t)len))
        renameat(process->folder, PRB_RING_STORE ".new", process->folder, PRB_RING_STORE);
}

static bool note(struct prb_collected *process, struct prb_error *err)
{
    return prb_store_begin(process->file, err) &&
           (process->id = prb_store_add_process(process->file, &process->process, err)) &&
           prb_store_commit(process->file, err);
}

/* The process in its file; where another collector had it before, in that one. */
static bool enter(struct prb_collection *collection, struct prb_collected *process,
                  struct prb_error *err)
{
    PRB_AUTO(prb_collect_job) struct prb_collect_job job = {0};
    if (process->file)
        return true;
    if (!prb_collect_job_of(collection->store, process->pid, process->started, process->folder,
                            &job, err))
        return false;
    int64_t id;
    PRB_AUTO(prb_store_file)
    struct prb_store_file *old = prb_store_of(process->pid, (int64_t)process->started, &id);
    const char *path = old ? prb_store_path(old) : job.path;
    struct prb_store_file *file = take_file(collection, path, err);
    if (!file)
        return false;
    process->file = file;
    process->process = job.process;
    job.process.command = NULL;
    if ((*prb_store_job(file) ||
         (prb_store_begin(file, err) && prb_store_set_job(file, job.name, err) &&
          prb_store_commit(file, err) && prb_store_refresh(file, err))) &&
        note(process, err)) {
        point_to(process);
        return true;
    }
    prb_store_rollback(file);
    leave_file(collection, file);
    process->file = NULL;
    free((char *)process->process.command);
    process->process.command = NULL;
    return false;
}

static struct prb_collected *find(struct prb_collection *collection, pid_t pid, uint64_t started)
{
    for (size_t i = 0; i < collection->count; i++)
        if (collection->items[i].pid == pid && collection->items[i].started == started)
            return &collection->items[i];
    return NULL;
}

struct prb_collected *prb_collection_add(struct prb_collection *collection, pid_t pid,
                                         uint64_t started, int folder, struct prb_error *err)
{
    if (collection->count >= PRB_COLLECTED_MAX)
        return NULL;
    if (!PRB_GROW(collection->items, collection->count, collection->cap))
        return PRB_NULL(prb_nomem(err));
    struct prb_collected *process = &collection->items[collection->count++];
    *process = (struct prb_collected){
        .pid = pid, .started = started, .folder = folder, .pidfd = -1, .seen = true};
    prb_collect_settings_begin(process);
    return process;
}

/* A folder in a data folder of ours. */
static bool found(struct prb_collection *collection, int data, const char *name,
                  struct prb_error *err)
{
    pid_t pid;
    uint64_t started;
    struct stat st;
    if (!prb_ring_folder_name(name, &pid, &started))
        return true;
    struct prb_collected *process = find(collection, pid, started);
    if (process) {
        process->seen = true;
        return true;
    }
    PRB_AUTO_FD int folder = openat(data, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder < 0 || fstat(folder, &st) != 0 || st.st_uid != geteuid())
        return true;
    if (!prb_collection_add(collection, pid, started, folder, err))
        return collection->count >= PRB_COLLECTED_MAX;
    folder = -1;
    return true;
}

static bool look_in(struct prb_collection *collection, const char *path, struct prb_error *err)
{
    struct stat st;
    PRB_AUTO_FD int data = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (data < 0 || fstat(data, &st) != 0 || st.st_uid != geteuid() || (st.st_mode & 022))
        return true; /* there is none, or it is not ours */
    int copy = openat(data, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    PRB_AUTO(dir) DIR *dir = copy >= 0 ? fdopendir(copy) : NULL;
    if (!dir && copy >= 0)
        close(copy);
    for (struct dirent *entry; dir && (entry = readdir(dir));)
        if (!found(collection, data, entry->d_name, err))
            return false;
    return true;
}

/* A folder that comes or goes changes the time of the one that it is in, but for one that comes
 * within the clock's tick of the last: that is seen by the next look. */
static bool is_listed(struct prb_listed *listed, const char *path)
{
    struct stat st;
    struct timespec now;
    struct prb_listed as_it_is = {0};
    if (stat(path, &st) == 0)
        as_it_is = (struct prb_listed){st.st_ino, st.st_mtim};
    bool same = as_it_is.inode == listed->inode &&
                memcmp(&as_it_is.changed, &listed->changed, sizeof listed->changed) == 0;
    clock_gettime(CLOCK_REALTIME, &now);
    *listed = as_it_is;
    if (now.tv_sec <= as_it_is.changed.tv_sec + 1)
        listed->changed = (struct timespec){0};
    return same;
}

static bool look_everywhere(struct prb_collection *collection,
                            const char paths[][PRB_RING_PATH_MAX], size_t count,
                            struct prb_error *err)
{
    for (size_t i = 0; i < collection->count; i++)
        collection->items[i].seen = collection->items[i].elsewhere && !collection->items[i].done;
    for (size_t i = 0; i < count; i++)
        if (!look_in(collection, paths[i], err)) {
            memset(collection->places, 0, sizeof collection->places);
            return false;
        }
    for (size_t i = collection->count; i--;)
        if (!collection->items[i].seen)
            forget(collection, i);
    return true;
}

bool prb_collection_look(struct prb_collection *collection, struct prb_error *err)
{
    char paths[PRB_RING_PLACES][PRB_RING_PATH_MAX];
    const char *wanted = getenv(PRB_RING_DATA_VARIABLE);
    bool given = wanted && *wanted == '/' && strlen(wanted) < PRB_RING_PATH_MAX, same = true;
    uint64_t user_namespace = given ? 0 : prb_ring_user_namespace("/proc/self");
    size_t count = given ? 1 : PRB_RING_PLACES;
    for (size_t i = 0; i < count; i++) {
        if (given)
            snprintf(paths[i], sizeof paths[i], "%s", wanted);
        else
            prb_ring_place(i, geteuid(), user_namespace, paths[i]);
        same = is_listed(&collection->places[i], paths[i]) && same;
    }
    for (size_t i = 0; i < collection->count; i++)
        same = same && !(collection->items[i].elsewhere && collection->items[i].done);
    return (same || look_everywhere(collection, paths, count, err)) &&
           prb_collection_search(collection, err);
}

/* A descriptor of the process says that it runs at a tenth of the cost of its text in /proc. */
static bool has_ended(struct prb_collected *process)
{
    struct pollfd end = {.fd = process->pidfd, .events = POLLIN};
    char path[32];
    uint64_t started;
    if (process->pidfd >= 0 && poll(&end, 1, 0) == 0)
        return false;
    if (prb_ring_folder_ended(process->folder, process->pid, process->started))
        return true;
    if (process->pidfd >= 0)
        return false;
    process->pidfd = (int)syscall(SYS_pidfd_open, process->pid, 0);
    snprintf(path, sizeof path, "/proc/%d", (int)process->pid);
    if (process->pidfd >= 0 && (!prb_ring_started(path, &started) || started != process->started)) {
        close(process->pidfd); /* another one has its folder */
        process->pidfd = -1;
    }
    return false;
}

static bool move_one(struct prb_collection *collection, struct prb_collected *process, bool all,
                     uint64_t *rows_out, bool *wishes_out, struct prb_error *err)
{
    if (!process->ended)
        process->ended = has_ended(process);
    if (process->ended || all)
        prb_collect_stacks(process, prb_clock_s(), prb_clock_epoch_s(), true);
    if (process->done || !enter(collection, process, err) ||
        !prb_collect_rings(process, all, rows_out, err))
        return process->done;
    *rows_out += process->moved;
    process->moved = 0;
    *wishes_out = prb_collect_settings(process) || *wishes_out;
    if (!process->ended)
        return true;
    prb_collect_host_free(process->host);
    process->host = NULL;
    prb_collect_gil_free(process->gil);
    process->gil = NULL;
    if (process->process.ended == 0)
        process->process.ended = prb_clock_epoch_s();
    if (!note(process, err)) {
        prb_store_rollback(process->file);
        return false;
    }
    process->done = true;
    leave_file(collection, process->file);
    process->file = NULL;
    return true;
}

bool prb_collection_move(struct prb_collection *collection, bool all, uint64_t *rows_out,
                         struct prb_error *err)
{
    bool good = true;
    collection->live = 0;
    for (size_t i = 0; i < collection->count; i++) {
        good = move_one(collection, &collection->items[i], all, rows_out,
                        &collection->wishes_change, err) &&
               good;
        collection->live += !collection->items[i].ended;
    }
    return good;
}
