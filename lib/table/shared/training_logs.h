/* python.training_logs of a program that writes none itself: its watched variables, a row a step. */
#ifndef PRB_TABLE_TRAINING_LOGS_H
#define PRB_TABLE_TRAINING_LOGS_H

#include "sql/table.h"

extern const struct prb_table prb_training_logs_watched;

#endif
