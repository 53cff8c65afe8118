/*
 * Recorded tables for the other parts of the probe: rings in the folder of this process (ring/ring.h), under the
 * limits of the settings, as those of Python code are.
 */
#ifndef PRB_PROBE_TABLES_TABLES_H
#define PRB_PROBE_TABLES_TABLES_H

#include "base/error.h"
#include "ring/ring.h"

/*
 * A table of this process: columns are lines "name:type[:unit[:doc]]" (ring/ring.h).  The same name and columns
 * again give the same table.  The name may be one of a built-in table, which then reads the ring.  After a detach
 * and a new start it must be asked for again; the old handle stays valid and drops its rows.  Any thread, without the
 * GIL; it may write files.  Errors: BUSY (no probe runs here), IO, NOMEM, USAGE (columns).
 */
struct prb_ring_table *prb_probe_table(const char *name, const char *columns,
                                       struct prb_error *err);

#endif
