/* The interpreter's call machinery by name: evaluator_symbols.def. */
#include <string.h>

#include "native/unwinder.h"

struct name {
    const char *text;
    size_t len;
    bool family, evaluator;
};

static const struct name names[] = {
#define EVALUATOR(text) {text, sizeof text - 1, false, true},
#define NAME(text) {text, sizeof text - 1, false, false},
#define FAMILY(text) {text, sizeof text - 1, true, false},
#include "native/evaluator_symbols.def"
#undef EVALUATOR
#undef NAME
#undef FAMILY
};

/* Length without a compiler's suffix. */
static size_t plain_length(const char *symbol) { return strcspn(symbol, ".@"); }

static bool matches(const struct name *name, const char *symbol, size_t len)
{
    return (name->family ? len >= name->len : len == name->len) &&
           memcmp(symbol, name->text, name->len) == 0;
}

bool prb_is_call_machinery(const char *symbol)
{
    size_t len = plain_length(symbol);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (matches(&names[i], symbol, len))
            return true;
    return false;
}

const char *prb_evaluator_symbol(size_t i)
{
    for (size_t k = 0; k < sizeof names / sizeof *names; k++)
        if (names[k].evaluator && i-- == 0)
            return names[k].text;
    return NULL;
}

bool prb_symbol_is(const char *symbol, const char *name)
{
    size_t len = plain_length(symbol);
    return strlen(name) == len && memcmp(symbol, name, len) == 0;
}
