/*
 * probing.h: see inside a live Python process, a core file or a snapshot of one.
 *
 * Looking is here; inject.h has getting in.  Handles are opaque; results are plain structs that own
 * their strings and are freed as a whole.  Conventions: fallible functions return bool or a pointer
 * (true, non-NULL: success), results come last and are written only on success, then the caller's
 * struct prb_error, which may be NULL.  Returned const pointers are borrowed from the handle or
 * result named beside them.  All strings are UTF-8.  Nothing here prints, exits, or runs code in
 * the target; nothing stops the target unless an option says so.  One handle serves one thread at a
 * time; different handles are independent.
 */
#ifndef PROBING_H
#define PROBING_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PRB_API __attribute__((visibility("default")))
#define PRB_MUST_CHECK __attribute__((warn_unused_result))

/* An address in the target: never a pointer here. */
typedef uint64_t prb_addr;

/* ---- errors ---- */

/* code, its name in output, exit status of the command line */
#define PRB_CODES(CODE)                                                                            \
    CODE(OK, "ok", 0)                                                                              \
    CODE(USAGE, "usage", 2)             /* the call or command line is wrong */                    \
    CODE(NOT_FOUND, "not found", 3)     /* no such process, file, table, thread */                 \
    CODE(NOT_PYTHON, "not python", 4)   /* a process, but no CPython in it */                      \
    CODE(PERMISSION, "permission", 5)   /* the kernel refuses */                                   \
    CODE(UNSUPPORTED, "unsupported", 6) /* an interpreter or architecture we do not know */        \
    CODE(GONE, "gone", 7)               /* the target ended, or became another program */          \
    CODE(CORRUPT, "corrupt", 8)         /* the target's bytes or a file contradict themselves */   \
    CODE(QUERY, "query", 9)             /* wrong SQL */                                            \
    CODE(FAULT, "fault", 10)            /* an address that cannot be read */                       \
    CODE(IO, "io", 11)                  /* a file or system call failed */                         \
    CODE(NOMEM, "out of memory", 12)                                                               \
    CODE(TIMEOUT, "timeout", 13)   /* a bound was reached */                                       \
    CODE(BUSY, "busy", 14)         /* somebody else holds it: another tracer */                    \
    CODE(PARTIAL, "partial", 15)   /* not all ranks answered */                                    \
    CODE(INTERNAL, "internal", 70) /* our mistake */

enum prb_code {
#define CODE(name, text, exit_code) PRB_##name,
    PRB_CODES(CODE)
#undef CODE
};

struct prb_error {
    enum prb_code code;
    int sys;          /* errno, or 0 */
    prb_addr addr;    /* the address of a fault, or 0 */
    char text[360];   /* what happened: one sentence, no final stop */
    char remedy[360]; /* what the user can do, or "" */
};

/* "not found" and so on, as PRB_CODES has it; "unknown" for any other number.  Never freed. */
PRB_API const char *prb_code_name(enum prb_code code);
/* The command line's exit status for a code. */
PRB_API int prb_code_exit(enum prb_code code);
/* Fill err, unless it is NULL, and return false, so that a failure is one line:
 * return prb_fail(err, PRB_CORRUPT, "...", ...). */
PRB_API bool prb_fail(struct prb_error *err, enum prb_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The same with a remedy (NULL: none), and with the arguments of a function's own "...". */
PRB_API bool prb_fail_args(struct prb_error *err, enum prb_code code, const char *remedy,
                           const char *format, va_list args) __attribute__((format(printf, 4, 0)));
/* "0.1.0".  Never freed. */
PRB_API const char *prb_version(void);
/* Of count names the one that a mistyped name was meant to be, or of which it is the beginning;
 * NULL: none is near. */
PRB_API const char *prb_nearest(const char *name, const char *const *names, size_t count);

/* How far is what takes long: objects read, bytes unpacked; told from then on with each some
 * thousands.  what: "objects read"; NULL: that is over.  NULL: nobody asks.  Set before anything is
 * read, and in one thread. */
typedef void prb_progress_fn(const char *what, uint64_t done);
PRB_API void prb_progress_to(prb_progress_fn *told);

/* ---- processes ---- */

/* A Python process of this machine, as /proc shows it without attaching. */
struct prb_process {
    pid_t pid, ppid; /* in the caller's pid namespace */
    uid_t uid;
    const char *name;    /* comm */
    const char *command; /* arguments joined by spaces */
    /* version such as "3.11.7" or "3.11", NULL when not found without reading memory */
    const char *python;
    const char *executable; /* path as the process sees it, or NULL when it may not be read */
    double started;         /* seconds since the epoch */
    int threads;
    int64_t rss; /* bytes */
    double cpu;  /* seconds of CPU time used so far, user and system */
    /* from RANK, LOCAL_RANK, WORLD_SIZE and similar variables in its environment; -1: unset */
    int rank, local_rank, world_size;
    bool has_probe; /* libprobe.so is mapped */
};

struct prb_process_list {
    struct prb_process *items; /* ascending pid */
    size_t count;
};

/* All processes with a CPython inside that the caller may see.  Free with prb_process_list_free. */
PRB_API struct prb_process_list *prb_process_list(struct prb_error *err) PRB_MUST_CHECK;
PRB_API void prb_process_list_free(struct prb_process_list *list);
/* The one of this pid, or NULL. */
PRB_API const struct prb_process *prb_process_find(const struct prb_process_list *list, pid_t pid);
/*
 * The environment of a process: "NAME=value" texts, each with its NUL, length bytes in all.  That of
 * its start, or, where that has no RANK and PyTorch is loaded, the one that it has now: some
 * launchers set RANK inside.  The caller frees it.  Errors: NOT_FOUND, PERMISSION, NOMEM.
 */
PRB_API char *prb_process_environment(pid_t pid, size_t *len_out,
                                      struct prb_error *err) PRB_MUST_CHECK;
/*
 * The process whose command line has a part: of a launcher, its ranks and their workers the lowest
 * rank, of a process and what descends from it that process; then note says so ("": only one has
 * it).  0 with err: none has it (NOT_FOUND), or several that do not belong together (USAGE).
 */
#define PRB_NOTE_MAX 160
PRB_API pid_t prb_process_by_name(const char *part, char note[PRB_NOTE_MAX], struct prb_error *err);
/*
 * Which processes of the list are meant with process pid, marked in chosen (list->count): itself, or
 * with ranks all ranks of the job that it is the launcher of, a rank of, or a process of a rank (pid
 * 0: of every job); with subprocesses also what descends from those.  Returns how many.
 */
PRB_API size_t prb_process_choose(const struct prb_process_list *list, pid_t pid, bool ranks,
                                  bool subprocesses, bool *chosen);
/* The command line for people: the interpreter without its folder, a far script as "…/train.py", at
 * most so many bytes, then "…". */
PRB_API void prb_process_short_command(const struct prb_process *process, size_t most, char *out,
                                       size_t size);

/* Whether the memory of a process may be read, tried without reading any.  PERMISSION: which rule
 * refuses, with the remedy; GONE. */
PRB_API bool prb_process_permits(pid_t pid, struct prb_error *err);

/* ---- targets ---- */

struct prb_target;

enum prb_target_kind {
    PRB_TARGET_PROCESS,
    PRB_TARGET_CORE,
    PRB_TARGET_SNAPSHOT,
    PRB_TARGET_CALLBACK, /* a process that a debugger holds */
};

struct prb_target_options {
    const char *exe;     /* cores: the executable, when it is not where the core says */
    const char *sysroot; /* cores: where the target's files lie, NULL for "/" */
};

/*
 * Open a target.  spec: a pid; the path of a core or snapshot file; a part of a running Python's
 * command line (prb_process_by_name), also where a file that is neither has that name.  options may be NULL. Errors: NOT_FOUND, NOT_PYTHON (names Python
 * children), PERMISSION (says which rule refused), UNSUPPORTED, CORRUPT, USAGE (the part is not
 * unique: lists the matches).  The remedy is filled.
 */
PRB_API struct prb_target *prb_target_open(const char *spec,
                                           const struct prb_target_options *options,
                                           struct prb_error *err) PRB_MUST_CHECK;
/* Whether a path is a file that prb_target_open reads. */
PRB_API bool prb_target_is_file(const char *path);
/* The same for a process; name part only (what -n means). */
PRB_API struct prb_target *prb_target_open_pid(pid_t pid, struct prb_error *err) PRB_MUST_CHECK;
PRB_API struct prb_target *prb_target_open_name(const char *part,
                                                struct prb_error *err) PRB_MUST_CHECK;

/* What a debugger has: a process whose threads it stopped, or a core that it opened. */
struct prb_debugger {
    pid_t pid;        /* the process, in the caller's pid namespace; 0: a core is meant */
    const char *core; /* the path of a core or snapshot, or NULL */
    void *context;    /* for the functions, each of which may be NULL */
    /* Copy len bytes at addr as the program has them, without breakpoints; returns how many
     * came, from the first on. */
    size_t (*read)(void *context, prb_addr addr, void *buf, size_t len);
    /* Values of count registers of a stopped thread, named as the architecture's manual does;
     * false: they cannot be read.  NULL: ptrace(2) gives the kernel's, if the caller is the tracer.
     */
    bool (*registers)(void *context, pid_t tid, const char *const *names, size_t count,
                      uint64_t *values);
};

/*
 * The same through a debugger that holds the process: we stop and resume nothing, and assume that
 * no thread runs until the target is closed: close it before you resume them.  Its functions are
 * called in the caller's thread, also by later calls with this target.  The strings of debugger and
 * options are copied.
 */
PRB_API struct prb_target *prb_target_open_debugger(const struct prb_debugger *debugger,
                                                    const struct prb_target_options *options,
                                                    struct prb_error *err) PRB_MUST_CHECK;
PRB_API void prb_target_close(struct prb_target *target);

struct prb_target_info {
    enum prb_target_kind kind;
    pid_t pid;           /* in the caller's pid namespace; of a core, as it was */
    const char *command; /* arguments joined by spaces, or NULL */
    const char *executable;
    const char *python; /* "3.11.7", with "+jit", "t" (free-threaded) marks: "3.14.0t" */
    const char *layout; /* one line: which offsets are used and how they were checked */
    /* seconds since the epoch: when a core or snapshot was taken; 0 for a live one */
    double time;
    int signal;      /* of a core: the signal that ended it; 0: none, or unknown */
    pid_t signalled; /* the thread that the signal came to; 0: not known */
};

/* Borrowed from the target. */
PRB_API const struct prb_target_info *prb_target_info(const struct prb_target *target);

/* ---- stacks ---- */

enum prb_frame_kind {
    PRB_FRAME_PYTHON,
    PRB_FRAME_NATIVE,
    PRB_FRAME_BROKEN, /* not a frame: the walk ended here, name says why */
    /* not a frame: those above are of the asyncio task name (prb_stacks_add_tasks) */
    PRB_FRAME_TASK,
};

enum prb_gil_state { PRB_GIL_NONE, PRB_GIL_WAITING, PRB_GIL_HOLDING };

struct prb_local {
    const char *name;
    const char *repr; /* cut to repr_limit of struct prb_stack_options */
    const char *type; /* qualified name of its type, such as "torch.nn.parameter.Parameter" */
    prb_addr addr;    /* the object; 0 when unset */
    bool arg;         /* an argument of the function */
};

struct prb_frame {
    enum prb_frame_kind kind;
    const char *name;     /* co_name, or the demangled symbol, or "0x7f…" */
    const char *qualname; /* co_qualname (3.11+), else as name */
    const char *filename; /* co_filename, or the source file of native code, or NULL */
    /* the same without the part that is a folder of sys.path, or NULL */
    const char *short_filename;
    const char *module; /* native: path of the mapped file; Python: NULL */
    /* current position; line 0: unknown; columns from 0 as co_positions(), -1: unknown */
    int line, column, end_line, end_column;
    int first_line; /* of the function */
    /* of the frame object (Python) or the canonical frame address (native) */
    prb_addr addr;
    prb_addr code;      /* of the code object, or the program counter (native) */
    uint64_t in_module; /* native: how far code is behind the first byte of its module; 0: none */
    int instruction;    /* offset of the current instruction in its code, bytes; -1: unknown */
    bool is_entry;      /* the outermost frame of one call of the evaluator from C */
    bool is_shim_entry; /* a shim frame stands above it (3.12+) */
    bool guessed;       /* found among the stack's words, without unwind information */
    prb_addr globals;   /* with locals: the dict of the function's module; 0: unknown */
    struct prb_local *locals; /* NULL unless asked */
    size_t local_count;
};

struct prb_thread {
    int64_t interpreter; /* id; -1: a native thread without Python */
    uint64_t thread_id;  /* threading.get_ident(): the pthread's address; 0: none */
    pid_t os_thread_id;  /* in the caller's pid namespace; 0: unknown */
    /* threading.Thread.name, else the kernel's name, or NULL (cores keep none of theirs) */
    const char *name;
    const char *comm; /* the kernel's name, or NULL */
    char os_state;    /* letter of /proc/PID/task/TID/stat, or 0 */
    bool active;      /* running, or holding the GIL */
    enum prb_gil_state gil;
    bool gc;         /* collecting garbage now */
    bool unstable;   /* no two readings agreed: the stack may mix two moments */
    bool has_python; /* has a Python thread state */
    /* it waits in our hook for an unhandled exception; its frames are those that raised it, with
     * the locals they had */
    bool raised;
    struct prb_frame *frames; /* innermost first */
    size_t frame_count;
};

struct prb_stacks {
    double time;                   /* seconds since the epoch */
    struct prb_target_info target; /* strings belong to this result */
    struct prb_thread *threads;
    size_t thread_count;
    uint64_t tries, rejected; /* readings of single threads, and how many of them did not agree */
    double longest_stop;      /* seconds of the longest stop of a thread; 0: none was stopped */
    const char *warning;      /* something that was left out, or NULL */
};

struct prb_stack_options {
    bool native; /* native frames, and threads without Python */
    bool locals;
    bool all_interpreters; /* else the main one's threads only */
    bool stop;             /* stop the Python threads while reading */
    /* native: never stop a thread; running threads then have no native frames */
    bool untouched;
    uint64_t only_thread; /* os_thread_id or thread_id; 0: all */
    bool source_lines;    /* native: file and line from debug information (slower) */
    bool python_only;     /* native: without the threads that have no Python */
    bool hide_secrets;    /* locals: *** for what has a secret's name or form */
    size_t repr_limit;    /* characters of one value; 0: the default, 4,096 */
};

/* options may be NULL.  A thread whose walk breaks gives the good frames and one of kind BROKEN.
 * Free with prb_stacks_free. */
PRB_API struct prb_stacks *prb_stacks_take(struct prb_target *target,
                                           const struct prb_stack_options *options,
                                           struct prb_error *err) PRB_MUST_CHECK;
PRB_API void prb_stacks_free(struct prb_stacks *stacks);
/* Who has the GIL of a live process, as text for people: `thread 12 "loader" at f (train.py:3) in
 * poll`, cut to size; "": nobody does, by now.  False: it cannot be read. */
PRB_API bool prb_gil_holder(pid_t pid, char *text, size_t size, struct prb_error *err);
/* The same of stacks that were taken before; those with native frames name the native function, too. */
PRB_API void prb_gil_holder_of(const struct prb_stacks *stacks, char *text, size_t size);

/* What recording PyTorch needs to know of a live target beside what its probe sees: names of modules, optimizers,
 * which of them is the anchor; lines for prb_control_torch(), which the caller frees. */
PRB_API char *prb_torch_plan(struct prb_target *target, struct prb_error *err) PRB_MUST_CHECK;
/* How far the program's own counter of steps is beyond those that ended says, read for at most so long (s).  name: of
 * the counter.  NOT_FOUND: no number counts steps. */
PRB_API bool prb_torch_counter(struct prb_target *target,
                               bool (*ended)(void *context, int64_t *out), void *context,
                               double seconds, int64_t *offset_out, char *name, size_t size,
                               struct prb_error *err);

/* Functions of probing.torch.exprs ("loss@train,...") or probing.torch.profiling that a live target does not have, a line
 * of text for each, with names that are near; "": it has all.  The caller frees it. */
PRB_API char *prb_watched_unknown(struct prb_target *target, const char *exprs,
                                  struct prb_error *err) PRB_MUST_CHECK;

/* JSON text of schema share/probing/backtrace.schema.json; the caller frees it. */
PRB_API char *prb_stacks_json(const struct prb_stacks *stacks,
                              struct prb_error *err) PRB_MUST_CHECK;
/* Those of several processes in one array, with the key "rank" (-1: null). */
PRB_API char *prb_stacks_json_all(const struct prb_stacks *const *stacks, const int *ranks,
                                  size_t count, struct prb_error *err) PRB_MUST_CHECK;

/* Threads with the same stack (same functions, files and lines of all frames, and kinds). */
struct prb_stack_group {
    const size_t *threads; /* indices of the threads; the first serves as the example */
    size_t count;
};
struct prb_stack_groups {
    struct prb_stack_group *items; /* largest first */
    size_t count;
};
/* Free with prb_stack_groups_free; NULL: NOMEM. */
PRB_API struct prb_stack_groups *prb_stacks_group(const struct prb_stacks *stacks,
                                                  struct prb_error *err) PRB_MUST_CHECK;
/* The same of any threads, of several processes or machines; indices into the array. */
PRB_API struct prb_stack_groups *prb_threads_group(const struct prb_thread *const *threads,
                                                   size_t count,
                                                   struct prb_error *err) PRB_MUST_CHECK;
PRB_API void prb_stack_groups_free(struct prb_stack_groups *groups);

/* ---- asyncio ---- */

enum prb_async_state {
    PRB_ASYNC_RUNNING, /* on its thread's stack */
    PRB_ASYNC_READY,   /* the loop will run it: it waits for nothing */
    PRB_ASYNC_WAITING, /* for a future */
};

/* A task of asyncio that is not done. */
struct prb_async_task {
    prb_addr id;           /* of the object, as id() gives it */
    const char *name;      /* Task.get_name(), or NULL (3.7 has none) */
    const char *coroutine; /* qualified name of its coroutine's function, or NULL */
    enum prb_async_state state;
    /* pending requests to cancel it (3.11+: Task.cancelling()) */
    int64_t cancels;
    /* class of the future that it waits for, such as "Task"; NULL: it does not wait */
    const char *waits_for;
    bool unstable; /* no two readings agreed */
    int64_t interpreter;
    prb_addr loop;         /* its event loop, the object */
    const char *loop_type; /* qualified name of the loop's class, or NULL */
    /* of the thread that runs the loop: threading.get_ident(); 0: not known */
    uint64_t thread_id;
    pid_t os_thread_id;      /* the same for the kernel; 0: not known */
    const char *thread_name; /* or NULL */
    /* tasks that wait for this one, also through gather, shield, wait, wait_for or a TaskGroup:
     * indices */
    size_t *awaited_by;
    size_t awaited_by_count;
    size_t *awaits; /* the same the other way round */
    size_t awaits_count;
    /* innermost first: of a running one from its thread's stack, else by what each coroutine
     * awaits */
    struct prb_frame *frames;
    size_t frame_count;
};

struct prb_async_tasks {
    double time;                   /* seconds since the epoch */
    struct prb_target_info target; /* strings belong to this result */
    struct prb_async_task *items;  /* by loop, then as they were numbered */
    size_t count;
    bool imported;       /* asyncio.tasks is; else there can be none */
    const char *warning; /* something that was left out, or NULL */
};

/*
 * The tasks of all event loops, read from outside: nothing runs in the target and no thread is
 * stopped; each task is read until two readings agree.  CPython 3.7 and later.  Free with
 * prb_async_tasks_free.
 */
PRB_API struct prb_async_tasks *prb_async_tasks_take(struct prb_target *target,
                                                     struct prb_error *err) PRB_MUST_CHECK;
PRB_API void prb_async_tasks_free(struct prb_async_tasks *tasks);
/*
 * Below the frames of each task that a thread of stacks runs, put those of the tasks that wait
 * for it, one below the other, each ended by a row of kind TASK; the loop's own frames come
 * last.
 */
PRB_API bool prb_stacks_add_tasks(struct prb_stacks *stacks, const struct prb_async_tasks *tasks,
                                  struct prb_error *err);
/* JSON text of schema share/probing/tasks.schema.json; the caller frees it. */
/* Of several processes, with the key rank (null: none) where ranks are given. */
PRB_API char *prb_async_tasks_json_all(const struct prb_async_tasks *const *tasks, const int *ranks,
                                       size_t count, struct prb_error *err) PRB_MUST_CHECK;
PRB_API char *prb_async_tasks_json(const struct prb_async_tasks *tasks,
                                   struct prb_error *err) PRB_MUST_CHECK;

/* ---- objects ---- */

/* A part of an object: an element, a value of a key, an attribute.  Or the object as a whole. */
struct prb_part {
    const char *name; /* "0", "'key'" (its repr), "weight"; NULL of the whole */
    /* what follows the object's expression to mean the part: "[0]", "['key']", ".weight"; NULL:
     * no expression does */
    const char *access;
    const char *repr; /* of arrays "Tensor float32 [8, 128] cuda:0" */
    /* qualified name of its type; NULL of a plain text such as an array's shape */
    const char *type;
    prb_addr addr;    /* 0: no object of its own, or none that can be read */
    uint64_t indexed; /* elements that it has */
    uint64_t named;   /* attributes; counted to 100 at the most */
};

struct prb_parts {
    struct prb_part whole;
    struct prb_part *items;
    size_t count;
};

#define PRB_PARTS_MAX 100000 /* of one answer; fewer when their texts are long, 64 MiB in all */

struct prb_parts_options {
    bool indexed, named;   /* which parts; neither: the whole alone */
    uint64_t start, count; /* of the elements; count 0: all, PRB_PARTS_MAX at the most */
    size_t repr_limit;     /* characters of one value; 0: the default, 4,096 */
    /* the part whose access this is (".weight", "['key']"), and no other; NULL: all */
    const char *only;
};

/*
 * The parts of an object, read without running code. object: as in prb_local or prb_part of the
 * same target; a live target runs meanwhile, so another object may be there now.  Errors: FAULT,
 * CORRUPT (no object there).  Free with prb_parts_free.
 */
PRB_API struct prb_parts *prb_parts_take(struct prb_target *target, prb_addr object,
                                         const struct prb_parts_options *options,
                                         struct prb_error *err) PRB_MUST_CHECK;
PRB_API void prb_parts_free(struct prb_parts *parts);

/* ---- tensors ---- */

#define PRB_TENSOR_DIMS_MAX 64

/* A numpy array or a torch tensor, or a part of one, as read from the target's memory. */
struct prb_tensor {
    prb_addr object; /* the Python object; 0: it has none */
    bool torch;      /* torch.Tensor; else numpy.ndarray */
    unsigned dims;
    int64_t shape[PRB_TENSOR_DIMS_MAX];
    /* bytes from an element to the next one of that dimension */
    int64_t stride[PRB_TENSOR_DIMS_MAX];
    int64_t numel;      /* elements */
    unsigned item_size; /* bytes of an element; 0: not known */
    char dtype[64];     /* "float32", "bfloat16", "qint8", of numpy also ">i4", "<U5" */
    char device[32];    /* "cpu", "cuda:0", "meta"; "" of numpy */
    /* "strided", "sparse_coo", "sparse_csr", ...; else the C++ class that holds it */
    char layout[32];
    prb_addr data;               /* of the first element, on its device; 0: there is none */
    prb_addr storage;            /* where the storage of its elements begins; 0: none, or unknown */
    int64_t storage_size;        /* bytes; -1: not known */
    int64_t storage_offset;      /* bytes from there to the first element */
    bool contiguous;             /* row by row without gaps */
    bool requires_grad, is_leaf; /* of numpy: false, true */
    bool conjugated, negated; /* the elements mean the conjugate, the negative, of what is stored */
    int64_t version;          /* how often it was changed in place; -1: not counted */
    prb_addr implementation;  /* torch: its TensorImpl */
    prb_addr grad;            /* torch: the TensorImpl of its gradient; 0: none */
    char unreadable[96];      /* why its elements cannot be read here; "": they can */
};

/*
 * The array or tensor at object (as in prb_local or prb_part). torch 1.13 to 2.13, numpy 1 and 2.
 * Errors: UNSUPPORTED (neither, or of an unknown layout), CORRUPT (its parts contradict each
 * other), FAULT.  Source: numpy's ndarraytypes.h; torch's c10/core/TensorImpl.h, StorageImpl.h,
 * torch/csrc/autograd/variable.h.
 */
PRB_API bool prb_tensor_take(struct prb_target *target, prb_addr object, struct prb_tensor *out,
                             struct prb_error *err) PRB_MUST_CHECK;
/*
 * The tensor that C++ holds: a c10::TensorImpl, to which an at::Tensor is the pointer.  It needs
 * no Python object (out->object 0).  Errors: CORRUPT (no TensorImpl that is known), FAULT.
 */
PRB_API bool prb_tensor_take_native(struct prb_target *target, prb_addr impl,
                                    struct prb_tensor *out, struct prb_error *err) PRB_MUST_CHECK;
/* A part, by the text of a Python subscript: "0, 1:3, ..., ::2".  Errors: USAGE. */
PRB_API bool prb_tensor_slice(const struct prb_tensor *tensor, const char *subscript,
                              struct prb_tensor *out, struct prb_error *err) PRB_MUST_CHECK;

enum prb_element_kind {
    PRB_ELEMENT_BOOL,
    PRB_ELEMENT_INT,
    PRB_ELEMENT_UINT,
    PRB_ELEMENT_REAL,
    PRB_ELEMENT_COMPLEX
};

/* One element. */
struct prb_element {
    enum prb_element_kind kind;
    union {
        int64_t integer;  /* BOOL, INT */
        uint64_t natural; /* UINT */
        double real;      /* REAL, COMPLEX */
    };
    double imag; /* COMPLEX */
};

#define PRB_ELEMENTS_MAX 1000000 /* of one call */

/* Elements start to start + count, row by row.  Errors: UNSUPPORTED (says why: unreadable),
 * USAGE, FAULT. */
PRB_API bool prb_tensor_elements(struct prb_target *target, const struct prb_tensor *tensor,
                                 int64_t start, size_t count, struct prb_element *out,
                                 struct prb_error *err) PRB_MUST_CHECK;
/* The elements as nested brackets, "[[1.0, 2.5], [nan, -0.0]]", no more than limit of them (0:
 * 1,000); what is left out is "...".  The caller frees it. */
PRB_API char *prb_tensor_text(struct prb_target *target, const struct prb_tensor *tensor,
                              size_t limit, struct prb_error *err) PRB_MUST_CHECK;

#define PRB_HISTOGRAM_MAX 256

struct prb_statistics {
    /* elements; of them NaN, infinite, 0 */
    int64_t count, nan, inf, zero;
    double min, max; /* of all that are not NaN; NAN: there are none, or they are complex */
    /* of the finite ones; NAN: none.  std as the library's own: torch divides by n - 1, numpy by
     * n */
    double mean, std, norm;
    double mean_imag; /* complex: the imaginary part of the mean */
    unsigned bins;    /* of the histogram: equal parts of [low, high], the last one closed */
    double low, high;
    int64_t histogram[PRB_HISTOGRAM_MAX]; /* what lies outside is counted nowhere */
};

struct prb_statistics_options {
    unsigned bins; /* of the histogram, which costs a second pass; 0: none */
    /* its bounds; both 0: the smallest and the largest finite element, half a unit around where
     * all are equal */
    double low, high;
};

/* Read all elements once, in blocks; a live target may change them meanwhile.  options may be NULL.
 * Errors: UNSUPPORTED (no numbers, or unreadable), FAULT. */
PRB_API bool prb_tensor_statistics(struct prb_target *target, const struct prb_tensor *tensor,
                                   const struct prb_statistics_options *options,
                                   struct prb_statistics *out,
                                   struct prb_error *err) PRB_MUST_CHECK;

/* ---- exceptions ---- */

enum prb_exception_state {
    PRB_EXCEPTION_RAISED,  /* on its way */
    PRB_EXCEPTION_HANDLED, /* the thread runs a handler for it */
    /* sys.last_exc or last_value: the interpreter's last unhandled one */
    PRB_EXCEPTION_LAST,
};

struct prb_exception {
    enum prb_exception_state state;
    const char *type;    /* qualified name, "ValueError" */
    const char *message; /* as str() of a plain exception, or "" */
    const char *link;    /* "cause" or "context" of the one before; NULL: the exception itself */
    prb_addr addr;
    struct prb_frame *frames; /* of its traceback, outermost first; no locals */
    size_t frame_count;
};

struct prb_exceptions {
    /* the exception, then what it came from, PRB_EXCEPTIONS_MAX at the most */
    struct prb_exception *items;
    size_t count; /* 0: none is seen */
};
#define PRB_EXCEPTIONS_MAX 32

/* The exception that a Python thread is busy with; the main thread's may be sys.last_exc.
 * thread: its os_thread_id or
 * thread_id.  Errors: NOT_FOUND (no such Python thread).  Free with prb_exceptions_free. */
PRB_API struct prb_exceptions *prb_exceptions_take(struct prb_target *target, uint64_t thread,
                                                   struct prb_error *err) PRB_MUST_CHECK;
PRB_API void prb_exceptions_free(struct prb_exceptions *exceptions);
/* Those of all threads of stacks at once: an array as long as stacks' threads, NULL where a
 * thread has none.  Free with prb_exceptions_all_free, count being stacks->thread_count. */
PRB_API struct prb_exceptions **prb_exceptions_all(struct prb_target *target,
                                                   const struct prb_stacks *stacks,
                                                   struct prb_error *err) PRB_MUST_CHECK;
PRB_API void prb_exceptions_all_free(struct prb_exceptions **all, size_t count);

/* ---- crash dumps ---- */

/* What a crash dump says about the crash, as it was found then.  Texts are NULL and numbers -1
 * (line, code, signal: 0) where they were not known. */
struct prb_crash {
    /* "signal", "exception", "asked" (SIGTERM), "memory" (the control group has nearly none
     * left) */
    const char *kind;
    /* one line: "SIGSEGV, nothing is mapped there, address 0x0", "ValueError: wrong" */
    const char *title;
    double time;      /* seconds since the epoch */
    pid_t pid, tid;   /* tid: the thread it came to */
    int signal, code; /* code: si_code, sigaction(2) */
    const char *signal_name;
    bool has_address;
    prb_addr address; /* of a fault */
    const char *reason;
    const char *thread;               /* its name */
    const char *exception, *message;  /* type and text, of an exception */
    int rank, local_rank, world_size; /* as in prb_process */
    /* innermost Python frame, of an exception where it was raised */
    const char *function, *file;
    int line;
    const char *native; /* innermost native function */
    const char *place;  /* both in one text */
    /* equal for equal crashes: kind, signal or type, and the stack of the thread without
     * addresses */
    const char *group;
};

/* NULL: the target is not a crash dump.  Borrowed from the target. */
PRB_API const struct prb_crash *prb_target_crash(struct prb_target *target);

#define PRB_CRASH_PATH_MAX 1024

/* A dump of a folder, and what it says; NULL: not known. */
struct prb_crash_file {
    char *name;     /* of the file */
    uint64_t bytes; /* of it */
    double written; /* s since the epoch */
    bool text;      /* a report only: the process could write no dump */
    bool opened;    /* false: a text, or broken */
    bool crashed;   /* it describes a crash; what follows is about that one */
    double time;    /* s since the epoch; 0: not known */
    pid_t pid;      /* of the process */
    int rank;       /* in its job; -1: none */
    char *kind, *title, *place, *group;
};
struct prb_crash_files {
    struct prb_crash_file *items; /* earliest first */
    size_t count;
    size_t left_out; /* older ones */
};
/*
 * The newest dumps of a folder, so many at most; go_on, unless NULL, is asked before each, and false
 * leaves out those that are not read yet.  Files that are no dumps are rows that say so; links are
 * not followed.  Release out also on failure.  Errors: NOT_FOUND, IO.
 */
PRB_API bool prb_crash_files_read(const char *folder, size_t most, bool (*go_on)(void *context),
                                  void *context, struct prb_crash_files *out,
                                  struct prb_error *err) PRB_MUST_CHECK;
PRB_API void prb_crash_files_free(struct prb_crash_files *files);

struct prb_crash_written {
    char path[PRB_CRASH_PATH_MAX]; /* of the dump */
    uint64_t bytes;
    uint64_t folder_bytes; /* that all dumps of the folder may hold; 0: no bound */
    /* locked, so that no sweep removes the dump before it is reported; -1: not locked */
    int folder;
};

/*
 * Write the crash dump of a process that crashes now and waits for it: record is the address of its
 * struct prb_crash_record (lib/crash/record.h).  Its threads are stopped meanwhile, as many as can
 * be.  The dump leaves things out until it fits the size that the record allows.  Errors: CORRUPT
 * (no such record), PERMISSION, IO.
 */
PRB_API bool prb_crash_dump_write(pid_t pid, prb_addr record, struct prb_crash_written *out,
                                  struct prb_error *err) PRB_MUST_CHECK;
/* Call after it, once the dump was reported: unlocks the folder, and removes its oldest dumps
 * beyond the bound. */
PRB_API void prb_crash_dump_told(struct prb_crash_written *dump);
/* The folder of the dumps: wanted, or with "" the default one, made when it is not there:
 * /tmp/probing-UID/crash, or where another user has that name /tmp/probing-UID-USERNS/crash or
 * /var/tmp/probing-UID/crash. */
PRB_API bool prb_crash_dump_folder(const char *wanted, char out[PRB_CRASH_PATH_MAX],
                                   struct prb_error *err) PRB_MUST_CHECK;

/* ---- snapshots ---- */

struct prb_snapshot_options {
    /* with registers and stacks of all threads (each running one is stopped for its copy) */
    bool native;
    bool locals; /* with what the locals' reprs need */
    bool stop;   /* stop the Python threads meanwhile, so that all is of one moment */
};
/*
 * Write what decoding this target touches to path, an ELF core of kilobytes that every core reader
 * opens. *bytes_out: its size. *moved_out: threads that ran while they were copied, in every try:
 * their stacks in the file may mix two moments (none with stop).
 */
PRB_API bool prb_snapshot_write(struct prb_target *target, const char *path,
                                const struct prb_snapshot_options *options, uint64_t *bytes_out,
                                size_t *moved_out, struct prb_error *err) PRB_MUST_CHECK;

/* ---- profiles ---- */

/*
 * Takes many samples of one or several processes, from outside; stops nothing (but see native).  A
 * profiler takes them and adds them up in a struct prb_profile, which any number of formats can be
 * made of; between two runs it may be read.  A sample is one reading of all threads of a process.
 * A stack counts if two readings of it agree; else it is dropped.  The identity of its code objects
 * is checked in every sample.
 */
enum prb_profile_mode {
    PRB_PROFILE_ACTIVE, /* threads that run or have the GIL */
    PRB_PROFILE_WALL,   /* all threads, those that wait too */
    /* all threads, by the CPU time that each used since its last sample */
    PRB_PROFILE_CPU,
    PRB_PROFILE_GIL,       /* the threads that have the GIL */
    PRB_PROFILE_EXCEPTION, /* threads that run or have the GIL and handle an exception */
    /* of memory (prb_allocations_profile): weights are blocks and bytes in place of samples and ns */
    PRB_PROFILE_ALLOCATED,
    PRB_PROFILE_LIVE,
};

struct prb_profiler_options {
    enum prb_profile_mode mode;
    double rate;   /* samples a second; 0: 100 */
    bool native;   /* native frames, merged in; a thread that runs is stopped for its copy */
    bool timeline; /* save when each stack was seen (prb_profile_each_interval) */
    /* and stacks that the mode does not count, with ns 0: where threads waited */
    bool whole_timeline;
    bool subprocesses;     /* and Python processes that they start, now or later */
    bool ranks;            /* of what a followed process starts, those with a rank, now or later */
    bool all_interpreters; /* else the main one's threads only */
    /* between an asyncio loop's frames and its task's: the tasks that wait for that one */
    bool async;
    /* what threads wait for and their CPU time, also where the mode does not need it */
    bool states;
};

struct prb_profile_process {
    pid_t pid, ppid;
    const char *command, *python; /* as prb_target_info; python NULL: not known */
    int rank;                     /* -1: none */
    double start, end;            /* s since profile->start: first and last sample of it */
    bool ended;                   /* it ended while it was sampled */
    uint64_t samples;             /* readings of it */
};

/* What a thread was found doing; bits. */
enum { PRB_SAMPLED_GIL = 1, PRB_SAMPLED_IDLE = 2, PRB_SAMPLED_GC = 4, PRB_SAMPLED_WANTS_GIL = 8 };

struct prb_profile_thread {
    uint32_t process;   /* index */
    pid_t tid;          /* os_thread_id; 0: not known */
    uint64_t thread_id; /* threading.get_ident() */
    const char *name;   /* threading.Thread.name, or the kernel's, or NULL */
    unsigned state;     /* PRB_SAMPLED_*, at its last sample */
    /* what it waited for at its last sample ("futex", "epoll_wait", "GIL"), or NULL */
    const char *waits;
    uint32_t node;                                        /* its stack at its last sample */
    uint64_t seen;                                        /* profile->samples at its last sample */
    uint64_t samples, gil_samples, idle_samples, dropped; /* of all, counted by mode or not */
    uint64_t cpu_ns; /* CPU time while it was sampled; 0: unknown */
};

struct prb_profile_function {
    enum prb_frame_kind kind;
    const char *name, *qualname;
    const char *filename;       /* source; of native code without one the mapped file; or NULL */
    const char *short_filename; /* without a folder of sys.path */
    int first_line;
};
struct prb_profile_frame {
    uint32_t function;
    int line; /* 0: unknown */
};
/* A stack: frame, called from the stack parent. */
struct prb_profile_node {
    uint32_t parent, frame;
};
/* How often, and for how much time, a thread was found with a stack: by mode, each sample stands
 * for one period, or for the CPU time used since the sample before. */
struct prb_profile_weight {
    uint32_t thread, node;
    uint64_t samples, ns;
};

struct prb_profile {
    double start, seconds; /* s since the epoch; sampled so far */
    double rate;           /* as wanted */
    enum prb_profile_mode mode;
    bool native;
    const struct prb_profile_process *processes;
    const struct prb_profile_thread *threads;
    const struct prb_profile_function *functions;
    const struct prb_profile_frame *frames;
    /* 0 is the root, not a stack; a parent comes before its children */
    const struct prb_profile_node *nodes;
    const struct prb_profile_weight *weights;
    size_t process_count, thread_count, function_count, frame_count, node_count, weight_count;
    uint64_t samples;        /* readings of a process */
    uint64_t thread_samples; /* threads found in them */
    uint64_t dropped;        /* threads that were not: no two equal readings, or a broken walk */
    uint64_t failed;         /* readings that failed */
    /* readings of threads, and those that did not agree with the one before */
    uint64_t tries, rejected;
    /* native and Python frames of a thread that may be of two moments: included, and counted here
     */
    uint64_t moved;
    /* samples that were skipped, as their time had passed: the machine is too slow */
    uint64_t skipped;
    double late, latest; /* s after their time that samples began: mean, worst */
    double cpu;          /* s of CPU time that sampling took */
    double longest_stop; /* s that one thread was stopped at the most; 0: none was */
    const char *warning; /* what is left out, or NULL */
    double error;        /* of memory that lives: one standard deviation of its bytes */
};

struct prb_profiler;
/* options may be NULL.  Errors: USAGE (an invalid rate), NOMEM. */
PRB_API struct prb_profiler *prb_profiler_new(const struct prb_profiler_options *options,
                                              struct prb_error *err) PRB_MUST_CHECK;
/* And its profile, if that was not taken. */
PRB_API void prb_profiler_free(struct prb_profiler *profiler);
/* Sample this process too.  Errors as prb_target_open_pid. */
PRB_API bool prb_profiler_add(struct prb_profiler *profiler, pid_t pid, struct prb_error *err);
/*
 * With the option subprocesses: follow what this process starts, though it may not be Python itself
 * (a shell, a launcher); with ranks: a job's launcher, for the ranks that it starts anew.  A run
 * goes on until the first one followed has ended, too.  Returns how many processes were found to
 * sample so far: before a run, ask again until there is one.
 */
PRB_API size_t prb_profiler_follow(struct prb_profiler *profiler, pid_t pid);
/* Called some ten times a second while a profiler runs; false ends the run. */
typedef bool prb_profile_progress_fn(void *context, const struct prb_profile *profile);
/*
 * Sample for so many seconds (0: without end), or until wake (a descriptor; -1: none) can be
 * read, progress says so, or all processes have ended: true each time.  progress may be NULL.
 * False: nothing could be sampled at all.
 */
PRB_API bool prb_profiler_run(struct prb_profiler *profiler, double seconds, int wake,
                              prb_profile_progress_fn *progress, void *context,
                              struct prb_error *err);
/* One sample of every process, at once: for callers with a clock of their own. */
PRB_API bool prb_profiler_sample(struct prb_profiler *profiler, struct prb_error *err);
/* How many of its processes have not ended. */
PRB_API size_t prb_profiler_alive(const struct prb_profiler *profiler);
/* Borrowed until the next call on the profiler. */
PRB_API const struct prb_profile *prb_profiler_profile(const struct prb_profiler *profiler);
/* Take the profile out; after that the profiler can only be freed.  Free with prb_profile_free. */
PRB_API struct prb_profile *prb_profiler_finish(struct prb_profiler *profiler);
PRB_API void prb_profile_free(struct prb_profile *profile);

/* Sampled allocations, as the probe of a target records them while probing.memory.profile is on. */
struct prb_allocations;
/* What is recorded now.  NOT_FOUND: it was never switched on. */
PRB_API struct prb_allocations *prb_allocations_take(struct prb_target *target,
                                                     struct prb_error *err) PRB_MUST_CHECK;
PRB_API void prb_allocations_free(struct prb_allocations *allocations);
/* Whether it goes on: neither switched off, nor still waiting for Python's allocators. */
PRB_API bool prb_allocations_go_on(const struct prb_allocations *allocations);
/* A profile of it, in mode ALLOCATED without what before has (NULL: nothing), in mode LIVE of all
 * that lives.  With a timeline: each interval's bytes share its time. */
PRB_API struct prb_profile *prb_allocations_profile(struct prb_target *target,
                                                    const struct prb_allocations *allocations,
                                                    const struct prb_allocations *before,
                                                    enum prb_profile_mode mode,
                                                    struct prb_error *err) PRB_MUST_CHECK;

/* A thread that had the same stack in consecutive samples. */
struct prb_profile_interval {
    uint32_t thread, node;
    unsigned state;
    double start, end; /* s since profile->start; to the sample that found another */
    uint64_t samples, ns;
};
/* Of a profile with a timeline: each interval, of one thread in order of time.  False from each
 * ends it. */
typedef bool prb_profile_interval_fn(void *context, const struct prb_profile_interval *interval);
PRB_API bool prb_profile_each_interval(const struct prb_profile *profile,
                                       prb_profile_interval_fn *each, void *context,
                                       struct prb_error *err);

/*
 * A call of a function, as samples show it: consecutive samples of a thread in which the function
 * is at the same place of the same stack.  Two calls with no sample between count as one, and calls
 * between two samples are not seen: start and end are true to one period each.
 */
struct prb_profile_call {
    uint32_t thread, function;
    int line;                       /* where it was first seen */
    uint32_t depth;                 /* 0: outermost */
    double start, end;              /* s since profile->start */
    uint64_t samples, self_samples; /* self: it was the innermost */
    uint64_t ns, self_ns;
};
typedef bool prb_profile_call_fn(void *context, const struct prb_profile_call *call);
/* Of a profile with a timeline: in the order of their ends, inner ones before outer ones. */
PRB_API bool prb_profile_each_call(const struct prb_profile *profile, prb_profile_call_fn *each,
                                   void *context, struct prb_error *err);

/* A profile that was written in the format sqlite, or collapsed (which has no timeline, and one
 * thread).  Errors: NOT_FOUND, CORRUPT.  Free with prb_profile_free. */
PRB_API struct prb_profile *prb_profile_open(const char *path,
                                             struct prb_error *err) PRB_MUST_CHECK;
/* Whether a file is a SQLite file, by its first bytes. */
PRB_API bool prb_profile_is(const char *path);

/* How a profile is written. */
struct prb_profile_style {
    bool threads;        /* below a row for each thread */
    bool function;       /* functions by their first line; else each line of a function by itself */
    bool nolineno;       /* no line numbers; implies function */
    bool full_filenames; /* else without the folder of sys.path */
    /* processes by rank, those without by pid; else each by its pid when there are several */
    bool group_rank;
    bool inverted; /* flamegraph: innermost first */
    bool together; /* several processes in one tree, without a row for each */
    /* heatmap: the first file (any path ending in it); NULL: the program's own with the most time */
    const char *source;
    const char *title; /* NULL: made of the command and the time */
    /* flamegraph: coloured by the difference from this one; or NULL */
    const struct prb_profile *before;
};

struct prb_profile_format {
    const char *name, *aliases, *doc;
    const char *suffixes; /* of file names, separated by spaces */
    bool timeline;        /* needs one */
    bool whole_timeline;  /* with what the mode does not count, too */
};
/* The format by its name, or by a file name's end; NULL: none. */
PRB_API const struct prb_profile_format *prb_profile_format_find(const char *name);
PRB_API const struct prb_profile_format *prb_profile_format_of_file(const char *path);
/* All; ends with NULL. */
PRB_API const struct prb_profile_format *const *prb_profile_formats(void);
/* Whether path can be written to, known before anything was sampled. */
PRB_API bool prb_profile_check_output(const char *path, struct prb_error *err);
/*
 * Write a profile to path ("-": standard output).  The file is then whole, or as it was.  When its
 * disk is full or refuses, the file is put into TMPDIR, /var/tmp, /tmp or /dev/shm instead:
 * elsewhere_out (cap bytes, "" else) names it. style may be NULL.
 */
PRB_API bool prb_profile_write(const struct prb_profile *profile,
                               const struct prb_profile_format *format,
                               const struct prb_profile_style *style, const char *path,
                               char *elsewhere_out, size_t cap, struct prb_error *err);

/* ---- SQL ---- */

struct prb_db;

enum prb_type { PRB_NULL_VALUE, PRB_INTEGER, PRB_REAL, PRB_TEXT, PRB_BLOB };

struct prb_value {
    enum prb_type type;
    int64_t integer;
    double real;
    const char *text; /* text (NUL-terminated) or bytes; borrowed until the row callback returns */
    size_t length;    /* bytes */
};

/* A connection to the tables of a target; target may be NULL (tables of the machine only), and
 * must outlive it. */
PRB_API struct prb_db *prb_db_open(struct prb_target *target, struct prb_error *err) PRB_MUST_CHECK;
/*
 * The same for a process that ended: the tables that it wrote itself (python.NAME), and those of
 * the machine.  spec: its pid, or the folder of its tables.  Errors: NOT_FOUND (it left none, or
 * they were removed since).
 */
PRB_API struct prb_db *prb_db_open_ended(const char *spec, struct prb_error *err) PRB_MUST_CHECK;
/*
 * The same of a job in the store: job is a file of it, the pid of a process that wrote there (then
 * the rows of that process), a part of its command line, or the job's name.  note says which file of
 * several, "": there is one.  Errors: NOT_FOUND, CORRUPT.
 */
PRB_API struct prb_db *prb_db_open_stored(const char *job, char note[PRB_NOTE_MAX],
                                          struct prb_error *err) PRB_MUST_CHECK;
/* Whether a path is a file of the store. */
PRB_API bool prb_store_is(const char *path);
/* The table profiling_data of a saved profile, which is borrowed and must outlive it. */
PRB_API struct prb_db *prb_db_open_profile(const struct prb_profile *profile,
                                           struct prb_error *err) PRB_MUST_CHECK;
/*
 * The profile of what the collector sampled of a target's stacks while probing.pprof was on
 * (python.stack_samples), in the modes ACTIVE, WALL and GIL.  now: only where it still does.
 * Errors: NOT_FOUND (it has not sampled them), USAGE (another mode).  Free with prb_profile_free.
 */
PRB_API struct prb_profile *prb_profile_kept(struct prb_db *db, enum prb_profile_mode mode,
                                             bool now, struct prb_error *err) PRB_MUST_CHECK;
/* One of several processes, with the rank of its job (-1: none). */
struct prb_db_process {
    struct prb_target *target; /* borrowed: must outlive the connection */
    pid_t pid;
    int rank;
};
/*
 * The tables of several processes as one: each has the rows of all of them, with the columns rank
 * and pid before the others.  A process that ends meanwhile is left out (prb_db_warning).
 */
PRB_API struct prb_db *prb_db_open_processes(const struct prb_db_process *processes, size_t count,
                                             struct prb_error *err) PRB_MUST_CHECK;
PRB_API void prb_db_close(struct prb_db *db);

/* One call for each row, and one with row NULL before the first, when the columns are known.
 * Return false to end early. */
typedef bool prb_row_fn(void *context, size_t columns, const char *const *names,
                        const struct prb_value *row);

/* Run SQL: one or several statements, rows of each; each NULL: rows are made, and given to nobody.
 * Errors: QUERY (SQLite's message and the position), or what reading gave. */
PRB_API bool prb_db_query(struct prb_db *db, const char *sql, prb_row_fn *each, void *context,
                          struct prb_error *err) PRB_MUST_CHECK;
/* Of statements over ranks of a job: what is fetched for each table, and from which host, as rows
 * instead of the statement's own. */
PRB_API bool prb_db_plan(struct prb_db *db, const char *sql, prb_row_fn *each, void *context,
                         struct prb_error *err) PRB_MUST_CHECK;
/* What the rows of the last query leave out, a sentence a line, or NULL.  Borrowed until the next
 * query. */
PRB_API const char *prb_db_warning(const struct prb_db *db);
/* While statements run, go_on(context) is called every 20 ms or so, in the thread of the query;
 * false ends it (TIMEOUT). NULL: no more. */
PRB_API void prb_db_watch(struct prb_db *db, bool (*go_on)(void *context), void *context);
/* Show secrets in system.environment and in values of variables (off at first). */
PRB_API void prb_db_reveal(struct prb_db *db, bool reveal);

/* ---- skills: files that say what to look for ---- */

/* A Markdown file with a head (name, description) whose SQL blocks return findings (lib/skill/README.md). */
struct prb_skill {
    const char *name, *description;
    const char *text; /* the whole file */
    const char *path; /* NULL: it is part of this library */
    bool ranks;       /* it compares the ranks of a job */
};
/* Which files count beside the ones of this library: the user's, below $XDG_CONFIG_HOME/probing/skills, and
 * those of a project's folder (NULL: none).  One with the name of another is left out. */
struct prb_skills {
    const struct prb_skill *const *items; /* ours first, then by name */
    size_t count;
    const char *warning; /* files that are left out, and why, or NULL */
};
/* Free with prb_skills_free. */
PRB_API struct prb_skills *prb_skills_find(const char *project,
                                           struct prb_error *err) PRB_MUST_CHECK;
PRB_API void prb_skills_free(struct prb_skills *skills);
/* By name; NOT_FOUND names the nearest. */
PRB_API const struct prb_skill *prb_skill_named(const struct prb_skills *skills, const char *name,
                                                struct prb_error *err);
/* Write each as FOLDER/NAME/SKILL.md, the form that agents read; returns how many in *count_out. */
PRB_API bool prb_skills_install(const struct prb_skills *skills, const char *folder,
                                size_t *count_out, struct prb_error *err);

enum prb_severity { PRB_SEVERITY_INFO, PRB_SEVERITY_LOW, PRB_SEVERITY_MEDIUM, PRB_SEVERITY_HIGH };
/* "info", "low", "medium", "high".  Never freed. */
PRB_API const char *prb_severity_name(enum prb_severity severity);

struct prb_finding {
    const char *skill; /* that found it */
    enum prb_severity severity;
    const char *finding; /* one sentence */
    const char *where;   /* "train.py:12 in step", or NULL */
    const char *next;    /* what to do, or NULL */
};
/* What a skill shows beside its findings. */
struct prb_evidence {
    const char *skill, *title;
    const char *const *columns;
    const struct prb_value *cells; /* rows × columns */
    size_t column_count, row_count;
    bool truncated; /* there were more rows */
};
struct prb_diagnosis {
    struct prb_finding *findings; /* the worst first */
    size_t finding_count;
    struct prb_evidence *tables;
    size_t table_count;
    const char *const *notes; /* what could not be looked at, "SKILL: why" */
    size_t note_count;
};
struct prb_diagnose_options {
    double seconds; /* how long hang, slow and the like look; 0: as their files say */
    /* Asked some times a second; false ends it (TIMEOUT).  May be NULL. */
    bool (*go_on)(void *context);
    /* For how long a thread has not moved, in s, when the caller has looked at it before; negative: not
     * known.  NULL: nobody has looked. */
    double (*since)(void *context, pid_t os_thread_id);
    void *context;
};
/*
 * Run skills on the tables of a target, or, where that is NULL, of db (those that compare ranks: of
 * all ranks in it), which serves nothing else meanwhile and afterwards.  They wait beside each other, so all together take about as long as the
 * longest.  A step that fails is a note.  options may be NULL.  Free with prb_diagnosis_free.
 */
PRB_API struct prb_diagnosis *prb_diagnose(struct prb_target *target, struct prb_db *db,
                                           const struct prb_skill *const *skills, size_t count,
                                           const struct prb_diagnose_options *options,
                                           struct prb_error *err) PRB_MUST_CHECK;
PRB_API void prb_diagnosis_free(struct prb_diagnosis *diagnosis);
/* {"findings": [{"severity", "finding", "where", "next", "skill"}], "tables": [{"skill", "title", "columns",
 * "rows", "truncated"}], "notes": […]}; the caller frees it. */
PRB_API char *prb_diagnosis_json(const struct prb_diagnosis *diagnosis,
                                 struct prb_error *err) PRB_MUST_CHECK;

/* ---- what a job recorded, as files of other programs ---- */

struct prb_export_format {
    const char *name, *aliases, *doc;
    const char *suffixes; /* of file names, separated by spaces */
    bool folder;          /* makes files in a folder */
};
/* The format by its name, or by a file name's end; NULL: none. */
PRB_API const struct prb_export_format *prb_export_format_find(const char *name);
PRB_API const struct prb_export_format *prb_export_format_of_file(const char *path);
/* All; ends with NULL. */
PRB_API const struct prb_export_format *const *prb_export_formats(void);

struct prb_export_options {
    unsigned steps; /* the last so many of each process; 0: 20 */
    double seconds; /* instead: the last so many; 0: by steps */
    /* Of tables that do not say which process a row is of. */
    pid_t pid;           /* 0: not known */
    int rank;            /* -1: none */
    const char *command; /* of that process, or NULL */
};
struct prb_exported {
    double since; /* s since the epoch: what began before is left out */
    size_t processes, steps;
    size_t slices, values, arrows; /* of a timeline */
    uint64_t left_out;             /* rows without a time, or beyond what a file may have */
    char note[360];                /* what the rows of a table leave out, or "" */
};
/*
 * Write what the tables of a connection have of the last steps to path ("-": standard output; for a
 * format of a folder a folder, made when it is not there).  A file is then whole, or as it was.
 * Errors: NOT_FOUND (nothing is recorded), IO, those of queries.
 */
PRB_API bool prb_export_write(struct prb_db *db, const struct prb_export_format *format,
                              const struct prb_export_options *options, const char *path,
                              struct prb_exported *out, struct prb_error *err) PRB_MUST_CHECK;

/* ---- the collector ---- */

struct prb_collect_options {
    bool once;       /* move what is there, and end */
    bool while_used; /* end when no process has recorded for a minute */
    int stop_fd;     /* when it can be read, move what is there and end; -1: none */
    /* What the user should know, one line without its end; may be NULL. */
    void (*say)(void *context, const char *line);
    void *context;
};
/*
 * Be the collector of this user: move the rows that his processes record into the store, a file for
 * each job, until the options end it.  BUSY: there is one already, and err says which; IO: at the end
 * something could not be written.
 */
PRB_API bool prb_collect(const struct prb_collect_options *options, uint64_t *rows_out,
                         struct prb_error *err);

#ifdef __cplusplus
}
#endif
#endif
