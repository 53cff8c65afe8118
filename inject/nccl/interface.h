/*
 * What NCCL and a profiler plugin share, versions 4 to 6 of its interface: the layout of what it hands over, as far as
 * it is read here.  Version 4 has the event's type in one byte, 5 and 6 in eight; behind it all are alike, and later
 * versions add kinds of events, and fields behind those that are read.
 */
#ifndef PRB_NCCL_INTERFACE_H
#define PRB_NCCL_INTERFACE_H

#include <stddef.h>
#include <stdint.h>

/* Bits of an event mask, and types of events. */
enum {
    NCCL_COLL = 1 << 1,
    NCCL_P2P = 1 << 2,
    NCCL_PROXY_OP = 1 << 3,
    NCCL_PROXY_STEP = 1 << 4,
    NCCL_KERNEL_CHANNEL = 1 << 6,
    NCCL_NET_PLUGIN = 1 << 7,
};

/* States of a proxy step, by what it waits for, and the kernel's end.  The numbers have gaps. */
enum {
    NCCL_SEND_GPU_WAIT = 8,
    NCCL_SEND_WAIT = 9,
    NCCL_RECV_WAIT = 10,
    NCCL_RECV_FLUSH_WAIT = 11,
    NCCL_RECV_GPU_WAIT = 12,
    NCCL_SEND_PEER_WAIT = 20,
    NCCL_KERNEL_STOP = 22,
};

struct nccl_event {
    uint64_t type; /* version 4: its first byte alone */
    void *parent;
    int rank;
    union {
        struct {
            uint64_t seq;
            const char *func;
            const void *send;
            void *receive;
            size_t count;
            int root;
            const char *datatype;
            uint8_t channels, warps;
            const char *algorithm, *protocol;
        } coll;
        struct {
            const char *func;
            void *buffer;
            const char *datatype;
            size_t count;
            int peer;
            uint8_t channels;
        } p2p;
        struct {
            int pid;
            uint8_t channel;
            int peer, steps, chunk, is_send;
        } proxy_op;
        struct {
            uint8_t channel;
            uint64_t timer; /* the GPU's, ns */
        } kernel;
        struct {
            int64_t id; /* of a network plugin, and the version of its data */
            const void *data;
        } net;
    };
};

/* What NCCL's own network plugin for InfiniBand hands over of a work request; only an NCCL that was built for it does. */
#define NCCL_NET_IB_1 (INT64_C(1) << 16 | 1)
#define NCCL_NET_QUEUE 1
struct nccl_net_ib {
    uint8_t type;
    int device __attribute__((aligned(8)));
    uint64_t request;
    int opcode, queue;
    size_t length;
};
_Static_assert(offsetof(struct nccl_net_ib, device) == 8, "as in NCCL");
_Static_assert(offsetof(struct nccl_net_ib, length) == 32, "as in NCCL");

union nccl_state {
    size_t bytes;   /* of a proxy step */
    uint64_t timer; /* of a kernel's end: the GPU's, ns */
};

_Static_assert(offsetof(struct nccl_event, coll) == 24, "as in NCCL");
_Static_assert(offsetof(struct nccl_event, coll.protocol) == 96, "as in NCCL");
_Static_assert(offsetof(struct nccl_event, p2p.channels) == 60, "as in NCCL");
_Static_assert(offsetof(struct nccl_event, proxy_op.is_send) == 44, "as in NCCL");
_Static_assert(offsetof(struct nccl_event, kernel.timer) == 32, "as in NCCL");

/* What the plugin exports; functions return 0.  init of version 4 has other arguments in another order. */
struct nccl_profiler {
    const char *name;
    int (*init)(void);
    int (*start)(void *context, void **handle, struct nccl_event *event);
    int (*stop)(void *handle);
    int (*record)(void *handle, int state, union nccl_state *arguments);
    int (*finalize)(void *context);
};

#endif
