/* Answers that the command line prints. */
#ifndef PRB_SERVE_ROUTES_BY_COMMAND_H
#define PRB_SERVE_ROUTES_BY_COMMAND_H

#include "serve/http/route.h"

/* What `probing WORDS` prints is the answer, of this type, also of a job whose ranks did not all answer,
 * and of a skill that finds something bad; its failure is err, with the text of its message.  words ends with NULL. */
bool prb_answer_by_command(struct prb_serve_job *job, const char *const *words, const char *type,
                           struct prb_error *err);
/* The same for a command that changes something: what it prints is the answer as text, and
 * "message" of the answer as json. */
bool prb_answer_by_control(struct prb_serve_job *job, const char *const *words,
                           struct prb_error *err);

#endif
