/* See job_name.h. */
#include "proc/job_name.h"

#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

const char *prb_environment_get(const char *environment, size_t len, const char *name)
{
    size_t n = strlen(name);
    for (size_t at = 0; at < len; at += strlen(environment + at) + 1)
        if (strncmp(environment + at, name, n) == 0 && environment[at + n] == '=')
            return environment[at + n + 1] ? environment + at + n + 1 : NULL;
    return NULL;
}

/* Append as much as fits; returns the new length. */
static size_t add_clean(char *out, size_t size, size_t len, const char *text)
{
    for (size_t left = strlen(text), n; left; text += n, left -= n) {
        char shown[8];
        n = prb_utf8_length(text, left);
        int wide = n ? snprintf(shown, sizeof shown, "%.*s", (int)n, text)
                     : snprintf(shown, sizeof shown, "\\x%02X", (unsigned char)*text);
        n = n ? n : 1;
        if (len + (size_t)wide >= size)
            break;
        memcpy(out + len, shown, (size_t)wide);
        len += (size_t)wide;
    }
    out[len] = '\0';
    return len;
}

void prb_environment_text(const char *value, char *out, size_t size)
{
    add_clean(out, size, 0, value);
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
        size_t done = add_clean(out, size, 0, jobs[i].prefix);
        done = add_clean(out, size, done, first);
        done = add_clean(out, size, done, jobs[i].between ? jobs[i].between : "");
        add_clean(out, size, done, second);
        return true;
    }
    return false;
}
