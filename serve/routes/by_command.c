/* The command line as a child: its output is the body, its exit status and message the error. */
#include "serve/routes/by_command.h"

#include <string.h>

#include "format/json.h"
#include "serve/text/command.h"

#define SAID_MAX 4096
#define FOUND 1 /* exit status of no error (PRB_CODES) */

struct output {
    struct prb_serve_job *job;
    struct prb_buf said; /* on standard error */
};

static bool take(void *context, bool error, const char *bytes, size_t count)
{
    struct output *output = context;
    struct prb_answer *answer = output->job->answer;
    if (error) {
        if (output->said.len + count < SAID_MAX)
            prb_buf_add(&output->said, bytes, count);
        return true;
    }
    if (answer->body.len + count > PRB_SERVE_ANSWER_MAX) {
        answer->truncated = true;
        return false;
    }
    prb_buf_add(&answer->body, bytes, count);
    return prb_buf_ok(&answer->body);
}

static bool goes_on(void *context)
{
    return prb_serve_job_goes_on(((struct output *)context)->job);
}

/* The message behind the notes: "probing: TEXT\n  REMEDY\n", TEXT of one line or several. */
static void split(const char *said, struct prb_error *err, enum prb_code code)
{
    const char *text = said;
    for (const char *at = said; at; at = strchr(at, '\n'), at += at != NULL)
        if (strncmp(at, "probing: ", 9) == 0 && strncmp(at + 9, "note: ", 6) != 0)
            text = at + 9;
    size_t len = strlen(text);
    const char *remedy = "";
    for (const char *at = strchr(text, '\n'); at; at = strchr(at + 1, '\n')) {
        if (strncmp(at, "\n  ", 3) != 0 || at[3] == ' ' || !at[3])
            continue;
        len = (size_t)(at - text);
        remedy = at + 3;
        break;
    }
    while (len && text[len - 1] == '\n')
        len--;
    PRB_AUTO(prb_buf) struct prb_buf lines = {0};
    for (size_t at = 0; at < len; at++) {
        prb_buf_addc(&lines, text[at]);
        at += text[at] == '\n' ? strspn(text + at + 1, " ") < 2 ? 0 : 2 : 0;
    }
    prb_fail(err, code, "%s", lines.len ? lines.data : "");
    size_t remedy_len = strlen(remedy);
    remedy_len -= remedy_len && remedy[remedy_len - 1] == '\n';
    prb_error_remedy(err, "%.*s", (int)remedy_len, remedy);
}

/* Not all ranks answered; or what was looked for was found, as by `skill run` something bad. */
static bool is_answer(int status, const struct prb_buf *body)
{
    return status <= 0 || (body->len && (status == FOUND || status == prb_code_exit(PRB_PARTIAL)));
}

static bool fail(int status, const struct prb_buf *said, struct prb_error *err)
{
    split(said->data ? said->data : "", err, prb_command_code(status));
    return false;
}

bool prb_answer_by_command(struct prb_serve_job *job, const char *const *words, const char *type,
                           struct prb_error *err)
{
    struct output output = {.job = job};
    const struct prb_command_run run = {job->serve->program, words, goes_on, take, &output};
    int status;
    job->answer->type = type;
    bool ok = prb_command_run(&run, &status, err);
    if (ok && status < 0 && !job->answer->truncated)
        ok = prb_fail(err, PRB_TIMEOUT, "it took too long");
    else if (ok && !is_answer(status, &job->answer->body))
        ok = fail(status, &output.said, err);
    prb_buf_deinit(&output.said);
    return ok;
}

bool prb_answer_by_control(struct prb_serve_job *job, const char *const *words,
                           struct prb_error *err)
{
    if (!prb_answer_by_command(job, words, "text/plain; charset=utf-8", err))
        return false;
    if (strcmp(job->format, "text") == 0)
        return true;
    PRB_AUTO(prb_buf) struct prb_buf said = job->answer->body;
    job->answer->body = (struct prb_buf){0};
    while (said.len && said.data[said.len - 1] == '\n')
        said.data[--said.len] = '\0';
    return prb_answer_json(
        job->answer, json_pack("{s:o}", "message", prb_json_text(said.len ? said.data : "")), err);
}
