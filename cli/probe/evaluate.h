/* One evaluation in a target, with its output on ours as it comes and Ctrl-C handed on; for eval
 * and repl. */
#ifndef PRB_CLI_EVALUATE_H
#define PRB_CLI_EVALUATE_H

#include "cli/probe/probe.h"

#define PRB_STATUS_RAISED 1        /* exit status: the code raised */
#define PRB_STATUS_INTERRUPTED 130 /* by Ctrl-C, as shells have it */

/* Where evaluations run. */
struct prb_place {
    struct prb_control *control;
    pid_t pid;             /* 0: not visible from here */
    const char *namespace; /* as struct prb_eval_options */
    uint64_t thread; /* threading.get_ident() of the thread whose frame's names are used; 0: none */
    unsigned frame;
    double gil_timeout, timeout; /* s; 0: the default, none */
};

/* The options that say where: the first of a command's, PRB_PLACE_OPTIONS in its array. */
enum {
    PRB_PLACE_THREAD,
    PRB_PLACE_FRAME,
    PRB_PLACE_GIL_TIMEOUT,
    PRB_PLACE_NAMESPACE,
    PRB_PLACE_OPTION_COUNT
};
#define PRB_PLACE_OPTIONS                                                                          \
    [PRB_PLACE_THREAD] = {0, "thread", "THREAD",                                                   \
                          "with the names of the frame where this thread stands: the kernel's "    \
                          "number, threading.get_ident() or its name",                             \
                          NULL},                                                                   \
    [PRB_PLACE_FRAME] = {0, "frame", "N", "with --thread: that many frames further out", NULL},    \
    [PRB_PLACE_GIL_TIMEOUT] = {0, "gil-timeout", "SECONDS", "wait so long for the GIL (1)", NULL}, \
    [PRB_PLACE_NAMESPACE] = {                                                                      \
        0, "namespace", "NAME",                                                                    \
        "names of its own that live on under NAME, instead of __main__'s; \"\": fresh ones", NULL}
/* All of them but the thread, which needs the process. */
bool prb_place_options(const struct prb_run *run, struct prb_place *place, struct prb_error *err);

/* --thread: a kernel's number, an ident or a name among the target's threads. */
bool prb_place_thread(struct prb_place *place, const char *thread, struct prb_error *err);
bool prb_parse_frame(const struct prb_run *run, const char *text, unsigned *frame_out,
                     struct prb_error *err);

/*
 * Run code there.  The first Ctrl-C interrupts it (*interrupted_out, may be NULL), the second one
 * leaves this program.  When the GIL was not to be had, err says who holds it.
 */
bool prb_evaluate(const struct prb_place *place, enum prb_eval_mode mode, const char *code,
                  size_t code_len, struct prb_eval_result *result, bool *interrupted_out,
                  struct prb_error *err);
/* The value on standard output, the traceback on standard error. */
void prb_evaluation_print(const struct prb_eval_result *result);

#endif
