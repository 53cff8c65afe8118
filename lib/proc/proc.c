/*
 * What all processes have in common, live or not: texts and their recording, maps, tasks, system
 * calls. The sources (live.c, core.c) give texts; this file reads them.
 */
#include "proc/source.h"

#include <stdio.h>
#include <string.h>

/* pid_max of 64-bit Linux: more threads than this cannot be. */
#define TASKS_MAX 4194304
/* Texts that are kept: some for each thread. */
#define TEXTS_MAX (4u * TASKS_MAX)

void prb_proc_deinit(struct prb_proc *proc)
{
    for (size_t i = 0; i < proc->text_count; i++) {
        free(proc->texts[i].name);
        prb_buf_deinit(&proc->texts[i].text);
    }
    free(proc->texts);
    free(proc->text_table);
    prb_maps_deinit(&proc->maps);
    prb_mem_free(proc->mem);
}

void prb_proc_free(struct prb_proc *proc)
{
    if (proc)
        proc->ops->free(proc);
}

pid_t prb_proc_pid(const struct prb_proc *proc) { return proc->pid; }

bool prb_proc_live(const struct prb_proc *proc) { return proc->ops == &prb_proc_live_ops; }

double prb_proc_time(const struct prb_proc *proc) { return proc->time; }

bool prb_proc_is_snapshot(const struct prb_proc *proc) { return proc->snapshot; }

bool prb_proc_check(struct prb_proc *proc, struct prb_error *err)
{
    return proc->ops->check(proc, err);
}

/* ---- texts ---- */

/* The place of a name in the table, or the empty one where it belongs. */
static uint32_t *text_slot(const struct prb_proc *proc, const char *name)
{
    uint32_t hash = 2166136261u;
    for (const char *c = name; *c; c++)
        hash = (hash ^ (uint8_t)*c) * 16777619u;
    size_t slot = hash & proc->text_mask;
    while (proc->text_table[slot] &&
           strcmp(proc->texts[proc->text_table[slot] - 1].name, name) != 0)
        slot = (slot + 1) & proc->text_mask;
    return &proc->text_table[slot];
}

/* At most half full. */
static bool grow_text_table(struct prb_proc *proc)
{
    if (proc->text_table && proc->text_count * 2 < proc->text_mask)
        return true;
    size_t size = proc->text_table ? (proc->text_mask + 1) * 2 : 64;
    uint32_t *table = calloc(size, sizeof *table);
    if (!table)
        return false;
    free(proc->text_table);
    proc->text_table = table;
    proc->text_mask = size - 1;
    for (size_t i = 0; i < proc->text_count; i++)
        *text_slot(proc, proc->texts[i].name) = (uint32_t)(i + 1);
    return true;
}

const struct prb_proc_text *prb_proc_kept(const struct prb_proc *proc, const char *name)
{
    uint32_t found = proc->text_table ? *text_slot(proc, name) : 0;
    return found ? &proc->texts[found - 1] : NULL;
}

bool prb_proc_keep(struct prb_proc *proc, const char *name, const char *text, size_t len)
{
    struct prb_proc_text *kept = (struct prb_proc_text *)prb_proc_kept(proc, name);
    if (!kept) {
        if (proc->text_count == TEXTS_MAX || !grow_text_table(proc) ||
            !PRB_GROW(proc->texts, proc->text_count, proc->text_cap))
            return false;
        kept = &proc->texts[proc->text_count];
        *kept = (struct prb_proc_text){.name = strdup(name)};
        if (!kept->name)
            return false;
        *text_slot(proc, name) = (uint32_t)++proc->text_count;
    }
    kept->text.len = 0;
    prb_buf_add(&kept->text, text, len);
    return prb_buf_ok(&kept->text);
}

void prb_proc_record(struct prb_proc *proc) { proc->recording = true; }

static bool recorded(struct prb_proc *proc, const char *name, const struct prb_buf *out,
                     size_t from, struct prb_error *err)
{
    if (!prb_buf_ok(out) ||
        (proc->recording && !prb_proc_keep(proc, name, out->data + from, out->len - from)))
        return prb_fail(err, PRB_NOMEM, "out of memory");
    return true;
}

bool prb_proc_text(struct prb_proc *proc, const char *name, struct prb_buf *out,
                   struct prb_error *err)
{
    size_t from = out->len;
    prb_buf_add(out, "", 0);
    return proc->ops->text(proc, name, out, err) && recorded(proc, name, out, from, err);
}

const struct prb_maps *prb_proc_maps(struct prb_proc *proc, bool refresh, struct prb_error *err)
{
    if (proc->maps_read && !refresh)
        return &proc->maps;
    PRB_AUTO(prb_buf) struct prb_buf text = {0};
    struct prb_maps maps;
    if (!prb_proc_text(proc, "maps", &text, err) ||
        !prb_maps_parse(text.data, text.len, &maps, err))
        return NULL;
    if (maps.count == 0) {
        prb_maps_deinit(&maps);
        return PRB_NULL(
            prb_fail(err, PRB_GONE, "process %d has no memory: it is ending", (int)proc->pid));
    }
    prb_maps_deinit(&proc->maps);
    proc->maps = maps;
    proc->maps_read = true;
    return &proc->maps;
}

/* ---- tasks ---- */

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

bool prb_proc_task_look(struct prb_proc *proc, struct prb_task *task)
{
    char name[48];
    snprintf(name, sizeof name, "task/%d/stat", (int)task->tid);
    PRB_AUTO(prb_buf) struct prb_buf text = {0};
    struct prb_stat stat;
    if (!prb_proc_text(proc, name, &text, NULL) || !prb_stat_parse(text.data, &stat))
        return false;
    task->state = stat.state;
    task->cpu_ticks = stat.utime + stat.stime;
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
    if (!proc->ops->tids(proc, &list, err) || !recorded(proc, "task", &list, 0, err))
        return false;
    char *at = list.data, *end;
    for (long tid; (tid = strtol(at, &end, 10)) > 0 && tid <= TASKS_MAX; at = end) {
        if (!PRB_GROW(tasks.items, tasks.count, cap))
            return prb_fail(err, PRB_NOMEM, "out of memory");
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
        count += prb_proc_task_look(proc, &tasks.items[count]);
    }
    tasks.count = count;
    if (count == 0)
        return prb_fail(err, PRB_GONE, "process %d ended", (int)proc->pid);
    *out = tasks;
    tasks = (struct prb_tasks){0};
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
    struct prb_syscall call = {0};
    if (strncmp(text.data, "running", 7) == 0) {
        call.running = true;
        *out = call;
        return true;
    }
    unsigned long long word[8] = {0};
    long long number;
    int n = sscanf(text.data, "%lld %llx %llx %llx %llx %llx %llx %llx %llx", &number, &word[0],
                   &word[1], &word[2], &word[3], &word[4], &word[5], &word[6], &word[7]);
    if (n != 3 && n != 9)
        return prb_fail(err, PRB_CORRUPT, "/proc/%d/task/%d/syscall makes no sense", (int)proc->pid,
                        (int)tid);
    call.number = number;
    call.sp = word[n - 3];
    call.pc = word[n - 2];
    for (int i = 0; n == 9 && i < 6; i++)
        call.args[i] = word[i];
    *out = call;
    return true;
}

/* ---- the rest is the source's ---- */

bool prb_proc_registers(struct prb_proc *proc, pid_t tid, struct prb_registers *out,
                        struct prb_error *err)
{
    return proc->ops->registers(proc, tid, out, err);
}

int prb_proc_open_map(struct prb_proc *proc, const struct prb_map *map, struct prb_error *err)
{
    return proc->ops->open_map(proc, map, err);
}

int prb_proc_open_path(struct prb_proc *proc, const char *path)
{
    return proc->ops->open_path(proc, path);
}

struct prb_mem *prb_proc_mem(struct prb_proc *proc, struct prb_error *err)
{
    if (!proc->mem)
        proc->mem = proc->ops->mem_new(proc, err);
    return proc->mem;
}
