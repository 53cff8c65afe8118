/*
 * Which dumps were told already.  What no look finds any more is forgotten once there is much of it, so
 * that an agent that runs for months has room for what folders hold, and tells every new one.
 */
#ifndef PRB_FLEET_AGENT_TOLD_H
#define PRB_FLEET_AGENT_TOLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PRB_TOLD_KEPT 4096 /* beside those that the last look found */

struct prb_told {
    struct prb_told_dump {
        uint64_t hash;
        unsigned look; /* the last that found it */
    } *items;
    size_t count, cap;
    unsigned look;
};
void prb_told_deinit(struct prb_told *told);
/* A look at all folders begins; one that fails is not ended. */
void prb_told_look(struct prb_told *told);
void prb_told_looked(struct prb_told *told);
/* Whether it was told; if so, the look has found it. */
bool prb_told_has(struct prb_told *told, uint64_t hash);
/* False: out of memory. */
bool prb_told_add(struct prb_told *told, uint64_t hash);

#endif
