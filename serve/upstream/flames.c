/* By the command line; as text it is one line for each stack. */
#include "serve/upstream/flames.h"

#include <string.h>

#include "base/clock.h"
#include "serve/routes/by_command.h"
#include "serve/routes/profile_file.h"
#include "serve/work/targets.h"

#define LONGEST 60.0
#define START_SECONDS 10 /* beside those that it takes */

bool prb_upstream_profile(struct prb_serve_job *job, const char *format, struct prb_error *err)
{
    char target[16], duration[32];
    double seconds = 1;
    const char *const words[] = {"-p",       target, "profile",  "--duration", duration,
                                 "--format", format, "--output", "-",          NULL};
    if (!prb_question_number(job->question, "seconds", 0.1, LONGEST, &seconds, err) ||
        !prb_upstream_target(job, err) || !prb_serve_target_process(job, target, err))
        return false;
    snprintf(duration, sizeof duration, "%g", seconds);
    job->until = prb_clock_s() + seconds + START_SECONDS;
    return prb_answer_by_command(job, words, prb_profile_media_type(format), err);
}

json_t *prb_upstream_folded(struct prb_serve_job *job, struct prb_error *err)
{
    if (!prb_upstream_profile(job, "collapsed", err))
        return NULL;
    PRB_AUTO(prb_buf) struct prb_buf text = job->answer->body;
    job->answer->body = (struct prb_buf){0};
    json_t *lines = json_array();
    for (const char *at = text.len ? text.data : ""; *at;) {
        size_t len = strcspn(at, "\n");
        if (len)
            json_array_append_new(lines, json_stringn(at, len));
        at += len + (at[len] == '\n');
    }
    if (!lines)
        prb_nomem(err);
    return lines;
}
