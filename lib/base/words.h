/* Words: lists of them, separated by spaces (names, aliases, the ends of file names), what is chosen by them, and those that mean on. */
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
/* What is chosen by a word: its name, other names, and the ends of its files' names. */
struct prb_words_choice {
    const char *name, *aliases, *suffixes;
};
/* The choice with this number; false: there are no more. */
typedef bool prb_words_choice_fn(size_t index, struct prb_words_choice *out);
/* The number of the choice with that name, or whose files have the longest end that the path has; how
 * many there are: none has. */
size_t prb_words_choose(prb_words_choice_fn *at, const char *name);
size_t prb_words_choose_for_file(prb_words_choice_fn *at, const char *path);
/* Whether the text of an environment variable switches something on: on, 1, true or yes, in any case.  NULL: no. */
PRB_API bool prb_words_is_on(const char *text);

#endif
