/* What each rank said: equal answers together. */
#ifndef PRB_FLEET_EVAL_ANSWERS_H
#define PRB_FLEET_EVAL_ANSWERS_H

#include <stdio.h>

#include "fleet/rank_set.h"

/* The result of the kinds "eval" (args: code, name_space, gil_timeout in s), "settings", "configure", "inject" and
 * "detach". */
struct prb_eval_answers {
    struct prb_eval_answer {
        char *
            text; /* eval: output, then the value's repr or the traceback; 4 KiB at most, then "…" */
        bool raised;
        struct prb_rank_set ranks;
    } *items;
    size_t count, cap;
};
/* Begins as {0}. */
PRB_API void prb_eval_answers_deinit(struct prb_eval_answers *answers);
PRB_DEFINE_AUTO(prb_eval_answers, struct prb_eval_answers, prb_eval_answers_deinit)
/* The answer of most ranks first. */
PRB_API void prb_eval_answers_sort(struct prb_eval_answers *answers);
/* An array: ranks ("0-2"), count, raised, text. */
PRB_API void prb_eval_answers_json(const struct prb_eval_answers *answers, FILE *out);

#endif
