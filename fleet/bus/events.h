/*
 * What agents tell unasked: one JSON object on probing.v1.JOB.event.KIND.  The server remembers
 * those of a day in a stream, so that a host that is gone has told what happened on it.
 *
 * event.crash: v, host, key (of the agent), job, and a dump as prb_fleet_crash_json has it.
 */
#ifndef PRB_FLEET_BUS_EVENTS_H
#define PRB_FLEET_BUS_EVENTS_H

#include "fleet/bus/stream.h"

#define PRB_EVENTS_STREAM "probing_events"
#define PRB_EVENTS_SUBJECTS "probing.v1.*.event.*"
#define PRB_EVENTS_CRASH "probing.v1.%s.event.crash" /* JOB, a token, or * */
#define PRB_EVENTS_CRASHES "probing.v1.*.event.crash"
/* Make the stream where there is none.  False: UNSUPPORTED, no JetStream; TIMEOUT. */
bool prb_events_begin(struct prb_bus *bus, struct prb_error *err);

#endif
