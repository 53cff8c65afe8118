/* The user at the other end: everybody on the machine can connect to a loopback port, but not
 * everybody may use a server there.  The kernel's list of connections names the owner of the
 * client's socket (owner.h); a closed socket has none, and is refused. */
#include "net/peer.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/file.h"
#include "net/owner.h"
#include "proc/ids.h"

/* ---- root ---- */

/* A container's root has uid 0, too, where it has no user namespace of its own.  Only a root
 * process in our pid and user namespaces that has all our capabilities is accepted: it could trace
 * us. */
static bool lives_here(pid_t pid)
{
    struct prb_ids its, ours;
    struct stat a, b;
    char path[40];
    snprintf(path, sizeof path, "/proc/%d/ns/pid", (int)pid);
    return stat(path, &a) == 0 && stat("/proc/self/ns/pid", &b) == 0 && a.st_ino == b.st_ino &&
           prb_ids_of(pid, &its) && prb_ids_of(getpid(), &ours) && its.user_namespace &&
           its.user_namespace == ours.user_namespace && !(ours.permitted & ~its.permitted);
}

/* Whether a process has the socket open. */
static bool has_socket(pid_t pid, unsigned long inode)
{
    char path[32], wanted[40], link[40];
    snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
    snprintf(wanted, sizeof wanted, "socket:[%lu]", inode);
    PRB_AUTO(dir) DIR *folder = opendir(path);
    const struct dirent *one;
    while (folder && (one = readdir(folder))) {
        ssize_t len = readlinkat(dirfd(folder), one->d_name, link, sizeof link - 1);
        link[len > 0 ? len : 0] = '\0';
        if (strcmp(link, wanted) == 0)
            return true;
    }
    return false;
}

/* Whether a process here has it.  The latest ones first: clients have mostly just been started. */
static bool is_open_here(unsigned long inode)
{
    PRB_AUTO(dir) DIR *folder = opendir("/proc");
    PRB_AUTO(prb_buf) struct prb_buf pids = {0};
    const struct dirent *one;
    while (folder && (one = readdir(folder))) {
        pid_t pid = (pid_t)strtol(one->d_name, NULL, 10);
        if (pid > 0)
            prb_buf_add(&pids, &pid, sizeof pid);
    }
    for (size_t at = prb_buf_ok(&pids) ? pids.len : 0; at; at -= sizeof(pid_t)) {
        pid_t pid;
        memcpy(&pid, pids.data + at - sizeof pid, sizeof pid);
        if (has_socket(pid, inode) && lives_here(pid))
            return true;
    }
    return false;
}

/* ---- the answer ---- */

/* Whether it is the uid that stands for all users without one in our user namespace. */
static bool is_nobodys(uid_t uid)
{
    char text[80];
    unsigned long overflow = 65534, from, to, count;
    if (prb_read_text("/proc/sys/kernel/overflowuid", text, sizeof text) > 0)
        overflow = strtoul(text, NULL, 10);
    if (uid != overflow)
        return false;
    bool all = prb_read_text("/proc/self/uid_map", text, sizeof text) > 0 &&
               sscanf(text, "%lu %lu %lu", &from, &to, &count) == 3 && count == UINT32_MAX;
    return !all;
}

bool prb_peer_check(int fd, uid_t also, struct prb_error *err)
{
    struct ucred who;
    int family = AF_UNSPEC;
    socklen_t size = sizeof who, family_size = sizeof family;
    uid_t uid = (uid_t)-1;
    unsigned long inode = 0;
    getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &family_size);
    bool local = family == AF_UNIX && getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) == 0;
    if (local)
        uid = who.uid;
    else if (!prb_socket_owner(fd, &uid, &inode))
        return prb_fail(err, PRB_PERMISSION, "a connection is refused: its user cannot be found");
    if ((uid != geteuid() && uid != also) || is_nobodys(uid))
        return prb_fail(err, PRB_PERMISSION, "a connection of user %u is refused", (unsigned)uid);
    if (uid == 0 && !(local ? lives_here(who.pid) : is_open_here(inode)))
        return prb_fail(err, PRB_PERMISSION, "a connection of a container's root is refused");
    return true;
}
