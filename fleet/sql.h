/* SQL over the rows of all ranks: a connection like any other (probing.h). */
#ifndef PRB_FLEET_SQL_H
#define PRB_FLEET_SQL_H

#include "fleet/fleet.h"

/*
 * The tables of all ranks that the address means.  A statement is run whole here; before its first
 * row what it reads is fetched with one question, whose coverage is in *coverage then (of several
 * statements the first that not all answered).  strict: not all answered is an error, PARTIAL, and
 * there are no rows.  fleet and coverage are borrowed: both outlive the connection, and the caller
 * frees the coverage.  Limits are the settings probing.cluster.*, which the environment has as
 * PROBING_CLUSTER_MAX_ROWS and so on; reaching one is TIMEOUT.
 */
PRB_API struct prb_db *prb_fleet_db(struct prb_fleet *fleet, bool strict,
                                    struct prb_coverage *coverage,
                                    struct prb_error *err) PRB_MUST_CHECK;

#endif
