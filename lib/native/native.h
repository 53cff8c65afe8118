/*
 * Native stacks: registers and stack bytes of a thread, unwound outside the target, and merged with
 * its Python frames.
 *
 * libunwind walks over our memory sources by its remote accessors, the same for processes, cores
 * and snapshots.  A thread blocked in a system call is unwound from what /proc says of it where
 * that suffices; any other is stopped alone, only while its registers and stack bytes are copied.
 */
#ifndef PRB_NATIVE_NATIVE_H
#define PRB_NATIVE_NATIVE_H

#include "proc/elf.h"
#include "py/stack.h"

struct prb_native_frame {
    prb_addr pc;
    prb_addr sp, cfa; /* its part of the stack: [sp, cfa); cfa 0: not known (the last one of a
                         broken walk) */
    struct prb_module *module; /* NULL: not in a file */
    const char *symbol;        /* demangled, or NULL; owned by the unwinder */
    const char *file;          /* source, or NULL */
    int line;
    bool returning; /* pc is where a call returns to: what runs is before it */
    bool signal;    /* the kernel's frame under a signal handler */
    bool guessed;   /* found among the stack's words, without unwind information */
};

struct prb_native_stack {
    struct prb_native_frame *frames; /* innermost first */
    size_t count;
    const char *broken; /* why the walk ended early, or NULL; owned by the unwinder */
};

#define PRB_NATIVE_FRAMES_MAX 200000 /* two for each Python frame of a deep recursion, and more */
#define PRB_STACK_COPY_MAX                                                                         \
    262144 /* bytes of a thread's stack copied at once; what lies above is read later */

struct prb_unwinder;

/* modules and mem are borrowed.  UNSUPPORTED: libunwind was built for another architecture than the
 * target's. */
struct prb_unwinder *prb_unwinder_new(struct prb_modules *modules, struct prb_mem *mem,
                                      struct prb_error *err);
void prb_unwinder_free(struct prb_unwinder *unwinder);
PRB_DEFINE_AUTO_PTR(prb_unwinder, struct prb_unwinder, prb_unwinder_free)

/* Follow no more than so many frames of a stack. */
void prb_unwinder_limit(struct prb_unwinder *unwinder, size_t frames_max);

/* A new reading of the target begins: what was read before is forgotten, and all frames, names and
 * rows given out are invalid. */
void prb_unwinder_forget_all(struct prb_unwinder *unwinder);

/* For the next of many readings: as prb_unwinder_forget_all, but assumes that the maps, and the
 * code there, are as they were. */
void prb_unwinder_forget_memory(struct prb_unwinder *unwinder);
/* A number that differs when the target has mapped other code, as of the last renewal. */
uint64_t prb_unwinder_code(const struct prb_unwinder *unwinder);

/* What was copied of a thread at one moment. */
struct prb_thread_copy {
    struct prb_registers registers;
    prb_addr stack_start; /* address of stack[0] */
    uint8_t *stack;       /* from the stack pointer up; owned */
    size_t stack_len;
    double stopped; /* seconds that it was stopped at most; 0: it was not */
};
void prb_thread_copy_deinit(struct prb_thread_copy *copy);
PRB_DEFINE_AUTO(prb_thread_copy, struct prb_thread_copy, prb_thread_copy_deinit)

/* When a thread of a live process may be stopped for its copy. */
enum prb_stop_rule {
    PRB_STOP_NEVER,   /* BUSY when it runs */
    PRB_STOP_RUNNING, /* only when it runs */
    PRB_STOP_USEFUL,  /* also when it is blocked in a system call that can resume after a stop */
};

/* For reading what must be of the same moment, such as a view's refresh; called in another thread
 * while the caller waits. */
typedef void prb_during_stop_fn(void *context);

/* Say why the kernel refused to let a thread be stopped (sys: its errno).  Returns false. */
bool prb_stop_refused(struct prb_proc *proc, pid_t tid, int sys, struct prb_error *err);
/*
 * Unwind a copy. *suffices_out false: registers that the copy lacks were needed, and the walk went
 * on by scanning the stack; stop the thread and copy it again for a better one.  The frames are
 * owned by the unwinder.
 */
bool prb_unwind(struct prb_unwinder *unwinder, const struct prb_thread_copy *copy,
                struct prb_native_stack *out, bool *suffices_out, struct prb_error *err);
/* Both: take a task, unwind it, and when /proc did not suffice take and unwind it once more under
 * PRB_STOP_USEFUL (may_stop). */
bool prb_thread_unwind(struct prb_unwinder *unwinder, struct prb_proc *proc, pid_t tid,
                       bool may_stop, prb_during_stop_fn *during_stop, void *context,
                       struct prb_thread_copy *copy_out, struct prb_native_stack *stack_out,
                       struct prb_error *err);
/* Give symbols (and source lines when asked) to all frames of many stacks at once: one pass over
 * each module. */
void prb_unwinder_name(struct prb_unwinder *unwinder, struct prb_native_stack *stacks, size_t count,
                       bool source_lines);

/* One row of a merged stack. */
struct prb_merged_row {
    const struct prb_raw_frame *python; /* or */
    const struct prb_native_frame *native;
    const struct prb_raw_thread *thread; /* the Python frame's; NULL for a native one */
};
/*
 * Interleave by anchor (merge.c). python[0]: the frames to place; the others: those of the same
 * thread in other interpreters, which are known by them and left out. native: named already.
 * Shims, and frames of the interpreter's own machinery (evaluator_symbols.def), are left out.
 * Returns the number of rows (into rows_out, owned by the unwinder's arena); *sure_out false: some
 * Python run could not be placed, so both stacks follow whole, the native one first, and nothing is
 * dropped.
 */
bool prb_merge(struct prb_unwinder *unwinder, struct prb_py *py, const struct prb_thread_copy *copy,
               const struct prb_native_stack *native, const struct prb_raw_thread *const *python,
               size_t python_count, struct prb_merged_row **rows_out, size_t *count_out,
               bool *sure_out, struct prb_error *err);

#endif
