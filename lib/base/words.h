/* Lists of words, separated by spaces: names, aliases, and the ends that files of a format have. */
#ifndef PRB_BASE_WORDS_H
#define PRB_BASE_WORDS_H

#include <stdbool.h>
#include <stddef.h>

/* Whether word is one of a list. */
bool prb_words_have(const char *list, const char *word);
/* Of a list of suffixes the longest that the path ends in, and has something before; its length, 0:
 * none. */
size_t prb_words_suffix(const char *list, const char *path);

#endif
