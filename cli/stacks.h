/* Stacks as text. */
#ifndef PRB_CLI_STACKS_H
#define PRB_CLI_STACKS_H

#include <stdio.h>

#include "probing.h"

struct prb_stacks_style {
    bool verbose; /* whole paths, columns, the layout line, figures of the reading */
    bool group;   /* threads with equal stacks together */
};

bool prb_stacks_print(const struct prb_stacks *stacks, const struct prb_stacks_style *style,
                      FILE *out, struct prb_error *err);

#endif
