/* One evaluation in a target, with its output copied to ours as it comes, and Ctrl-C passed on; for eval
 * and repl. */
#ifndef PRB_CLI_EVALUATE_H
#define PRB_CLI_EVALUATE_H

#include "cli/probe/probe.h"

#define PRB_STATUS_RAISED 1        /* exit status: the code raised */
#define PRB_STATUS_INTERRUPTED 130 /* by Ctrl-C, as shells have it */

/* Where evaluations run. */
struct prb_eval_place {
    struct prb_control *control;
    pid_t pid;             /* 0: not visible from here */
    const char *namespace; /* as struct prb_eval_options */
    uint64_t thread; /* threading.get_ident() of the thread whose frame's names are used; 0: none */
    unsigned frame;
    char function[128];          /* of the frame, instead of its number; or "" */
    double gil_timeout, timeout; /* s; 0: the default, none */
};

/* The options that say where: the first of a command's, PRB_EVAL_PLACE_OPTIONS in its array. */
enum {
    PRB_EVAL_PLACE_THREAD,
    PRB_EVAL_PLACE_FRAME,
    PRB_EVAL_PLACE_GIL_TIMEOUT,
    PRB_EVAL_PLACE_NAMESPACE,
    PRB_EVAL_PLACE_OPTION_COUNT
};
#define PRB_EVAL_PLACE_OPTIONS                                                                     \
    [PRB_EVAL_PLACE_THREAD] = {0, "thread", "THREAD",                                              \
                               "with the names of the frame that this thread runs: the kernel's "  \
                               "number, threading.get_ident() or its name",                        \
                               NULL},                                                              \
    [PRB_EVAL_PLACE_FRAME] = {0, "frame", "N|FUNCTION",                                            \
                              "that many frames further out, or the innermost of "                 \
                              "that function",                                                     \
                              NULL},                                                               \
    [PRB_EVAL_PLACE_GIL_TIMEOUT] = {0, "gil-timeout", "SECONDS", "wait so long for the GIL (1)",   \
                                    NULL},                                                         \
    [PRB_EVAL_PLACE_NAMESPACE] = {                                                                 \
        0, "namespace", "NAME",                                                                    \
        "__main__: assign in the job's own names; \"\": fresh names; NAME: others that live on",   \
        NULL}
/* All of them but the thread, which needs the process. */
bool prb_eval_place_options(const struct prb_run *run, struct prb_eval_place *place,
                            struct prb_error *err);

/* --thread: a kernel's number, an ident or a name among the target's threads. */
bool prb_eval_place_thread(struct prb_eval_place *place, const char *thread, struct prb_error *err);
/* --thread and --frame of a command; --frame alone means the main thread's. */
bool prb_eval_place_choose(const struct prb_run *run, struct prb_eval_place *place,
                           struct prb_error *err);
/* The number of a frame, or its function's name. */
bool prb_parse_frame(const struct prb_run *run, const char *text, struct prb_eval_place *place,
                     struct prb_error *err);

/*
 * Run code there.  The first Ctrl-C interrupts it (*interrupted_out, may be NULL), the second one
 * leaves this program.  When the GIL could not be acquired, err says which thread has it.
 */
bool prb_evaluate(const struct prb_eval_place *place, enum prb_eval_mode mode, const char *code,
                  size_t code_len, struct prb_eval_result *result, bool *interrupted_out,
                  struct prb_error *err);
/* The value on standard output, the traceback on standard error. */
void prb_evaluation_print(const struct prb_eval_result *result);

#endif
