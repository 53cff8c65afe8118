/*
 * What the files of live data share: feeds and subscriptions (live.c), and what clients say
 * (messages.c).
 */
#ifndef PRB_SERVE_LIVE_FEEDS_H
#define PRB_SERVE_LIVE_FEEDS_H

#include "serve/live/live.h"
#include "serve/live/runs.h"

#define PRB_LIVE_EVERY_MIN 0.1 /* s */
#define PRB_LIVE_EVERY_MAX 60.0

struct prb_live_topic {
    const char *name;
    const char *path; /* of the route, behind the target's */
    bool target;
    const char *options; /* of those that a subscription may have */
    const char *from;    /* what says where to go on: a feed for each subscription; NULL: none */
};

/* A body of JSON, for all who are to get it. */
struct prb_live_value {
    unsigned shares;
    double time; /* s since the epoch */
    uint64_t hash;
    struct prb_buf body;
};

struct prb_live_feed {
    struct prb_live_feed *next;
    char *key; /* equal for equal questions */
    const struct prb_live_topic *topic;
    char target[128];
    char *sql;
    bool native, locals;
    char run[PRB_RUN_NAME]; /* flame */
    bool own_run;           /* it ends with the feed */
    char from[64];          /* where the next question goes on; "": at the beginning */
    struct prb_live_subscription *first;
    struct prb_work_item *item; /* under way */
    double due;                 /* s, monotonic */
};

struct prb_live_subscription {
    struct prb_live_subscription *next;      /* of the feed */
    struct prb_live_subscription *next_mine; /* of the client */
    struct prb_live_client *client;
    struct prb_live_feed *feed;
    json_int_t id;
    double every;
    double due;                  /* s, monotonic: no value before */
    struct prb_live_value *slot; /* to be sent; NULL: nothing is */
    unsigned skipped;
    uint64_t hash; /* of the last value that was sent; 0: none was */
};

struct prb_live_client {
    struct prb_live *live;
    void *owner;
    struct prb_guest *guest;
    bool proxied;
    unsigned grants;
    struct prb_live_subscription *subscriptions;
    size_t count;
    struct prb_buf message; /* as far as it has come */
    struct prb_buf replies; /* a line each */
    /* What is being sent. */
    struct prb_buf head;
    struct prb_live_value *value; /* behind head; NULL: head is all */
    size_t sent;
};

struct prb_live {
    const struct prb_serve *serve;
    struct prb_work *work;
    void (*writable)(void *owner);
    struct prb_live_feed *feeds;
    size_t feed_count;
};

/* The feed of an equal question, else a new one, with copies of what wanted has.  NULL: there are too
 * many, or no memory. */
struct prb_live_feed *prb_live_feed_of(struct prb_live *live, const struct prb_live_feed *wanted,
                                       const char *key);
/* The last one of a feed ends that, too. */
void prb_live_subscription_free(struct prb_live_subscription *subscription);
bool prb_live_reply_ok(struct prb_live_client *client, json_int_t id);
void prb_live_reply_error(struct prb_live_client *client, json_int_t id,
                          const struct prb_error *err, bool retryable);

#endif
