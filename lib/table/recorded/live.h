/* Tables that a program writes itself, python.NAME, over the rings of its folder. */
#ifndef PRB_TABLE_RECORDED_LIVE_H
#define PRB_TABLE_RECORDED_LIVE_H

#include "proc/proc.h"
#include "ring/ring.h"
#include "sql/table.h"

/* Of a live process: its folder may come later.  proc is borrowed. */
struct prb_table_source *prb_recorded_tables_of(struct prb_proc *proc, struct prb_error *err);
/* Of a folder, which is taken, also on failure. */
struct prb_table_source *prb_recorded_tables_in(int folder, struct prb_error *err);

/* How SQL sees a column of a ring (its texts are borrowed), and one cell of it. */
struct prb_column prb_recorded_column(const struct prb_ring_column *column);
void prb_row_recorded(struct prb_rows *rows, const struct prb_ring_column *column,
                      const struct prb_ring_value *value);

#endif
