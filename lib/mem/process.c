/*
 * Memory of another process: process_vm_readv(2), or pread on /proc/PID/mem where the kernel lacks
 * or forbids it. One of the few files where a target address becomes a pointer, for the system call
 * only.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>

#include "mem/mem.h"

struct process {
    struct prb_mem base;
    pid_t pid;
    int fd; /* /proc/PID/mem, or -1: process_vm_readv */
};

/* Ranges go to the kernel in batches, of fewer vectors than it takes: they lie on the stack. */
#define BATCH 256
_Static_assert(BATCH <= IOV_MAX, "the kernel refuses more vectors");

static bool lost(const struct process *self, int sys, struct prb_error *err)
{
    if (sys == ESRCH)
        return prb_fail(err, PRB_GONE, "process %d ended", (int)self->pid);
    return prb_fail_sys(err, sys, "cannot read the memory of process %d", (int)self->pid);
}

/* Whether an errno speaks of the address, not of the process. */
static bool is_bad_address(int sys)
{
    return sys == EFAULT || sys == EINVAL || sys == EIO || sys == ENOMEM;
}

/* One call for the ranges from first on, whose first `done` bytes came already; returns as the
 * system call does. */
static ssize_t read_batch(pid_t pid, const struct prb_range *ranges, size_t count, size_t done)
{
    struct iovec local[BATCH], remote[BATCH];
    size_t n = count < BATCH ? count : BATCH, there = 0;
    prb_addr end = 0;
    for (size_t i = 0; i < n; i++) {
        local[i] = (struct iovec){ranges[i].buf, ranges[i].len};
        /* What lies side by side is pinned once. */
        if (there && ranges[i].addr == end)
            remote[there - 1].iov_len += ranges[i].len;
        else
            remote[there++] = (struct iovec){(void *)(uintptr_t)ranges[i].addr, ranges[i].len};
        end = ranges[i].addr + ranges[i].len;
    }
    local[0].iov_base = (char *)local[0].iov_base + done;
    local[0].iov_len -= done;
    remote[0].iov_base = (char *)remote[0].iov_base + done;
    remote[0].iov_len -= done;
    ssize_t got;
    do
        got = process_vm_readv(pid, local, n, remote, there, 0);
    while (got < 0 && errno == EINTR);
    return got;
}

/*
 * The kernel stops at the first bad byte and returns only a total.  So we deal the total out over
 * the ranges and begin the next call where it ended: an error then is about that address, and we
 * give up the rest of that range.
 */
static bool process_readv(struct prb_mem *mem, struct prb_range *ranges, size_t count,
                          struct prb_error *err)
{
    struct process *self = (struct process *)mem;
    for (size_t i = 0; i < count; i++)
        ranges[i].got = 0;
    size_t at = 0;
    while (at < count) {
        struct prb_range *first = &ranges[at];
        if (first->got == first->len) {
            at++;
            continue;
        }
        ssize_t n = read_batch(self->pid, first, count - at, first->got);
        if (n < 0 && !is_bad_address(errno))
            return lost(self, errno, err);
        if (n <= 0) {
            at++;
            continue;
        }
        for (size_t left = (size_t)n; left && at < count; at++) {
            size_t room = ranges[at].len - ranges[at].got;
            size_t part = left < room ? left : room;
            ranges[at].got += part;
            left -= part;
            if (ranges[at].got < ranges[at].len)
                break;
        }
    }
    return true;
}

static bool file_readv(struct prb_mem *mem, struct prb_range *ranges, size_t count,
                       struct prb_error *err)
{
    struct process *self = (struct process *)mem;
    for (size_t i = 0; i < count; i++)
        ranges[i].got = 0;
    for (size_t i = 0; i < count; i++) {
        struct prb_range *range = &ranges[i];
        /* File offsets are signed: nothing lies above. */
        while (range->got < range->len && range->addr + range->got <= INT64_MAX) {
            ssize_t n = pread(self->fd, (char *)range->buf + range->got, range->len - range->got,
                              (off_t)(range->addr + range->got));
            if (n < 0 && errno == EINTR)
                continue;
            if (n < 0 && !is_bad_address(errno))
                return lost(self, errno, err);
            /* End of file: the address space that was opened is gone. */
            if (n == 0)
                return lost(self, ESRCH, err);
            if (n < 0)
                break;
            range->got += (size_t)n;
        }
    }
    return true;
}

static void process_free(struct prb_mem *mem)
{
    struct process *self = (struct process *)mem;
    if (self->fd >= 0)
        close(self->fd);
    free(self);
}

static const struct prb_mem_ops process_ops = {"process", process_readv, process_free};
static const struct prb_mem_ops file_ops = {"process (/proc/PID/mem)", file_readv, process_free};

struct prb_mem *prb_mem_process_file_new(pid_t pid, struct prb_error *err)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/mem", (int)pid);
    PRB_AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        if (errno == ENOENT)
            return PRB_NULL(prb_fail(err, PRB_GONE, "process %d ended", (int)pid));
        return PRB_NULL(prb_fail_sys(err, errno, "cannot read the memory of process %d", (int)pid));
    }
    struct process *self = calloc(1, sizeof *self);
    if (!self)
        return PRB_NULL(prb_nomem(err));
    *self = (struct process){{&file_ops, 0, 0}, pid, fd};
    fd = -1;
    return &self->base;
}

struct prb_mem *prb_mem_process_new(pid_t pid, struct prb_error *err)
{
    /* The kernel checks the right to read before the address, so reading address 0 shows whether it
     * lets us. */
    char byte;
    struct prb_range none = {.addr = 0, .buf = &byte, .len = 1};
    int sys = read_batch(pid, &none, 1, 0) < 0 ? errno : 0;
    if (sys == ENOSYS || sys == EPERM)
        return prb_mem_process_file_new(pid, err);
    if (sys == ESRCH)
        return PRB_NULL(prb_fail(err, PRB_GONE, "process %d ended", (int)pid));
    struct process *self = calloc(1, sizeof *self);
    if (!self)
        return PRB_NULL(prb_nomem(err));
    *self = (struct process){{&process_ops, 0, 0}, pid, -1};
    return &self->base;
}
