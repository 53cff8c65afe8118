/* Numbers out of the texts of proc(5) that stand in several tables. */
#ifndef PRB_TABLE_STAT_COLUMNS_H
#define PRB_TABLE_STAT_COLUMNS_H

#include "base/buf.h"
#include "proc/proc.h"
#include "sql/table.h"

/* proc_pid_stat(5) of a process or thread: its fields by their numbers there. */
#define PRB_STAT_FIELDS 52
struct prb_stat_text {
    char name[64];                      /* field 2, without brackets */
    char state;                         /* field 3 */
    int64_t field[PRB_STAT_FIELDS + 1]; /* by number, from 4 */
    int count;                          /* the last field there is */
};

/* name: "stat" or "task/123/stat".  False when there is none, or it makes no sense. */
bool prb_stat_text_read(struct prb_proc *proc, const char *name, struct prb_stat_text *out);

/* A cell of field number, times scale (ticks to seconds, pages to bytes). */
void prb_row_stat(struct prb_rows *rows, const struct prb_stat_text *stat, int number);
void prb_row_stat_seconds(struct prb_rows *rows, const struct prb_stat_text *stat, int number);

/* The number behind "Key:" in a text such as "status"; false when it is not there. */
bool prb_status_number(const struct prb_buf *text, const char *key, int64_t *out);

/* A cell of when it was started, seconds since the epoch; NULL for a core or snapshot. */
void prb_row_started(struct prb_rows *rows, const struct prb_proc *proc,
                     const struct prb_stat_text *stat);

#endif
