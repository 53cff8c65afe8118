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

size_t prb_words_choose(prb_words_choice_fn *at, const char *name)
{
    struct prb_words_choice choice;
    size_t i = 0;
    while (at(i, &choice) && strcmp(choice.name, name) != 0 &&
           !prb_words_have(choice.aliases, name))
        i++;
    return i;
}

size_t prb_words_choose_for_file(prb_words_choice_fn *at, const char *path)
{
    struct prb_words_choice choice;
    size_t count = 0, best = 0, longest = 0;
    for (; at(count, &choice); count++) {
        size_t length = prb_words_suffix(choice.suffixes, path);
        if (length > longest) {
            best = count;
            longest = length;
        }
    }
    return longest ? best : count;
}

bool prb_words_is_on(const char *text)
{
    static const char *const on[] = {"on", "1", "true", "yes"};
    for (size_t i = 0; text && i < sizeof on / sizeof *on; i++)
        if (strcasecmp(text, on[i]) == 0)
            return true;
    return false;
}
