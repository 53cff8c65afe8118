/*
 * probing demo: a small job of its own, and what the other commands say of it.  All that it starts and writes is gone when
 * it ends, also by Ctrl-C: the files are in one folder, and orphans of its children become its own children.
 */
#ifndef PRB_CLI_DEMO_H
#define PRB_CLI_DEMO_H

#include <limits.h>
#include <sys/types.h>

#include "cli/command.h"

#define PRB_DEMO_SECONDS 240 /* for the whole; then the rest is given up */

struct prb_demo {
    char folder[64]; /* "" before it is made */
    char script[80];
    char python[PATH_MAX];
    pid_t job;       /* 0: none that runs */
    int lines;       /* what the job prints; -1 */
    int ends;        /* readable when the user wants the end (ends.h) */
    double deadline; /* of prb_clock_s() */
};

/* ---- stage.c ---- */

/* The folder, in which this process and its children keep what they write. */
bool prb_demo_begin(struct prb_demo *demo, struct prb_error *err);
/* End what runs, remove the folder. */
void prb_demo_end(struct prb_demo *demo);

/* A child in the folder; in and out are its standard input and output, -1: /dev/null; out is its standard error, too,
 * unless quiet. */
pid_t prb_demo_start(const struct prb_demo *demo, const char *const *words, int in, int out,
                     bool quiet, struct prb_error *err);
/* Wait until fd is readable.  TIMEOUT, INTERRUPTED. */
bool prb_demo_await(const struct prb_demo *demo, int fd, const char *what, struct prb_error *err);
/* Until a child has ended, and reap it. */
bool prb_demo_await_end(const struct prb_demo *demo, pid_t child, const char *what, int *status_out,
                        struct prb_error *err);

/* Start the job, and wait for its first step. */
bool prb_demo_start_job(struct prb_demo *demo, struct prb_error *err);
/* Run this program with these words, and print them and what it prints; lines_max 0: all of it. */
bool prb_demo_show(const struct prb_demo *demo, unsigned lines_max, const char *const *words,
                   struct prb_error *err);

/* ---- debugger.c ---- */

/* Attach as an editor does, stop in the job, print where and its variables, and leave. */
bool prb_demo_debug(const struct prb_demo *demo, struct prb_error *err);

#endif
