/*
 * A question that is asked again and again: ?wait=30s until the answer is another one than the client
 * knows (If-None-Match), ?every=1s&for=60s for a line of JSON each time.  No worker waits meanwhile.
 */
#ifndef PRB_SERVE_HTTP_AGAIN_H
#define PRB_SERVE_HTTP_AGAIN_H

#include "serve/http/route.h"

#define PRB_AGAIN_LONGEST 3600.0 /* s */

struct prb_again {
    double wait_until; /* s, monotonic; 0: it does not wait */
    double every;      /* s; 0: one answer */
    double until;      /* s, monotonic: of every */
    double seconds;    /* that one answer may take */
    double at;         /* s, monotonic: when it is asked next; 0: it is being answered */
    bool ends;         /* the last line is out */
};

/* What a question whose route is found asks for; the question is changed so that each answer is a
 * whole line.  USAGE. */
bool prb_again_take(struct prb_serve_job *job, struct prb_question *question, struct prb_again *out,
                    struct prb_error *err);
/* An answer is there.  True: the question is asked again at out->at, and nothing goes out. */
bool prb_again_rests(struct prb_again *again, const struct prb_answer *answer);
/* A line has gone out.  True: the question is asked again at out->at; else that was the last. */
bool prb_again_goes_on(struct prb_again *again, const struct prb_answer *answer);
/* Make the answer's body a chunk of one line, RFC 9112 section 7.1. */
void prb_again_frame(struct prb_answer *answer);
/* Prepare the job and its answer for the next time. */
void prb_again_renew(struct prb_again *again, struct prb_serve_job *job);

#endif
