/* What a heap comes to, by type. */
#ifndef PRB_INSPECT_TALLY_H
#define PRB_INSPECT_TALLY_H

#include "base/hash_map.h"
#include "inspect/heap.h"

struct prb_object_type;

struct prb_tally {
    prb_addr type;
    struct prb_object_type *known; /* NULL: no class stands there, a torn reading */
    int64_t count;
    int64_t bytes; /* of the objects and the tables of lists, dicts and sets, as sys.getsizeof() */
    int64_t young; /* that no garbage collection has seen yet */
    int64_t head;  /* bytes before each object */
};
struct prb_tallies {
    struct prb_tally *items; /* in the order in which the types were met */
    size_t count, cap;
    struct prb_hash_map by_type; /* 1 + index */
};
void prb_tallies_deinit(struct prb_tallies *tallies);
PRB_DEFINE_AUTO(prb_tallies, struct prb_tallies, prb_tallies_deinit)

/* Count a part's objects; bytes: add up their sizes, too, which costs reads of most of them. */
bool prb_tallies_count(const struct prb_heap_part *part, bool bytes, struct prb_tallies *out,
                       struct prb_error *err);
/* NULL: none of that type. */
const struct prb_tally *prb_tallies_find(const struct prb_tallies *tallies, prb_addr type);

#endif
