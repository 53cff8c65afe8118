#include "serve/http/again.h"

#include <string.h>

#include "base/clock.h"

#define LOOK_AGAIN 0.2 /* s, whether something moved */
#define EVERY_LEAST 0.1
#define FOR 60.0 /* s, unless ?for= says another */

bool prb_again_take(struct prb_serve_job *job, struct prb_question *question, struct prb_again *out,
                    struct prb_error *err)
{
    double wait = 0, lasting = FOR;
    *out = (struct prb_again){.seconds = job->until - job->asked};
    if (!prb_question_number(question, "wait", 0, PRB_AGAIN_LONGEST, &wait, err) ||
        !prb_question_number(question, "every", EVERY_LEAST, PRB_AGAIN_LONGEST, &out->every, err) ||
        !prb_question_number(question, "for", EVERY_LEAST, PRB_AGAIN_LONGEST, &lasting, err))
        return false;
    if (wait > 0 && !*question->known)
        return prb_fail(err, PRB_USAGE, "wait needs If-None-Match, the ETag of an answer before");
    if (out->every > 0 && (wait > 0 || strcmp(job->format, "json") != 0))
        return prb_fail(err, PRB_USAGE, "every gives lines of JSON, and does not wait");
    if (!(out->every > 0) && prb_question_value(question, "for"))
        return prb_fail(err, PRB_USAGE, "for needs every");
    out->wait_until = wait > 0 ? job->asked + wait : 0;
    if (out->every > 0) {
        out->until = job->asked + lasting;
        question->known[0] = '\0';
        question->takes_gzip = false;
    }
    return true;
}

bool prb_again_rests(struct prb_again *again, const struct prb_answer *answer)
{
    double now = prb_clock_s();
    if (answer->status != 304 || now + LOOK_AGAIN > again->wait_until)
        return false;
    again->at = now + LOOK_AGAIN;
    return true;
}

bool prb_again_goes_on(struct prb_again *again, const struct prb_answer *answer)
{
    double now = prb_clock_s(), next = now + again->every;
    if (answer->status || next > again->until)
        return false;
    again->at = next;
    return true;
}

/* What is printed over several lines becomes one. */
static void make_line(struct prb_buf *body)
{
    if (body->len && memchr(body->data, '\n', body->len - 1)) {
        json_auto_t *value = json_loadb(body->data, body->len, 0, NULL);
        char *text = value ? json_dumps(value, JSON_COMPACT) : NULL;
        prb_buf_deinit(body);
        *body = (struct prb_buf){0};
        prb_buf_adds(body, text ? text : "null");
        free(text);
    }
    if (!body->len || body->data[body->len - 1] != '\n')
        prb_buf_addc(body, '\n');
}

void prb_again_frame(struct prb_answer *answer)
{
    make_line(&answer->body);
    PRB_AUTO(prb_buf) struct prb_buf line = answer->body;
    answer->body = (struct prb_buf){0};
    prb_buf_addf(&answer->body, "%zx\r\n", line.len);
    prb_buf_add(&answer->body, line.data, line.len);
    prb_buf_adds(&answer->body, "\r\n");
}

void prb_again_renew(struct prb_again *again, struct prb_serve_job *job)
{
    again->at = 0;
    prb_answer_deinit(job->answer);
    job->asked = prb_clock_s();
    job->until = job->asked + again->seconds;
}
