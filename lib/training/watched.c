/* "loss@train": what to watch, from text.  See variables.h. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "training/variables.h"

static bool wrong(struct prb_error *err, const char *item, size_t len, const char *why)
{
    prb_fail(err, PRB_QUERY, "\"%.*s\" cannot be watched: %s", (int)(len < 100 ? len : 100), item,
             why);
    return prb_error_remedy(err, "write VARIABLE@FUNCTION, as in loss@train, "
                                 "out['loss']@train or self.loss@Trainer.step");
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
    char *end;
    out->is_index = true;
    out->index = strtoll(at + 1, &end, 10);
    return end > at + 1 && *end == ']' ? (size_t)(end + 1 - at) : 0;
}

static bool parse_function(const char *at, size_t len, struct prb_watched *out)
{
    const char *colon = memchr(at, ':', len);
    size_t module = colon ? (size_t)(colon - at) : 0;
    const char *name = colon ? colon + 1 : at;
    return (!colon || (module && copy(out->module, at, module))) && len > (size_t)(name - at) &&
           copy(out->function, name, len - (size_t)(name - at));
}

static bool parse_item(const char *item, size_t len, struct prb_watched *out, struct prb_error *err)
{
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
        out->step_count++;
        at += step;
    }
    if (at >= end)
        return wrong(err, item, len, "it says no function");
    if (!copy(out->text, item, (size_t)(at - item)) ||
        !parse_function(at + 1, (size_t)(end - at - 1), out))
        return wrong(err, item, len, "it says no function, or is too long");
    return true;
}

/* The end of an item: a comma outside of brackets. */
static size_t item_len(const char *at)
{
    int depth = 0;
    size_t len = 0;
    for (; at[len] && (at[len] != ',' || depth > 0); len++)
        depth += at[len] == '[' ? 1 : at[len] == ']' ? -1 : 0;
    return len;
}

bool prb_watched_parse(const char *text, struct prb_watched out[PRB_WATCHED_MAX], size_t *count_out,
                       struct prb_error *err)
{
    *count_out = 0;
    while (*text) {
        size_t len = item_len(text), begin = 0, end = len;
        while (begin < end && isspace((unsigned char)text[begin]))
            begin++;
        while (end > begin && isspace((unsigned char)text[end - 1]))
            end--;
        if (*count_out == PRB_WATCHED_MAX)
            return prb_fail(err, PRB_QUERY, "at most %d variables can be watched at a time",
                            PRB_WATCHED_MAX);
        if (!parse_item(text + begin, end - begin, &out[*count_out], err))
            return false;
        ++*count_out;
        text += len + (text[len] == ',');
    }
    return *count_out || wrong(err, "", 0, "there is nothing");
}
