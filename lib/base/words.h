/* Words: lists of them, separated by spaces (names, aliases, the ends of file names), and those that mean on. */
#ifndef PRB_BASE_WORDS_H
#define PRB_BASE_WORDS_H

#include <stdbool.h>
#include <stddef.h>

#include "probing.h"

/* Whether word is one of a list. */
bool prb_words_have(const char *list, const char *word);
/* Of a list of suffixes the longest that the path ends in, and has something before; its length, 0:
 * none. */
size_t prb_words_suffix(const char *list, const char *path);
/* Whether the text of an environment variable switches something on: on, 1, true or yes, in any case.  NULL: no. */
PRB_API bool prb_words_is_on(const char *text);

#endif
