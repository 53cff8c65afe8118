/* See ranks.h. */
#include "proc/ranks.h"

#include <limits.h>
#include <string.h>

#include "base/rank_variables.h"

static int environment_int(const struct prb_buf *environ, const char *const *names)
{
    for (; *names; names++) {
        size_t n = strlen(*names);
        for (size_t at = 0; at < environ->len; at += strlen(environ->data + at) + 1) {
            const char *entry = environ->data + at;
            char *end;
            if (strncmp(entry, *names, n) != 0 || entry[n] != '=')
                continue;
            long value = strtol(entry + n + 1, &end, 10);
            if (end != entry + n + 1 && !*end && value >= 0 && value <= INT_MAX)
                return (int)value;
        }
    }
    return -1;
}

void prb_ranks_of(const struct prb_buf *environ, struct prb_ranks *out)
{
    static const char *const rank[] = {PRB_RANK_VARIABLES, NULL};
    static const char *const local[] = {PRB_LOCAL_RANK_VARIABLES, NULL};
    static const char *const world[] = {PRB_WORLD_SIZE_VARIABLES, NULL};
    *out = (struct prb_ranks){environment_int(environ, rank), environment_int(environ, local),
                              environment_int(environ, world)};
}
