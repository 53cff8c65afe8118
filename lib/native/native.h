/*
 * Native stacks: registers and stack bytes of a thread, unwound outside the target, and merged with its Python frames.
 *
 * libunwind walks over our memory sources by its remote accessors, the same for processes, cores and snapshots.
 * A thread blocked in a system call is unwound from what /proc says of it where that suffices; any other is stopped alone,
 * only while its registers and stack bytes are copied (DESIGN 4.6).
 */
#ifndef PRB_NATIVE_NATIVE_H
#define PRB_NATIVE_NATIVE_H

#include "proc/elf.h"
#include "py/stack.h"

struct prb_native_frame {
    prb_addr pc;
    prb_addr sp, cfa;          /* its part of the stack: [sp, cfa) */
    struct prb_module *module; /* NULL: not in a file */
    const char *symbol;        /* demangled, or NULL; owned by the unwinder */
    const char *file;          /* source, or NULL */
    int line;
    bool guessed;
};

struct prb_native_stack {
    struct prb_native_frame *frames; /* innermost first */
    size_t count;
    const char *broken;   /* why the walk ended early, or NULL */
};

struct prb_unwinder;

/* modules and mem are borrowed. */
struct prb_unwinder *prb_unwinder_new(struct prb_modules *modules, struct prb_mem *mem, struct prb_error *err);
void prb_unwinder_free(struct prb_unwinder *unwinder);
PRB_DEFINE_AUTO_PTR(prb_unwinder, struct prb_unwinder, prb_unwinder_free)

/* What was copied of a thread at one moment. */
struct prb_thread_copy {
    struct prb_registers registers;
    prb_addr stack_start; /* address of stack[0] */
    uint8_t *stack;       /* from the stack pointer up; owned */
    size_t stack_len;
    double stopped;       /* seconds it was stopped; 0: it was not */
};
void prb_thread_copy_deinit(struct prb_thread_copy *copy);
PRB_DEFINE_AUTO(prb_thread_copy, struct prb_thread_copy, prb_thread_copy_deinit)

/*
 * Take registers and stack bytes of a task.  may_stop: stop it for the copy when it is running or /proc does not
 * suffice; during_stop (may be NULL) is called while it is stopped, for what must be of the same moment (a view's refresh).
 */
bool prb_thread_copy_take(struct prb_proc *proc, struct prb_mem *mem, pid_t tid, bool must_stop,
                          void (*during_stop)(void *context), void *context, struct prb_thread_copy *out,
                          struct prb_error *err);
/* Unwind a copy.  *suffices_out false: registers that /proc does not tell were needed (stop the thread and take it anew).
 * The frames are owned by the unwinder's arena until prb_unwinder_free. */
bool prb_unwind(struct prb_unwinder *unwinder, const struct prb_thread_copy *copy, struct prb_native_stack *out,
                bool *suffices_out, struct prb_error *err);
/* Give symbols (and source lines when asked) to all frames of many stacks at once: one pass over each module. */
void prb_unwinder_name(struct prb_unwinder *unwinder, struct prb_native_stack *stacks, size_t count, bool source_lines);

/* One row of a merged stack. */
struct prb_merged_row {
    const struct prb_raw_frame *python; /* or */
    const struct prb_native_frame *native;
};
/*
 * Interleave by anchor (DESIGN 4.4).  python: the frames of one thread, of all its interpreters' thread states (several
 * raw threads with the same OS thread).  Frames of the interpreter's own machinery are left out.  Returns the number of rows
 * (into rows_out, owned by the unwinder's arena); *sure_out false: some Python run found no anchor, so both stacks follow each
 * other whole, nothing dropped.
 */
bool prb_merge(struct prb_unwinder *unwinder, struct prb_py *py, const struct prb_thread_copy *copy,
               const struct prb_native_stack *native, const struct prb_raw_thread *const *python, size_t python_count,
               struct prb_merged_row **rows_out, size_t *count_out, bool *sure_out, struct prb_error *err);

#endif
