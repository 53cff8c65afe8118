/* The page's files, which the program carries: `/` and `/assets/HASH/NAME`. */
#ifndef PRB_SERVE_ASSETS_H
#define PRB_SERVE_ASSETS_H

#include "serve/http/route.h"

/*
 * Answer with the page's file at this path.  Nobody needs a token for these: they say nothing of any
 * process.  False: no file of the page is meant.  `known` is the request's If-None-Match, or "".
 */
bool prb_assets_answer(const char *path, const char *known, struct prb_answer *answer);

#endif
