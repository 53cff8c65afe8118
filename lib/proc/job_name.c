/* See job_name.h. */
#include "proc/job_name.h"

#include <stdio.h>
#include <string.h>

const char *prb_environment_get(const char *environment, size_t len, const char *name)
{
    size_t n = strlen(name);
    for (size_t at = 0; at < len; at += strlen(environment + at) + 1)
        if (strncmp(environment + at, name, n) == 0 && environment[at + n] == '=')
            return environment[at + n + 1] ? environment + at + n + 1 : NULL;
    return NULL;
}

bool prb_job_name(const char *environment, size_t len, char *out, size_t size)
{
    static const struct {
        const char *prefix, *first, *between, *second, *nothing;
    } jobs[] = {
#define JOB(prefix, first, between, second, nothing) {prefix, first, between, second, nothing},
#include "proc/identities.def"
#undef JOB
    };
    for (size_t i = 0; i < sizeof jobs / sizeof *jobs; i++) {
        const char *first = prb_environment_get(environment, len, jobs[i].first);
        const char *second =
            jobs[i].second ? prb_environment_get(environment, len, jobs[i].second) : "";
        if (!first || !second || (jobs[i].nothing && strcmp(first, jobs[i].nothing) == 0))
            continue;
        snprintf(out, size, "%s%s%s%s", jobs[i].prefix, first,
                 jobs[i].between ? jobs[i].between : "", second);
        return true;
    }
    return false;
}
