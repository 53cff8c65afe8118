/*
 * The log of a process of ours that runs in the background: a line for each event, with its time.
 * Kept below some 1 MB: a full one is renamed to NAME.1, in the place of the one before, and begun
 * anew.
 */
#ifndef PRB_FORMAT_LOG_FILE_H
#define PRB_FORMAT_LOG_FILE_H

#include "base/cleanup.h"
#include "base/error.h"

struct prb_log_file;
/* FOLDER/NAME, mode 0600; the folder exists.  A link is not followed.  NULL: err. */
PRB_API struct prb_log_file *prb_log_file_open(const char *folder, const char *name,
                                               struct prb_error *err) PRB_MUST_CHECK;
PRB_API void prb_log_file_close(struct prb_log_file *log);
/* One line, at most 1,000 bytes; control characters are escaped.  Any thread.  NULL log: nothing. */
PRB_API void prb_log_file_add(struct prb_log_file *log, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

PRB_DEFINE_AUTO_PTR(prb_log_file, struct prb_log_file, prb_log_file_close)

#endif
