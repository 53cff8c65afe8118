/* Evaluating code, and completing it: jobs that agent.py does. */
#ifndef PRB_PROBE_PYTHON_EVAL_H
#define PRB_PROBE_PYTHON_EVAL_H

#include "inject/probe/python/python.h"

enum prb_eval_how { PRB_EVAL_ALL, PRB_EVAL_INTERACTIVE, PRB_EVAL_COMPLETE }; /* as in agent.py */

/* The data of the job, made by prb_eval_new(). */
struct prb_eval {
    enum prb_eval_how mode;
    char *
        name_space; /* NULL: one that stays, over __main__'s; "__main__"; "": a fresh one; else one that stays */
    uint64_t thread; /* Python ident or native id whose frame's names are used; 0: none */
    uint32_t frame;  /* 0 innermost */
    char *function;  /* the innermost frame of that function instead; NULL: by number */
    uint32_t cursor; /* COMPLETE: bytes of source before it */
    size_t source_len;
    char source[]; /* UTF-8 or not: then that is the code's error */
};
/* With a copy of the source; name_space is taken.  NULL: no memory. */
struct prb_eval *prb_eval_new(const char *source, size_t len, char *name_space);
extern const struct prb_python_work prb_eval_work;

#endif
