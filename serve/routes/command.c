/*
 * POST /api/v1/command {"words": ["backtrace", "--native"], "pid": 4711}: what a command of the
 * command line that looks prints, for `probing -t HOST:PORT`.
 */
#include <string.h>

#include "base/clock.h"
#include "probing.h"
#include "serve/doors/life.h"
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

/* Which process: by its number, by a part of its command line, or none.  It is appended to words.  A
 * server for some processes looks a name up by itself: it may be that of another. */
static bool take_target(const struct prb_serve *serve, const json_t *body, char pid[16],
                        const char **words, size_t *count, struct prb_error *err)
{
    const json_t *number = json_object_get(body, "pid");
    const char *name = json_string_value(json_object_get(body, "name"));
    char note[PRB_NOTE_MAX];
    long long wanted = json_integer_value(number);
    if (!number && !name)
        return true;
    if (!number && serve->options->target && (wanted = prb_process_by_name(name, note, err)) == 0)
        return false;
    if (wanted && !prb_serve_check_has(serve, (pid_t)wanted, err))
        return false;
    snprintf(pid, 16, "%lld", wanted);
    words[(*count)++] = wanted || number ? "--pid" : "--name";
    words[(*count)++] = wanted || number ? pid : name;
    return true;
}

static bool answer(struct prb_serve_job *job, struct prb_error *err)
{
    const char *words[PRB_LOOK_WORDS + 1] = {"--color", "never"}, *given[PRB_LOOK_WORDS];
    char pid[16] = "0", room[PRB_LOOK_ROOM];
    json_auto_t *body = prb_question_object(job, err);
    if (!body)
        return false;
    const json_t *said = json_object_get(body, "words");
    size_t count = 2, given_count = json_array_size(said);
    if (!take_target(job->serve, body, pid, words, &count, err))
        return false;
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
    return prb_look_bind(job->serve, look, (pid_t)strtol(pid, NULL, 10), words, &count, room,
                         err) &&
           prb_answer_by_command(job, words, "text/plain; charset=utf-8", err);
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
