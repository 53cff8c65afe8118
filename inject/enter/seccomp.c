/*
 * Whether a seccomp(2) filter allows loading a library.  /proc gives the number of a process's
 * filters, but neither when they were installed nor what they do: the first is inferred from its
 * ancestors, and where that fails the filters themselves are run (seccomp_filter.c).
 */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "inject/enter/steps.h"
#include "proc/stat.h"

#define GENERATIONS_MAX 256

enum mode { NONE, STRICT, FILTER };

/* ---- the ancestors ---- */

static bool status_of(pid_t pid, char *out, size_t cap)
{
    char path[40];
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    return prb_read_text(path, out, cap) > 0;
}

static long long filters(const char *status)
{
    return prb_inject_status(status, "Seccomp_filters", 10);
}

/* What execve(2) changes and fork(2) copies. */
struct image {
    dev_t device;
    ino_t inode;
    uint64_t code, stack;
};

/* False: we may not read it. */
static bool image_of(pid_t pid, struct image *out)
{
    char path[40];
    struct stat info;
    struct prb_stat stat_;
    snprintf(path, sizeof path, "/proc/%d/exe", (int)pid);
    if (stat(path, &info) != 0)
        return false;
    snprintf(path, sizeof path, "/proc/%d", (int)pid);
    if (!prb_stat_of(path, &stat_))
        return false;
    *out = (struct image){info.st_dev, info.st_ino, (uint64_t)stat_.field[PRB_STAT_STARTCODE],
                          (uint64_t)stat_.field[PRB_STAT_STARTSTACK]};
    return out->stack != 0;
}

static bool same_image(pid_t a, pid_t b)
{
    struct image one, other;
    /* What we may not read may be the same. */
    return !image_of(a, &one) || !image_of(b, &other) ||
           (one.device == other.device && one.inode == other.inode && one.code == other.code &&
            one.stack == other.stack);
}

/*
 * The oldest ancestor with as many filters as the target: it installed the last of them, or was
 * started after that.  *first_out: it is the first process that is visible here, init or the
 * container's.
 */
static pid_t eldest(pid_t pid, const char *status, bool *first_out)
{
    char text[4096];
    long long count = filters(status);
    pid_t at = pid;
    *first_out = false;
    snprintf(text, sizeof text, "%s", status);
    for (unsigned i = 0; i < GENERATIONS_MAX; i++) {
        pid_t parent = (pid_t)prb_inject_status(text, "PPid", 10);
        *first_out = parent == 0;
        if (parent <= 0 || !status_of(parent, text, sizeof text) || filters(text) < count)
            break;
        at = parent;
    }
    return at;
}

/* We are in the same container and have as many filters: they are the container's. */
static bool is_containers(long long count)
{
    char text[4096];
    return status_of(getpid(), text, sizeof text) && filters(text) == count;
}

/*
 * A filter that existed when the program was started has let it load libraries and make threads.
 * One that was installed later may forbid anything, to children that were forked since, too.
 */
static bool let_it_start(pid_t pid, const char *status)
{
    bool first;
    long long count = filters(status);
    if (count <= 0)
        return false;
    pid_t origin = eldest(pid, status, &first);
    return (origin != pid && !same_image(origin, pid)) || (first && is_containers(count));
}

bool prb_seccomp_alike(pid_t a, pid_t b)
{
    char one[4096], other[4096];
    return status_of(a, one, sizeof one) && status_of(b, other, sizeof other) &&
           prb_inject_status(one, "Seccomp", 10) == prb_inject_status(other, "Seccomp", 10) &&
           filters(one) == filters(other);
}

/* ---- the verdict ---- */

bool prb_seccomp_allows(struct prb_proc *proc, const char *status, struct prb_error *err)
{
    pid_t pid = prb_proc_pid(proc);
    long long mode = prb_inject_status(status, "Seccomp", 10);
    if (mode == STRICT) {
        prb_fail(err, PRB_UNSUPPORTED,
                 "process %d is in seccomp's strict mode: it may only read and write", (int)pid);
        return prb_error_remedy(err, "Read it from outside: probing -t %d backtrace", (int)pid);
    }
    if (mode != FILTER || let_it_start(pid, status) || prb_seccomp_filters_allow(proc))
        return true;
    prb_fail(err, PRB_UNSUPPORTED,
             "process %d, or the one that it was forked from, has installed a seccomp filter "
             "that may kill it for loading a library",
             (int)pid);
    return prb_error_remedy(err, "Start the job with PROBING=1");
}
