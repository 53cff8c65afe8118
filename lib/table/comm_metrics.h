/* comm_metrics, for whoever has the collectives of all ranks of a job. */
#ifndef PRB_TABLE_COMM_METRICS_H
#define PRB_TABLE_COMM_METRICS_H

#include "table/shared/collectives.h"

extern const struct prb_table prb_table_comm_metrics;
/* The rows of its columns. */
bool prb_comm_metrics_rows(struct prb_rows *rows, const struct prb_job *job, struct prb_error *err);

#endif
