/*
 * The steps of loading a library into a process, one file each, and what they share: preflight.c
 * and seccomp*.c (is it allowed?), addresses.c (functions of the target to call, and those that a
 * borrowed thread must not be in), choose.c and clean_stack.c (choosing a thread), borrow.c (the
 * stop), deliver.c and carry.c (the library's way in, and the wait), inject.c (their order).
 */
#ifndef PRB_INJECT_STEPS_H
#define PRB_INJECT_STEPS_H

#include "inject/enter/arch.h"
#include "inject/inject.h"
#include "proc/elf.h"

struct prb_unwinder;

/* ---- preflight.c ---- */

/* Refuse for every reason that can be known without touching the target. */
bool prb_inject_allowed(struct prb_proc *proc, struct prb_error *err);
/* BUSY when another process traces the target's main thread. */
bool prb_inject_untraced(struct prb_proc *proc, struct prb_error *err);
/* A value of the line "key:" of a /proc status text; -1: no such line.  base 10 or 16. */
long long prb_inject_status(const char *status, const char *key, int base);
/* Lock the target for this tool alone; waits up to `wait` seconds.  A descriptor, or -1 (BUSY). */
int prb_inject_lock(struct prb_proc *proc, double wait, struct prb_error *err);

/* ---- seccomp.c ---- */

/* Whether its seccomp mode allows loading a library; status: its /proc status text. */
bool prb_seccomp_allows(struct prb_proc *proc, const char *status, struct prb_error *err);
/* Whether two tasks have the same seccomp mode and filters, as far as /proc shows. */
bool prb_seccomp_alike(pid_t a, pid_t b);

/* ---- seccomp_filter.c ---- */

/* Whether each filter of the target allows what a probe needs.  A thread is stopped while its
 * filters are read.  Also false: they cannot be read (only root may), or not now. */
bool prb_seccomp_filters_allow(struct prb_proc *proc);

/* ---- addresses.c ---- */

/* Code in which a borrowed thread must not have a frame: return addresses in (start, end]. */
struct prb_danger {
    prb_addr start, end;
    const char *what; /* "the allocator" */
    bool called;      /* its return addresses follow a call instruction */
};

struct prb_addresses {
    const struct prb_inject_arch *arch;
    prb_addr pthread_create, pthread_self, pthread_detach, dlopen, dlsym, dlerror, munmap;
    bool private_dlopen;        /* __libc_dlopen_mode: needs a flag of its own */
    prb_addr syscall_code;      /* an existing system call instruction */
    prb_addr syscall_return;    /* one that is followed by a return; 0: none */
    prb_addr signal_return;     /* where signal handlers return to, which calls rt_sigreturn(2) */
    prb_addr probe_start;       /* prb_probe_start of a probe that is mapped already; 0: none */
    struct prb_danger *dangers; /* ascending start, not overlapping */
    size_t danger_count;
};

bool prb_addresses_init(struct prb_addresses *out, struct prb_proc *proc,
                        struct prb_modules *modules, struct prb_error *err);
void prb_addresses_deinit(struct prb_addresses *addresses);
PRB_DEFINE_AUTO(prb_addresses, struct prb_addresses, prb_addresses_deinit)
/* The danger that a return address lies in, or NULL. */
const struct prb_danger *prb_danger_at(const struct prb_addresses *addresses, prb_addr addr);
/* The module of the C library, and of its dynamic loader; NULL: none. */
struct prb_module *prb_libc(struct prb_modules *modules);
/* Whether the last part of a path is name, or begins with it where name ends in '*'. */
bool prb_path_is(const char *path, const char *name);
/* Whether a CPython is mapped: a libpython, or an executable that has its API. */
bool prb_is_python(struct prb_modules *modules);

/* ---- choose.c, clean_stack.c ---- */

enum prb_unfit {
    PRB_FIT,
    PRB_UNFIT_RUNNING,
    PRB_UNFIT_STATE,
    PRB_UNFIT_CALL,
    PRB_UNFIT_LOCK,
    PRB_UNFIT_STACK,
    PRB_UNFIT_PLACE,
    PRB_UNFIT_MOVED,
    PRB_UNFIT_SIGNAL,
    PRB_UNFIT_CONFINED,
    PRB_UNFIT_NO_CPU,
    PRB_UNFIT_COUNT,
};

struct prb_choice {
    pid_t tid;
    bool running;            /* its stack is scanned while it is stopped */
    enum prb_unfit counted;  /* of a running one: how prb_chooser.unfit counts it */
    int cpu;                 /* where it ran last */
    struct prb_syscall call; /* else the system call that it waits in */
};

/* Room for a thread's stack, reused from thread to thread. */
struct prb_stack_room {
    uint64_t *words;
    size_t bytes;
};

struct prb_chooser {
    struct prb_proc *proc;
    struct prb_mem *mem;
    const struct prb_addresses *addresses;
    struct prb_modules *modules;
    struct prb_unwinder *unwinder; /* made on first use */
    struct prb_stack_room room;
    struct prb_map stack; /* the map of the stack that was scanned last */
    size_t stack_len;     /* bytes of the stack that was read last */
    bool unwind_stopped; /* after some rounds: unwind while a thread is stopped, too, some 0.3 ms */
    unsigned unfit[PRB_UNFIT_COUNT]; /* threads of the last round, by why they cannot be borrowed */
    const struct prb_danger *danger; /* the last one found on a stack */
    struct prb_task running;         /* a running thread of the last round */
    enum prb_unfit running_counted;  /* how unfit counts it */
    unsigned rounds;                 /* so far */
    size_t turn;                     /* so that each running thread has its turn */
    bool stopped;                    /* the target is stopped (SIGSTOP) */
    pid_t sent; /* a stopped thread that an earlier injection sent to its stub; 0: none */
};

void prb_chooser_deinit(struct prb_chooser *chooser);
PRB_DEFINE_AUTO(prb_chooser, struct prb_chooser, prb_chooser_deinit)
/* A parked thread whose stack is clean, else a running one, to be examined in its stop.  False
 * without an error: none now (see unfit), or one was sent before (see sent); with one: the process
 * ended. */
bool prb_choose(struct prb_chooser *chooser, struct prb_choice *out, struct prb_error *err);
/* When a thread that waits in this call may be borrowed; NULL: never. */
const struct prb_waiting_call *prb_waiting_call(const struct prb_inject_arch *arch, int64_t number);
/* Make room for the largest stack that is scanned. */
bool prb_stack_room(struct prb_chooser *chooser, struct prb_error *err);
/* PRB_UNFIT_STACK when a word of the stack is a return address into a danger.  Allocates nothing
 * once the room suffices. */
enum prb_unfit prb_stack_scan(struct prb_chooser *chooser, const struct prb_registers *registers);
/* Whether so many bytes below its stack pointer belong to this thread's stack. */
bool prb_stack_below(struct prb_chooser *chooser, prb_addr sp, size_t bytes);
/* PRB_FIT when the stack that was scanned last, unwound, has no frame in a danger. */
enum prb_unfit prb_stack_unwound(struct prb_chooser *chooser,
                                 const struct prb_registers *registers);
/* "3 run, 2 have the allocator on their stack": why no thread was borrowed. */
void prb_choose_explain(const struct prb_chooser *chooser, char *out, size_t size);

/* ---- borrow.c ---- */

struct prb_borrowed {
    prb_addr base; /* of our mapping: the code, the page, scratch memory; 0: none yet */
    size_t len;    /* of it */
    prb_addr page; /* in it: struct prb_stub_page */
    pid_t tid;
    bool by_frame;      /* it returns by rt_sigreturn(2), which restores its signal mask, too */
    bool sent;          /* a thread runs the stub, or will when the target continues */
    bool stopped;       /* the target is stopped: nothing runs until it continues */
    enum prb_unfit why; /* not sent: try another */
    int64_t paused_ns;  /* from its stop until its release */
    uint64_t clock_let_go;
    double clock_hz; /* of the CPU's counter; 0: not known */
};

/* The extended state of a stopped thread, with what follows it: at most PRB_XSTATE_MAX - 8 bytes, as
 * a frame's image may get an end mark.  Returns the bytes; 0: it cannot be read. */
size_t prb_extended_state(const struct prb_inject_arch *arch, pid_t tid, uint8_t *out);

/* Send a thread through the stub, with page as its orders.  True with sent false: try again,
 * nothing was changed (but a mapping may exist, which the next try uses).  False: it cannot
 * succeed. */
bool prb_borrow(struct prb_chooser *chooser, const struct prb_choice *choice,
                const struct prb_stub_page *page, struct prb_borrowed *borrowed,
                struct prb_error *err);

/* ---- deliver.c ---- */

struct prb_delivery {
    char library[PRB_STUB_PATH_MAX]; /* on this side */
    char path[PRB_STUB_PATH_MAX];    /* as the target opens it; "": by a memory file */
    char *bytes;                     /* the file, where the target cannot open it */
    size_t len;
    bool start; /* the library is a probe: prb_probe_start is called */
};

/* Read the library, choose how it gets there, and check that the target's C library is new enough.
 */
bool prb_delivery_init(struct prb_delivery *out, struct prb_proc *proc, struct prb_modules *modules,
                       const struct prb_inject_options *options, struct prb_error *err);
void prb_delivery_deinit(struct prb_delivery *delivery);
PRB_DEFINE_AUTO(prb_delivery, struct prb_delivery, prb_delivery_deinit)
/* The orders for the new thread. */
bool prb_delivery_page(const struct prb_delivery *delivery, const struct prb_addresses *addresses,
                       const struct prb_inject_options *options, struct prb_stub_page *out,
                       struct prb_error *err);
/* Wait until the new thread has loaded and started the library; not for a stopped target. */
bool prb_delivery_await(const struct prb_delivery *delivery, struct prb_proc *proc,
                        const struct prb_borrowed *borrowed, struct prb_stub_page *page,
                        struct prb_error *err);

/* ---- carry.c ---- */

/* Fill the memory file that the target says it made, and seal it; path as the target opens it.
 * False: it is not such a file, or the kernel has no pidfd_getfd(2) (Linux 5.6). */
bool prb_fill_memory_file(const struct prb_delivery *delivery, struct prb_proc *proc,
                          int descriptor, char *path, size_t size);

/* A file below the target's root, made with its user's rights, that only this user may read. */
struct prb_target_file {
    bool made;
    int folder;   /* open, so that the file is removed even if the path leads elsewhere by then */
    dev_t device; /* of our file: the target may replace it */
    ino_t inode;
    char name[64];  /* in the folder */
    char path[128]; /* as the target sees it */
};
bool prb_target_file(struct prb_proc *proc, const char *suffix, const char *bytes, size_t len,
                     struct prb_target_file *out);
void prb_target_file_deinit(struct prb_target_file *file);
PRB_DEFINE_AUTO(prb_target_file, struct prb_target_file, prb_target_file_deinit)

/* ---- remote_exec.c ---- */

/* By the interpreter's remote debugging interface (PEP 768): the main thread runs a script of ours
 * as soon as it runs Python code.  Nothing is stopped. */
bool prb_inject_remote_exec(struct prb_proc *proc, struct prb_modules *modules,
                            const struct prb_delivery *delivery,
                            const struct prb_inject_options *options, struct prb_error *err);

#endif
