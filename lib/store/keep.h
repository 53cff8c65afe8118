/* How long the store keeps what it has. */
#ifndef PRB_STORE_KEEP_H
#define PRB_STORE_KEEP_H

#include "base/error.h"

#include "store/thin.h"

/* Of files whose job does not wish otherwise (prb_store_wish). */
struct prb_store_limits {
    double seconds; /* older chunks are removed; 0: none is too old */
    uint64_t bytes; /* of all files: the oldest chunks are removed until they are no more; 0: any */
    struct prb_store_ages ages; /* of what is thinned out, by these rules */
    const struct prb_store_rule *rules;
    size_t rule_count;
    bool (*stopped)(
        void *context); /* asked before each file: the rest waits for the next time; or NULL */
    void *context;
};
/* Of the files in a folder of the store; a file without chunks is removed when nobody wrote to it for
 * a day.  False: a file could not be written. */
bool prb_store_keep(const char *folder, const struct prb_store_limits *limits,
                    struct prb_error *err);

#endif
