/* What ends a step, as text: see ending.h.  The tool side checks it, too. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inject/probe/torch/ending.h"
#include "training/watched.h"

#define NUMBER_MAX 9999

static bool bad(const char *text, struct prb_error *err)
{
    prb_fail(err, PRB_USAGE, "probing.torch.step has no \"%.60s\"", text);
    return prb_error_remedy(
        err, "auto, data, optimizer:NAME, module:NAME, label:TEXT, or a function's name");
}

/* "AdamW#1" */
static bool read_number(struct prb_torch_ending *out)
{
    char *hash = strchr(out->name, '#'), *end;
    if (!hash)
        return true;
    long number = isdigit((unsigned char)hash[1]) ? strtol(hash + 1, &end, 10) : -1;
    if (number < 0 || number > NUMBER_MAX || *end || hash == out->name)
        return false;
    *hash = '\0';
    out->number = (int)number;
    return true;
}

static bool is_function(const char *name)
{
    char item[PRB_TORCH_ENDING_MAX + 8];
    struct prb_watched watched;
    for (const char *at = name; *at; at++)
        if (!isalnum((unsigned char)*at) && !strchr("_.:<>", *at) && (unsigned char)*at < 0x80)
            return false;
    if (isdigit((unsigned char)*name))
        return false;
    snprintf(item, sizeof item, "step@%s", name);
    return prb_watched_parse_item(item, strlen(item), &watched, NULL);
}

bool prb_torch_ending_parse(const char *text, struct prb_torch_ending *out, struct prb_error *err)
{
    static const struct {
        const char *prefix;
        enum prb_torch_ending_kind kind;
    } named[] = {{"optimizer:", PRB_TORCH_ENDS_OPTIMIZER},
                 {"module:", PRB_TORCH_ENDS_MODULE},
                 {"label:", PRB_TORCH_ENDS_LABEL},
                 {"", PRB_TORCH_ENDS_FUNCTION}};
    size_t i = 0;
    *out = (struct prb_torch_ending){.number = -1};
    if (!*text || strcmp(text, "auto") == 0)
        return true;
    if (strcmp(text, "data") == 0) {
        out->kind = PRB_TORCH_ENDS_DATA;
        return true;
    }
    while (strncmp(text, named[i].prefix, strlen(named[i].prefix)) != 0)
        i++;
    const char *name = text + strlen(named[i].prefix);
    if (!*name || strlen(name) >= sizeof out->name)
        return bad(text, err);
    out->kind = named[i].kind;
    memcpy(out->name, name, strlen(name) + 1);
    if ((out->kind == PRB_TORCH_ENDS_OPTIMIZER && !read_number(out)) ||
        (out->kind == PRB_TORCH_ENDS_FUNCTION && !is_function(name)))
        return bad(text, err);
    return true;
}

bool prb_torch_ending_check(const char *text, struct prb_error *err)
{
    struct prb_torch_ending ending;
    return prb_torch_ending_parse(text, &ending, err);
}
