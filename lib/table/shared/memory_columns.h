/* Tables of a process's memory: the columns that memory_usage and python.memory have. */
#ifndef PRB_TABLE_MEMORY_COLUMNS_H
#define PRB_TABLE_MEMORY_COLUMNS_H

#include "table/shared/moment_columns.h"

#define PRB_MEMORY_COLUMNS                                                                         \
    {"memory_mb", PRB_REAL, "MB", "resident now (RSS): anon, file and shared"},                    \
        {"anon", PRB_REAL, "MB", "its own: heaps, stacks, what was written of private files"},     \
        {"file", PRB_REAL, "MB", "of mapped files, libraries among them"},                         \
        {"shared", PRB_REAL, "MB", "of shared memory, as DataLoader's workers use it"},            \
        {"swap", PRB_REAL, "MB", "swapped out"},                                                   \
        {"peak", PRB_REAL, "MB", "the most that was resident at a time"},                          \
        {"pss", PRB_REAL, "MB",                                                                    \
         "shared pages divided by the processes that have them; read only where a statement "      \
         "names it: "                                                                              \
         "the kernel holds the lock of the maps for some 10 ms"},                                  \
        {"uss", PRB_REAL, "MB", "without shared pages; read as pss is"},                           \
        {"cgroup_used", PRB_REAL, "MB",                                                            \
         "what the control group with the tightest limit uses, all its processes and files"},      \
        {"cgroup_limit", PRB_REAL, "MB", "its limit; NULL: there is none"},                        \
        {"oom_kills", PRB_INTEGER, "count", "processes of its own group that the kernel ended"}

/* Begin a row with the cells of a moment and these, of now.  Errors as prb_rows_alive, and of
 * reading. */
bool prb_row_memory(struct prb_rows *rows, struct prb_error *err);

#endif
