/* Words for what a client may do. */
#include <string.h>

#include "serve/serve.h"

bool prb_grants_parse(const char *text, unsigned *out, struct prb_error *err)
{
    static const char *const names[] = {"look", "control", "eval"};
    unsigned grants = PRB_MAY_LOOK;
    for (const char *at = text; *at;) {
        size_t len = strcspn(at, ","), i = 0;
        while (i < 3 && (strlen(names[i]) != len || strncmp(names[i], at, len) != 0))
            i++;
        if (i == 3)
            return prb_fail(err, PRB_USAGE, "\"%.*s\" is none of look, control and eval",
                            (int)(len < 40 ? len : 40), at);
        grants |= 1u << i;
        at += len + (at[len] == ',');
    }
    if (grants & PRB_MAY_EVAL)
        grants |= PRB_MAY_CONTROL; /* running code loads the probe */
    *out = grants;
    return true;
}

const char *prb_grants_text(unsigned grants)
{
    return grants & PRB_MAY_EVAL      ? "look,control,eval"
           : grants & PRB_MAY_CONTROL ? "look,control"
                                      : "look";
}
