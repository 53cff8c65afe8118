/*
 * Names and folders of sockets.  The folder is opened once and checked by its descriptor, so that
 * nobody can change it between the check and the use; whatever is done in it is relative to the
 * descriptor.
 */
#include "inject/probe/socket_path.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "inject/probe/libc.h"

const char *prb_socket_path_variable(const char *environment, size_t len, const char *name)
{
    size_t n = strlen(name);
    for (const char *at = environment, *end = environment + len; at < end;) {
        size_t item = strnlen(at, (size_t)(end - at));
        if (at + item == end) /* cut off */
            return "";
        if (item > n && !strncmp(at, name, n) && at[n] == '=')
            return at + n + 1;
        at += item + 1;
    }
    return "";
}

bool prb_socket_path_folder(unsigned which, const struct prb_socket_owner *of, char *out,
                            size_t cap)
{
    int n = -1;
    if (which == 0) {
        const char *runtime = prb_socket_path_variable(of->environment, of->len, "XDG_RUNTIME_DIR");
        if (*runtime == '/')
            n = snprintf(out, cap, "%s/probing", runtime);
    } else if (which == 1) {
        n = snprintf(out, cap, "/tmp/probing-%u", (unsigned)of->uid);
    } else if (which == 2) {
        n = snprintf(out, cap, "/tmp/probing-%u-%llu", (unsigned)of->uid,
                     (unsigned long long)of->user_namespace);
    }
    return n > 0 && (size_t)n < cap;
}

bool prb_socket_path_is_safe(int folder, uid_t uid, const char *path, struct prb_error *err)
{
    struct stat info;
    if (prb_fstat(folder, &info) < 0)
        return prb_fail_sys(err, errno, "looking at %s", path);
    if (!S_ISDIR(info.st_mode) || info.st_uid != uid)
        return prb_fail(err, PRB_PERMISSION, "%s belongs to user %u, not to %u", path,
                        (unsigned)info.st_uid, (unsigned)uid);
    if (info.st_mode & 077)
        return prb_fail(err, PRB_PERMISSION, "%s is open to other users (mode %03o)", path,
                        (unsigned)(info.st_mode & 0777));
    return true;
}

void prb_socket_path_name(const struct prb_socket_name *of, char out[64])
{
    snprintf(out, 64, "%d-%llu-%llu.sock", (int)of->pid, (unsigned long long)of->start_time,
             (unsigned long long)of->pid_namespace);
}

static const char *digits(const char *text, uint64_t *out)
{
    uint64_t value = 0;
    const char *at = text;
    for (; *at >= '0' && *at <= '9' && at - text < 18; at++)
        value = value * 10 + (uint64_t)(*at - '0');
    *out = value;
    return at == text ? NULL : at;
}

bool prb_socket_path_parse(const char *name, struct prb_socket_name *out)
{
    uint64_t number;
    const char *at = digits(name, &number);
    if (!at || *at != '-' || number == 0 || number > INT32_MAX)
        return false;
    at = digits(at + 1, &out->start_time);
    at = at && *at == '-' ? digits(at + 1, &out->pid_namespace) : NULL;
    if (!at || strcmp(at, ".sock") != 0)
        return false;
    out->pid = (pid_t)number;
    return true;
}

bool prb_socket_path_start_time(const char *stat_text, uint64_t *out)
{
    const char *at = strrchr(stat_text, ')'); /* the name before it may hold anything */
    for (int field = 2; at && field < 22; field++)
        at = strchr(at + 1, ' ');
    return at && digits(at + 1, out);
}
