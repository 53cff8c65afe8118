/* Where what Probing remembers lies (XDG Base Directory Specification, state). */
#ifndef PRB_BASE_STATE_FOLDER_H
#define PRB_BASE_STATE_FOLDER_H

#include "base/error.h"
#include "probing.h"

/* $XDG_STATE_HOME/probing, else ~/.local/state/probing, which the caller frees.  make: it and what
 * is above it, mode 0700, where they are not there.  NULL: err; NOT_FOUND: this user has no home
 * folder. */
PRB_API char *prb_state_folder(bool make, struct prb_error *err) PRB_MUST_CHECK;

#endif
