/*
 * The steps of method I, each in a file of its own, and what they hand on: preflight.c and
 * seccomp*.c (may it be?), addresses.c (addresses of the target's functions, and of those that a
 * borrowed thread must not be in), choose.c and clean_stack.c (a thread), borrow.c (the stop),
 * deliver.c and carry.c (the library's way in, and the wait), inject.c (their order).
 */
#ifndef PRB_INJECT_METHOD_H
#define PRB_INJECT_METHOD_H

#include "inject/enter/arch.h"
#include "inject/inject.h"
#include "proc/elf.h"

struct prb_unwinder;

/* ---- preflight.c ---- */

/* Every reason not to try that can be known without touching the target. */
bool prb_inject_allowed(struct prb_proc *proc, struct prb_error *err);
/* BUSY when another process traces the target's main thread. */
bool prb_inject_untraced(struct prb_proc *proc, struct prb_error *err);
/* A value of the line "key:" of a /proc status text; -1: no such line.  base 10 or 16. */
long long prb_inject_status(const char *status, const char *key, int base);
/* Take the target for this tool alone, up to `wait` seconds; the descriptor, or -1 (BUSY). */
int prb_inject_lock(struct prb_proc *proc, double wait, struct prb_error *err);

/* ---- seccomp.c ---- */

/* Whether what confines it lets a library in; status: its /proc status text. */
bool prb_seccomp_allows(struct prb_proc *proc, const char *status, struct prb_error *err);
/* Whether two tasks are confined alike, as far as /proc tells. */
bool prb_seccomp_alike(pid_t a, pid_t b);

/* ---- seccomp_filter.c ---- */

/* Whether each filter of the target allows what a probe needs.  A thread is stopped for it as long
 * as its filters are read.  False, too: they cannot be read (only root may), or not now. */
bool prb_seccomp_filters_allow(struct prb_proc *proc);

/* ---- addresses.c ---- */

/* Text in which no frame of a borrowed thread may be: return addresses in (start, end]. */
struct prb_danger {
    prb_addr start, end;
    const char *what; /* "the allocator" */
    bool called;      /* its return addresses stand behind a call instruction */
};

struct prb_places {
    const struct prb_inject_arch *arch;
    prb_addr pthread_create, pthread_self, pthread_detach, dlopen, dlsym, dlerror, munmap;
    bool private_dlopen;        /* __libc_dlopen_mode: wants a flag of its own */
    prb_addr syscall_code;      /* an existing system call instruction */
    prb_addr syscall_return;    /* one that is followed by a return; 0: none */
    prb_addr signal_return;     /* where signal handlers return to, which calls rt_sigreturn(2) */
    prb_addr probe_start;       /* prb_probe_start of a probe that is mapped already; 0: none */
    struct prb_danger *dangers; /* ascending start, not overlapping */
    size_t danger_count;
};

bool prb_places_init(struct prb_places *out, struct prb_proc *proc, struct prb_modules *modules,
                     struct prb_error *err);
void prb_places_deinit(struct prb_places *places);
PRB_DEFINE_AUTO(prb_places, struct prb_places, prb_places_deinit)
/* The danger that a return address lies in, or NULL. */
const struct prb_danger *prb_danger_at(const struct prb_places *places, prb_addr addr);
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
    PRB_UNFIT_COUNT,
};

struct prb_choice {
    pid_t tid;
    bool running;            /* its stack is looked at while it is stopped */
    int processor;           /* where it ran last */
    struct prb_syscall call; /* else the system call that it waits in */
};

/* Stack words of a thread, kept from one look to the next. */
struct prb_stack_room {
    uint64_t *words;
    size_t bytes;
};

struct prb_chooser {
    struct prb_proc *proc;
    struct prb_mem *mem;
    const struct prb_places *places;
    struct prb_modules *modules;
    struct prb_unwinder *unwinder; /* made on first use */
    struct prb_stack_room room;
    size_t stack_len;    /* bytes of the stack that was read last */
    bool unwind_stopped; /* by and by: unwind also while a thread is stopped, some 0.3 ms */
    unsigned unfit[PRB_UNFIT_COUNT]; /* threads of the last look, by why they cannot be taken */
    const struct prb_danger *danger; /* the last one found on a stack */
    struct prb_task running;         /* a running thread of the last look */
    unsigned looks;                  /* that were had */
    size_t turn;                     /* so that each running thread has its turn */
    bool stopped;                    /* the target is stopped (SIGSTOP) */
};

void prb_chooser_deinit(struct prb_chooser *chooser);
PRB_DEFINE_AUTO(prb_chooser, struct prb_chooser, prb_chooser_deinit)
/* A parked thread whose stack is clean, else a running one, to be looked at in its stop.  False
 * without an error: none now (unfit tells); with one: the process ended. */
bool prb_choose(struct prb_chooser *chooser, struct prb_choice *out, struct prb_error *err);
/* How a thread that waits in this call may be taken; NULL: it may not. */
const struct prb_waiting_call *prb_waiting_call(const struct prb_inject_arch *arch, int64_t number);
/* Room for the largest stack that is looked at. */
bool prb_stack_room(struct prb_chooser *chooser, struct prb_error *err);
/* PRB_UNFIT_STACK when a word of the stack is a return address into a danger.  Allocates nothing
 * once the room suffices. */
enum prb_unfit prb_stack_scan(struct prb_chooser *chooser, const struct prb_registers *registers);
/* Whether so many bytes below its stack pointer are the thread's stack, and no other one's. */
bool prb_stack_below(struct prb_chooser *chooser, prb_addr sp, size_t bytes);
/* PRB_FIT when the stack that was scanned last, unwound, has no frame in a danger. */
enum prb_unfit prb_stack_unwound(struct prb_chooser *chooser,
                                 const struct prb_registers *registers);
/* "3 run, 2 have the allocator on their stack": why no thread was taken. */
void prb_choose_explain(const struct prb_chooser *chooser, char *out, size_t size);

/* ---- borrow.c ---- */

struct prb_borrowed {
    prb_addr base; /* of what was mapped: the code, the page, scratch memory; 0: nothing yet */
    size_t len;    /* of it */
    pid_t tid;
    bool by_frame;      /* it goes back by rt_sigreturn(2), which takes its signal mask back, too */
    bool given;         /* a thread runs the stub now, or will when the target goes on */
    bool stopped;       /* the target is stopped: nothing runs before it is continued */
    enum prb_unfit why; /* not given: try another */
    int64_t paused_ns;  /* from its stop until we let go */
    uint64_t clock_let_go;
    double clock_hz; /* of the processor's counter; 0: not known */
};

/* Send a thread through the stub, with page as its orders.  True with given false: try again,
 * nothing was changed (a mapping may have been made, which the next try takes).  False: hopeless.
 */
bool prb_borrow(struct prb_chooser *chooser, const struct prb_choice *choice,
                const struct prb_stub_page *page, struct prb_borrowed *borrowed,
                struct prb_error *err);

/* ---- deliver.c ---- */

struct prb_delivery {
    char library[PRB_STUB_PATH_MAX]; /* on this side */
    char path[PRB_STUB_PATH_MAX];    /* as the target opens it; "": by a memory file */
    char *bytes;                     /* the file, where it has to be carried over */
    size_t len;
    bool start; /* the library is a probe: prb_probe_start is called */
};

/* Read the library, look how it can get there, and whether the target's C library is new enough. */
bool prb_delivery_init(struct prb_delivery *out, struct prb_proc *proc, struct prb_modules *modules,
                       const struct prb_inject_options *options, struct prb_error *err);
void prb_delivery_deinit(struct prb_delivery *delivery);
PRB_DEFINE_AUTO(prb_delivery, struct prb_delivery, prb_delivery_deinit)
/* The orders for the new thread. */
bool prb_delivery_page(const struct prb_delivery *delivery, const struct prb_places *places,
                       const struct prb_inject_options *options, struct prb_stub_page *out,
                       struct prb_error *err);
/* Until the new thread has loaded and started the library; stopped: do not wait for a target that
 * stands still. */
bool prb_delivery_await(const struct prb_delivery *delivery, struct prb_proc *proc,
                        const struct prb_borrowed *borrowed, struct prb_stub_page *page,
                        struct prb_error *err);

/* ---- carry.c ---- */

/* Fill the memory file that the target says it made, and seal it; path as the target opens it.
 * False: it is no such file, or the kernel has no pidfd_getfd(2) (Linux 5.6). */
bool prb_fill_memory_file(const struct prb_delivery *delivery, struct prb_proc *proc,
                          int descriptor, char *path, size_t size);

/* A file in the target's root, with its user's rights, that he alone may read. */
struct prb_file_there {
    bool made;
    int folder;   /* it is removed through this, wherever the folder's path leads by then */
    dev_t device; /* what we made: the target may put another in its place */
    ino_t inode;
    char name[64];  /* in the folder */
    char path[128]; /* as the target sees it */
};
bool prb_file_there(struct prb_proc *proc, const char *suffix, const char *bytes, size_t len,
                    struct prb_file_there *out);
void prb_file_there_deinit(struct prb_file_there *file);
PRB_DEFINE_AUTO(prb_file_there, struct prb_file_there, prb_file_there_deinit)

/* ---- remote_exec.c ---- */

/* By the interpreter's own door for debuggers (PEP 768): the main thread runs a script of ours,
 * soon, if it runs Python code at all.  Nothing is stopped. */
bool prb_inject_remote_exec(struct prb_proc *proc, struct prb_modules *modules,
                            const struct prb_delivery *delivery,
                            const struct prb_inject_options *options, struct prb_error *err);

#endif
