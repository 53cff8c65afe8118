/*
 * The kernel's threads of a target: their list, ids in its pid namespace, state and system call.
 */
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "proc/source.h"
#include "proc/stat.h"

#ifndef SCHED_DEADLINE
#define SCHED_DEADLINE 6
#endif

void prb_tasks_deinit(struct prb_tasks *tasks)
{
    free(tasks->items);
    *tasks = (struct prb_tasks){0};
}

/* The last number of the line "NSpid:" of a status text; 0: none.  *levels_out: how many there are.
 */
static pid_t innermost(const char *status, unsigned *levels_out)
{
    const char *at = strstr(status, "\nNSpid:");
    pid_t last = 0;
    *levels_out = 0;
    for (at = at ? at + 7 : ""; *at && *at != '\n';) {
        char *end;
        long number = strtol(at, &end, 10);
        if (end == at)
            break;
        last = (pid_t)number;
        ++*levels_out;
        at = end;
        at += strspn(at, "\t ");
    }
    return last;
}

static pid_t inner_tid(struct prb_proc *proc, pid_t tid)
{
    if (proc->inner == 0)
        return tid;
    char name[48];
    snprintf(name, sizeof name, "task/%d/status", (int)tid);
    PRB_AUTO(prb_buf) struct prb_buf text = {0};
    unsigned levels;
    pid_t inner = 0;
    if (prb_proc_text(proc, name, &text, NULL))
        inner = innermost(text.data, &levels);
    return inner ? inner : tid;
}

/* Whether the target's innermost pid namespace is another than ours. */
static void look_at_namespace(struct prb_proc *proc)
{
    PRB_AUTO(prb_buf) struct prb_buf text = {0};
    unsigned levels = 0;
    if (prb_proc_text(proc, "status", &text, NULL))
        innermost(text.data, &levels);
    proc->inner = levels > 1;
}

bool prb_stat_read(struct prb_proc *proc, const char *name, struct prb_stat *out)
{
    PRB_AUTO(prb_buf) struct prb_buf text = {0};
    return prb_proc_text(proc, name, &text, NULL) && text.data && prb_stat_parse(text.data, out);
}

bool prb_status_number(const struct prb_buf *text, const char *key, int64_t *out)
{
    size_t len = strlen(key);
    for (const char *line = text->data; line && *line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, key, len) != 0 || line[len] != ':')
            continue;
        char *end;
        *out = strtoll(line + len + 1, &end, 10);
        return end != line + len + 1;
    }
    return false;
}

bool prb_proc_task_read(struct prb_proc *proc, struct prb_task *task)
{
    char name[48];
    snprintf(name, sizeof name, "task/%d/stat", (int)task->tid);
    struct prb_stat stat;
    if (!prb_stat_read(proc, name, &stat))
        return false;
    int64_t policy = stat.field[PRB_STAT_POLICY];
    task->state = stat.state == '?' ? 0 : stat.state;
    task->cpu_ticks = (uint64_t)(stat.field[PRB_STAT_UTIME] + stat.field[PRB_STAT_STIME]);
    task->cpu = (int)stat.field[PRB_STAT_PROCESSOR];
    task->real_time = policy == SCHED_FIFO || policy == SCHED_RR || policy == SCHED_DEADLINE;
    memcpy(task->comm, stat.comm, sizeof task->comm);
    return true;
}

static int by_tid(const void *left, const void *right)
{
    const struct prb_task *a = left, *b = right;
    return a->tid < b->tid ? -1 : a->tid > b->tid;
}

bool prb_proc_tids(struct prb_proc *proc, struct prb_tasks *out, struct prb_error *err)
{
    PRB_AUTO(prb_buf) struct prb_buf list = {0};
    PRB_AUTO(prb_tasks) struct prb_tasks tasks = {0};
    size_t cap = 0;
    if (proc->inner < 0)
        look_at_namespace(proc);
    prb_buf_add(&list, "", 0);
    if (!prb_proc_answer_saved(proc, "task", &list) &&
        (!proc->ops->tids(proc, &list, err) || !prb_proc_record_text(proc, "task", &list, 0, err)))
        return false;
    char *at = list.data, *end;
    for (long tid; (tid = strtol(at, &end, 10)) > 0 && tid <= PRB_TASKS_MAX; at = end) {
        if (!PRB_GROW(tasks.items, tasks.count, cap))
            return prb_nomem(err);
        tasks.items[tasks.count++] =
            (struct prb_task){.tid = (pid_t)tid, .inner_tid = inner_tid(proc, (pid_t)tid)};
    }
    if (tasks.count == 0)
        return prb_fail(err, PRB_GONE, "process %d ended", (int)proc->pid);
    qsort(tasks.items, tasks.count, sizeof *tasks.items, by_tid);
    for (size_t i = 1; i < tasks.count; i++) {
        if (tasks.items[i].tid != proc->pid)
            continue;
        struct prb_task leader = tasks.items[i];
        memmove(tasks.items + 1, tasks.items, i * sizeof leader);
        tasks.items[0] = leader;
    }
    tasks.inner_ascends = true;
    for (size_t i = 2; i < tasks.count && tasks.inner_ascends; i++)
        tasks.inner_ascends = tasks.items[i].inner_tid > tasks.items[i - 1].inner_tid;
    *out = tasks;
    tasks = (struct prb_tasks){0};
    return true;
}

bool prb_proc_tasks(struct prb_proc *proc, struct prb_tasks *out, struct prb_error *err)
{
    PRB_AUTO(prb_tasks) struct prb_tasks tasks = {0};
    if (!prb_proc_tids(proc, &tasks, err))
        return false;
    size_t count = 0;
    for (size_t i = 0; i < tasks.count; i++) {
        tasks.items[count] = tasks.items[i];
        count += prb_proc_task_read(proc, &tasks.items[count]);
    }
    tasks.count = count;
    if (count == 0)
        return prb_fail(err, PRB_GONE, "process %d ended", (int)proc->pid);
    *out = tasks;
    tasks = (struct prb_tasks){0};
    return true;
}

/* ---- whose task it is ---- */

static int by_inner(const void *key, const void *item)
{
    uint64_t wanted = *(const uint64_t *)key;
    uint64_t inner = (uint64_t)((const struct prb_task *)item)->inner_tid;
    return wanted < inner ? -1 : wanted > inner;
}

const struct prb_task *prb_tasks_by_inner(const struct prb_tasks *tasks, uint64_t inner)
{
    if (tasks->count && (uint64_t)tasks->items[0].inner_tid == inner)
        return &tasks->items[0];
    if (tasks->count && tasks->inner_ascends)
        return bsearch(&inner, tasks->items + 1, tasks->count - 1, sizeof *tasks->items, by_inner);
    for (size_t i = 1; i < tasks->count; i++)
        if ((uint64_t)tasks->items[i].inner_tid == inner)
            return &tasks->items[i];
    return NULL;
}

const struct prb_task *prb_tasks_by_pthread(const struct prb_tasks *tasks, struct prb_mem *mem,
                                            prb_addr pthread)
{
    enum { LIKELY = 0x2d0, WORDS = 512 };
    uint32_t words[WORDS];
    size_t got = prb_mem_read_some(mem, pthread, words, sizeof words) / sizeof *words;
    const struct prb_task *task =
        got > LIKELY / 4 ? prb_tasks_by_inner(tasks, words[LIKELY / 4]) : NULL;
    for (size_t i = 0; !task && i < got; i++)
        if (words[i] > 1)
            task = prb_tasks_by_inner(tasks, words[i]);
    return task;
}

bool prb_syscall_parse(const char *text, struct prb_syscall *out)
{
    struct prb_syscall call = {.running = strncmp(text, "running", 7) == 0};
    unsigned long long word[8] = {0};
    long long number = 0;
    int n = call.running
                ? 0
                : sscanf(text, "%lld %llx %llx %llx %llx %llx %llx %llx %llx", &number, &word[0],
                         &word[1], &word[2], &word[3], &word[4], &word[5], &word[6], &word[7]);
    if (!call.running && n != 3 && n != 9)
        return false;
    if (!call.running) {
        call.number = number;
        call.sp = word[n - 3];
        call.pc = word[n - 2];
    }
    for (int i = 0; n == 9 && i < 6; i++)
        call.args[i] = word[i];
    *out = call;
    return true;
}

bool prb_proc_syscall(struct prb_proc *proc, pid_t tid, struct prb_syscall *out,
                      struct prb_error *err)
{
    char name[48];
    snprintf(name, sizeof name, "task/%d/syscall", (int)tid);
    PRB_AUTO(prb_buf) struct prb_buf text = {0};
    if (!prb_proc_text(proc, name, &text, err))
        return false;
    return prb_syscall_parse(text.data, out) ||
           prb_fail(err, PRB_CORRUPT, "/proc/%d/task/%d/syscall cannot be parsed", (int)proc->pid,
                    (int)tid);
}
