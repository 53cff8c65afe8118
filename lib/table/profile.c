/* profile(seconds, rate): the target sampled now, a row for each call of a function. */
#include "table/shared/profile_rows.h"

static const struct prb_column columns[] = {PRB_PROFILING_COLUMNS, PRB_PROFILING_ARGUMENTS, {0}};

const struct prb_table prb_table_profile = {
    .schema = "main",
    .name = "profile",
    .doc =
        "profiling_data of a live target, which profile(seconds, rate) samples as the query runs",
    .columns = columns,
    .needs_target = true,
    .fill = prb_profiling_rows,
};
