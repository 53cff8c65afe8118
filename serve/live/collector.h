/*
 * The collector inside the server: `probing serve` is the collector, with doors.
 *
 * There is one for a user on a machine.  While `probing collect` runs, that is it, and the server takes
 * over when it has ended.  PROBING_STORE=off: the server keeps nothing.
 */
#ifndef PRB_SERVE_COLLECTOR_H
#define PRB_SERVE_COLLECTOR_H

#include "serve/doors/log.h"

struct prb_collector;

/* NULL, err untouched: it is switched off. */
struct prb_collector *prb_collector_new(struct prb_serve_log *log, struct prb_error *err);
/* Moves what is there, and ends. */
void prb_collector_free(struct prb_collector *collector);

#endif
