/*
 * The parts of an unwinder, inside lib/native: what it reads from (memory.c), where unwind tables
 * are (tables.c), the walk (unwind.c), and names (symbol.c).
 */
#ifndef PRB_NATIVE_UNWINDER_H
#define PRB_NATIVE_UNWINDER_H

#include "arch/arch.h"
#include "native/libraries.h"
#include "native/native.h"
#include "native/stopper.h"

#define PRB_PAGE 4096
#define PRB_PAGES 1024 /* of the page cache: 4 MiB at the most; a power of two */

/* Pages of the target read so far; a newer page takes the place of an older one of the same slot.
 */
struct prb_pages {
    struct prb_page {
        prb_addr addr;
        uint8_t *bytes; /* NULL: never used */
        bool readable;
        bool of_file; /* and not writable: as lasting as the map */
    } items[PRB_PAGES];
};

/* Where the search table of .eh_frame_hdr lies in the target. */
struct prb_unwind_table {
    prb_addr start, end; /* of the code it is for */
    bool tried;
    prb_addr header; /* 0: it has none */
    prb_addr entries;
    uint64_t count;
};

#define PRB_UNKNOWN_RULES 64

#define PRB_PC_CACHE 1024 /* a power of two */

/* What is known of one program counter. */
struct prb_pc {
    prb_addr pc;
    bool known, executable, after_call, signal_return;
};

/* What stops of threads use again and again: who makes them, and where their stacks are copied to.
 */
struct prb_stops {
    struct prb_stopper *thread;
    uint8_t *staging; /* PRB_STACK_COPY_MAX bytes, none of which will fault */
};

struct prb_unwinder {
    struct prb_modules *modules; /* the caller's, or own */
    struct prb_modules own;      /* of the target as it is now, once it has mapped other code */
    uint64_t code;               /* a sum over the maps of code that modules are of */
    struct prb_mem *mem;
    const struct prb_arch *arch;
    size_t frames_max; /* 0: PRB_NATIVE_FRAMES_MAX */
    struct prb_arena arena;
    struct prb_pages pages;
    struct prb_unwind_table *tables; /* beside modules->items */
    struct prb_unwind_table vdso;
    struct prb_pc pcs[PRB_PC_CACHE];
    const struct prb_libunwind *lib;
    unw_addr_space_t space;

    struct prb_stops stops;

    /* of the walk now under way */
    const struct prb_thread_copy *copy;
    struct prb_registers registers;           /* at the cursor's start */
    bool lacking;                             /* a register was needed that is not known */
    bool missing;                             /* code without unwind information */
    unsigned reads;                           /* words read in this step */
    prb_addr unknown_rule[PRB_UNKNOWN_RULES]; /* of the function that is looked at */
    unsigned unknown_rules;
};

/* ---- stop.c ---- */

/*
 * Take registers and stack bytes of a task.  Of a core or snapshot: what it has.  Of a live
 * process: of a thread that is blocked or stopped already, what /proc has (stack pointer and
 * program counter only); of any other, all registers, with the thread stopped for the copy
 * (PTRACE_SEIZE, PTRACE_INTERRUPT) and nothing else.  Never stopped: threads that wait in a system
 * call which would end in EINTR (struct prb_arch, fragile_syscalls).  Errors: GONE (it ended), BUSY
 * (it runs, and another tracer holds it or rule forbids), TIMEOUT (it could not be stopped),
 * PERMISSION. stops begins as {0}.
 */
bool prb_thread_copy_take(struct prb_proc *proc, struct prb_mem *mem, pid_t tid,
                          enum prb_stop_rule rule, prb_during_stop_fn *during_stop, void *context,
                          struct prb_stops *stops, struct prb_thread_copy *out,
                          struct prb_error *err);
void prb_stops_deinit(struct prb_stops *stops);

#define PRB_STEP_READS_MAX 200000 /* words one step may read: a location expression can loop */

/* ---- memory.c ---- */
/* Up to len bytes at addr, of the stack's copy where it lies there, else of the page cache.  True:
 * all of them. */
bool prb_unwinder_read(struct prb_unwinder *u, prb_addr addr, void *out, size_t len);
bool prb_unwinder_word(struct prb_unwinder *u, prb_addr addr, uint64_t *out);
void prb_unwinder_pages_free(struct prb_unwinder *u);
/* All that is not of a file, or also what is known of code. */
void prb_unwinder_pages_forget(struct prb_unwinder *u, bool code);
/* Executable, after a call, signal return: once for each program counter. */
const struct prb_pc *prb_unwinder_pc(struct prb_unwinder *u, prb_addr pc);

/* ---- tables.c ---- */
/* Make tables for the modules as they are, or as they are now (again: read the maps again).  False:
 * out of memory. */
bool prb_unwind_tables_follow(struct prb_unwinder *u, bool again);
/* The table for code at pc; NULL: there is none. */
const struct prb_unwind_table *prb_unwind_table(struct prb_unwinder *u, prb_addr pc);

/* ---- rules.c ---- */
/* Note where call frame instructions from start to end are not known to libunwind, after those noted. */
void prb_unwind_rules_note(struct prb_unwinder *u, prb_addr start, prb_addr end);
/* A word of the target as libunwind is to see it. */
void prb_unwind_rules_hide(const struct prb_unwinder *u, prb_addr addr, uint64_t *word);

/* ---- evaluator_symbols.c ---- */
/* Whether a symbol is the interpreter's call machinery (evaluator_symbols.def). */
bool prb_is_call_machinery(const char *symbol);
/* The evaluators' names, the newest first; NULL after the last. */
const char *prb_evaluator_symbol(size_t i);
/* Whether a symbol is a function of that name or a part of it (.cold, .isra.0). */
bool prb_symbol_is(const char *symbol, const char *name);

#endif
