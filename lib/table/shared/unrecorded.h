/* Notes of recorded tables of processes that live, where they have no rows: how recording begins. */
#ifndef PRB_TABLE_UNRECORDED_H
#define PRB_TABLE_UNRECORDED_H

#include "sql/table.h"

/* What stands before a command that is about the process of these rows: "probing 12". */
#define PRB_COMMAND_MAX 160
const char *prb_rows_command(struct prb_rows *rows, char out[PRB_COMMAND_MAX]);

/* Of a table that PyTorch's recording fills: a note unless it has rows, or something of PyTorch was
 * recorded.  others: the program may fill it as well, and none is for one without PyTorch. */
void prb_note_unrecorded(struct prb_rows *rows, bool others);

#endif
