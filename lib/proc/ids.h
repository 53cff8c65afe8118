/*
 * Who a process is to the kernel, and a thread's file rights in its stead.
 * Relies on proc_pid_status(5), credentials(7), capabilities(7), setfsuid(2).
 */
#ifndef PRB_PROC_IDS_H
#define PRB_PROC_IDS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define PRB_GROUPS_MAX 64

struct prb_ids {
    /* real, effective, saved, file system; as our namespace numbers */
    unsigned users[4], groups[4];
    gid_t more[PRB_GROUPS_MAX];
    unsigned more_count;
    unsigned no_new_privileges, seccomp;
    unsigned long long permitted, effective, bounding; /* capabilities, in its user namespace */
    uint64_t user_namespace;                           /* its inode; 0: not known */
};

/* folder: an open /proc/PID.  False with errno: it cannot be read, or parsed (EINVAL; E2BIG: more
 * groups than there is room for). */
bool prb_ids_read(int folder, struct prb_ids *out);
bool prb_ids_of(pid_t pid, struct prb_ids *out);
bool prb_ids_same(const struct prb_ids *a, const struct prb_ids *b);
/* Real, effective, saved and file system id are one. */
bool prb_ids_all_alike(const unsigned ids[4]);

/* What a thread gives back. */
struct prb_rights {
    bool changed;
    uid_t user;
    gid_t group;
    gid_t more[PRB_GROUPS_MAX];
    int more_count;
    uint32_t effective[2];
};
/* From here on this thread (no other one) opens files with the rights of a process with these ids,
 * and with no capability that it has not.  Nothing changes for a process that has our own ids.
 * False with errno: we may not take them on; then nothing has changed. */
bool prb_rights_take(const struct prb_ids *ids, struct prb_rights *before);
void prb_rights_give_back(const struct prb_rights *before);

#endif
