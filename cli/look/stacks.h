/* Stacks as text. */
#ifndef PRB_CLI_STACKS_H
#define PRB_CLI_STACKS_H

#include <stdio.h>

#include "probing.h"

#define PRB_STACKS_TEXT_REPR                                                                       \
    200 /* characters of a value as text, for eyes; JSON and -v have more */

struct prb_stacks_style {
    bool verbose; /* whole paths, columns, the layout line, figures of the reading */
    bool group;   /* threads with equal stacks together */
    const struct prb_crash *crash; /* of a crash dump, else NULL */
};

bool prb_stacks_print(const struct prb_stacks *stacks, const struct prb_stacks_style *style,
                      FILE *out, struct prb_error *err);

/* The stacks of one of several processes. */
struct prb_process_stacks {
    struct prb_stacks *stacks;
    int rank; /* -1: none */
};

/* Threads of all processes with equal stacks together, under the ranks that have them. */
bool prb_stacks_print_merged(const struct prb_process_stacks *all, size_t count, bool verbose,
                             FILE *out, struct prb_error *err);

/* The target, in two or three lines. */
void prb_stacks_print_process(const struct prb_target_info *info, bool verbose, FILE *out);
/* One row of a stack behind an indent, with its locals if it has them. */
void prb_stacks_print_frame(const struct prb_frame *frame, const char *indent, bool verbose,
                            FILE *out);

#endif
