/* Lists of words in one string, "json csv text". */
#ifndef PRB_SERVE_WORDS_H
#define PRB_SERVE_WORDS_H

#include <stdbool.h>
#include <string.h>

/* Whether words (NULL: none) has this one. */
static inline bool prb_has_word(const char *words, const char *word)
{
    size_t len = strlen(word);
    for (const char *at = words; len && at && *at; at += strcspn(at, " "), at += *at == ' ')
        if (strcspn(at, " ") == len && strncmp(at, word, len) == 0)
            return true;
    return false;
}

#endif
