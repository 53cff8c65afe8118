/*
 * Crash dumps: snapshots that a program writes of the process that is its parent, when that one
 * crashes (inject/probe/crash/), and what they say beyond a snapshot.
 * Layer: above table; nothing is above it but the command line.
 */
#ifndef PRB_CRASH_CRASH_H
#define PRB_CRASH_CRASH_H

#include "crash/record.h"
#include "inspect/crash.h"
#include "inspect/target.h"
#include "mem/hide.h"
#include "ring/ring.h"

/* ---- info.c: what happened, as the text PRB_TEXT_CRASH of the snapshot ---- */

struct prb_crash_facts {
    const struct prb_crash_record *record;
    const struct prb_thread *thread; /* the one that crashed; NULL: not found */
    const struct prb_exceptions *exceptions;
    struct prb_process ranks;
    prb_addr stack_pointer; /* where the signal came; 0: not known */
};
void prb_crash_info(const struct prb_crash_facts *facts, struct prb_buf *out);
/* "SIGSEGV", "ValueError: wrong", "SIGTERM", … */
void prb_crash_title(const struct prb_crash_facts *facts, struct prb_buf *out);

/* ---- rings.c: the last rows of the rings ---- */

/* Keep them as texts PRB_TEXT_RING NAME of proc, at most bytes_max in all. */
void prb_crash_rings(struct prb_proc *proc, size_t bytes_max);
/* The same for rows of our own: append one to rows, then save them as a table. */
void prb_crash_pack(const struct prb_ring_column *columns, size_t count,
                    const struct prb_ring_value *values, struct prb_buf *rows);
void prb_crash_keep_table(struct prb_proc *proc, const char *table,
                          const struct prb_ring_column *columns, size_t count,
                          const struct prb_buf *rows);

/* Overwrite secrets in the texts of their rows. */
void prb_crash_hide_rings(struct prb_proc *proc, struct prb_hidden *secrets);

/* ---- tensors.c ---- */

/* Keep what the tensors and arrays are that the thread's variables name (stacks with locals), with
 * their statistics while they are small enough, as the table crash_tensors. */
void prb_crash_tensors(struct prb_target *copy, const struct prb_thread *thread);

/* ---- folder.c: prb_crash_dump_folder, and ---- */

/* Remove the oldest dumps of the folder that newest lies in until all of them hold no more than
 * bytes_max (0: no bound); newest is never removed, nor what others still write.  The first crash of
 * each job (crashes with less than a minute between them) goes last.  While somebody holds the
 * folder (a lock, flock(2)) there may be twice as much. */
void prb_crash_sweep(const char *newest, uint64_t bytes_max);

#endif
