/* Old rows of a file: small chunks joined, many samples made one. */
#ifndef PRB_STORE_THIN_H
#define PRB_STORE_THIN_H

#include "store/file.h"

/*
 * A table whose old rows become one for each minute, and later one for each hour, and for each set of
 * keys.  Names are columns, between spaces; what is in no list is the mean of numbers, and the last
 * one of texts.  Tables without a rule stay as they were written.
 */
struct prb_store_rule {
    const char *schema, *name;
    const char *time; /* column; of the new row: when its minute or hour began */
    const char *keys;
    const char *sums, *lasts;
    /* Rows that stay as they are; NULL: none. */
    bool (*stays)(const struct prb_ring_value *values);
    /* How many rows this one stands for, taken out of its values, and put in.  NULL: 1. */
    int64_t (*take_weight)(struct prb_ring_value *values);
    void (*put_weight)(struct prb_ring_value *values, int64_t weight);
};

struct prb_store_ages {
    double join;    /* s: older chunks that are small become larger ones; 0: never, as the others */
    double raw;     /* s: older rows become one a minute */
    double minutes; /* s: older rows of a minute become one an hour */
};
struct prb_thinned {
    uint64_t chunks, rows; /* that are gone, and others stand for them */
    uint64_t made;         /* chunks */
};

/* In transactions that each leave the file whole.  now: s since the epoch.  False: err. */
bool prb_store_thin(struct prb_store_file *file, const struct prb_store_rule *rules, size_t count,
                    const struct prb_store_ages *ages, double now, struct prb_thinned *out,
                    struct prb_error *err);

#endif
