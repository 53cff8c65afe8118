/*
 * Finding folders of rings (ring/ring.h says where they may be).  Those of a live process are
 * looked for below its own root, with its own pid and user id, and taken only when they belong to
 * its user: in /tmp anybody can make any name.
 */
#include "table/recorded/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "proc/below.h"
#include "ring/folder.h"

#define PATH_ROOM (2 * PRB_RING_PATH_MAX)

/* ---- a live process ---- */

struct owner {
    pid_t pid;          /* here */
    int inner_pid;      /* there */
    unsigned uid;       /* effective, here */
    unsigned inner_uid; /* there */
    uint64_t started;
    uint64_t user_namespace;
    char data[PRB_RING_PATH_MAX]; /* DATA_DIR as its environment says, or "" */
};

/* The nth number behind a line's key; last: the last one. */
static bool number_behind(const char *text, const char *key, int nth, bool last, unsigned *out)
{
    const char *at = strstr(text, key);
    bool any = false;
    if (!at)
        return false;
    at += strlen(key);
    for (int i = 0; last || i <= nth; i++) {
        at += strspn(at, " \t");
        if (*at < '0' || *at > '9')
            return last && any;
        char *end;
        *out = (unsigned)strtoul(at, &end, 10);
        at = end;
        any = true;
    }
    return true;
}

/* user_namespaces(7): lines "inside outside count". */
static unsigned uid_inside(struct prb_proc *proc, unsigned uid)
{
    PRB_AUTO(prb_buf) struct prb_buf text = {0};
    unsigned inside, outside, count;
    int used;
    if (!prb_proc_text(proc, "uid_map", &text, NULL) || !text.data)
        return uid;
    for (const char *at = text.data;
         sscanf(at, "%u %u %u %n", &inside, &outside, &count, &used) == 3; at += used)
        if (uid >= outside && uid - outside < count)
            return inside + (uid - outside);
    return uid;
}

static void read_variable(struct prb_proc *proc, const char *name, char *out, size_t cap)
{
    PRB_AUTO(prb_buf) struct prb_buf text = {0};
    size_t length = strlen(name);
    out[0] = '\0';
    if (!prb_proc_text(proc, "environ", &text, NULL) || !text.data)
        return;
    for (const char *at = text.data; at < text.data + text.len; at += strlen(at) + 1)
        if (strncmp(at, name, length) == 0 && at[length] == '=' && strlen(at + length + 1) < cap)
            snprintf(out, cap, "%s", at + length + 1);
}

static bool owner_of(struct prb_proc *proc, struct owner *out)
{
    PRB_AUTO(prb_buf) struct prb_buf status = {0};
    char path[32];
    unsigned inner;
    *out = (struct owner){.pid = prb_proc_pid(proc)};
    snprintf(path, sizeof path, "/proc/%d", (int)out->pid);
    if (!prb_ring_started(path, &out->started) || !prb_proc_text(proc, "status", &status, NULL) ||
        !status.data || !number_behind(status.data, "\nUid:", 1, false, &out->uid))
        return false;
    out->inner_pid =
        number_behind(status.data, "\nNSpid:", 0, true, &inner) ? (int)inner : (int)out->pid;
    out->user_namespace = prb_ring_user_namespace(path);
    out->inner_uid = uid_inside(proc, out->uid);
    read_variable(proc, PRB_RING_DATA_VARIABLE, out->data, sizeof out->data);
    return true;
}

/* Whoever made the folder, and the links before it: only what its user owns counts. */
static int open_folder(const struct owner *owner, int root, const char *data)
{
    char path[PATH_ROOM];
    struct stat st;
    if (snprintf(path, sizeof path, "%s/%d-%" PRIu64, data, owner->inner_pid, owner->started) >=
        (int)sizeof path)
        return -1;
    PRB_AUTO_FD int found = prb_folder_below(root, path);
    if (found < 0 || fstat(found, &st) != 0 || st.st_uid != owner->uid)
        return -1;
    return openat(found, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

int prb_recorded_folder_of(struct prb_proc *proc)
{
    struct owner owner;
    if (!prb_proc_exists(proc) || !owner_of(proc, &owner))
        return -1;
    PRB_AUTO_FD int root = prb_root_open(owner.pid);
    if (root < 0)
        return -1;
    int fd = owner.data[0] == '/' ? open_folder(&owner, root, owner.data) : -1;
    for (size_t i = 0; fd < 0 && i < PRB_RING_PLACES; i++) {
        char data[PRB_RING_PATH_MAX];
        prb_ring_place(i, owner.inner_uid, owner.user_namespace, data);
        fd = open_folder(&owner, root, data);
    }
    return fd;
}

/* ---- an ended one ---- */

#define OWNERS_MAX 16

/* The newest folder of the pid that a user left. */
struct left {
    uid_t owner;
    uint64_t started;
    int folder;
    char path[PATH_ROOM];
};

struct search {
    pid_t pid;
    uint64_t now; /* clock ticks since boot: a process cannot have begun later */
    struct left left[OWNERS_MAX];
    size_t count;
};

static void search_end(struct search *search)
{
    for (size_t i = 0; i < search->count; i++)
        if (search->left[i].folder >= 0)
            close(search->left[i].folder);
}
PRB_DEFINE_AUTO(search, struct search, search_end)

static void found(struct search *search, const struct left *one)
{
    size_t i = 0;
    while (i < search->count && search->left[i].owner != one->owner)
        i++;
    if (i == OWNERS_MAX || (i < search->count && search->left[i].started >= one->started)) {
        close(one->folder);
        return;
    }
    if (i < search->count)
        close(search->left[i].folder);
    else
        search->count++;
    search->left[i] = *one;
}

/* Folders of the pid in a DATA_DIR, of the user who owns it. */
static void look_in(struct search *search, int data, uid_t owner, const char *data_path)
{
    int copy = openat(data, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    PRB_AUTO(dir) DIR *dir = copy >= 0 ? fdopendir(copy) : NULL;
    if (!dir && copy >= 0)
        close(copy);
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        struct left one = {.owner = owner};
        struct stat st;
        pid_t pid;
        if (!prb_ring_folder_name(entry->d_name, &pid, &one.started) || pid != search->pid ||
            one.started > search->now)
            continue;
        if (snprintf(one.path, sizeof one.path, "%s/%s", data_path, entry->d_name) >=
            (int)sizeof one.path)
            continue;
        PRB_AUTO_FD int fd =
            openat(data, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd >= 0 && fstat(fd, &st) == 0 && st.st_uid == owner) {
            one.folder = PRB_STEAL_FD(fd);
            found(search, &one);
        }
    }
}

/* "probing-UID" or "probing-UID-NAMESPACE", the user as that namespace numbers him. */
static bool data_dir_name(const char *name, unsigned *uid_out, bool *namespace_out)
{
    char *end;
    if (strncmp(name, "probing-", 8) != 0 || name[8] < '0' || name[8] > '9')
        return false;
    *uid_out = (unsigned)strtoul(name + 8, &end, 10);
    *namespace_out = *end == '-';
    return end[end[0] == '-' ? 1 + strspn(end + 1, "0123456789") : 0] == '\0';
}

/*
 * Anybody can make any name there: a folder is its user's when he owns it, and nobody else may
 * write to it.  Ours count, for root those of others, too.
 */
static void look_below(struct search *search, const char *place)
{
    PRB_AUTO(dir) DIR *dir = opendir(place);
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        char path[PATH_ROOM];
        struct stat st;
        unsigned uid;
        bool has_namespace;
        if (!data_dir_name(entry->d_name, &uid, &has_namespace))
            continue;
        snprintf(path, sizeof path, "%s/%s", place, entry->d_name);
        PRB_AUTO_FD int data = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (data < 0 || fstat(data, &st) != 0 || (st.st_mode & (S_IWGRP | S_IWOTH)))
            continue;
        if (st.st_uid == geteuid() || (geteuid() == 0 && !has_namespace && st.st_uid == uid))
            look_in(search, data, st.st_uid, path);
    }
}

/* Where the user said that they are. */
static void look_at_setting(struct search *search)
{
    const char *path = getenv(PRB_RING_DATA_VARIABLE);
    struct stat st;
    PRB_AUTO_FD int data = path && *path ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (data >= 0 && fstat(data, &st) == 0)
        look_in(search, data, st.st_uid, path);
}

static uint64_t ticks_since_boot(void)
{
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return ((uint64_t)now.tv_sec + 1) * (uint64_t)sysconf(_SC_CLK_TCK);
}

/* Of two users one may have made it up: the caller says which. */
static int several(const struct search *search, const char *spec, struct prb_error *err)
{
    const struct left *a = &search->left[0], *b = &search->left[1];
    prb_fail(err, PRB_NOT_FOUND, "%zu users left tables of a process %s", search->count, spec);
    prb_error_remedy(err, "Name the folder: -t %.200s of user %u, -t %.200s of user %u", a->path,
                     (unsigned)a->owner, b->path, (unsigned)b->owner);
    return -1;
}

int prb_recorded_folder_ended(const char *spec, struct prb_error *err)
{
    if (spec[strspn(spec, "0123456789")]) {
        int folder = open(spec, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (folder < 0)
            prb_fail_sys(err, errno, "%s", spec);
        return folder;
    }
    PRB_AUTO(search)
    struct search search = {.pid = (pid_t)strtol(spec, NULL, 10), .now = ticks_since_boot()};
    look_at_setting(&search);
    for (size_t i = 0; i < PRB_RING_PARENTS; i++)
        look_below(&search, prb_ring_parents[i]);
    if (search.count > 1)
        return several(&search, spec, err);
    if (search.count == 1)
        return PRB_STEAL_FD(search.left[0].folder);
    prb_fail(err, PRB_NOT_FOUND, "there is no process %s, and no process with that id left tables",
             spec);
    prb_error_remedy(err, "`probing list` shows the Python processes of this machine");
    return -1;
}
