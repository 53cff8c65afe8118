/* serve.log: who came, what was refused, what was changed.  Tokens never stand in it. */
#ifndef PRB_SERVE_LOG_H
#define PRB_SERVE_LOG_H

#include "serve/serve.h"

/* FOLDER/serve.log (0600), kept below 1 MB, one old one beside it (serve.log.1).  NULL: err. */
struct prb_serve_log *prb_serve_log_open(const char *folder, struct prb_error *err);
void prb_serve_log_close(struct prb_serve_log *log);
/* One line with its time; control characters are escaped.  Any thread.  NULL log: nothing. */
void prb_serve_log(struct prb_serve_log *log, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

PRB_DEFINE_AUTO_PTR(prb_serve_log, struct prb_serve_log, prb_serve_log_close)

#endif
