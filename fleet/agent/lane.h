/*
 * Where requests to an agent wait: a lane is a thread that answers one after the other.  Looks that
 * take long are passed on to lanes of their own; who asks the same at the same time is answered by one
 * look (work.c answers).
 */
#ifndef PRB_FLEET_AGENT_LANE_H
#define PRB_FLEET_AGENT_LANE_H

#include <pthread.h>
#include <stdatomic.h>

#include "fleet/agent/agent.h"
#include "fleet/agent/lend.h"

#define PRB_LANE_CLASSES (PRB_FLEET_EVAL + 1)
#define PRB_LANES (PRB_LANE_CLASSES + 5)
#define PRB_LANE_IDS 256  /* of questions that came */
#define PRB_LANE_SHARED 4 /* looks that serve those who ask the same */

struct prb_item {
    struct prb_item *next;
    enum prb_fleet_class class;
    double came; /* s, monotonic */
    char *reply, *data;
    size_t len;
    char *same; /* of a question that was passed on: as of lane */
};

/* A look that serves those who ask the same, too. */
struct prb_shared {
    char *same;
    double began; /* s, monotonic */
    struct prb_buf body;
};

/* One thread, with the ranks and children that are its own. */
struct prb_lane {
    struct prb_agent_work *work;
    pthread_t thread;
    bool runs;
    struct prb_item *first, **last; /* guarded by work->lock */
    size_t count;
    pthread_cond_t more;
    char id[PRB_FLEET_ID]; /* of the question it answers; "": none; guarded */
    char *same;            /* what of it is the same with whoever asks it; NULL: none; guarded */
    double began;          /* s, monotonic; guarded */
    unsigned looked;       /* work->generation, when it looked for ranks */
    struct prb_fleet_host *host;
    struct prb_go go;
    struct prb_shared shared[PRB_LANE_SHARED]; /* the thread's own */
    unsigned next_shared;
    /* The thread's own: what it keeps after a question, until it has rested for a while. */
    bool keeps;    /* answers and memory */
    bool children; /* its processes that look */
};

struct prb_agent_work {
    struct prb_agent_work_options options;
    pthread_mutex_t lock;
    struct prb_lane lanes[PRB_LANES];
    bool ends;                                  /* guarded */
    char came[PRB_LANE_IDS][PRB_FLEET_ID];      /* guarded: ids, so that none is answered twice */
    char cancelled[PRB_LANE_IDS][PRB_FLEET_ID]; /* guarded */
    unsigned next_came, next_cancelled;
    struct prb_fleet_members ranks; /* guarded */
    atomic_uint generation;
    pthread_rwlock_t bus_lock;
    struct prb_bus *bus;
    struct prb_lends *lends; /* NULL: eval is not allowed */
};

void prb_item_free(struct prb_item *item);

/* The next, once it is there; the lane knows what of it is the same with others.  NULL: the end. */
struct prb_item *prb_lane_next(struct prb_lane *lane);
/* To the lane of the looks of its pace.  False: the item is the caller's. */
bool prb_lane_pass_on(struct prb_agent_work *work, struct prb_item *item,
                      const struct prb_fleet_request *request);
/* Its looks were passed on to it. */
bool prb_lane_is_beside(const struct prb_lane *lane);
/* False: it came before, or was cancelled. */
bool prb_lane_begin(struct prb_lane *lane, const char *id);
/* Whether the question that it answers is still wanted; context: the lane. */
bool prb_lane_goes_on(void *context);

/* All of a question but whose it is; the caller's. */
char *prb_lane_same(const struct prb_fleet_request *request);
/* A look that began when, or just before, the question came; NULL: none. */
const struct prb_shared *prb_lane_shared(const struct prb_lane *lane, const char *same,
                                         double came);
/* same and body become the lane's, where the body is not too long. */
void prb_lane_share(struct prb_lane *lane, char **same, double began, struct prb_buf *body);
void prb_lane_forget_shared(struct prb_lane *lane);

#endif
