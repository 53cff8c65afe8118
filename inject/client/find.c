/*
 * Finding the socket of a process's probe.  It is in the process's own file system, named by its
 * own pid and start time (socket_path.h).  So it is reached through /proc/PID/root, and found from
 * what /proc shows of the process: proc(5), user_namespaces(7).
 */
#include "inject/client/find.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "inject/control.h"
#include "inject/probe/libc.h"
#include "inject/probe/socket_path.h"
#include "proc/below.h"
#include "proc/source.h"

#define ENVIRONMENT_MAX (1 << 20)
#define CONNECT_SECONDS 3 /* the socket of a stopped process still accepts some connections */
#define ENTRIES_MAX 1000

/* What the name of the socket is made from. */
struct process {
    pid_t pid; /* as we see it */
    struct prb_socket_name socket;
    uid_t uid, inner_uid;
    uint64_t user_namespace;
    bool other_users; /* another user namespace than ours */
};

static long read_text(pid_t pid, const char *name, char *out, size_t cap)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
    return prb_read_text(path, out, cap);
}

/* The effective user and the innermost pid. */
static bool read_status(struct process *out)
{
    char text[8192];
    unsigned uid;
    int inner;
    if (read_text(out->pid, "status", text, sizeof text) < 0)
        return false;
    const char *line = strstr(text, "\nUid:");
    if (!line || sscanf(line, "\nUid: %*u %u", &uid) != 1)
        return false;
    out->uid = out->inner_uid = uid;
    out->socket.pid = out->pid;
    line = strstr(text, "\nNSpid:");
    const char *end = line ? strchr(line + 1, '\n') : NULL;
    for (const char *at = end; at && at > line; at--) {
        if ((*at == '\t' || *at == ' ') && sscanf(at, "%d", &inner) == 1) {
            out->socket.pid = inner;
            break;
        }
    }
    return true;
}

/* Its user id in its own user namespace: lines of uid_map are "inner outer count". */
static void map_user(struct process *process)
{
    char path[64], text[4096];
    struct stat ours, its;
    snprintf(path, sizeof path, "/proc/%d/ns/user", (int)process->pid);
    if (stat("/proc/self/ns/user", &ours) < 0 || stat(path, &its) < 0)
        return;
    process->user_namespace = its.st_ino;
    if (ours.st_ino == its.st_ino)
        return;
    process->other_users = true;
    if (read_text(process->pid, "uid_map", text, sizeof text) < 0)
        return;
    for (const char *line = text; line && *line; line = strchr(line, '\n'), line += line != NULL) {
        unsigned long inner, outer, count;
        if (sscanf(line, "%lu %lu %lu", &inner, &outer, &count) == 3 && process->uid >= outer &&
            process->uid - outer < count)
            process->inner_uid = (uid_t)(inner + (process->uid - outer));
    }
}

/* What could not be looked at for want of descriptors or memory of ours is not missing.  errno: why. */
static bool none_left(pid_t pid, struct prb_error *err)
{
    return prb_error_is_our_limit(errno) &&
           !prb_fail_sys(err, errno, "looking for the probe of process %d", (int)pid);
}

static bool read_process(pid_t pid, struct process *out, struct prb_error *err)
{
    char text[1024];
    struct stat space;
    *out = (struct process){.pid = pid};
    errno = 0;
    if (read_text(pid, "stat", text, sizeof text) <= 0 ||
        !prb_socket_path_start_time(text, &out->socket.start_time) || !read_status(out))
        return !none_left(pid, err) &&
               prb_fail(err, PRB_NOT_FOUND, "there is no process %d", (int)pid);
    map_user(out);
    snprintf(text, sizeof text, "/proc/%d/ns/pid", (int)pid);
    if (stat(text, &space) == 0)
        out->socket.pid_namespace = space.st_ino;
    return true;
}

static bool is_socket(int folder, const char *name)
{
    struct stat info;
    return prb_lstatat(folder, name, &info) == 0 && S_ISSOCK(info.st_mode);
}

/* Whether a name is that of a socket of this pid; a namespace that one side could not read is any. */
static bool is_its(const struct process *process, const char *name, struct prb_socket_name *of)
{
    uint64_t its = process->socket.pid_namespace;
    return prb_socket_path_parse(name, of) && of->pid == process->socket.pid &&
           (of->pid_namespace == its || !of->pid_namespace || !its);
}

/* By its name, else any with its pid: start times differ in a time namespace.  False: errno, if it could
 * not look. */
static bool find_in(int folder, const struct process *process, char name[64])
{
    struct prb_socket_name of;
    prb_socket_path_name(&process->socket, name);
    if (is_socket(folder, name))
        return true;
    int copy = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    PRB_AUTO(dir) DIR *dir = copy < 0 ? NULL : fdopendir(copy);
    for (int i = 0; dir && i < ENTRIES_MAX; i++) {
        const struct dirent *entry = readdir(dir);
        if (!entry)
            break;
        if (is_its(process, entry->d_name, &of) && is_socket(folder, entry->d_name)) {
            snprintf(name, 64, "%.63s", entry->d_name);
            return true;
        }
    }
    return false;
}

/* The open folder of its socket; -1: err says why not. */
static int find(const struct process *process, char name[64], struct prb_error *err)
{
    char path[4096];
    PRB_AUTO_FREE char *environment = malloc(ENVIRONMENT_MAX);
    PRB_AUTO_FD int root = prb_root_open(process->pid);
    if (!environment || root < 0) {
        if (root < 0 && (errno == EACCES || errno == EPERM))
            prb_permission_explain(err, process->pid, errno, "reach the probe of");
        else
            prb_fail_sys(err, errno, "opening the file system of process %d", (int)process->pid);
        return -1;
    }
    errno = 0;
    long len = read_text(process->pid, "environ", environment, ENVIRONMENT_MAX);
    if (len < 0 && none_left(process->pid, err))
        return -1;
    struct prb_socket_owner of = {environment, len > 0 ? (size_t)len : 0, process->inner_uid,
                                  process->user_namespace};
    prb_fail(err, PRB_NOT_FOUND, "process %d has no probe", (int)process->pid);
    prb_error_remedy(err, "`probing %d inject` loads one", (int)process->pid);
    for (unsigned which = 0; which < PRB_SOCKET_FOLDERS; which++) {
        if (!prb_socket_path_folder(which, &of, path, sizeof path))
            continue;
        PRB_AUTO_FD int folder = prb_folder_below(root, path);
        errno = folder < 0 ? errno : 0;
        if (folder < 0 || !find_in(folder, process, name)) {
            if (none_left(process->pid, err))
                return -1;
            continue;
        }
        if (!prb_socket_path_is_safe(folder, process->uid, path, err))
            return -1;
        return PRB_STEAL_FD(folder);
    }
    return -1;
}

/* Connect as the process's user where it has its own user namespace: root of ours is nobody there,
 * and the probe would refuse it.  Changes only this thread, only during the call. */
static int connect_as(int fd, const struct sockaddr_un *address, const struct process *process)
{
    bool other = process && process->other_users && geteuid() == 0 && process->uid != 0;
    if (other)
        syscall(SYS_setresuid, -1, process->uid, -1);
    int result = connect(fd, (const struct sockaddr *)address, sizeof *address);
    int sys = errno;
    if (other)
        syscall(SYS_setresuid, -1, 0, -1);
    errno = sys;
    return result;
}

static int connect_to(int folder, const char *name, const struct process *process,
                      struct prb_error *err)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct timeval patience = {.tv_sec = CONNECT_SECONDS};
    int n =
        snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/%s", folder, name);
    PRB_AUTO_FD int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || n >= (int)sizeof address.sun_path) {
        prb_fail_sys(err, fd < 0 ? errno : ENAMETOOLONG, "making a socket");
        return -1;
    }
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    if (connect_as(fd, &address, process) == 0)
        return PRB_STEAL_FD(fd);
    if (errno == ECONNREFUSED)
        prb_fail(err, PRB_NOT_FOUND,
                 "nobody listens at %s any more: the program with the probe has ended", name);
    else if (errno == EAGAIN)
        prb_fail(err, PRB_TIMEOUT,
                 "the probe does not accept connections: the process may be stopped");
    else
        prb_fail_sys(err, errno, "connecting to %s", name);
    return -1;
}

static bool peer_of(int fd, struct ucred *out, struct prb_error *err)
{
    socklen_t len = sizeof *out;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, out, &len) == 0 ||
           prb_fail_sys(err, errno, "asking who owns the socket");
}

int prb_control_connect(pid_t pid, struct prb_error *err)
{
    struct process process;
    struct ucred peer;
    char name[64];
    if (!read_process(pid, &process, err))
        return -1;
    PRB_AUTO_FD int folder = find(&process, name, err);
    PRB_AUTO_FD int fd = folder < 0 ? -1 : connect_to(folder, name, &process, err);
    if (fd < 0 || !peer_of(fd, &peer, err))
        return -1;
    if (peer.pid == pid && peer.uid == process.uid)
        return PRB_STEAL_FD(fd);
    prb_fail(err, PRB_PERMISSION, "the socket of process %d is held by process %d of user %u",
             (int)pid, (int)peer.pid, (unsigned)peer.uid);
    prb_error_remedy(
        err, "another process pretends to be its probe, or a child kept its socket: remove %s",
        name);
    return -1;
}

int prb_control_connect_path(const char *path, pid_t *pid_out, struct prb_error *err)
{
    char parent[4096];
    struct ucred peer;
    struct stat info;
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    int n = slash ? snprintf(parent, sizeof parent, "%.*s/", (int)(slash - path), path)
                  : snprintf(parent, sizeof parent, ".");
    PRB_AUTO_FD int folder =
        n < (int)sizeof parent ? open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (folder < 0 || !is_socket(folder, name)) {
        prb_fail(err, PRB_NOT_FOUND, "%s is not a socket", path);
        return -1;
    }
    PRB_AUTO_FD int fd = connect_to(folder, name, NULL, err);
    if (fd < 0 || !peer_of(fd, &peer, err))
        return -1;
    if (prb_fstat(folder, &info) < 0 || !prb_socket_path_is_safe(folder, peer.uid, parent, err))
        return -1;
    if (peer.uid != geteuid() && geteuid() != 0) {
        prb_fail(err, PRB_PERMISSION, "%s belongs to user %u", path, (unsigned)peer.uid);
        return -1;
    }
    *pid_out = peer.pid;
    return PRB_STEAL_FD(fd);
}

/* Whether the probe's library is mapped: the socket may be left from before an execve(2). */
static bool is_mapped(pid_t pid)
{
    PRB_AUTO(prb_proc) struct prb_proc *proc = prb_proc_open(pid, NULL);
    PRB_AUTO(prb_maps) struct prb_maps maps = {0};
    if (!proc || !prb_proc_code_maps(proc, &maps, NULL))
        return false;
    for (size_t i = 0; i < maps.count; i++)
        if (strstr(maps.items[i].path, "libprobe"))
            return true;
    return false;
}

/* Whether a socket of its name listens in its network namespace, unix(7). */
static bool listens(const struct process *process)
{
    char path[64];
    PRB_AUTO_FREE char *line = NULL;
    size_t cap = 0;
    struct prb_socket_name of;
    snprintf(path, sizeof path, "/proc/%d/net/unix", (int)process->pid);
    PRB_AUTO(file) FILE *sockets = fopen(path, "re");
    while (sockets && getline(&line, &cap, sockets) > 0) {
        const char *slash = strrchr(line, '/');
        line[strcspn(line, "\n")] = '\0';
        if (slash && is_its(process, slash + 1, &of) && of.start_time == process->socket.start_time)
            return true;
    }
    return false;
}

bool prb_control_seen(pid_t pid)
{
    struct process process;
    return is_mapped(pid) && read_process(pid, &process, NULL) && listens(&process);
}

bool prb_control_present(pid_t pid)
{
    struct process process;
    char name[64];
    if (!is_mapped(pid) || !read_process(pid, &process, NULL))
        return false;
    struct prb_error err;
    PRB_AUTO_FD int folder = find(&process, name, &err);
    return folder >= 0;
}
