/*
 * Processes that record where this one's paths do not lead: those of containers, which have a
 * /dev/shm of their own.  Their folders of rings are found through the root of each, as a query of a
 * live process finds them, and kept open: the rows are there when the container is gone.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "collect/parts.h"
#include "table/recorded/folder.h"

#define SEARCH 10.0     /* s between two looks at processes that are new */
#define SEARCH_ALL 60.0 /* the same, at all */
#define LOOKS PRB_COLLECT_LOOKS

static ino_t mounts_of(int proc, const char *pid)
{
    char path[300];
    struct stat st;
    snprintf(path, sizeof path, "%s/ns/mnt", pid);
    return fstatat(proc, path, &st, 0) == 0 ? st.st_ino : 0;
}

/* Whether it and we are told the same of where rings lie; "": nothing. */
static bool has_our_place(struct prb_proc *proc)
{
    static const char name[] = PRB_RING_DATA_VARIABLE "=";
    const char *ours = getenv(PRB_RING_DATA_VARIABLE), *theirs = "";
    PRB_AUTO(prb_buf) struct prb_buf text = {0};
    if (!prb_proc_text(proc, "environ", &text, NULL) || !text.data)
        return false;
    for (const char *at = text.data; at < text.data + text.len; at += strlen(at) + 1)
        if (strncmp(at, name, sizeof name - 1) == 0)
            theirs = at + sizeof name - 1;
    return strcmp(ours ? ours : "", theirs) == 0;
}

static bool is_known(const struct prb_collection *collection, const struct stat *st)
{
    for (size_t i = 0; i < collection->count; i++) {
        struct stat one;
        if (fstat(collection->items[i].folder, &one) == 0 && one.st_ino == st->st_ino &&
            one.st_dev == st->st_dev)
            return true;
    }
    return false;
}

static bool look_at(struct prb_collection *collection, pid_t pid, struct prb_error *err)
{
    char path[32];
    uint64_t started;
    struct stat st;
    PRB_AUTO(prb_proc) struct prb_proc *proc = prb_proc_open(pid, NULL);
    snprintf(path, sizeof path, "/proc/%d", (int)pid);
    if (!proc || !has_our_place(proc) || !prb_ring_started(path, &started))
        return true;
    PRB_AUTO_FD int folder = prb_recorded_folder_of(proc);
    if (folder < 0 || fstat(folder, &st) != 0 || st.st_uid != geteuid() || (st.st_mode & 022) ||
        is_known(collection, &st))
        return true;
    struct prb_collected *process = prb_collection_add(collection, pid, started, folder, err);
    if (!process)
        return collection->count >= PRB_COLLECTED_MAX;
    process->elsewhere = true;
    folder = -1;
    return true;
}

static bool is_of_another(int proc, const char *pid, ino_t own, uid_t user)
{
    struct stat st;
    if (fstatat(proc, pid, &st, 0) != 0 || st.st_uid != user)
        return false;
    ino_t mounts = mounts_of(proc, pid);
    return mounts && mounts != own;
}

static bool list(struct prb_collection *collection)
{
    int fd = collection->proc ? -1 : open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0 && !(collection->proc = fdopendir(fd)))
        close(fd);
    return collection->proc;
}

/*
 * /proc has processes by their pids, and these ascend as they are given: what is new stands behind
 * the newest one of an earlier search.  Which is that before the last, as a process enters its
 * container a moment after it has begun.
 */
static bool search(struct prb_collection *collection, bool all, struct prb_error *err)
{
    long *ends = collection->searched_to, at = all ? 0 : ends[0], end = at;
    int proc = dirfd(collection->proc);
    ino_t own = mounts_of(proc, "self");
    uid_t user = geteuid();
    bool good = true;
    seekdir(collection->proc, at);
    for (struct dirent *entry; own && good && (entry = readdir(collection->proc));) {
        long pid = atol(entry->d_name);
        if (pid > collection->newest && !all)
            break; /* from before pids were given from the first one on again */
        if (pid > 0 && pid <= collection->newest)
            end = at;
        if (pid > 0 && is_of_another(proc, entry->d_name, own, user))
            good = look_at(collection, (pid_t)pid, err);
        at = telldir(collection->proc);
    }
    memmove(ends, ends + 1, (LOOKS - 1) * sizeof *ends);
    ends[LOOKS - 1] = end;
    return good;
}

/* The pid that was given last, the end of proc_loadavg(5): while it is the same nothing has begun.
 * LONG_MAX: it is not known. */
static long newest_pid(void)
{
    char text[128];
    const char *last =
        prb_read_text("/proc/loadavg", text, sizeof text) > 0 ? strrchr(text, ' ') : NULL;
    return last ? atol(last + 1) : LONG_MAX;
}

/* Each that is new was looked at as often as it is. */
static bool is_known_to_all(struct prb_collection *collection, long newest)
{
    bool same = newest < LONG_MAX && newest == collection->newest;
    collection->looked = same ? collection->looked + (collection->looked < LOOKS) : 0;
    return collection->looked == LOOKS;
}

bool prb_collection_search(struct prb_collection *collection, struct prb_error *err)
{
    double time = prb_clock_s();
    if (collection->searched > 0 && time < collection->searched + SEARCH)
        return true;
    long newest = newest_pid();
    bool anew = newest < collection->newest; /* they are given from the first one on again */
    bool all =
        anew || collection->searched_all <= 0 || time >= collection->searched_all + SEARCH_ALL;
    bool known = is_known_to_all(collection, newest);
    collection->searched = time;
    collection->newest = newest;
    if (anew)
        memset(collection->searched_to, 0, sizeof collection->searched_to);
    if ((known && !all) || !list(collection))
        return true;
    if (all)
        collection->searched_all = time;
    return search(collection, all, err);
}
