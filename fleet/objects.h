/* JSON objects of each rank: the result of the kinds "list" and "snapshot". */
#ifndef PRB_FLEET_OBJECTS_H
#define PRB_FLEET_OBJECTS_H

#include <jansson.h>

#include "base/cleanup.h"
#include "probing.h"

struct prb_rank_objects {
    struct prb_rank_object {
        int rank;
        char host[80];
        json_t *list; /* an array of objects; what is in them comes from the rank's host */
    } *items;
    size_t count, cap;
};
/* Begins as {0}. */
PRB_API void prb_rank_objects_deinit(struct prb_rank_objects *objects);
PRB_DEFINE_AUTO(prb_rank_objects, struct prb_rank_objects, prb_rank_objects_deinit)
/* By rank. */
PRB_API void prb_rank_objects_sort(struct prb_rank_objects *objects);
/* One array of all objects, each with its rank and host. */
PRB_API void prb_rank_objects_json(const struct prb_rank_objects *objects, FILE *out);

#endif
