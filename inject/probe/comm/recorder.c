/*
 * PyTorch's Flight Recorder: the ring of collectives that torch.distributed keeps itself.  Its own C++ functions write
 * it, on a thread of ours and without the GIL, so it can be read while all of Python hangs: as a pickle, or as JSON,
 * for which each value is an object first, and which takes twice as long.
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

typedef struct cxx_string json_fn(bool with_collectives, bool only_active);
/* With stacks it would name their functions, for which torch may take the GIL. */
typedef struct cxx_string pickle_fn(bool with_collectives, bool with_stacks, bool only_active);

/* Each keeps what its own process groups do: gloo and others on the CPU, NCCL. */
static const struct recorder {
    const char *library, *json, *pickle;
} recorders[] = {
    {"libtorch_cpu.so", "_ZN4c10d18dump_fr_trace_jsonB5cxx11Ebb",
     "_ZN4c10d13dump_fr_traceB5cxx11Ebbb"},
    {"libtorch_cuda.so", "_ZN4c10d20dump_nccl_trace_jsonB5cxx11Ebb",
     "_ZN4c10d15dump_nccl_traceB5cxx11Ebbb"},
};

/* What the thread that reads is given. */
struct reading {
    struct prb_request *request;
    bool pickle;
};

static atomic_flag busy = ATOMIC_FLAG_INIT; /* set for ever by one that hangs in torch */

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

/* False: torch has no such function. */
static bool dump(void *library, const struct recorder *recorder, bool pickle,
                 struct cxx_string *out)
{
    pickle_fn *write_pickle = pickle ? (pickle_fn *)dlsym(library, recorder->pickle) : NULL;
    json_fn *write_json = write_pickle ? NULL : (json_fn *)dlsym(library, recorder->json);
    if (write_pickle)
        *out = write_pickle(true, false, false);
    else if (write_json)
        *out = write_json(true, false);
    return write_pickle || write_json;
}

static bool send_text(struct prb_request *request, unsigned which, struct cxx_string text,
                      void (*release)(void *))
{
    if (text.len <= sizeof text.more - 1) /* it lies in the string itself, which C has moved */
        return true;
    bool sent = text.len > TEXT_MAX || send(request, which, text.data, text.len);
    release(text.data);
    return sent;
}

static void *read_all(void *context)
{
    struct reading reading = *(struct reading *)context;
    struct prb_request *request = reading.request;
    bool torch = false, found = false, listens = true;
    free(context);
    for (unsigned i = 0; listens && i < sizeof recorders / sizeof *recorders; i++) {
        struct cxx_string text;
        void *library = dlopen(recorders[i].library, RTLD_LAZY | RTLD_NOLOAD);
        void *release = library ? dlsym(library, "_ZdlPv") : NULL; /* operator delete(void *) */
        torch |= library != NULL;
        if (!release || !dump(library, &recorders[i], reading.pickle, &text))
            continue;
        found = true;
        listens = send_text(request, i + 1, text, (void (*)(void *))release);
    }
    atomic_flag_clear(&busy);
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

static bool start(struct prb_request *request, bool pickle, struct prb_error *err)
{
    struct reading *reading = malloc(sizeof *reading);
    if (!reading)
        return prb_nomem(err);
    *reading = (struct reading){prb_request_hold(request), pickle};
    if (prb_thread_start("probe-recorder", read_all, reading, err))
        return true;
    free(reading);
    prb_request_release(request);
    return false;
}

static void begin(struct prb_request *request, const struct prb_message *message)
{
    struct prb_error err = {0};
    uint64_t pickle = 0;
    prb_message_number(message, PRB_FLD_PICKLE, &pickle);
    if (atomic_flag_test_and_set(&busy)) {
        prb_request_failf(request, PRB_BUSY, "try again: an earlier reading has not ended",
                          "the Flight Recorder is being read");
        return;
    }
    if (start(request, pickle, &err))
        return;
    atomic_flag_clear(&busy);
    prb_request_fail(request, &err);
}

static const struct prb_request_kind recorder_kind = {
    .type = PRB_MSG_RECORDER,
    .name = "recorder",
    .begin = begin,
};

static void forked(void)
{
    atomic_flag_clear(&busy);
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
