/*
 * PyTorch's Flight Recorder: the ring of collectives that torch.distributed keeps itself.  Its own C++ function writes
 * it as JSON, on a thread of ours and without the GIL, so it can be read while all of Python hangs.
 */
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "inject/probe/comm/comm.h"
#include "inject/probe/part.h"
#include "inject/probe/server/request.h"
#include "inject/probe/thread.h"

#define PIECE ((size_t)256 << 10)    /* bytes of one message */
#define TEXT_MAX ((size_t)256 << 20) /* bytes of one recorder: more is no recorder's text */
#define ROOM_S 10.0                  /* for a client that reads slowly */

/* std::string of the C++11 ABI, which the symbols' names say that they return: 32 bytes, by a hidden pointer, as C
 * returns a struct of that size. */
struct cxx_string {
    char *data;
    size_t len;
    char more[16];
};
_Static_assert(sizeof(struct cxx_string) == 32, "as libstdc++ has it");

typedef struct cxx_string dump_fn(bool with_collectives, bool only_active);

/* Each keeps what its own process groups do: gloo and others on the CPU, NCCL. */
static const struct {
    const char *library, *symbol;
} recorders[] = {
    {"libtorch_cpu.so", "_ZN4c10d18dump_fr_trace_jsonB5cxx11Ebb"},
    {"libtorch_cuda.so", "_ZN4c10d20dump_nccl_trace_jsonB5cxx11Ebb"},
};

static atomic_flag reading = ATOMIC_FLAG_INIT; /* set for ever by one that hangs in torch */

/* The text in pieces; false: nobody listens any more. */
static bool send(struct prb_request *request, unsigned which, const char *text, size_t len)
{
    while (len) {
        size_t part = len < PIECE ? len : PIECE;
        enum prb_sent sent = prb_request_output(request, which, text, part);
        if (sent == PRB_SENT_CLOSED ||
            (sent == PRB_SENT_FULL && !prb_request_wait_room(request, ROOM_S)))
            return false;
        if (sent == PRB_SENT) {
            text += part;
            len -= part;
        }
    }
    return true;
}

static bool read_one(struct prb_request *request, unsigned which, dump_fn *dump,
                     void (*release)(void *))
{
    struct cxx_string text = dump(true, false);
    if (text.len <= sizeof text.more - 1) /* it lies in the string itself, which C has moved */
        return true;
    bool sent = text.len > TEXT_MAX || send(request, which, text.data, text.len);
    release(text.data);
    return sent;
}

static void *read_all(void *context)
{
    struct prb_request *request = context;
    bool torch = false, found = false, listens = true;
    for (unsigned i = 0; listens && i < sizeof recorders / sizeof *recorders; i++) {
        void *library = dlopen(recorders[i].library, RTLD_LAZY | RTLD_NOLOAD);
        void *symbol = library ? dlsym(library, recorders[i].symbol) : NULL;
        void *release = library ? dlsym(library, "_ZdlPv") : NULL; /* operator delete(void *) */
        torch |= library != NULL;
        if (symbol && release) {
            found = true;
            listens = read_one(request, i + 1, (dump_fn *)symbol, (void (*)(void *))release);
        }
    }
    atomic_flag_clear(&reading);
    if (found)
        prb_request_end(request, NULL);
    else if (torch)
        prb_request_failf(request, PRB_UNSUPPORTED, NULL,
                          "this torch has no function that writes its Flight Recorder as JSON");
    else
        prb_request_failf(request, PRB_NOT_FOUND, "ask again when the program has imported torch",
                          "torch is not loaded in the process");
    prb_request_release(request);
    return NULL;
}

static void begin(struct prb_request *request, const struct prb_message *message)
{
    struct prb_error err = {0};
    (void)message;
    if (atomic_flag_test_and_set(&reading)) {
        prb_request_failf(request, PRB_BUSY, "try again: an earlier reading has not ended",
                          "the Flight Recorder is being read");
        return;
    }
    if (prb_thread_start("probe-recorder", read_all, prb_request_hold(request), &err))
        return;
    atomic_flag_clear(&reading);
    prb_request_fail(request, &err);
    prb_request_release(request);
}

static const struct prb_request_kind recorder_kind = {
    .type = PRB_MSG_RECORDER,
    .name = "recorder",
    .begin = begin,
};

static void forked(void)
{
    atomic_flag_clear(&reading);
    prb_nccl_forked();
}

const struct prb_probe_part prb_probe_part_comm = {
    .name = "comm",
    .requests = (const struct prb_request_kind *const[]){&recorder_kind, NULL},
    .configure = prb_nccl_configure,
    .accepts = prb_nccl_accepts,
    .end = prb_nccl_end,
    .forked = forked,
};
