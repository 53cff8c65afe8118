/* "loss@train": what to watch, from text.  See watched.h. */
#include "training/watched.h"

#include <ctype.h>
#include <string.h>

static bool wrong(struct prb_error *err, const char *item, size_t len, const char *why)
{
    prb_fail(err, PRB_QUERY, "\"%.*s\" cannot be watched: %s", (int)(len < 100 ? len : 100), item,
             why);
    return prb_error_remedy(err, "write VARIABLE@FUNCTION, as in loss@train, "
                                 "out['loss']@train or self.loss@Trainer.step; loss@ is that of "
                                 "the loop that calls the optimizer");
}

static size_t name_len(const char *at)
{
    size_t len = 0;
    if (!isalpha((unsigned char)*at) && *at != '_' && !(*at & 0x80))
        return 0;
    while (isalnum((unsigned char)at[len]) || at[len] == '_' || at[len] & 0x80)
        len++;
    return len;
}

static bool copy(char out[PRB_WATCHED_TEXT_MAX], const char *from, size_t len)
{
    if (len >= PRB_WATCHED_TEXT_MAX)
        return false;
    memcpy(out, from, len);
    out[len] = '\0';
    return true;
}

/* "['loss']", "[\"loss\"]", "[3]" or ".loss"; how many bytes, 0: none of them. */
static size_t parse_step(const char *at, struct prb_watched_step *out)
{
    *out = (struct prb_watched_step){0};
    if (*at == '.') {
        size_t len = name_len(at + 1);
        out->is_attribute = true;
        return len && copy(out->key, at + 1, len) ? 1 + len : 0;
    }
    if (*at != '[')
        return 0;
    char quote = at[1];
    if (quote == '\'' || quote == '"') {
        const char *end = strchr(at + 2, quote);
        return end && end[1] == ']' && copy(out->key, at + 2, (size_t)(end - at - 2))
                   ? (size_t)(end + 2 - at)
                   : 0;
    }
    const char *digit = at + 1 + (at[1] == '-');
    size_t digits = strspn(digit, "0123456789");
    if (!digits || digits > 9 || digit[digits] != ']')
        return 0;
    out->is_index = true;
    for (size_t i = 0; i < digits; i++)
        out->index = out->index * 10 + (digit[i] - '0');
    if (at[1] == '-')
        out->index = -out->index;
    return (size_t)(digit + digits + 1 - at);
}

static bool parse_function(const char *at, size_t len, struct prb_watched *out)
{
    const char *colon = memchr(at, ':', len);
    size_t module = colon ? (size_t)(colon - at) : 0;
    const char *name = colon ? colon + 1 : at;
    return (!colon || (module && copy(out->module, at, module))) && len > (size_t)(name - at) &&
           copy(out->function, name, len - (size_t)(name - at));
}

bool prb_watched_parse_item(const char *item, size_t len, struct prb_watched *out,
                            struct prb_error *err)
{
    for (; len && isspace((unsigned char)*item); item++)
        len--;
    while (len && isspace((unsigned char)item[len - 1]))
        len--;
    const char *end = item + len, *at = item;
    size_t name = name_len(at);
    *out = (struct prb_watched){0};
    if (!name || !copy(out->name, at, name))
        return wrong(err, item, len, "it does not begin with a name");
    for (at += name; at < end && *at != '@';) {
        size_t step = out->step_count < PRB_WATCHED_STEPS_MAX
                          ? parse_step(at, &out->steps[out->step_count])
                          : 0;
        if (!step || at + step > end)
            return wrong(err, item, len, "behind a name stand attributes, keys and indices alone");
        out->steps[out->step_count++].at = (size_t)(at - item);
        at += step;
    }
    if (at >= end)
        return wrong(err, item, len, "it says no function");
    if (!copy(out->text, item, (size_t)(at - item)) ||
        (end > at + 1 && !parse_function(at + 1, (size_t)(end - at - 1), out)))
        return wrong(err, item, len, "it says no function, or is too long");
    return true;
}

size_t prb_watched_item(const char *text)
{
    int depth = 0;
    char quote = 0;
    size_t len = 0;
    for (; text[len] && (text[len] != ',' || depth > 0); len++) {
        char c = text[len];
        if (quote)
            quote = c == quote ? 0 : quote;
        else if (depth > 0 && (c == '\'' || c == '"'))
            quote = c;
        else
            depth += c == '[' ? 1 : c == ']' && depth > 0 ? -1 : 0;
    }
    return len;
}

bool prb_watched_parse(const char *text, struct prb_watched out[PRB_WATCHED_MAX], size_t *count_out,
                       struct prb_error *err)
{
    *count_out = 0;
    while (*text) {
        size_t len = prb_watched_item(text);
        if (*count_out == PRB_WATCHED_MAX)
            return prb_fail(err, PRB_QUERY, "at most %d variables can be watched at a time",
                            PRB_WATCHED_MAX);
        if (!prb_watched_parse_item(text, len, &out[*count_out], err))
            return false;
        ++*count_out;
        text += len + (text[len] == ',');
    }
    return *count_out || wrong(err, "", 0, "there is nothing");
}
