/* The columns that say when and where NCCL did something: the same in every table of its plugin's events. */
#ifndef PRB_TABLE_NCCL_COLUMNS_H
#define PRB_TABLE_NCCL_COLUMNS_H

#include "sql/table.h"

#define PRB_NCCL_COLUMNS                                                                           \
    {"timestamp", PRB_REAL, "s", "when it began, since the epoch"},                                \
        {"ts", PRB_INTEGER, "ns", "the same"}, {"pid", PRB_INTEGER, "id", "of the process"},       \
        {"rank", PRB_INTEGER, "id",                                                                \
         "of the process in its job; in the communicator where the job names none"},               \
        {"comm_hash", PRB_INTEGER, "id", "of the communicator"}

#endif
