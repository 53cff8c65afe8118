/* The page of a flame graph, of one profile or of the difference between two. */
#ifndef PRB_PROFILE_FLAMEGRAPH_H
#define PRB_PROFILE_FLAMEGRAPH_H

#include "profile/format/format.h"

struct prb_flame_page {
    const struct prb_flame *flame;
    const uint64_t *base; /* a difference: by weight, what it was in the other profile; or NULL */
    const struct prb_profile *profile;
    const struct prb_profile_style *style;
    const char *title, *counts;
};
bool prb_flame_page_write(FILE *out, const struct prb_flame_page *page, struct prb_error *err);

#endif
