/* What `backtrace` prints, of a target that is open already: the command line's own code prints it. */
#ifndef PRB_SERVE_STACKS_TEXT_H
#define PRB_SERVE_STACKS_TEXT_H

#include "serve/work/targets.h"

/* Appended to out.  False, and nothing is appended: the command itself has more to say, a warning or
 * an error, and is to be run. */
bool prb_stacks_text(struct prb_serve_target *held, bool native, bool locals, bool group,
                     struct prb_buf *out);

#endif
