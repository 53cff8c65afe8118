/* The words of "@JOB[:RANKS]". */
#ifndef PRB_FLEET_ADDRESS_H
#define PRB_FLEET_ADDRESS_H

#include "fleet/rank_set.h"

struct prb_fleet_address {
    char job[128];             /* "": the only one there is */
    bool local;                /* "@local": this host, whatever bus is configured */
    struct prb_rank_set ranks; /* empty: all */
};
void prb_fleet_address_deinit(struct prb_fleet_address *address);
PRB_DEFINE_AUTO(prb_fleet_address, struct prb_fleet_address, prb_fleet_address_deinit)
/* Errors: USAGE. */
bool prb_fleet_address_parse(const char *word, struct prb_fleet_address *out,
                             struct prb_error *err);

#endif
