/* Tables that a program wrote, as its crash dump kept their last rows. */
#ifndef PRB_TABLE_RECORDED_DUMP_H
#define PRB_TABLE_RECORDED_DUMP_H

#include "proc/proc.h"
#include "ring/format.h"
#include "ring/ring.h"
#include "sql/table.h"

#define PRB_TEXT_RING "probing/ring/" /* NAME; lib/crash/rings.c tells its form */

/* Of a crash dump; proc is borrowed.  NULL with err OK: it kept none. */
struct prb_table_source *prb_dumped_tables_of(struct prb_proc *proc, struct prb_error *err);

#endif
