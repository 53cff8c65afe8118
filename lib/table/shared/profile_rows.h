/* Rows of a profile: one for each call of a function; for profile and
 * profiling_data. */
#ifndef PRB_TABLE_PROFILE_ROWS_H
#define PRB_TABLE_PROFILE_ROWS_H

#include "sql/table.h"

#define PRB_PROFILING_COLUMNS                                                                      \
    {"timestamp", PRB_REAL, "s",                                                                   \
     "since the epoch: when the call began, true to one period of the sampling (10 ms "            \
     "at 100 Hz): the sample that saw it first"},                                                  \
        {"operation_name", PRB_TEXT, "", "the function's qualified name"},                         \
        {"duration_ms", PRB_REAL, "ms",                                                            \
         "length of the call, up to the first sample that did not see it: true to one period at "  \
         "each end; calls shorter than a period are seen by chance, in proportion to their "       \
         "length, and two calls with no sample between count as one"},                             \
        {"self_ms", PRB_REAL, "ms",                                                                \
         "the part of it in which no function that it called was seen; the error of a sum over n " \
         "samples is about the square root of n"},                                                 \
        {"samples", PRB_INTEGER, "count", "samples that saw it"},                                  \
        {"file", PRB_TEXT, "", "co_filename; of native code its source or mapped file"},           \
        {"line", PRB_INTEGER, "", "the line in the sample that saw it first; NULL: not known"},    \
        {"depth", PRB_INTEGER, "count", "0: outermost"},                                           \
        {"thread", PRB_TEXT, "", "the thread's name"}, {"process", PRB_INTEGER, "id", "process"},  \
        {"rank", PRB_INTEGER, "", "from RANK or the like in its environment; NULL: none"},         \
        {"tid", PRB_INTEGER, "id", "the kernel's id of the thread; NULL: not known"}

#define PRB_PROFILING_ARGUMENTS                                                                    \
    {"seconds", PRB_REAL, "s", "how long a live target is sampled; 1 if not given",                \
     .hidden = true},                                                                              \
    {                                                                                              \
        "rate", PRB_REAL, "1/s", "samples a second; 100 if not given", .hidden = true              \
    }

/* The rows of the saved profile, or of the live target, sampled now. */
bool prb_profiling_rows(struct prb_rows *rows, struct prb_error *err);

#endif
