/* Equal questions about a job, of several tabs of a page: one look at the ranks answers those of a second. */
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "serve/routes/by_command.h"
#include "serve/routes/job_roster.h"

#define AS_NEW 1.0 /* s since a look began, in which it answers others, too */
#define LOOKS 16
#define KEPT_MAX ((size_t)4 << 20) /* bytes of an answer */
#define LOOK_MS 50

static struct look {
    char *question; /* the words; NULL: free */
    double begun;   /* s, monotonic */
    bool runs, good;
    unsigned users;
    struct prb_buf answer;
} looks[LOOKS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed;
PRB_CLOCK_COND(changed)

static char *question_of(const char *const *words)
{
    PRB_AUTO(prb_buf) struct prb_buf text = {0};
    for (size_t i = 0; words[i]; i++) {
        prb_buf_adds(&text, words[i]);
        prb_buf_addc(&text, '\x1f');
    }
    return prb_buf_ok(&text) && text.data ? strdup(text.data) : NULL;
}

static void release(struct look *look)
{
    if (look->runs || look->users)
        return;
    free(look->question);
    prb_buf_deinit(&look->answer);
    *look = (struct look){0};
}

/* The look that answers a question now, and a free place for another. */
static struct look *find(const char *question, struct look **place)
{
    double now = prb_clock_s();
    struct look *found = NULL;
    for (struct look *one = looks; one < looks + LOOKS; one++) {
        if (one->question && one->begun + AS_NEW < now)
            release(one);
        if (!one->question)
            *place = one;
        else if (one->begun + AS_NEW >= now && strcmp(one->question, question) == 0)
            found = one;
    }
    return found;
}

/* Wait for its end, under the lock.  False: it gave no answer, or none is wanted any more. */
static bool take(struct look *look, struct prb_serve_job *job)
{
    look->users++;
    while (look->runs && prb_serve_job_goes_on(job)) {
        struct timespec until = prb_clock_in(LOOK_MS * 1e-3);
        pthread_cond_timedwait(&changed, &lock, &until);
    }
    bool good = !look->runs && look->good;
    if (good)
        prb_buf_add(&job->answer->body, look->answer.data, look->answer.len);
    look->users--;
    return good && prb_buf_ok(&job->answer->body);
}

static void keep(struct look *look, const struct prb_answer *answer, bool ok)
{
    look->good = ok && !answer->truncated && answer->body.len && answer->body.len <= KEPT_MAX;
    if (look->good)
        prb_buf_add(&look->answer, answer->body.data, answer->body.len);
    look->good = look->good && prb_buf_ok(&look->answer);
    look->runs = false;
    if (!look->good)
        release(look);
    pthread_cond_broadcast(&changed);
}

bool prb_serve_job_shared(struct prb_serve_job *job, const char *const *words, const char *type,
                          struct prb_error *err)
{
    char *question = question_of(words);
    struct look *place = NULL, *found;
    if (!question)
        return prb_nomem(err);
    pthread_mutex_lock(&lock);
    found = find(question, &place);
    bool answered = found && take(found, job);
    if (!found && place) {
        *place = (struct look){.question = question, .begun = prb_clock_s(), .runs = true};
        question = NULL;
    }
    pthread_mutex_unlock(&lock);
    free(question);
    job->answer->type = type;
    if (answered)
        return true;
    bool ok = prb_answer_by_command(job, words, type, err);
    if (!found && place) {
        pthread_mutex_lock(&lock);
        keep(place, job->answer, ok);
        pthread_mutex_unlock(&lock);
    }
    return ok;
}
