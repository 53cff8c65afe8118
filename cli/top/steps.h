/*
 * What a training job does step by step, for the view "steps" of top: a thread for each process asks
 * its tables again and again.  Tier 1, where PyTorch is traced: the rows of the last steps.  Tier 0,
 * nothing loaded: its stacks, sampled from outside, and a number that the program counts anyway.
 */
#ifndef PRB_CLI_STEPS_H
#define PRB_CLI_STEPS_H

#include "base/cleanup.h"
#include "probing.h"

enum prb_steps_phase {
    PRB_STEPS_DATA,
    PRB_STEPS_FORWARD,
    PRB_STEPS_BACKWARD,
    PRB_STEPS_OPTIMIZER,
    PRB_STEPS_ZERO_GRAD,
    PRB_STEPS_COMMUNICATION,
    PRB_STEPS_CHECKPOINT,
    PRB_STEPS_OTHER,
    PRB_STEPS_PHASES
};
/* "data", …; and its letter in a bar. */
extern const struct prb_steps_phase_name {
    const char *name;
    char letter;
} prb_steps_names[PRB_STEPS_PHASES];

#define PRB_STEPS_TEXT 96

/* The last interval of a process.  NAN: not known. */
struct prb_steps_row {
    pid_t pid;
    int rank; /* -1: none */
    bool known, ended;
    int tier;
    int64_t step;                         /* INT64_MIN: not known */
    double length;                        /* s of a step */
    double items;                         /* a second */
    double loss, memory, gpu, gpu_memory; /* memory in bytes, gpu in % */
    double shares[PRB_STEPS_PHASES];      /* of the step's time; their sum is 1, or 0: not known */
    double waits;                         /* the share in which the thread waits */
    double seen;   /* s since the epoch: of what is kept, the end of its last step; else 0 */
    char unit[16]; /* of items: "samples", "tokens" */
    char clock[PRB_STEPS_TEXT];   /* tier 0: what counts the steps, or "" */
    char problem[PRB_STEPS_TEXT]; /* why nothing is known, or "" */
    char command[PRB_STEPS_TEXT];
};

struct prb_steps;
/* seconds: of an interval.  NULL: out of memory. */
struct prb_steps *prb_steps_new(double seconds);
/* Ends the threads, within a tenth of a second or so. */
void prb_steps_free(struct prb_steps *steps);
PRB_DEFINE_AUTO_PTR(prb_steps, struct prb_steps, prb_steps_free)
/* Begin with the processes of a profile that are new.  False: out of memory, or no thread. */
bool prb_steps_follow(struct prb_steps *steps, const struct prb_profile *profile);
/* Whether each process has been asked once. */
bool prb_steps_ready(struct prb_steps *steps);
/* The rows of now, by rank; *out is grown as needed. */
bool prb_steps_take(struct prb_steps *steps, struct prb_steps_row **out, size_t *count,
                    size_t *cap);

#endif
