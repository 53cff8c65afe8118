/* Tables that the asker has itself, beside those of the ranks (sql.c). */
#ifndef PRB_FLEET_ASK_TABLES_H
#define PRB_FLEET_ASK_TABLES_H

#include "fleet/fleet.h"
#include "sql/table.h"

struct prb_own_tables {
    struct prb_fleet *fleet; /* borrowed, as coverage */
    bool strict;
    struct prb_coverage *coverage;
    /* Another connection to the tables of the ranks; its coverage is in *coverage. */
    struct prb_db *(*open)(struct prb_fleet *fleet, struct prb_coverage *coverage,
                           struct prb_error *err);
};
/* cluster.nodes, cluster.ranks, cluster.groups; comm_metrics of the ranks of all hosts. */
struct prb_table_source *prb_own_tables_source(const struct prb_own_tables *how,
                                               struct prb_error *err) PRB_MUST_CHECK;

#endif
