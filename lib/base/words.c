/* Lists of words: see words.h. */
#include "base/words.h"

#include <string.h>
#include <strings.h>

bool prb_words_have(const char *list, const char *word)
{
    for (size_t n; *list; list += n, list += strspn(list, " "))
        if ((n = strcspn(list, " ")) == strlen(word) && strncmp(list, word, n) == 0)
            return true;
    return false;
}

size_t prb_words_suffix(const char *list, const char *path)
{
    size_t len = strlen(path), longest = 0;
    for (size_t n; *list; list += n, list += strspn(list, " ")) {
        n = strcspn(list, " ");
        if (n > longest && n < len && strncmp(path + len - n, list, n) == 0)
            longest = n;
    }
    return longest;
}

bool prb_words_is_on(const char *text)
{
    static const char *const on[] = {"on", "1", "true", "yes"};
    for (size_t i = 0; text && i < sizeof on / sizeof *on; i++)
        if (strcasecmp(text, on[i]) == 0)
            return true;
    return false;
}
