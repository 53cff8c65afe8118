/* Sets of ranks, as ascending ranges: "0-4710,4712-9999". */
#ifndef PRB_FLEET_RANK_SET_H
#define PRB_FLEET_RANK_SET_H

#include "base/cleanup.h"
#include "probing.h"

#define PRB_RANKS_MAX (1 << 20) /* no rank is larger: what says so is wrong */

struct prb_rank_set {
    struct prb_rank_range {
        int first, last;
    } *ranges; /* ascending, none touches the next */
    size_t count, cap;
};

/* Begins as {0}. */
PRB_API void prb_rank_set_deinit(struct prb_rank_set *set);
PRB_DEFINE_AUTO(prb_rank_set, struct prb_rank_set, prb_rank_set_deinit)

/* False: out of memory, or not 0 <= first <= last < PRB_RANKS_MAX; the set is as it was. */
PRB_API bool prb_rank_set_add(struct prb_rank_set *set, int first, int last);
/* All of other, too. */
PRB_API bool prb_rank_set_unite(struct prb_rank_set *set, const struct prb_rank_set *other);
PRB_API bool prb_rank_set_has(const struct prb_rank_set *set, int rank);
/* How many ranks it has. */
PRB_API unsigned prb_rank_set_size(const struct prb_rank_set *set);
/* The smallest rank above after (-1: the smallest of all); -1: there is none. */
PRB_API int prb_rank_set_next(const struct prb_rank_set *set, int after);
/* "0-2,5", which the caller frees; "" of none.  NULL: out of memory. */
PRB_API char *prb_rank_set_text(const struct prb_rank_set *set) PRB_MUST_CHECK;
/* Add what such a text says; spaces are allowed behind commas.  Errors: USAGE, NOMEM. */
PRB_API bool prb_rank_set_parse(const char *text, struct prb_rank_set *set, struct prb_error *err);

#endif
