/* The GPUs of the machine, for the tables of them. */
#ifndef PRB_TABLE_GPUS_H
#define PRB_TABLE_GPUS_H

#include "host/gpu.h"
#include "sql/table.h"

/* As prb_gpus_read, but a machine without GPUs has no rows, and a note says what was looked for. */
bool prb_rows_gpus(struct prb_rows *rows, bool processes, struct prb_gpus *out,
                   struct prb_error *err);

#endif
