/* profiling_data: a row for each call of a function, of a saved profile or sampled now.
 */
#include "table/shared/profile_rows.h"

static const struct prb_column columns[] = {PRB_PROFILING_COLUMNS, PRB_PROFILING_ARGUMENTS, {0}};

const struct prb_table prb_table_profiling_data = {
    .schema = "main",
    .name = "profiling_data",
    .doc = "calls of functions, waiting ones too: of a saved profile, or of a live target "
           "sampled for a second at 100 Hz, or as profiling_data(seconds, rate) says",
    .columns = columns,
    .fill = prb_profiling_rows,
};
