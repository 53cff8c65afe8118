/* Who a process is, and file rights in its stead: see ids.h. */
#include "proc/ids.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/file.h"

#define STATUS_MAX 65536

/* ---- reading ---- */

static const char *line_of(const char *text, const char *name)
{
    const char *at = strstr(text, name);
    return at ? at + strlen(name) : "";
}

static bool four(const char *line, unsigned out[4])
{
    return sscanf(line, "%u %u %u %u", &out[0], &out[1], &out[2], &out[3]) == 4;
}

/* "Groups:" has as many as there are on its one line, none, too. */
static bool read_groups(const char *line, struct prb_ids *out)
{
    for (;;) {
        line += strspn(line, " \t");
        if (*line < '0' || *line > '9')
            return *line == '\n';
        if (out->more_count == PRB_GROUPS_MAX) {
            errno = E2BIG;
            return false;
        }
        char *end;
        out->more[out->more_count++] = (gid_t)strtoul(line, &end, 10);
        line = end;
    }
}

bool prb_ids_read(int folder, struct prb_ids *out)
{
    PRB_AUTO(prb_buf) struct prb_buf text = {0};
    *out = (struct prb_ids){0};
    PRB_AUTO_FD int fd = openat(folder, "status", O_RDONLY | O_CLOEXEC);
    if (fd < 0 || !prb_buf_read(&text, fd, STATUS_MAX))
        return false;
    struct stat info;
    if (fstatat(folder, "ns/user", &info, 0) == 0)
        out->user_namespace = info.st_ino;
    errno = EINVAL;
    return four(line_of(text.data, "\nUid:"), out->users) &&
           four(line_of(text.data, "\nGid:"), out->groups) &&
           read_groups(line_of(text.data, "\nGroups:"), out) &&
           sscanf(line_of(text.data, "\nNoNewPrivs:"), "%u", &out->no_new_privileges) == 1 &&
           sscanf(line_of(text.data, "\nSeccomp:"), "%u", &out->seccomp) == 1 &&
           sscanf(line_of(text.data, "\nCapPrm:"), "%llx", &out->permitted) == 1 &&
           sscanf(line_of(text.data, "\nCapEff:"), "%llx", &out->effective) == 1 &&
           sscanf(line_of(text.data, "\nCapBnd:"), "%llx", &out->bounding) == 1;
}

bool prb_ids_of(pid_t pid, struct prb_ids *out)
{
    char name[32];
    snprintf(name, sizeof name, "/proc/%d", (int)pid);
    PRB_AUTO_FD int folder = open(name, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return folder >= 0 && prb_ids_read(folder, out);
}

bool prb_ids_same(const struct prb_ids *a, const struct prb_ids *b)
{
    return memcmp(a->users, b->users, sizeof a->users) == 0 &&
           memcmp(a->groups, b->groups, sizeof a->groups) == 0 && a->more_count == b->more_count &&
           memcmp(a->more, b->more, a->more_count * sizeof *a->more) == 0 &&
           a->seccomp == b->seccomp && a->no_new_privileges == b->no_new_privileges &&
           a->permitted == b->permitted && a->effective == b->effective &&
           a->bounding == b->bounding && a->user_namespace == b->user_namespace;
}

bool prb_ids_all_alike(const unsigned ids[4])
{
    return ids[0] == ids[1] && ids[0] == ids[2] && ids[0] == ids[3];
}

/* ---- taking on ---- */

/* The system calls, not glibc's functions: those change every thread. */
static bool set_capabilities(const uint32_t effective[2])
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct sets[2];
    if (syscall(SYS_capget, &head, sets) != 0)
        return false;
    for (int i = 0; i < 2; i++)
        sets[i].effective = effective[i] & sets[i].permitted;
    return syscall(SYS_capset, &head, sets) == 0;
}

/* setfsuid(2) and setfsgid(2) report no error: a second call with an invalid id returns what is
 * set. */
static bool set_user(uid_t user)
{
    setfsuid(user);
    return (uid_t)setfsuid((uid_t)-1) == user;
}
static bool set_group(gid_t group)
{
    setfsgid(group);
    return (gid_t)setfsgid((gid_t)-1) == group;
}

static bool take(const struct prb_ids *ids, const struct prb_ids *own)
{
    /* Its rights in a namespace of its own do not count here. */
    unsigned long long may = ids->user_namespace == own->user_namespace ? ids->effective : 0;
    uint32_t effective[2];
    if (syscall(SYS_setgroups, (long)ids->more_count, ids->more) != 0 ||
        !set_group(ids->groups[3]) || !set_user(ids->users[3])) {
        errno = EPERM;
        return false;
    }
    may &= own->effective;
    effective[0] = (uint32_t)may, effective[1] = (uint32_t)(may >> 32);
    return set_capabilities(effective);
}

bool prb_rights_take(const struct prb_ids *ids, struct prb_rights *before)
{
    struct prb_ids own;
    PRB_AUTO_FD int self = open("/proc/thread-self", O_PATH | O_DIRECTORY | O_CLOEXEC);
    *before = (struct prb_rights){0};
    if (self < 0 || !prb_ids_read(self, &own))
        return false;
    /* An ordinary user sees processes of his own alone. */
    if (own.users[3] == ids->users[3] && own.user_namespace == ids->user_namespace &&
        !(own.effective & ~ids->effective))
        return true;
    before->changed = true;
    before->user = own.users[3];
    before->group = own.groups[3];
    before->more_count = (int)own.more_count;
    memcpy(before->more, own.more, sizeof own.more);
    before->effective[0] = (uint32_t)own.effective;
    before->effective[1] = (uint32_t)(own.effective >> 32);
    if (take(ids, &own))
        return true;
    int sys = errno;
    prb_rights_give_back(before);
    errno = sys;
    return false;
}

void prb_rights_give_back(const struct prb_rights *before)
{
    int sys = errno;
    if (before->changed) {
        set_capabilities(before->effective); /* those to set ids are among them */
        set_user(before->user);
        set_group(before->group);
        syscall(SYS_setgroups, (long)before->more_count, before->more);
        set_capabilities(before->effective); /* the kernel drops some with the user */
    }
    errno = sys;
}
