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

#endif
