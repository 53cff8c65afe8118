/* Tables that a program wrote: their last rows, as its crash dump has them. */
#ifndef PRB_TABLE_RECORDED_DUMP_H
#define PRB_TABLE_RECORDED_DUMP_H

#include "proc/proc.h"
#include "ring/format.h"
#include "ring/ring.h"
#include "sql/table.h"

#define PRB_TEXT_RING "probing/ring/" /* NAME; lib/crash/rings.c has its form */

/* Of a crash dump; proc is borrowed.  NULL: out of memory. */
struct prb_table_source *prb_dumped_tables_of(struct prb_proc *proc, struct prb_error *err);
/* What the source has, for built-in tables that read it; NULL: the source is another one. */
struct prb_history;
const struct prb_history *prb_dumped_history(struct prb_table_source *source);

/* One ring of a dump. */
struct prb_dumped_ring {
    char *head; /* the lines of columns, cut into words */
    struct prb_ring_column columns[PRB_RING_COLUMNS_MAX];
    size_t count;
    const char *rows; /* borrowed from the process's text */
    size_t rows_len;
};
/* False: there is none of that name that can be read. */
bool prb_dumped_ring_read(const struct prb_proc *proc, const char *name,
                          struct prb_dumped_ring *out);
void prb_dumped_ring_deinit(struct prb_dumped_ring *ring);
PRB_DEFINE_AUTO(prb_dumped_ring, struct prb_dumped_ring, prb_dumped_ring_deinit)
/* Each row, oldest first, until row says false, which is returned.  *broken_out: what follows cannot be
 * read. */
bool prb_dumped_ring_each(const struct prb_dumped_ring *ring,
                          bool (*row)(void *context, const struct prb_ring_value *values),
                          void *context, bool *broken_out);

#endif
