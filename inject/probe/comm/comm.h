/* The files of the part comm: recorder.c (which holds the part), nccl.c. */
#ifndef PRB_PROBE_COMM_H
#define PRB_PROBE_COMM_H

#include "base/error.h"

void prb_nccl_configure(void);
/* UNSUPPORTED: a process that runs cannot be given the plugin. */
bool prb_nccl_accepts(const char *key, const char *value, struct prb_error *err);
void prb_nccl_end(void);
void prb_nccl_forked(void);

#endif
