/*
 * Snapshots: the target is decoded once through a recording source, and what that touched is
 * written as a small core. So a snapshot holds just what the same questions need again, and grows
 * with the questions, not with the target.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "inspect/secrets.h"
#include "inspect/snapshot.h"
#include "proc/save.h"

#define SNAPSHOT_TRIES                                                                             \
    5 /* decodings until the recorded pages give the same stacks as the live ones */

static struct prb_target *open_again(const struct prb_target *target, struct prb_error *err)
{
    const struct prb_debugger *debugger = &target->debugger;
    if (debugger->pid || debugger->core)
        return prb_target_over_debugger(debugger, target->exe, target->sysroot, true, err);
    if (!prb_proc_live(target->proc))
        return prb_target_open_core(target->path, target->exe, target->sysroot, true, err);
    struct prb_proc *proc = prb_proc_open(prb_proc_pid(target->proc), err);
    return proc ? prb_target_over(proc, true, err) : NULL;
}

/* Texts that tables read and stacks do not.  The environment is left out: it may hold secrets. */
static void record_texts(struct prb_target *target)
{
    static const char *const names[] = {"maps", "status",  "stat",   "statm",
                                        "comm", "cmdline", "limits", "cgroup"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        PRB_AUTO(prb_buf) struct prb_buf text = {0};
        prb_proc_text(target->proc, names[i], &text, NULL);
    }
}

/* All tasks are named in the file; those without registers were not stopped. */
static bool keep_all_tasks(struct prb_target *target, struct prb_error *err)
{
    PRB_AUTO(prb_tasks) struct prb_tasks tasks = {0};
    if (!prb_proc_tasks(target->proc, &tasks, err))
        return false;
    for (size_t i = 0; i < tasks.count; i++) {
        bool known = false;
        for (size_t k = 0; k < target->saved_count; k++)
            known |= target->saved[k].tid == tasks.items[i].tid;
        if (!known)
            prb_target_save_registers(target, tasks.items[i].tid, &(struct prb_registers){0});
    }
    return true;
}

/* Debuggers select the first thread of a core: the one that got the signal, else the main one. */
static void put_first(struct prb_target *target)
{
    const struct prb_target_info *info = prb_target_info(target);
    pid_t tid = info->signalled ? info->signalled : info->pid;
    for (size_t i = 1; i < target->saved_count; i++)
        if (target->saved[i].tid == tid) {
            struct prb_saved_task first = target->saved[i];
            memmove(&target->saved[1], &target->saved[0], i * sizeof first);
            target->saved[0] = first;
        }
}

static bool same_text(const char *a, const char *b) { return strcmp(a ? a : "", b ? b : "") == 0; }

/* Threads whose frames differ between the process and the file, or were read while they changed. */
static size_t count_moved(const struct prb_stacks *seen, const struct prb_stacks *told)
{
    size_t moved = 0;
    for (size_t i = 0; i < seen->thread_count; i++) {
        const struct prb_thread *a = &seen->threads[i];
        const struct prb_thread *b = i < told->thread_count ? &told->threads[i] : NULL;
        bool same =
            b && !a->unstable && a->thread_id == b->thread_id && a->frame_count == b->frame_count;
        for (size_t k = 0; same && k < a->frame_count; k++)
            same = a->frames[k].addr == b->frames[k].addr &&
                   a->frames[k].line == b->frames[k].line &&
                   same_text(a->frames[k].name, b->frames[k].name);
        moved += !same;
    }
    return moved;
}

/* Searched in the target itself: what the copy reads gets into the file. */
static bool hide_secrets(struct prb_target *target, struct prb_target *copy,
                         const struct prb_stacks *seen, struct prb_error *err)
{
    PRB_AUTO(prb_hidden) struct prb_hidden secrets = {0};
    prb_secrets_find(target, &secrets);
    prb_secrets_add_locals(&secrets, seen);
    return prb_secrets_hide(copy, &secrets, err);
}

/* Opened with the rights that wrote it: the path may lead elsewhere by now. */
static struct prb_target *open_saved(const char *path, const struct prb_ids *as,
                                     struct prb_error *err)
{
    struct prb_rights before = {0};
    struct stat info;
    char name[32];
    if (!as)
        return prb_target_open_core(path, NULL, NULL, false, err);
    bool taken = prb_rights_take(as, &before);
    PRB_AUTO_FD int fd =
        taken ? open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY) : -1;
    prb_rights_give_back(&before);
    if (fd < 0 || fstat(fd, &info) != 0 || !S_ISREG(info.st_mode))
        return PRB_NULL(prb_fail(err, PRB_IO, "%s cannot be read again", path));
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    return prb_target_open_core(name, NULL, NULL, false, err);
}

/* One recording to path.  *moved_out: threads that went on while they were copied, so that their
 * stack may be mixed. */
static bool write_once(struct prb_target *target, const char *path, const struct prb_ids *as,
                       const struct prb_snapshot_options *options, uint64_t *bytes_out,
                       size_t *moved_out, struct prb_error *err)
{
    struct prb_stack_options what = {.native = options->native,
                                     .locals = options->locals,
                                     .all_interpreters = true,
                                     .stop = options->stop};
    struct prb_target *copy = open_again(target, err);
    if (!copy)
        return false;
    record_texts(copy);
    struct prb_stacks *seen = prb_stacks_take(copy, &what, err);
    bool ok = seen && keep_all_tasks(copy, err);
    if (ok)
        put_first(copy);
    ok = ok && hide_secrets(target, copy, seen, err) &&
         prb_proc_save_as(copy->proc, copy->mem, copy->saved, copy->saved_count, path, as,
                          bytes_out, err);
    prb_target_close(copy);
    struct prb_target *file = ok ? open_saved(path, as, err) : NULL;
    what.stop = false;
    struct prb_stacks *told = file ? prb_stacks_take(file, &what, err) : NULL;
    if (told)
        *moved_out = count_moved(seen, told);
    prb_stacks_free(told);
    prb_target_close(file);
    prb_stacks_free(seen);
    return told != NULL;
}

bool prb_snapshot_write_as(struct prb_target *target, const char *path, const struct prb_ids *as,
                           const struct prb_snapshot_options *options, uint64_t *bytes_out,
                           size_t *moved_out, struct prb_error *err)
{
    static const struct prb_snapshot_options defaults;
    size_t moved = 1;
    uint64_t bytes = 0;
    for (int tries = 0; tries < SNAPSHOT_TRIES && moved; tries++)
        if (!write_once(target, path, as, options ? options : &defaults, &bytes, &moved, err))
            return false;
    *bytes_out = bytes;
    *moved_out = moved;
    return true;
}

bool prb_snapshot_write(struct prb_target *target, const char *path,
                        const struct prb_snapshot_options *options, uint64_t *bytes_out,
                        size_t *moved_out, struct prb_error *err)
{
    return prb_snapshot_write_as(target, path, NULL, options, bytes_out, moved_out, err);
}
