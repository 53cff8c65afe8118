/*
 * A stand-in for NCCL: it loads a profiler plugin and drives it as versions 4, 5 and 6 do.  The structures are written
 * here anew, from NCCL's published interface, so that the plugin's own are checked.  tests/targets/nccl_job.py calls it.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Called by ctypes alone. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"
#define VISIBLE __attribute__((visibility("default")))

#define UNION(last)                                                                                \
    union {                                                                                        \
        struct {                                                                                   \
            uint64_t seqNumber;                                                                    \
            const char *func;                                                                      \
            void const *sendBuff;                                                                  \
            void *recvBuff;                                                                        \
            size_t count;                                                                          \
            int root;                                                                              \
            const char *datatype;                                                                  \
            uint8_t nChannels;                                                                     \
            uint8_t nWarps;                                                                        \
            const char *algo;                                                                      \
            const char *proto;                                                                     \
            last                                                                                   \
        } coll;                                                                                    \
        struct {                                                                                   \
            const char *func;                                                                      \
            void *buff;                                                                            \
            const char *datatype;                                                                  \
            size_t count;                                                                          \
            int peer;                                                                              \
            uint8_t nChannels;                                                                     \
            last                                                                                   \
        } p2p;                                                                                     \
        struct {                                                                                   \
            pid_t pid;                                                                             \
            uint8_t channelId;                                                                     \
            int peer;                                                                              \
            int nSteps;                                                                            \
            int chunkSize;                                                                         \
            int isSend;                                                                            \
        } proxyOp;                                                                                 \
        struct {                                                                                   \
            int step;                                                                              \
        } proxyStep;                                                                               \
        struct {                                                                                   \
            uint8_t channelId;                                                                     \
            uint64_t pTimer;                                                                       \
        } kernelCh;                                                                                \
        struct {                                                                                   \
            int64_t id;                                                                            \
            void *data;                                                                            \
        } netPlugin;                                                                               \
    }

struct descr_v4 {
    uint8_t type;
    void *parentObj;
    int rank;
    UNION();
};
struct descr_v5 {
    uint64_t type;
    void *parentObj;
    int rank;
    UNION(void *parentGroup;);
};

union state_args {
    struct {
        size_t transSize;
    } proxyStep;
    struct {
        uint64_t pTimer;
    } kernelCh;
};

typedef int init_v4(void **context, int *mask, const char *name, uint64_t hash, int nodes,
                    int ranks, int rank, void *log);
typedef int init_v5(void **context, uint64_t id, int *mask, const char *name, int nodes, int ranks,
                    int rank, void *log);

struct profiler {
    const char *name;
    void *init;
    int (*start)(void *context, void **handle, void *descr);
    int (*stop)(void *handle);
    int (*record)(void *handle, int state, union state_args *args);
    int (*finalize)(void *context);
};

static struct profiler *plugin;
static int version;
static int mask = -1;
static void *contexts[8];

/* 0: loaded. */
VISIBLE int nccl_load(const char *path, int wanted)
{
    char symbol[32];
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    snprintf(symbol, sizeof symbol, "ncclProfiler_v%d", wanted);
    plugin = library ? dlsym(library, symbol) : NULL;
    version = wanted;
    return plugin ? 0 : -1;
}

VISIBLE int nccl_comm(int index, uint64_t hash, int ranks, int rank)
{
    return version == 4
               ? ((init_v4 *)plugin->init)(&contexts[index], &mask, "c", hash, 1, ranks, rank, NULL)
               : ((init_v5 *)plugin->init)(&contexts[index], hash, &mask, "c", 1, ranks, rank,
                                           NULL);
}

VISIBLE int nccl_end(int index) { return plugin->finalize(contexts[index]); }
VISIBLE int nccl_mask(void) { return __atomic_load_n(&mask, __ATOMIC_RELAXED); }

/* What NCCL itself does first: no call where the mask has not that bit. */
static void *start(int comm, uint64_t type, void *parent, struct descr_v5 *of)
{
    void *handle = NULL;
    if (!((uint64_t)nccl_mask() & type))
        return NULL;
    of->type = type;
    of->parentObj = parent;
    if (version > 4) {
        plugin->start(contexts[comm], &handle, of);
        return handle;
    }
    struct descr_v4 old;
    memset(&old, 0xee, sizeof old); /* what lies beside the byte of the type is anything */
    old.type = (uint8_t)type;
    old.parentObj = parent;
    old.rank = of->rank;
    memcpy(&old.coll, &of->coll, sizeof old.coll);
    plugin->start(contexts[comm], &handle, &old);
    return handle;
}

VISIBLE void *nccl_coll(int comm, uint64_t seq, const char *func, uint64_t count,
                        const char *datatype, int channels)
{
    struct descr_v5 descr = {.coll = {.seqNumber = seq,
                                      .func = func,
                                      .count = count,
                                      .datatype = datatype,
                                      .nChannels = (uint8_t)channels,
                                      .algo = "RING",
                                      .proto = "LL128"}};
    return start(comm, 1 << 1, NULL, &descr);
}

VISIBLE void *nccl_p2p(int comm, const char *func, uint64_t count, const char *datatype, int peer)
{
    struct descr_v5 descr = {
        .p2p = {.func = func, .count = count, .datatype = datatype, .peer = peer, .nChannels = 1}};
    return start(comm, 1 << 2, NULL, &descr);
}

VISIBLE void *nccl_proxy(int comm, void *parent, int channel, int peer, int steps, int is_send)
{
    struct descr_v5 descr = {
        .proxyOp = {getpid(), (uint8_t)channel, peer, steps, 1 << 20, is_send}};
    return start(comm, 1 << 3, parent, &descr);
}

VISIBLE void *nccl_step(int comm, void *parent, int step)
{
    struct descr_v5 descr = {.proxyStep = {step}};
    return start(comm, 1 << 4, parent, &descr);
}

VISIBLE void *nccl_kernel(int comm, void *parent, int channel, uint64_t timer)
{
    struct descr_v5 descr = {.kernelCh = {(uint8_t)channel, timer}};
    return start(comm, 1 << 6, parent, &descr);
}

struct net_ib_v1 {
    uint8_t type;
    union {
        struct {
            int device;
            uint64_t wr_id;
            int opcode;
            int qpNum;
            size_t length;
        } qp;
    };
};

/* Of InfiniBand's plugin, whose number is 1 << 16, with the version of the data; and of any other. */
VISIBLE void *nccl_net(int comm, void *parent, int64_t id, int queue, uint64_t request,
                       uint64_t length)
{
    struct net_ib_v1 data = {
        1, .qp = {.device = 2, .wr_id = request, .opcode = 0, .qpNum = queue, .length = length}};
    struct descr_v5 descr = {.netPlugin = {id, &data}};
    return start(comm, 1 << 7, parent, &descr);
}

/* Any type, also those that a plugin does not know. */
VISIBLE void *nccl_other(int comm, uint64_t type)
{
    struct descr_v5 descr = {.rank = 0};
    void *handle = &descr;
    descr.type = type;
    plugin->start(contexts[comm], &handle, &descr);
    return handle;
}

VISIBLE void nccl_state(void *handle, int state, uint64_t value)
{
    union state_args args = {.proxyStep = {value}};
    if (handle)
        plugin->record(handle, state, value ? &args : NULL);
}

VISIBLE void nccl_stop(void *handle)
{
    if (handle)
        plugin->stop(handle);
}

/* ns for each of so many collectives with a kernel on one channel. */
VISIBLE double nccl_speed(int comm, int turns)
{
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (int i = 0; i < turns; i++) {
        void *coll = nccl_coll(comm, (uint64_t)i, "AllReduce", 1000, "ncclFloat32", 1);
        nccl_stop(coll);
        void *kernel = nccl_kernel(comm, coll, 0, 0);
        nccl_stop(kernel);
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    return ((double)(end.tv_sec - begin.tv_sec) * 1e9 + (double)(end.tv_nsec - begin.tv_nsec)) /
           turns;
}
