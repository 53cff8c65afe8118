/*
 * Where a probe's socket is: DIR/NSPID-STARTTIME-PIDNS.sock, DIR being $XDG_RUNTIME_DIR/probing,
 * /tmp/probing-UID or /tmp/probing-UID-USERNS.  The variable is taken from the environment the
 * process was started with, which both sides can read.  Both sides.
 */
#ifndef PRB_PROBE_SOCKET_PATH_H
#define PRB_PROBE_SOCKET_PATH_H

#include "base/error.h"

#define PRB_LOG_NAME "probing.log"
#define PRB_SOCKET_FOLDERS 3

/* The folder's path, which = 0 … PRB_SOCKET_FOLDERS - 1, best first; environment: "A=1\0B=2\0".  False:
 * none of that kind. */
struct prb_socket_owner {
    const char *environment;
    size_t len;
    uid_t uid;               /* as the process sees it */
    uint64_t user_namespace; /* inode of /proc/PID/ns/user: namespaces may share /tmp and uid 0 */
};
bool prb_socket_path_folder(unsigned which, const struct prb_socket_owner *of, char *out,
                            size_t cap);
/* A variable in such bytes; "" when it is not there. */
const char *prb_socket_path_variable(const char *environment, size_t len, const char *name);
/* Whether an open folder is the user's own and nobody else's: owner, mode, no link (open it with
 * O_NOFOLLOW). */
bool prb_socket_path_is_safe(int folder, uid_t uid, const char *path, struct prb_error *err);
/* Containers may share the folder, and start processes of one pid in the same tick. */
struct prb_socket_name {
    pid_t pid; /* as the process sees it */
    uint64_t start_time;
    uint64_t pid_namespace; /* inode of /proc/PID/ns/pid; 0: it cannot be read */
};
/* "123-456-4026531836.sock" */
void prb_socket_path_name(const struct prb_socket_name *of, char out[64]);
/* False: not the name of a socket. */
bool prb_socket_path_parse(const char *name, struct prb_socket_name *out);
/* Field 22 of /proc/…/stat: clock ticks after boot. */
bool prb_socket_path_start_time(const char *stat_text, uint64_t *out);

/* The probe's side: make DIR if need be, open it and remove sockets of dead processes. */
struct prb_socket_path {
    int folder;     /* noted by own_fds.h */
    char path[256]; /* of DIR */
    char name[64];  /* of the socket */
};
bool prb_socket_path_make(struct prb_socket_path *out, struct prb_error *err);
/* The text of a file in /proc/self, at most cap - 1 bytes and a NUL; -1: it cannot be read. */
long prb_socket_path_self(const char *name, char *out, size_t cap);

#endif
