/*
 * The connection of a debug session: what debug.c (the session, its calls) and debug_link.c
 * (what is sent, what comes) share.
 *
 * THREADS.  The reader parses messages: answers go to the waiter of their request, events to a
 * queue.  The dispatcher passes events to the handler, which may therefore make calls.  Each caller
 * waits on its own condition, so that an answer wakes one thread.
 */
#ifndef PRB_INJECT_DEBUG_LINK_H
#define PRB_INJECT_DEBUG_LINK_H

#include <pthread.h>

#include "inject/control.h"
#include "inject/debug.h"
#include "inject/probe/server/message.h"

struct prb_debug_waiter { /* of one request */
    struct prb_debug_waiter *next;
    pthread_cond_t changed;
    uint32_t request;
    bool over, ok;
    char *text; /* of END */
    size_t len;
    struct prb_error err;
};

struct prb_debug_item {
    struct prb_debug_item *next;
    size_t len;
    char text[];
};

struct prb_debug {
    struct prb_control *control;
    int fd;
    pid_t pid;
    struct prb_debug_options options;
    pthread_t reader, dispatcher;
    bool reads, dispatches; /* the threads run */
    pthread_mutex_t sending;

    pthread_mutex_t lock;   /* of what follows */
    pthread_cond_t changed; /* began, over */
    pthread_cond_t events;  /* the queue, closing */
    uint32_t last;          /* request number */
    uint32_t session;       /* DEBUG's */
    struct prb_debug_waiter *waiters;
    bool began, over, closing;
    struct prb_error end; /* why over */
    struct prb_debug_item *first, **end_of_events;
    size_t waiting; /* bytes of them */
};

/* Send one request.  A probe that has gone is not an error here: the reader reports it. */
bool prb_debug_send(struct prb_debug *debug, enum prb_message_type type, uint32_t request,
                    const struct prb_buf *fields, struct prb_error *err);
void prb_debug_send_cancel(struct prb_debug *debug, uint32_t request);
/* The two threads; context: the struct prb_debug. */
void *prb_debug_read(void *context);
void *prb_debug_dispatch(void *context);

#endif
