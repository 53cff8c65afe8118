/*
 * What agents publish of the tables that ranks record: rows as JSON lines, in a stream of the
 * server, which any consumer of JetStream can take; and our own, a record in a file of the store.
 *
 * Subject probing.v1.JOB.history.TABLE.  A row is an object: the table's columns, before them _job,
 * _process, and rank and host where the table has none.  Headers: Probing-Columns, "NAME:TYPE,…" in the order of
 * the table; Probing-Process, a JSON object: host, key, job, rank, world_size, pid, started (clock ticks since
 * boot);
 * Probing-Lost: rows that the process overwrote before they were read; Nats-Msg-Id.
 */
#ifndef PRB_FLEET_HISTORY_H
#define PRB_FLEET_HISTORY_H

#include "fleet/bus/roster.h"

#define PRB_HISTORY_STREAM "probing_history"
#define PRB_HISTORY_SUBJECT "probing.v1.%s.history.%s"
#define PRB_HISTORY_SUBJECTS "probing.v1.*.history.*"

/* Make the stream where there is none.  False: UNSUPPORTED, no JetStream; TIMEOUT. */
bool prb_history_begin(struct prb_bus *bus, struct prb_error *err);

/* ---- the agent ---- */

struct prb_publisher;
struct prb_publisher_options {
    const char *tables; /* names separated by commas, "*": all */
    const char *host, *key;
    bool all_users;
    double every;                                 /* s between two rounds */
    void (*say)(void *context, const char *line); /* what goes wrong; on its thread */
    void *context;
};
/* With a thread of its own.  options stay. */
struct prb_publisher *prb_publisher_new(const struct prb_publisher_options *options,
                                        struct prb_error *err) PRB_MUST_CHECK;
void prb_publisher_free(struct prb_publisher *publisher);
/* The connection; NULL: none now.  Waits until none is on its way. */
void prb_publisher_use(struct prb_publisher *publisher, struct prb_bus *bus);

#endif
