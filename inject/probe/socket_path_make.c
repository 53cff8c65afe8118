/* The probe's side of its place: the folder is made, and what dead processes left in it is removed.
 */
#include "inject/probe/socket_path.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "inject/probe/libc.h"
#include "inject/probe/own_fds.h"

#define ENVIRONMENT_MAX (1 << 20)
#define STALE_LOOKED_MAX 1000 /* entries of the folder */

long prb_socket_path_self(const char *name, char *out, size_t cap)
{
    char path[80];
    snprintf(path, sizeof path, "/proc/self/%s", name);
    return prb_read_text(path, out, cap);
}

static int make_folder(void *path)
{
    return open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static bool open_folder(struct prb_socket_path *out, uid_t uid, struct prb_error *err)
{
    if (mkdir(out->path, 0700) < 0 && errno != EEXIST)
        return prb_fail_sys(err, errno, "making the folder %s", out->path);
    out->folder = prb_own_fd_make(make_folder, out->path);
    if (out->folder < 0)
        return prb_fail_sys(err, errno, "opening the folder %s", out->path);
    if (prb_socket_path_is_safe(out->folder, uid, out->path, err))
        return true;
    prb_own_fd_close(out->folder);
    return prb_error_remedy(err, "remove it, or set XDG_RUNTIME_DIR to a folder of yours");
}

/* Whether a socket of another process is left over.  A pid that is not here may live in another pid
 * namespace over the same folder, so only a refused connection proves it. */
static bool is_stale(const struct prb_socket_path *place, const char *name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char path[64], text[1024];
    struct prb_socket_name of;
    uint64_t now = 0;
    struct stat info;
    if (!prb_socket_path_parse(name, &of) || prb_lstatat(place->folder, name, &info) < 0 ||
        !S_ISSOCK(info.st_mode))
        return false;
    snprintf(path, sizeof path, "../%d/stat", (int)of.pid);
    if (prb_socket_path_self(path, text, sizeof text) > 0 &&
        prb_socket_path_start_time(text, &now) && now == of.start_time)
        return false;
    PRB_AUTO_FD int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int n = snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/%s",
                     place->folder, name);
    if (fd < 0 || n >= (int)sizeof address.sun_path)
        return false;
    return connect(fd, (struct sockaddr *)&address, sizeof address) < 0 && errno == ECONNREFUSED;
}

static void remove_stale(const struct prb_socket_path *place)
{
    int copy = openat(place->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    PRB_AUTO(dir) DIR *dir = copy < 0 ? NULL : fdopendir(copy);
    if (!dir) {
        if (copy >= 0)
            close(copy);
        return;
    }
    for (int i = 0; i < STALE_LOOKED_MAX; i++) {
        const struct dirent *entry = readdir(dir);
        if (!entry)
            return;
        if (strcmp(entry->d_name, place->name) != 0 && is_stale(place, entry->d_name))
            unlinkat(place->folder, entry->d_name, 0);
    }
}

static uint64_t namespace_of(const char *path)
{
    struct stat info;
    return fstatat(AT_FDCWD, path, &info, 0) == 0 ? info.st_ino : 0;
}

bool prb_socket_path_make(struct prb_socket_path *out, struct prb_error *err)
{
    PRB_AUTO_FREE char *environment = malloc(ENVIRONMENT_MAX);
    char text[1024];
    bool found = false;
    if (!environment)
        return prb_nomem(err);
    long len = prb_socket_path_self("environ", environment, ENVIRONMENT_MAX);
    const char *runtime = len < 0 ? getenv("XDG_RUNTIME_DIR") : NULL; /* a root without /proc */
    if (runtime) {
        len = snprintf(environment, ENVIRONMENT_MAX, "XDG_RUNTIME_DIR=%s", runtime) + 1;
        len = len <= ENVIRONMENT_MAX ? len : 0;
    }
    struct prb_socket_owner of = {environment, len > 0 ? (size_t)len : 0, geteuid(),
                                  namespace_of("/proc/self/ns/user")};
    struct prb_socket_name name = {.pid = getpid(),
                                   .pid_namespace = namespace_of("/proc/self/ns/pid")};
    for (unsigned which = 0; which < PRB_SOCKET_FOLDERS && !found; which++)
        found = prb_socket_path_folder(which, &of, out->path, sizeof out->path) &&
                open_folder(out, of.uid, err);
    if (!found)
        return false;
    if (prb_socket_path_self("stat", text, sizeof text) > 0)
        prb_socket_path_start_time(text, &name.start_time);
    prb_socket_path_name(&name, out->name);
    remove_stale(out);
    return true;
}
