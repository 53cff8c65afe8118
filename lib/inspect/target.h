/*
 * A target as a whole, inside the library: what struct prb_target of probing.h holds.
 * Layer: above py and native, below sql.
 */
#ifndef PRB_INSPECT_TARGET_H
#define PRB_INSPECT_TARGET_H

#include "native/native.h"
#include "py/object/object.h"
#include "py/sampler.h"

/* One CPython of the target, with its caches. */
struct prb_runtime {
    struct prb_py *py; /* borrowed from the target's runtimes */
    struct prb_sampler *sampler;
    struct prb_objects *objects;
};

struct prb_target {
    struct prb_target_info info;
    struct prb_arena arena; /* strings of info */
    struct prb_proc *proc;
    /* what decoding reads through: a record, which is off but for snapshots and --stop */
    struct prb_mem *mem;
    bool recording; /* a snapshot is made */
    struct prb_modules modules;
    struct prb_py *pys; /* most likely first */
    size_t runtime_count;
    struct prb_runtime *runtimes;     /* parallel to pys */
    struct prb_unwinder *unwinder;    /* made on first use */
    const char *path, *exe, *sysroot; /* what a core or snapshot was opened with */
    struct prb_debugger debugger;     /* that holds it; no pid and no core: none does */
    struct prb_saved_task *saved;     /* while a snapshot is made: registers as they were taken */
    size_t saved_count, saved_cap;
    const struct prb_crash *crash; /* of a crash dump, made when first asked for */
    void *kept;                    /* what a table keeps from one statement to the next, or NULL */
    void (*kept_free)(void *kept);
    struct prb_heap *heap; /* that prb_torch_plan read, for prb_torch_counter; or NULL */
};

/* Open over a process description, which is taken, also on failure.  record: what is read from now
 * on becomes a snapshot. */
struct prb_target *prb_target_over(struct prb_proc *proc, bool record, struct prb_error *err);

/* A core or snapshot; exe and sysroot may be NULL. */
struct prb_target *prb_target_open_core(const char *path, const char *exe, const char *sysroot,
                                        bool record, struct prb_error *err);

/* Open the process or core that a debugger holds; exe and sysroot, of a core, may be NULL. */
struct prb_target *prb_target_over_debugger(const struct prb_debugger *debugger, const char *exe,
                                            const char *sysroot, bool record,
                                            struct prb_error *err);

/* The unwinder of the target, made on first use; borrowed. */
struct prb_unwinder *prb_target_unwinder(struct prb_target *target, struct prb_error *err);

/* ---- threads.c ---- */

/* While a snapshot is made, save the registers of a task for it. */
void prb_target_save_registers(struct prb_target *target, pid_t tid,
                               const struct prb_registers *registers);

/* ---- processes.c ---- */

/* Whether a process has CPython mapped, by names alone; *version (may be NULL) "3.11" or "". */
bool prb_process_is_python(pid_t pid, char version[16]);
/* Arguments joined by spaces, secrets masked, control characters as "?"; NULL when it has none
 * or may not be read.
 */
char *prb_process_command(struct prb_proc *proc, struct prb_arena *arena);

/* Fill rank, local_rank and world_size from its environment; -1: unset. */
void prb_process_ranks(struct prb_proc *proc, struct prb_process *process);
/* Its rank, of any process; -1: unset, or not to be read. */
int prb_process_rank(pid_t pid);

/* ---- threads.c ---- */

/* The kernel's side of Python threads: ids in the caller's namespace, names, what each waits for.
 */
struct prb_thread_facts {
    const struct prb_task *task; /* NULL: not found */
    const char *name;            /* threading.Thread.name, in arena; or NULL */
    /* garbage, with or without the GIL: prb_threads_find_collectors() */
    bool collects;
};
/* facts: one for each thread of raw. */
void prb_threads_identify(struct prb_target *target, const struct prb_runtime *runtime,
                          const struct prb_raw_stacks *raw, const struct prb_tasks *tasks,
                          struct prb_arena *arena, struct prb_thread_facts *facts);
/* Fill facts[].collects, at most one thread of an interpreter. */
void prb_threads_find_collectors(struct prb_target *target, const struct prb_runtime *runtime,
                                 const struct prb_raw_stacks *raw, struct prb_thread_facts *facts);
/* Whether a task waits for the GIL of an interpreter: its system call is a futex inside the
 * GIL's own condition.  *patience_ns: how long tasks that run may be looked at again and again,
 * in all; what was used is taken off. */
bool prb_thread_waits_for_gil(struct prb_target *target, const struct prb_runtime *runtime,
                              const struct prb_interpreter *interpreter,
                              const struct prb_task *task, int64_t *patience_ns);

/* Whether thread k is the state that a thread has made for one that has not begun: it bears its
 * maker's ids, or none (3.12+), and runs nothing. */
bool prb_thread_unborn(const struct prb_raw_stacks *raw, size_t k);
/* Whether a futex is one of those on which an interpreter's threads wait for its GIL. */
bool prb_futex_of_gil(const struct prb_runtime *runtime, const struct prb_interpreter *interpreter,
                      prb_addr futex);

/* Whether a thread has an exception on its way, or runs a handler for one, now (exception.c). */
bool prb_thread_handles_exception(const struct prb_runtime *runtime, prb_addr tstate);

/* Folders of sys.path, the longest first serves; prb_shorten gives the part of filename below
 * one, or its last part. */
#define PRB_FOLDERS_MAX 256
struct prb_folders {
    const char *items[PRB_FOLDERS_MAX]; /* in the arena */
    size_t count;
};
void prb_folders_read(const struct prb_runtime *runtime, prb_addr interpreter,
                      struct prb_arena *arena, struct prb_folders *out);
const char *prb_shorten(const struct prb_folders *folders, const char *filename);

#endif
