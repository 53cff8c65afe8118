/*
 * probing.h: see inside a live Python process, a core file or a snapshot of one.
 *
 * The only installed header.  Handles are opaque; results are plain structs that own their strings and are freed as
 * a whole.  Conventions: fallible functions return bool or a pointer (true, non-NULL: success), results come last
 * and are written only on success, then the caller's struct prb_error, which may be NULL.  Returned const pointers
 * are borrowed from the handle or result named beside them.  All strings are UTF-8.  Nothing here prints, exits, or
 * runs code in the target; nothing stops the target unless an option says so.
 * One handle serves one thread at a time; different handles are independent.
 */
#ifndef PROBING_H
#define PROBING_H

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
    CODE(USAGE, "usage", 2)              /* the call or command line is wrong */                   \
    CODE(NOT_FOUND, "not found", 3)      /* no such process, file, table, thread */                \
    CODE(NOT_PYTHON, "not python", 4)    /* a process, but no CPython in it */                     \
    CODE(PERMISSION, "permission", 5)    /* the kernel refuses */                                  \
    CODE(UNSUPPORTED, "unsupported", 6)  /* an interpreter or processor we do not know */          \
    CODE(GONE, "gone", 7)                /* the target ended, or became another program */         \
    CODE(CORRUPT, "corrupt", 8)          /* the target's bytes or a file contradict themselves */  \
    CODE(QUERY, "query", 9)              /* wrong SQL */                                           \
    CODE(FAULT, "fault", 10)             /* an address that cannot be read */                      \
    CODE(IO, "io", 11)                   /* a file or system call failed */                        \
    CODE(NOMEM, "out of memory", 12)                                                               \
    CODE(TIMEOUT, "timeout", 13)         /* a bound was reached */                                 \
    CODE(BUSY, "busy", 14)               /* somebody else holds it: another tracer */              \
    CODE(INTERNAL, "internal", 70)       /* our mistake */

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

PRB_API const char *prb_code_name(enum prb_code code);
/* The command line's exit status for a code. */
PRB_API int prb_code_exit(enum prb_code code);
PRB_API const char *prb_version(void);
/* Of count names the one that a mistyped name was meant to be, or of which it is the beginning; NULL: none is near. */
PRB_API const char *prb_nearest(const char *name, const char *const *names, size_t count);

/* ---- processes ---- */

/* A Python process of this machine, as /proc shows it without attaching. */
struct prb_process {
    pid_t pid, ppid;       /* in the caller's pid namespace */
    uid_t uid;
    const char *name;      /* comm */
    const char *command;   /* arguments joined by spaces */
    const char *python;    /* version such as "3.11.7" or "3.11", NULL when not found without reading memory */
    const char *executable;/* path as the process sees it, or NULL when it may not be read */
    double started;        /* seconds since the epoch */
    int threads;
    int64_t rss;           /* bytes */
    double cpu;            /* seconds of processor time used so far, user and system */
    int rank, local_rank, world_size; /* from RANK, LOCAL_RANK, WORLD_SIZE or their likes in its environment; -1: unset */
    bool has_probe;        /* libprobe.so is mapped */
};

struct prb_process_list {
    struct prb_process *items; /* ascending pid */
    size_t count;
};

/* All processes with a CPython inside that the caller may see.  Free with prb_process_list_free. */
PRB_API struct prb_process_list *prb_process_list(struct prb_error *err) PRB_MUST_CHECK;
PRB_API void prb_process_list_free(struct prb_process_list *list);

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
 * Open a target.  spec: a pid; the path of a core or snapshot file; a unique part of a running Python's command line.
 * options may be NULL.
 * Errors: NOT_FOUND, NOT_PYTHON (names Python children), PERMISSION (says which rule refused), UNSUPPORTED, CORRUPT,
 * USAGE (the part is not unique: lists the matches).  The remedy is filled.
 */
PRB_API struct prb_target *prb_target_open(const char *spec, const struct prb_target_options *options,
                                           struct prb_error *err) PRB_MUST_CHECK;
/* The same for a process; name part only (what -n means). */
PRB_API struct prb_target *prb_target_open_pid(pid_t pid, struct prb_error *err) PRB_MUST_CHECK;
PRB_API struct prb_target *prb_target_open_name(const char *part, struct prb_error *err) PRB_MUST_CHECK;

/* What a debugger has: a process whose threads it stopped, or a core that it opened. */
struct prb_debugger {
    pid_t pid;        /* the process, in the caller's pid namespace; 0: a core is meant */
    const char *core; /* the path of a core or snapshot, or NULL */
    void *context;    /* for the functions, each of which may be NULL */
    /* Copy len bytes at addr as the program has them, without breakpoints; returns how many came, from the first on. */
    size_t (*read)(void *context, prb_addr addr, void *buf, size_t len);
    /* Values of count registers of a stopped thread, named as the processor's manual does; false: not to be had.  NULL:
     * where the caller is the tracer, ptrace(2) tells the kernel's. */
    bool (*registers)(void *context, pid_t tid, const char *const *names, size_t count, uint64_t *values);
};

/*
 * The same through a debugger that holds the process: nothing is stopped or let go by us, and all threads are taken to
 * stand still until the target is closed: close it before they go on.  Its functions are called in the caller's thread,
 * also by later calls with this target.  The strings of debugger and options are copied.
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
    const char *python;  /* "3.11.7", with "+jit", "t" (free-threaded) marks: "3.14.0t" */
    const char *layout;  /* one line: which offsets serve and how they were checked */
    double time;         /* seconds since the epoch: when a core or snapshot was taken; 0 for a live one */
    int signal;          /* of a core: the signal that ended it; 0: none, or not told */
    pid_t signalled;     /* the thread that the signal came to; 0: not known */
};

/* Borrowed from the target. */
PRB_API const struct prb_target_info *prb_target_info(const struct prb_target *target);

/* ---- stacks ---- */

enum prb_frame_kind {
    PRB_FRAME_PYTHON,
    PRB_FRAME_NATIVE,
    PRB_FRAME_BROKEN, /* not a frame: the walk ended here, name says why */
};

enum prb_gil_state { PRB_GIL_NONE, PRB_GIL_WAITING, PRB_GIL_HOLDING };

struct prb_local {
    const char *name;
    const char *repr;  /* see prb_value_limits */
    const char *type;  /* qualified name of its type, such as "torch.nn.parameter.Parameter" */
    prb_addr addr;     /* the object; 0 when unset */
    bool arg;          /* an argument of the function */
};

struct prb_frame {
    enum prb_frame_kind kind;
    const char *name;      /* co_name, or the demangled symbol, or "0x7f…" */
    const char *qualname;  /* co_qualname (3.11+), else as name */
    const char *filename;  /* co_filename, or the source file of native code, or NULL */
    const char *short_filename; /* the same without the part that is a folder of sys.path, or NULL */
    const char *module;    /* native: path of the mapped file; Python: NULL */
    int line, column, end_line, end_column; /* current position; line 0: unknown; columns from 0 as co_positions(), -1: unknown */
    int first_line;        /* of the function */
    prb_addr addr;         /* of the frame object (Python) or the canonical frame address (native) */
    prb_addr code;         /* of the code object, or the program counter (native) */
    int instruction;       /* offset of the current instruction in its code, bytes; -1: unknown */
    bool is_entry;         /* the outermost frame of one call of the evaluator from C */
    bool is_shim_entry;    /* a shim frame stands above it (3.12+) */
    bool guessed;          /* found among the stack's words, without unwind information */
    prb_addr globals;      /* with locals: the dict of the function's module; 0: unknown */
    struct prb_local *locals; /* NULL unless asked */
    size_t local_count;
};

struct prb_thread {
    int64_t interpreter;   /* id; -1: a native thread without Python */
    uint64_t thread_id;    /* threading.get_ident(): the pthread's address; 0: none */
    pid_t os_thread_id;    /* in the caller's pid namespace; 0: unknown */
    const char *name;      /* threading.Thread.name, or the kernel's name for native threads, or NULL */
    const char *comm;      /* the kernel's name, or NULL */
    char os_state;         /* letter of /proc/PID/task/TID/stat, or 0 */
    bool active;           /* running, or holding the GIL */
    enum prb_gil_state gil;
    bool gc;               /* collecting garbage now */
    bool unstable;         /* two equal readings were not had: the stack may mix two moments */
    bool has_python;       /* has a Python thread state */
    struct prb_frame *frames; /* innermost first */
    size_t frame_count;
};

struct prb_stacks {
    double time;           /* seconds since the epoch */
    struct prb_target_info target; /* strings belong to this result */
    struct prb_thread *threads;
    size_t thread_count;
    uint64_t tries, rejected; /* readings of single threads, and how many of them did not agree */
    double longest_stop;   /* seconds that one thread was stopped at the most; 0: none was */
    const char *warning;   /* something that was left out, or NULL */
};

struct prb_stack_options {
    bool native;            /* native frames, and threads without Python */
    bool locals;
    bool all_interpreters;  /* else the main one's threads only */
    bool stop;              /* stop the Python threads while reading */
    bool untouched;         /* native: never stop any thread, so that those which run have no native frames */
    uint64_t only_thread;   /* os_thread_id or thread_id; 0: all */
    bool source_lines;      /* native: file and line from debug information (slower) */
    bool python_only;       /* native: without the threads that have no Python */
    size_t repr_limit;      /* characters of one value; 0: the default, 4,096 */
};

/* options may be NULL.  A thread whose walk breaks gives the good frames and one of kind BROKEN.  Free with prb_stacks_free. */
PRB_API struct prb_stacks *prb_stacks_take(struct prb_target *target, const struct prb_stack_options *options,
                                           struct prb_error *err) PRB_MUST_CHECK;
PRB_API void prb_stacks_free(struct prb_stacks *stacks);
/* Who holds the GIL of a live process, for people: `thread 12 "loader" at f (train.py:3) in poll`, cut to size; "": nobody
 * does, by now.  False: it cannot be read. */
PRB_API bool prb_gil_holder(pid_t pid, char *text, size_t size, struct prb_error *err);

/* JSON text of schema share/probing/backtrace.schema.json; the caller frees it. */
PRB_API char *prb_stacks_json(const struct prb_stacks *stacks, struct prb_error *err) PRB_MUST_CHECK;

/* Threads with the same stack (same functions, files and lines of all frames, and kinds). */
struct prb_stack_group {
    const size_t *threads; /* indices into stacks->threads; the first serves as the example */
    size_t count;
};
struct prb_stack_groups {
    struct prb_stack_group *items; /* largest first */
    size_t count;
};
PRB_API struct prb_stack_groups *prb_stacks_group(const struct prb_stacks *stacks, struct prb_error *err) PRB_MUST_CHECK;
PRB_API void prb_stack_groups_free(struct prb_stack_groups *groups);

/* ---- objects ---- */

/* A part of an object: an element, a value of a key, an attribute.  Or the object as a whole. */
struct prb_part {
    const char *name;   /* "0", "'key'" (its repr), "weight"; NULL of the whole */
    const char *access; /* what follows the object's expression to mean the part: "[0]", "['key']", ".weight"; NULL:
                           no expression does */
    const char *repr;   /* of arrays "Tensor float32 [8, 128] cuda:0" */
    const char *type;   /* qualified name of its type; NULL of a plain text such as an array's shape */
    prb_addr addr;      /* 0: no object of its own, or none that can be read */
    uint64_t indexed;   /* elements that it has */
    uint64_t named;     /* attributes; counted to 100 at the most */
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
    const char *only;      /* the part whose access this is (".weight", "['key']"), and no other; NULL: all */
};

/*
 * Look into an object without running code.  object: as in prb_local or prb_part of the same target; a live one goes
 * on meanwhile, so what was there may be another object now.  Errors: FAULT, CORRUPT (no object there).  Free with
 * prb_parts_free.
 */
PRB_API struct prb_parts *prb_parts_take(struct prb_target *target, prb_addr object, const struct prb_parts_options *options,
                                         struct prb_error *err) PRB_MUST_CHECK;
PRB_API void prb_parts_free(struct prb_parts *parts);

/* ---- tensors ---- */

#define PRB_TENSOR_DIMS_MAX 64

/* A numpy array or a torch tensor, or a part of one, as the target's memory tells it. */
struct prb_tensor {
    prb_addr object;       /* the Python object; 0: it has none */
    bool torch;            /* torch.Tensor; else numpy.ndarray */
    unsigned dims;
    int64_t shape[PRB_TENSOR_DIMS_MAX];
    int64_t stride[PRB_TENSOR_DIMS_MAX]; /* bytes from an element to the next one of that dimension */
    int64_t numel;         /* elements */
    unsigned item_size;    /* bytes of an element; 0: not known */
    char dtype[64];        /* "float32", "bfloat16", "qint8", of numpy also ">i4", "<U5" */
    char device[32];       /* "cpu", "cuda:0", "meta"; "" of numpy */
    char layout[32];       /* "strided", "sparse_coo", "sparse_csr", ...; else the C++ class that holds it */
    prb_addr data;         /* of the first element, on its device; 0: there is none */
    prb_addr storage;      /* where what holds its elements begins; 0: none, or not known */
    int64_t storage_size;  /* bytes; -1: not known */
    int64_t storage_offset; /* bytes from there to the first element */
    bool contiguous;       /* row by row without gaps */
    bool requires_grad, is_leaf; /* of numpy: false, true */
    bool conjugated, negated; /* the elements mean the conjugate, the negative, of what is stored */
    int64_t version;       /* how often it was changed in place; -1: nobody counts */
    prb_addr implementation; /* torch: its TensorImpl */
    prb_addr grad;         /* torch: the TensorImpl of its gradient; 0: none */
    char unreadable[96];   /* why its elements cannot be read here; "": they can */
};

/*
 * The array or tensor at object (as in prb_local or prb_part).  torch 1.13 to 2.13, numpy 1 and 2.
 * Errors: UNSUPPORTED (neither, or laid out as none that is known), CORRUPT (its parts contradict each other), FAULT.
 * Source: numpy's ndarraytypes.h; torch's c10/core/TensorImpl.h, StorageImpl.h, torch/csrc/autograd/variable.h.
 */
PRB_API bool prb_tensor_take(struct prb_target *target, prb_addr object, struct prb_tensor *out,
                             struct prb_error *err) PRB_MUST_CHECK;
/*
 * The tensor that C++ holds: a c10::TensorImpl, to which an at::Tensor is the pointer.  It needs no Python object
 * (out->object 0).  Errors: CORRUPT (no TensorImpl that is known), FAULT.
 */
PRB_API bool prb_tensor_take_native(struct prb_target *target, prb_addr impl, struct prb_tensor *out,
                                    struct prb_error *err) PRB_MUST_CHECK;
/* A part, by the text of a Python subscript: "0, 1:3, ..., ::2".  Errors: USAGE. */
PRB_API bool prb_tensor_slice(const struct prb_tensor *tensor, const char *subscript, struct prb_tensor *out,
                              struct prb_error *err) PRB_MUST_CHECK;

enum prb_element_kind { PRB_ELEMENT_BOOL, PRB_ELEMENT_INT, PRB_ELEMENT_UINT, PRB_ELEMENT_REAL, PRB_ELEMENT_COMPLEX };

/* One element. */
struct prb_element {
    enum prb_element_kind kind;
    union {
        int64_t integer; /* BOOL, INT */
        uint64_t natural; /* UINT */
        double real;      /* REAL, COMPLEX */
    };
    double imag; /* COMPLEX */
};

#define PRB_ELEMENTS_MAX 1000000 /* of one call */

/* Elements start to start + count, row by row.  Errors: UNSUPPORTED (says why: unreadable), USAGE, FAULT. */
PRB_API bool prb_tensor_elements(struct prb_target *target, const struct prb_tensor *tensor, int64_t start, size_t count,
                                struct prb_element *out, struct prb_error *err) PRB_MUST_CHECK;
/* The elements as nested brackets, "[[1.0, 2.5], [nan, -0.0]]", no more than limit of them (0: 1,000); what is left out
 * is "...".  The caller frees it. */
PRB_API char *prb_tensor_text(struct prb_target *target, const struct prb_tensor *tensor, size_t limit,
                              struct prb_error *err) PRB_MUST_CHECK;

#define PRB_HISTOGRAM_MAX 256

struct prb_statistics {
    int64_t count, nan, inf, zero; /* elements; those that are neither number nor infinite, infinite, 0 */
    double min, max;  /* of all that is no NaN; NAN: there is none, or they are complex */
    double mean, std, norm; /* of the finite ones; NAN: none.  std as the library's own: torch divides by n - 1, numpy by n */
    double mean_imag; /* complex: the imaginary part of the mean */
    unsigned bins;    /* of the histogram: equal parts of [low, high], the last one closed */
    double low, high;
    int64_t histogram[PRB_HISTOGRAM_MAX]; /* what lies outside is counted nowhere */
};

struct prb_statistics_options {
    unsigned bins;    /* of the histogram, which costs a second pass; 0: none */
    double low, high; /* its bounds; both 0: the smallest and the largest finite element, half a unit around where all are equal */
};

/* Read all elements once, in blocks; a live target may change them meanwhile.  options may be NULL.
 * Errors: UNSUPPORTED (no numbers, or unreadable), FAULT. */
PRB_API bool prb_tensor_statistics(struct prb_target *target, const struct prb_tensor *tensor,
                                   const struct prb_statistics_options *options, struct prb_statistics *out,
                                   struct prb_error *err) PRB_MUST_CHECK;

/* ---- exceptions ---- */

enum prb_exception_state {
    PRB_EXCEPTION_RAISED,  /* on its way */
    PRB_EXCEPTION_HANDLED, /* the thread runs a handler for it */
    PRB_EXCEPTION_LAST,    /* sys.last_exc or last_value: the interpreter's last that nobody handled */
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
    struct prb_exception *items; /* the exception, then what it came from, PRB_EXCEPTIONS_MAX at the most */
    size_t count;                /* 0: none is seen */
};
#define PRB_EXCEPTIONS_MAX 32

/* The exception that a Python thread is busy with; the main thread's may be sys.last_exc.  thread: its os_thread_id or
 * thread_id.  Errors: NOT_FOUND (no such Python thread).  Free with prb_exceptions_free. */
PRB_API struct prb_exceptions *prb_exceptions_take(struct prb_target *target, uint64_t thread,
                                                   struct prb_error *err) PRB_MUST_CHECK;
PRB_API void prb_exceptions_free(struct prb_exceptions *exceptions);

/* ---- crash dumps ---- */

/* What a crash dump tells of the crash, as it was found then.  Texts are NULL and numbers -1 (line, code, signal: 0) where
 * they were not known. */
struct prb_crash {
    const char *kind;  /* "signal", "exception", "asked" (SIGTERM), "memory" (the control group has nearly none left) */
    const char *title; /* one line: "SIGSEGV, nothing is mapped there, address 0x0", "ValueError: wrong" */
    double time;       /* seconds since the epoch */
    pid_t pid, tid;    /* tid: the thread it came to */
    int signal, code;  /* code: si_code, sigaction(2) */
    const char *signal_name;
    bool has_address;
    prb_addr address;  /* of a fault */
    const char *reason;
    const char *thread;               /* its name */
    const char *exception, *message;  /* type and text, of an exception */
    int rank, local_rank, world_size; /* as in prb_process */
    const char *function, *file;      /* innermost Python frame, of an exception where it was raised */
    int line;
    const char *native; /* innermost native function */
    const char *place;  /* both in one text */
    const char *group;  /* equal for equal crashes: kind, signal or type, and the stack of the thread without addresses */
};

/* NULL: the target is no crash dump.  Borrowed from the target. */
PRB_API const struct prb_crash *prb_target_crash(struct prb_target *target);

#define PRB_CRASH_PATH_MAX 1024
struct prb_crash_written {
    char path[PRB_CRASH_PATH_MAX]; /* of the dump */
    uint64_t bytes;
};

/*
 * Write the crash dump of a process that crashes now and waits for it: record is the address of its account (lib/crash/record.h).
 * Its threads are held meanwhile, all of them that can be.  What it holds shrinks until it fits the size that the account tells.
 * Errors: CORRUPT (no such account), PERMISSION, IO.
 */
PRB_API bool prb_crash_dump_write(pid_t pid, prb_addr record, struct prb_crash_written *out, struct prb_error *err) PRB_MUST_CHECK;
/* The folder of the dumps: wanted, or with "" the default one, made when it is not there. */
PRB_API bool prb_crash_dump_folder(const char *wanted, char out[PRB_CRASH_PATH_MAX], struct prb_error *err) PRB_MUST_CHECK;

/* ---- snapshots ---- */

struct prb_snapshot_options {
    bool native; /* with registers and stacks of all threads (each running one is stopped for its copy) */
    bool locals; /* with what the locals' reprs need */
    bool stop;   /* stop the Python threads meanwhile, so that all is of one moment */
};
/*
 * Write what decoding this target touches to path, an ELF core of kilobytes that every core reader opens.
 * *bytes_out: its size.  *moved_out: threads that went on while they were copied, in every try: their stacks in the file
 * may mix two moments (none with stop).
 */
PRB_API bool prb_snapshot_write(struct prb_target *target, const char *path, const struct prb_snapshot_options *options,
                                uint64_t *bytes_out, size_t *moved_out, struct prb_error *err) PRB_MUST_CHECK;

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

/* A connection to the tables of a target; target may be NULL (tables of the machine only), and must outlive it. */
PRB_API struct prb_db *prb_db_open(struct prb_target *target, struct prb_error *err) PRB_MUST_CHECK;
/*
 * The same for a process that ended: the tables that it wrote itself (python.NAME), and those of the machine.  spec: its
 * pid, or the folder of its tables.  Errors: NOT_FOUND (it left none, or they were removed since).
 */
PRB_API struct prb_db *prb_db_open_ended(const char *spec, struct prb_error *err) PRB_MUST_CHECK;
PRB_API void prb_db_close(struct prb_db *db);

/* One call for each row, and one with row NULL before the first, when the columns are known.  Return false to end early. */
typedef bool prb_row_fn(void *context, size_t columns, const char *const *names, const struct prb_value *row);

/* Run SQL: one or several statements, rows of each.  Errors: QUERY (SQLite's message and the position), or what reading gave. */
PRB_API bool prb_db_query(struct prb_db *db, const char *sql, prb_row_fn *each, void *context,
                          struct prb_error *err) PRB_MUST_CHECK;
/* What the rows of the last query leave out, one sentence, or NULL.  Borrowed until the next query. */
PRB_API const char *prb_db_warning(const struct prb_db *db);
/* While statements run, go_on(context) is called every 20 ms or so, in the thread of the query; false ends it (TIMEOUT).
 * NULL: no more. */
PRB_API void prb_db_watch(struct prb_db *db, bool (*go_on)(void *context), void *context);
/* Show secrets in system.environment (off at first). */
PRB_API void prb_db_reveal(struct prb_db *db, bool reveal);

#ifdef __cplusplus
}
#endif
#endif
