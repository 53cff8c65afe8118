/*
 * POST /api/v1/command {"words": ["backtrace", "--native"], "pid": 4711}: what a command of the
 * command line that looks prints, for `probing -t HOST:PORT`.
 */
#include <string.h>

#include "base/clock.h"
#include "serve/routes/by_command.h"
#include "serve/text/looks.h"

#define START_SECONDS 20 /* beside those that a profile takes */

/* Of a profile: that it may last as long as it says. */
static void lengthen(struct prb_serve_job *job, const char *word)
{
    if (strncmp(word, "--duration=", 11) != 0)
        return;
    double seconds = strtod(word + 11, NULL);
    if (seconds > 0 && seconds <= PRB_SERVE_PROFILE_SECONDS_MAX)
        job->until = prb_clock_s() + seconds + START_SECONDS;
}

/* Which process: by its number, by a part of its command line, or none. */
static size_t take_target(const json_t *body, char pid[16], const char **words)
{
    const json_t *number = json_object_get(body, "pid");
    const char *name = json_string_value(json_object_get(body, "name"));
    if (!number && !name)
        return 0;
    snprintf(pid, 16, "%lld", (long long)json_integer_value(number));
    words[0] = number ? "--pid" : "--name";
    words[1] = number ? pid : name;
    return 2;
}

static bool answer(struct prb_serve_job *job, struct prb_error *err)
{
    const char *words[PRB_LOOK_WORDS + 1] = {"--color", "never"}, *given[PRB_LOOK_WORDS];
    char pid[16];
    json_auto_t *body = prb_question_object(job, err);
    if (!body)
        return false;
    const json_t *said = json_object_get(body, "words");
    size_t count = 2 + take_target(body, pid, words + 2), given_count = json_array_size(said);
    const char *first = json_string_value(json_array_get(said, 0));
    const struct prb_look *look = first ? prb_look_named(first, strlen(first)) : NULL;
    if (!look || given_count > PRB_LOOK_WORDS)
        return prb_fail(err, PRB_USAGE, "no command that looks: \"%.40s\"", first ? first : "");
    for (size_t i = 1; i < given_count; i++) {
        given[i - 1] = json_string_value(json_array_get(said, i));
        lengthen(job, given[i - 1]);
    }
    if (!prb_look_take(look, given, given_count - 1, words, &count))
        return prb_fail(err, PRB_USAGE,
                        look->argument == PRB_LOOK_SECONDS
                            ? "%s needs --duration, and takes some options on its machine alone"
                            : "%s takes something of this on its own machine alone",
                        look->word);
    return prb_answer_by_command(job, words, "text/plain; charset=utf-8", err);
}

const struct prb_route prb_route_command = {
    .methods = PRB_POST,
    .path = "/api/v1/command",
    .summary = "what a command that looks prints",
    .grant = PRB_MAY_LOOK,
    .formats = "text",
    .body = "words! pid name",
    .slow = true,
    .seconds = 60,
    .answer = answer,
};
