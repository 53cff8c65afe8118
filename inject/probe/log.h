/*
 * The log of what was done to processes through their probes: DIR/probing.log, one line for each
 * injection, evaluation and change, with time, process and who asked.  All probes of a user share
 * it; it takes at most two files of PRB_LOG_MAX bytes.  Failing to write it never fails a request.
 */
#ifndef PRB_PROBE_LOG_H
#define PRB_PROBE_LOG_H

#include "base/buf.h"

#define PRB_LOG_MAX (1 << 20) /* bytes; then it becomes probing.log.1 */
#define PRB_LOG_TEXT_MAX 300  /* bytes of code in a line */

/* Append what happened: "TIME pid=1 WHAT".  folder: the open DIR. */
void prb_log(int folder, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Append text in quotes, control characters escaped, cut after PRB_LOG_TEXT_MAX bytes. */
void prb_log_quote(struct prb_buf *out, const char *text, size_t len);

#endif
