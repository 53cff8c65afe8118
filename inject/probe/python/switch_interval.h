/*
 * The interpreter's switch interval: how long a thread that computes keeps the GIL from one that
 * waits for it.  It is short while somebody of ours waits.
 */
#ifndef PRB_PROBE_PYTHON_SWITCH_INTERVAL_H
#define PRB_PROBE_PYTHON_SWITCH_INTERVAL_H

#include "inject/probe/python/api.h"

/* Look for it, once in a process.  With the GIL. */
void prb_switch_interval_find(const struct prb_py_api *py);
/* Whether it was found. */
bool prb_switch_interval_known(void);
/* A thread begins to wait for the GIL (true), or has it or gives up (false).  The interval is short
 * while at least one waits.  Nothing where it is not known. */
void prb_switch_interval_shorten(bool on);
/* In a child after fork(2): as the program had set it. */
void prb_switch_interval_forked(void);

#endif
