/*
 * Secrets of a target, and how they stay out of a file that is made of it: a snapshot, a
 * crash dump. Layer: of the target.
 */
#ifndef PRB_INSPECT_SECRETS_H
#define PRB_INSPECT_SECRETS_H

#include "base/secret.h"
#include "inspect/target.h"
#include "mem/hide.h"

/* Find them: in the environment that it was started with, in the one it has now (setenv,
 * os.environ), in its
 * arguments, and the keys by which multiprocessing's processes prove who they are.  What cannot be
 * read is left out. */
void prb_secrets_find(struct prb_target *copy, struct prb_hidden *out);
/* And what looks like one in a text: an exception's message.  NULL is none. */
void prb_secrets_add_text(struct prb_hidden *out, const char *text);
/* What stacks with variables show of them: texts under names such as password and api_key, and
 * what looks like one within any value, such as {'password': …}. */
void prb_secrets_add_locals(struct prb_hidden *out, const struct prb_stacks *stacks);
/* Overwrite them in the pages that copy (which records) has read, and in the texts it has saved;
 * the environment's place on the stack is blank.  False (NOMEM): nothing may be written. */
bool prb_secrets_hide(struct prb_target *copy, struct prb_hidden *secrets, struct prb_error *err);

#endif
