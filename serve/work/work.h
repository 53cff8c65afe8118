/* Questions on their way: a pool of workers answers them, in the order they came. */
#ifndef PRB_SERVE_WORK_H
#define PRB_SERVE_WORK_H

#include "serve/http/route.h"
#include "serve/work/targets.h"

/* A question with its answer.  Who asks has one share in it, a worker the other: the last frees it. */
struct prb_work_item {
    struct prb_work_item *next; /* in a list of work.c */
    atomic_uint shares;
    struct prb_question question;
    struct prb_answer answer;
    struct prb_serve_job job;
    atomic_bool gone; /* who asked has left */
    void *owner;      /* for the thread that asked */
    bool feed;        /* the owner is a feed (live.h) */
};
struct prb_work_item *prb_work_item_new(void *owner);
void prb_work_item_release(struct prb_work_item *item);
/* It is not wanted any more: the worker ends, or never begins. */
void prb_work_item_leave(struct prb_work_item *item);

struct prb_work;
/* finished(context): some item is whole; in a worker's thread.  NULL: NOMEM. */
struct prb_work *prb_work_new(const struct prb_serve *serve, const char *const *files,
                              void (*finished)(void *context), void *context,
                              struct prb_error *err);
void prb_work_free(struct prb_work *work);
/* The targets that they hold. */
struct prb_serve_targets *prb_work_targets(struct prb_work *work);
/* Give it to the workers; its route is found.  False: too many wait. */
bool prb_work_add(struct prb_work *work, struct prb_work_item *item);
/* Those that became whole since the last call, a list by next; the worker's share is the caller's. */
struct prb_work_item *prb_work_finished(struct prb_work *work);

#endif
