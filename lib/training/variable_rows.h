/*
 * The ring in which the probe records watched variables (inject/probe/watch), as both sides know it;
 * python.variables and training_logs show it.  libc only.
 */
#ifndef PRB_TRAINING_VARIABLE_ROWS_H
#define PRB_TRAINING_VARIABLE_ROWS_H

#include <stdint.h>

#define PRB_VARIABLES_RING "variables"
#define PRB_VARIABLES_COLUMNS                                                                      \
    "time:time\n"                                                                                  \
    "step:integer::local_step; NULL: outside of all steps\n"                                       \
    "micro_step:integer\n"                                                                         \
    "func:text::NULL: no variable of a function\n"                                                 \
    "name:text\n"                                                                                  \
    "value:text::of a str, and of an int that number does not hold; or why there is none\n"        \
    "number:real\n"                                                                                \
    "type:text\n"                                                                                  \
    "asked:boolean::0: read along for training_logs\n"                                             \
    "thread:integer::native id of the thread, and the number of the arming (trace.h)\n"
enum prb_variables_column {
    PRB_VARIABLES_TIME,
    PRB_VARIABLES_STEP,
    PRB_VARIABLES_MICRO_STEP,
    PRB_VARIABLES_FUNC,
    PRB_VARIABLES_NAME,
    PRB_VARIABLES_VALUE,
    PRB_VARIABLES_NUMBER,
    PRB_VARIABLES_TYPE,
    PRB_VARIABLES_ASKED,
    PRB_VARIABLES_THREAD,
    PRB_VARIABLES_COLUMN_COUNT
};
/* The micro_step of a row without step that says: from now on it is watched. */
#define PRB_VARIABLES_BEGINS INT64_C(-1)
/* A value that begins so says why there is none. */
#define PRB_VARIABLES_WHY '\001'
#define PRB_VARIABLES_LR "lr" /* the name of the anchor's learning rate, which no function has */

#endif
