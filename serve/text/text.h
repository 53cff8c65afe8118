/* Plain text: a line is a command, answered as the command line prints it. */
#ifndef PRB_SERVE_TEXT_H
#define PRB_SERVE_TEXT_H

#include "serve/doors/doors.h"

/* Serve a connection in a thread of its own; takes the guest. */
void prb_text_begin(struct prb_serve *serve, struct prb_guest *guest);
/* Wait for all of them to end: serve->options->stop_fd can be read. */
void prb_text_end(void);

#endif
