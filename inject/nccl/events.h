/*
 * What the plugin remembers of the events that NCCL tells of.  The plugin alone writes it, in its own process; the tool
 * reads it from outside, at the address that PRB_NCCL_STATE has, to say what is in flight: layout and meaning
 * belong together (PRB_NCCL_EVENTS_VERSION).
 */
#ifndef PRB_NCCL_EVENTS_H
#define PRB_NCCL_EVENTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define PRB_NCCL_STATE "prb_nccl_state" /* its symbol */
#define PRB_NCCL_EVENTS_VERSION 1u
#define PRB_NCCL_EVENTS 16384u /* that are remembered; a power of two */
#define PRB_NCCL_COMMS 1024u /* communicators that a process makes; those beyond are not recorded */
#define PRB_NCCL_NAME 24     /* bytes of a function's, type's or algorithm's name */

struct prb_nccl_comm {
    uint64_t hash;
    int rank, ranks;
    _Atomic(int *) mask; /* NCCL's word; NULL: the communicator has ended */
};

/* What a proxy step waits for, in the order of the columns of nccl.proxy_ops. */
enum prb_nccl_wait {
    PRB_NCCL_SEND_GPU,
    PRB_NCCL_SEND_PEER,
    PRB_NCCL_SEND,
    PRB_NCCL_RECEIVE,
    PRB_NCCL_FLUSH,
    PRB_NCCL_WAITS,
    PRB_NCCL_NO_WAIT = PRB_NCCL_WAITS,
};

struct prb_nccl_event {
    atomic_flag busy; /* for a few ns */
    uint64_t handle;  /* 0: never used */
    uint64_t parent;  /* handle of another */
    int type;         /* NCCL_COLL and the like: interface.h */
    const struct prb_nccl_comm *comm;
    uint64_t began; /* ns, CLOCK_MONOTONIC */
    int64_t wall;   /* ns since the epoch; 0 of a proxy step and a kernel */
    bool stopped, written;
    uint64_t bytes;
    uint64_t waits[PRB_NCCL_WAITS]; /* ns */
    union {
        struct {
            uint64_t seq, count, enqueued; /* enqueued: ns that NCCL took */
            char func[PRB_NCCL_NAME], datatype[PRB_NCCL_NAME], algorithm[PRB_NCCL_NAME],
                protocol[PRB_NCCL_NAME];
            int peer, channels, kernels, proxies; /* kernels: that have ended */
            uint64_t kernel_began, kernel_ended, proxy_ended, gpu_began, gpu_ended;
        } coll; /* and point to point */
        struct {
            int channel, peer, is_send, steps;
        } proxy;
        struct {
            int wait; /* enum prb_nccl_wait */
            uint64_t since;
        } step;
        struct {
            uint64_t gpu_began, gpu_ended;
        } kernel;
        struct {
            uint64_t request, length;
            int device, opcode, queue;
            bool known; /* it is a work request of InfiniBand */
        } net;
    };
};

struct prb_nccl_state {
    uint32_t version, event_size;
    const struct prb_nccl_event *events; /* PRB_NCCL_EVENTS */
    const struct prb_nccl_comm *comms;   /* PRB_NCCL_COMMS */
    _Atomic uint64_t next;  /* events that were ever begun: place next % PRB_NCCL_EVENTS */
    _Atomic uint64_t since; /* ns, CLOCK_MONOTONIC: what began before is not recorded */
    atomic_int wanted;      /* the event mask; 0: nothing is recorded */
    int rank;               /* of the process in its job; -1: not known */
};

#endif
