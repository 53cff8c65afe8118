/* Tables that a program writes itself, python.NAME, over the rings of its folder. */
#ifndef PRB_TABLE_RECORDED_LIVE_H
#define PRB_TABLE_RECORDED_LIVE_H

#include "proc/proc.h"
#include "ring/ring.h"
#include "sql/table.h"
#include "table/recorded/history.h"

/* Of a live process: its folder may come later.  proc is borrowed. */
struct prb_table_source *prb_recorded_tables_of(struct prb_proc *proc, struct prb_error *err);
/* Of a folder, which is taken, also on failure. */
struct prb_table_source *prb_recorded_tables_in(int folder, struct prb_error *err);

/* A table that has a time has it as timestamp, too, as tables of the system do: its last column. */
#define PRB_RECORDED_TIMESTAMP {"timestamp", PRB_REAL, "s", "the same as time"}
/* The column of a ring that is its time; -1: none, or there is a timestamp already, or no room. */
int prb_recorded_time(const struct prb_ring_column *columns, size_t count);
/* Of a file of the store, which is taken, also on failure: of one process in it, or of all (0). */
struct prb_table_source *prb_recorded_tables_stored(struct prb_store_file *store, int64_t process,
                                                    struct prb_error *err);

/* Where what is recorded for a connection is, for built-in tables that read it; NULL: nowhere. */
const struct prb_history *prb_recorded_history(struct prb_rows *rows);

/* How SQL sees a column of a ring (its texts are borrowed), and one cell of it. */
struct prb_column prb_recorded_column(const struct prb_ring_column *column);
void prb_row_recorded(struct prb_rows *rows, const struct prb_ring_column *column,
                      const struct prb_ring_value *value);

#endif
