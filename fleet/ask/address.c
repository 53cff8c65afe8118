/* See address.h. */
#include "fleet/ask/address.h"

#include <string.h>

#include "base/error.h"
#include "fleet/fleet.h"
#include "proc/job_name.h"

bool prb_fleet_is(const char *word) { return word[0] == '@'; }

void prb_fleet_address_deinit(struct prb_fleet_address *address)
{
    prb_rank_set_deinit(&address->ranks);
}

/* A job's name may have colons: only what looks like ranks behind the last one is none of it. */
static const char *ranks_of(const char *word)
{
    const char *colon = strrchr(word, ':');
    return colon && colon[1] && colon[1 + strspn(colon + 1, "0123456789-, ")] == '\0' ? colon
                                                                                      : NULL;
}

size_t prb_fleet_job_length(const char *word)
{
    const char *colon = ranks_of(word);
    return colon ? (size_t)(colon - word) : strlen(word);
}

bool prb_fleet_address_parse(const char *word, struct prb_fleet_address *out, struct prb_error *err)
{
    const char *colon = ranks_of(word);
    size_t len = colon ? (size_t)(colon - word) : strlen(word);
    *out = (struct prb_fleet_address){0};
    if (!prb_fleet_is(word) || len - 1 >= sizeof out->job || (!colon && word[len - 1] == ':'))
        return prb_fail(err, PRB_USAGE, "\"%.80s\" is not @JOB or @JOB:RANKS, as @llama:0-7,12",
                        word);
    PRB_AUTO_FREE char *name = strndup(word + 1, len - 1);
    if (!name)
        return prb_nomem(err);
    prb_environment_text(name, out->job, sizeof out->job);
    out->local = strcmp(out->job, "local") == 0;
    if (out->local)
        out->job[0] = '\0';
    return !colon || prb_rank_set_parse(colon + 1, &out->ranks, err);
}
