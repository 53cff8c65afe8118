/*
 * Opens a target by pid, file or a part of a command line, or explains why it cannot.
 */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "inspect/heap.h"
#include "inspect/target.h"
#include "proc/stat.h"

#define CHILDREN_NAMED 4

static void runtimes_free(struct prb_target *target)
{
    for (size_t i = 0; target->runtimes && i < target->runtime_count; i++) {
        prb_sampler_free(target->runtimes[i].sampler);
        prb_objects_free(target->runtimes[i].objects);
    }
    free(target->runtimes);
}

void prb_target_close(struct prb_target *target)
{
    if (!target)
        return;
    if (target->kept)
        target->kept_free(target->kept);
    prb_heap_free(target->heap);
    prb_unwinder_free(target->unwinder);
    runtimes_free(target);
    prb_py_free(target->pys, target->runtime_count);
    prb_modules_deinit(&target->modules);
    prb_mem_free(target->mem);
    free(target->saved);
    prb_proc_free(target->proc);
    prb_arena_deinit(&target->arena);
    free(target);
}
PRB_DEFINE_AUTO_PTR(prb_target, struct prb_target, prb_target_close)

static bool runtimes_make(struct prb_target *target, struct prb_error *err)
{
    target->runtimes = calloc(target->runtime_count, sizeof *target->runtimes);
    if (!target->runtimes)
        return prb_nomem(err);
    for (size_t i = 0; i < target->runtime_count; i++) {
        struct prb_runtime *runtime = &target->runtimes[i];
        runtime->py = &target->pys[i];
        if (!(runtime->sampler = prb_sampler_new(runtime->py, target->proc, err)) ||
            !(runtime->objects = prb_objects_new(runtime->py, err)))
            return false;
    }
    return true;
}

static const char *version_of(struct prb_target *target)
{
    const struct prb_py *py = &target->pys[0];
    return prb_arena_printf(&target->arena, "%u.%u.%u%s", py->hexversion >> 24,
                            py->hexversion >> 16 & 255, py->hexversion >> 8 & 255,
                            py->layout.free_threaded ? "t" : "");
}

static void fill_info(struct prb_target *target)
{
    struct prb_target_info *info = &target->info;
    struct prb_proc *proc = target->proc;
    info->kind = prb_proc_live(proc)          ? PRB_TARGET_PROCESS
                 : prb_proc_exists(proc)      ? PRB_TARGET_CALLBACK
                 : prb_proc_is_snapshot(proc) ? PRB_TARGET_SNAPSHOT
                                              : PRB_TARGET_CORE;
    info->pid = prb_proc_pid(proc);
    info->command = prb_process_command(proc, &target->arena);
    info->executable = target->modules.count ? target->modules.items[0].path : NULL;
    info->python = version_of(target);
    info->layout = target->pys[0].origin;
    info->time = prb_proc_time(proc);
    info->signal = prb_proc_signal(proc, &info->signalled);
}

struct prb_target *prb_target_over(struct prb_proc *proc, bool record, struct prb_error *err)
{
    PRB_AUTO(prb_target) struct prb_target *target = calloc(1, sizeof *target);
    if (!target) {
        prb_proc_free(proc);
        return PRB_NULL(prb_nomem(err));
    }
    target->proc = proc;
    struct prb_mem *mem = prb_proc_mem(proc, err);
    if (!mem || !(target->mem = prb_mem_record_new(mem, err)))
        return NULL;
    target->recording = record;
    if (record)
        prb_proc_record(proc);
    else
        prb_mem_record_set(target->mem, PRB_RECORD_OFF);
    if (!prb_modules_init(&target->modules, proc, err) ||
        !prb_py_find(&target->modules, target->mem, &target->pys, &target->runtime_count, err) ||
        !runtimes_make(target, err)) {
        prb_proc_check(proc, err); /* if the target ended meanwhile, that is the reason */
        return NULL;
    }
    fill_info(target);
    return PRB_STEAL(target);
}

const struct prb_target_info *prb_target_info(const struct prb_target *target)
{
    return &target->info;
}

struct prb_unwinder *prb_target_unwinder(struct prb_target *target, struct prb_error *err)
{
    if (!target->unwinder)
        target->unwinder = prb_unwinder_new(&target->modules, target->mem, err);
    return target->unwinder;
}

/* ---- not Python ---- */

static bool descends_from(pid_t pid, pid_t ancestor, const struct prb_process_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        if (list->items[i].pid == pid)
            return list->items[i].ppid == ancestor;
    return false;
}

/* Users often give the pid of a launcher or shell, and mean its Python children. */
static void name_children(pid_t pid, struct prb_error *err)
{
    struct prb_process_list *list = prb_process_list(NULL);
    if (!list || !err)
        return;
    char found[sizeof err->text / 2] = "";
    size_t count = 0, used = 0;
    pid_t first = 0;
    for (size_t i = 0; i < list->count; i++) {
        const struct prb_process *child = &list->items[i];
        if (!descends_from(child->pid, pid, list))
            continue;
        if (!count++)
            first = child->pid;
        if (count <= CHILDREN_NAMED && used < sizeof found)
            used += (size_t)snprintf(found + used, sizeof found - used, "%s%d (%.40s)",
                                     count > 1 ? ", " : "", (int)child->pid, child->command);
    }
    prb_process_list_free(list);
    if (!count) {
        prb_error_remedy(err, "`probing list` shows the Python processes of this machine");
        return;
    }
    size_t length = strlen(err->text);
    snprintf(err->text + length, sizeof err->text - length, "; its Python child%s: %s%s",
             count > 1 ? "ren are" : " is", found, count > CHILDREN_NAMED ? ", …" : "");
    prb_error_remedy(err, "give the child in its place: probing %d …", (int)first);
}

#define PF_KTHREAD 0x00200000 /* of the flags in /proc/PID/stat (proc_pid_stat(5)) */

/* It has no memory of its own, as processes that ended. */
static bool is_kernel_thread(pid_t pid)
{
    struct prb_stat stat;
    PRB_AUTO(prb_proc) struct prb_proc *proc = prb_proc_open(pid, NULL);
    return proc && prb_stat_read(proc, "stat", &stat) && stat.count >= PRB_STAT_FLAGS &&
           stat.field[PRB_STAT_FLAGS] & PF_KTHREAD;
}

struct prb_target *prb_target_open_pid(pid_t pid, struct prb_error *err)
{
    struct prb_error own = {0};
    if (!err)
        err = &own;
    struct prb_proc *proc = prb_proc_open(pid, err);
    if (!proc)
        return NULL;
    struct prb_target *target = prb_target_over(proc, false, err);
    if (!target && err->code == PRB_NOT_PYTHON)
        name_children(pid, err);
    if (!target && err->code == PRB_GONE && is_kernel_thread(pid)) {
        prb_fail(err, PRB_NOT_PYTHON, "process %d is a thread of the kernel", (int)pid);
        prb_error_remedy(err, "`probing list` shows the Python processes of this machine");
    }
    return target;
}

struct prb_target *prb_target_open_name(const char *part, struct prb_error *err)
{
    char unused[PRB_NOTE_MAX];
    pid_t pid = prb_process_by_name(part, unused, err);
    return pid ? prb_target_open_pid(pid, err) : NULL;
}

/* ---- by anything ---- */

static bool all_digits(const char *text)
{
    size_t n = strspn(text, "0123456789");
    return n > 0 && text[n] == '\0';
}

static const char *copied(struct prb_target *target, const char *text)
{
    return text ? prb_arena_strdup(&target->arena, text) : NULL;
}

struct prb_target *prb_target_open_core(const char *path, const char *exe, const char *sysroot,
                                        bool record, struct prb_error *err)
{
    struct prb_proc *proc = prb_proc_open_core(path, exe, sysroot, err);
    struct prb_target *target = proc ? prb_target_over(proc, record, err) : NULL;
    if (!target)
        return NULL;
    target->path = copied(target, path);
    target->exe = copied(target, exe);
    target->sysroot = copied(target, sysroot);
    return target;
}

struct prb_target *prb_target_over_debugger(const struct prb_debugger *debugger, const char *exe,
                                            const char *sysroot, bool record, struct prb_error *err)
{
    struct prb_proc *inner = debugger->pid ? prb_proc_open(debugger->pid, err)
                                           : prb_proc_open_core(debugger->core, exe, sysroot, err);
    struct prb_proc *proc = inner ? prb_proc_of_debugger(inner, debugger->read, debugger->registers,
                                                         debugger->context, err)
                                  : NULL;
    struct prb_target *target = proc ? prb_target_over(proc, record, err) : NULL;
    if (!target)
        return NULL;
    target->debugger = *debugger;
    target->debugger.core = target->path = copied(target, debugger->core);
    target->exe = copied(target, exe);
    target->sysroot = copied(target, sysroot);
    return target;
}

struct prb_target *prb_target_open_debugger(const struct prb_debugger *debugger,
                                            const struct prb_target_options *options,
                                            struct prb_error *err)
{
    static const struct prb_target_options none;
    options = options ? options : &none;
    if (debugger->pid < 0 || (debugger->pid == 0) == (debugger->core == NULL))
        return PRB_NULL(prb_fail(err, PRB_USAGE, "a debugger holds a process or a core"));
    return prb_target_over_debugger(debugger, options->exe, options->sysroot, false, err);
}

#define TARGETS                                                                                    \
    "give a pid, a core file, a snapshot, a profile of `--format sqlite` (to `query`), or a part " \
    "of a command line"

static const char *kind_of_file(mode_t mode)
{
    return S_ISDIR(mode)    ? "folder"
           : S_ISSOCK(mode) ? "socket"
           : S_ISFIFO(mode) ? "pipe"
                            : "device";
}

bool prb_target_is_file(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && prb_proc_is_core(path);
}

/* There is such a file, no target, and no process has its path in its command line. */
static void no_target(const char *path, mode_t mode, struct prb_error *err)
{
    if (S_ISREG(mode))
        prb_fail(err, PRB_NOT_FOUND,
                 "%s is neither a core file nor a snapshot, and no Python process has it in its "
                 "command line",
                 path);
    else
        prb_fail(err, PRB_USAGE, "%s is a %s, and no Python process has it in its command line",
                 path, kind_of_file(mode));
    prb_error_remedy(err, TARGETS);
}

struct prb_target *prb_target_open(const char *spec, const struct prb_target_options *options,
                                   struct prb_error *err)
{
    struct stat st;
    if (all_digits(spec)) {
        errno = 0;
        long pid = strtol(spec, NULL, 10);
        if (errno || pid <= 0 || pid > INT_MAX)
            return PRB_NULL(prb_fail(err, PRB_USAGE, "%.40s is not a process id", spec));
        return prb_target_open_pid((pid_t)pid, err);
    }
    bool there = stat(spec, &st) == 0;
    if (there && S_ISREG(st.st_mode) && prb_proc_is_core(spec))
        return prb_target_open_core(spec, options ? options->exe : NULL,
                                    options ? options->sysroot : NULL, false, err);
    bool no_file = !there && errno == ENOENT && strchr(spec, '/') && !strchr(spec, ' ');
    struct prb_target *target = prb_target_open_name(spec, err); /* a part of a path, maybe */
    if (!target && err && err->code == PRB_NOT_FOUND && there) {
        no_target(spec, st.st_mode, err);
    } else if (!target && err && err->code == PRB_NOT_FOUND && no_file) {
        prb_fail(err, PRB_NOT_FOUND,
                 "no file %s, and no Python process with it in its command line", spec);
    }
    return target;
}
