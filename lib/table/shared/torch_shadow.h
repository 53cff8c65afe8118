/*
 * What recording costs by comparison: steps that it did not look into (shadow=N:M) beside those it
 * did, of one arming each.
 */
#ifndef PRB_TABLE_TORCH_SHADOW_H
#define PRB_TABLE_TORCH_SHADOW_H

#include "sql/table.h"

struct prb_torch_shadows {
    struct prb_torch_shadow *items;
    size_t count, cap;
    bool failed; /* out of memory */
};
void prb_torch_shadows_deinit(struct prb_torch_shadows *shadows);

/* From the steps' ring. */
bool prb_torch_shadows_read(struct prb_rows *rows, struct prb_torch_shadows *out,
                            struct prb_error *err);
/* Cells: both medians, and the interval; NULL where the arming has no such steps, or too few. */
void prb_row_torch_shadow(struct prb_rows *rows, const struct prb_torch_shadows *shadows,
                          int64_t arming);

#define PRB_TORCH_SHADOW_COLUMNS                                                                   \
    {"shadow_normal", PRB_REAL, "s", "median of the other steps, with shadow=N:M"},                \
        {"shadow_baseline", PRB_REAL, "s", "median of shadow steps"},                              \
        {"shadow_low", PRB_REAL, "ratio",                                                          \
         "recording costs so much at least, by these medians, at 95 %; below 0: not resolved"},    \
        {"shadow_high", PRB_REAL, "ratio", "recording costs so much at most, at 95 %"}

#endif
