/*
 * Finding folders of rings (ring/ring.h says where they may be).  Those of a live process are
 * looked for through its own root, with its own pid and user id, and taken only when they belong to
 * its user: in /tmp anybody can make any name.
 */
#include "table/ring_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

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

static int open_folder(const struct owner *owner, const char *data)
{
    char path[PATH_ROOM];
    struct stat st;
    if (snprintf(path, sizeof path, "/proc/%d/root%s/%d-%" PRIu64, (int)owner->pid, data,
                 owner->inner_pid, owner->started) >= (int)sizeof path)
        return -1;
    PRB_AUTO_FD int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) != 0 || st.st_uid != owner->uid)
        return -1;
    int found = fd;
    fd = -1;
    return found;
}

int prb_ring_folder_of(struct prb_proc *proc)
{
    struct owner owner;
    if (!prb_proc_exists(proc) || !owner_of(proc, &owner))
        return -1;
    int fd = owner.data[0] == '/' ? open_folder(&owner, owner.data) : -1;
    for (size_t i = 0; fd < 0 && i < PRB_RING_PLACES; i++) {
        char data[PRB_RING_PATH_MAX];
        prb_ring_place(i, owner.inner_uid, owner.user_namespace, data);
        fd = open_folder(&owner, data);
    }
    return fd;
}

/* ---- an ended one ---- */

/* The newest folder of a pid in a DATA_DIR: *started_out grows, and the folder in *best is
 * replaced. */
static void look_in(const char *data_path, pid_t wanted, uint64_t *started_out, int *best)
{
    PRB_AUTO_FD int data = open(data_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    PRB_AUTO(dir) DIR *dir = opendir(data_path);
    for (struct dirent *entry; data >= 0 && dir && (entry = readdir(dir));) {
        pid_t pid;
        uint64_t started;
        if (!prb_ring_folder_name(entry->d_name, &pid, &started) || pid != wanted ||
            started < *started_out)
            continue;
        int fd = openat(data, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0)
            continue;
        if (*best >= 0)
            close(*best);
        *best = fd;
        *started_out = started;
    }
}

/* Every probing-UID and probing-UID-NAMESPACE below a place: those that may be opened count. */
static void look_below(const char *place, pid_t pid, uint64_t *started, int *best)
{
    PRB_AUTO(dir) DIR *dir = opendir(place);
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        char path[PATH_ROOM];
        if (strncmp(entry->d_name, "probing-", 8) != 0 || !entry->d_name[8] ||
            entry->d_name[8 + strspn(entry->d_name + 8, "0123456789-")])
            continue;
        snprintf(path, sizeof path, "%s/%s", place, entry->d_name);
        look_in(path, pid, started, best);
    }
}

int prb_ring_folder_ended(const char *spec, struct prb_error *err)
{
    uint64_t started = 0;
    int best = -1;
    if (spec[strspn(spec, "0123456789")]) {
        best = open(spec, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (best < 0)
            prb_fail_sys(err, errno, "%s", spec);
        return best;
    }
    const char *data = getenv(PRB_RING_DATA_VARIABLE);
    pid_t pid = (pid_t)strtol(spec, NULL, 10);
    if (data && *data)
        look_in(data, pid, &started, &best);
    for (size_t i = 0; i < PRB_RING_PARENTS; i++)
        look_below(prb_ring_parents[i], pid, &started, &best);
    if (best < 0) {
        prb_fail(err, PRB_NOT_FOUND,
                 "there is no process %s, and none of that id left tables behind", spec);
        prb_error_remedy(err, "`probing list` shows the Python processes of this machine");
    }
    return best;
}
