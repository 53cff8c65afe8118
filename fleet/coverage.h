/*
 * Coverage: in which state each rank is that was asked.  expected = answered + failed + silent +
 * missing + gone, always; late and truncated are marks beside it.
 */
#ifndef PRB_FLEET_COVERAGE_H
#define PRB_FLEET_COVERAGE_H

#include <stdio.h>

#include "fleet/rank_set.h"

enum prb_coverage_state {
    PRB_COVERAGE_MISSING,  /* nobody ever reported it */
    PRB_COVERAGE_ANSWERED, /* its part is in the result */
    PRB_COVERAGE_FAILED,   /* its host answered for it: permission, an overrun; with the reason */
    PRB_COVERAGE_SILENT,   /* its host is known, and did not answer in time */
    PRB_COVERAGE_GONE,     /* its host saw the process end */
    PRB_COVERAGE_STATES
};
/* "missing", "answered" and so on.  Never freed. */
PRB_API const char *prb_coverage_state_name(enum prb_coverage_state state);

struct prb_coverage {
    struct prb_coverage_rank {
        int rank;
        pid_t pid; /* 0: not known */
        enum prb_coverage_state state;
        bool late;      /* its answer came after the budget */
        bool truncated; /* its part was cut by a limit */
        double ms;      /* that its host took for it */
        char *reason;   /* of failed and gone, or NULL */
        char *host;     /* or NULL */
    } *items;           /* ascending rank; each rank that was asked for once */
    size_t count;
};

/* All ranks of the set, missing at first.  Errors: NOMEM. */
PRB_API bool prb_coverage_begin(struct prb_coverage *coverage, const struct prb_rank_set *asked,
                                struct prb_error *err);
/* Begins as {0}. */
PRB_API void prb_coverage_deinit(struct prb_coverage *coverage);
PRB_DEFINE_AUTO(prb_coverage, struct prb_coverage, prb_coverage_deinit)
/* NULL: the rank was not asked for. */
PRB_API struct prb_coverage_rank *prb_coverage_find(const struct prb_coverage *coverage, int rank);
/* Put a rank into a state, with a reason (NULL: none).  One that answered stays answered: a second
 * answer changes nothing.  False: it was not asked for, or has answered. */
PRB_API bool prb_coverage_set(struct prb_coverage *coverage, int rank,
                              enum prb_coverage_state state, const char *reason);
/* How many are in a state, and which (set may be NULL; begins as {0}). */
PRB_API unsigned prb_coverage_in(const struct prb_coverage *coverage, enum prb_coverage_state state,
                                 struct prb_rank_set *set);
/* All answered, and none is truncated. */
PRB_API bool prb_coverage_whole(const struct prb_coverage *coverage);
/* {"expected": 8, "answered": "0-3,6-7", "failed": [{"rank": 4, "reason": "…"}], "silent": "5",
 * "missing": "", "gone": "", "late": "", "truncated": ""} */
PRB_API void prb_coverage_json(const struct prb_coverage *coverage, FILE *out);
/* The same as one line for people, without its end: "6 of 8 ranks answered; failed 4 (…); silent
 * 5"; which the caller frees. */
PRB_API char *prb_coverage_line(const struct prb_coverage *coverage) PRB_MUST_CHECK;
/* PARTIAL with that line, when not all answered; then false. */
PRB_API bool prb_coverage_check(const struct prb_coverage *coverage, struct prb_error *err);

#endif
