/* The processes below a launched program: see tree.h. */
#include "dap/attach/tree.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/syscalls.h"
#include "proc/stat.h"

#define STAT_PGRP 5 /* proc_pid_stat(5) */

struct one {
    pid_t pid, parent, group;
    int64_t started;
    bool below;
};

static bool read_one(pid_t pid, struct one *out)
{
    char folder[32];
    struct prb_stat stat;
    snprintf(folder, sizeof folder, "/proc/%d", (int)pid);
    if (!prb_stat_of(folder, &stat) || stat.state == 'Z' || stat.state == 'X')
        return false;
    *out = (struct one){.pid = pid,
                        .parent = (pid_t)stat.field[PRB_STAT_PPID],
                        .group = (pid_t)stat.field[STAT_PGRP],
                        .started = stat.field[PRB_STAT_STARTTIME]};
    return true;
}

static struct one *read_all(size_t *count_out)
{
    PRB_AUTO(dir) DIR *folder = opendir("/proc");
    struct one *all = NULL;
    size_t count = 0, room = 0;
    for (const struct dirent *entry; folder && (entry = readdir(folder));) {
        pid_t pid = (pid_t)atoi(entry->d_name);
        if (pid <= 0)
            continue;
        if (count == room) {
            room = room ? 2 * room : 256;
            struct one *more = realloc(all, room * sizeof *all);
            if (!more)
                break;
            all = more;
        }
        count += read_one(pid, &all[count]);
    }
    *count_out = count;
    return all;
}

static bool is_below(const struct one *all, size_t count, pid_t pid)
{
    for (size_t i = 0; i < count; i++)
        if (all[i].pid == pid)
            return all[i].below;
    return false;
}

/* Until a round finds no more: a child may stand before its parent. */
static void mark(struct one *all, size_t count, pid_t root)
{
    for (bool again = true; again;) {
        again = false;
        for (size_t i = 0; i < count; i++) {
            struct one *one = &all[i];
            if (one->below || one->pid == root || one->pid == getpid() ||
                !(one->parent == root || one->group == root || is_below(all, count, one->parent)))
                continue;
            one->below = again = true;
        }
    }
}

/* The number may belong to another process by now: then its start differs. */
static int open_one(const struct one *one)
{
    struct one now;
    int fd = (int)syscall(SYS_pidfd_open, one->pid, 0);
    if (fd >= 0 && read_one(one->pid, &now) && now.started == one->started)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

void prb_dap_tree_add(struct prb_dap_tree *tree, pid_t root)
{
    size_t count;
    PRB_AUTO_FREE struct one *all = read_all(&count);
    if (!tree->pidfds)
        tree->pidfds = calloc(PRB_DAP_TREE_MAX, sizeof *tree->pidfds);
    mark(all, count, root);
    for (size_t i = 0; i < count && tree->pidfds && tree->count < PRB_DAP_TREE_MAX; i++) {
        int fd = all[i].below ? open_one(&all[i]) : -1;
        if (fd >= 0)
            tree->pidfds[tree->count++] = fd;
    }
}

void prb_dap_tree_signal(const struct prb_dap_tree *tree, int number)
{
    for (size_t i = 0; i < tree->count; i++)
        syscall(SYS_pidfd_send_signal, tree->pidfds[i], number, NULL, 0);
}

bool prb_dap_tree_has_ended(const struct prb_dap_tree *tree, int wait_ms)
{
    double until = prb_clock_s() + wait_ms / 1000.0;
    for (size_t i = 0; i < tree->count; i++) {
        struct pollfd fd = {.fd = tree->pidfds[i], .events = POLLIN};
        double left = until - prb_clock_s();
        if (poll(&fd, 1, left > 0 ? (int)(left * 1000) + 1 : 0) != 1)
            return false;
    }
    return true;
}

void prb_dap_tree_deinit(struct prb_dap_tree *tree)
{
    for (size_t i = 0; i < tree->count; i++)
        close(tree->pidfds[i]);
    free(tree->pidfds);
    *tree = (struct prb_dap_tree){0};
}
