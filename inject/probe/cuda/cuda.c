/* CUDA's runtime as PyTorch has loaded it: see cuda.h.  The prototypes are those of the CUDA Runtime API
 * and of c10/cuda/CUDAStream.h (the same from PyTorch 2.0 to 2.13). */
#include "inject/probe/cuda/cuda.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#define TORCH "libc10_cuda.so" /* Python loads it RTLD_LOCAL */
#define DRIVER "libcuda.so.1"

enum { SUCCESS = 0, RELAXED = 2, DEVICE_TO_HOST = 2, DISABLE_TIMING = 2 };

/* c10::cuda::CUDAStream: a device and a number, returned in registers. */
struct torch_stream {
    uint64_t device, id;
};

static struct {
    int (*context)(void **out);
    struct torch_stream (*current)(int8_t device);
    void *(*stream)(const struct torch_stream *stream);
    int (*device)(int *out);
    int (*peek)(void);
    int (*take_error)(void);
    int (*exchange_mode)(int *mode);
    int (*is_capturing)(void *stream, int *out);
    int (*make_event)(void **out, unsigned flags);
    int (*record)(void *event, void *stream);
    int (*query)(void *event);
    int (*elapsed)(float *ms, void *from, void *to);
    int (*host_memory)(void **out, size_t size, unsigned flags);
    int (*copy)(void *to, const void *from, size_t size, int kind, void *stream);
} cuda;
static atomic_bool found;

static const struct {
    const char *name;
    void *place;
} functions[] = {
    {"_ZN3c104cuda20getCurrentCUDAStreamEa", &cuda.current},
    {"_ZNK3c104cuda10CUDAStream6streamEv", &cuda.stream},
    {"cudaGetDevice", &cuda.device},
    {"cudaPeekAtLastError", &cuda.peek},
    {"cudaGetLastError", &cuda.take_error},
    {"cudaThreadExchangeStreamCaptureMode", &cuda.exchange_mode},
    {"cudaStreamIsCapturing", &cuda.is_capturing},
    {"cudaEventCreateWithFlags", &cuda.make_event},
    {"cudaEventRecord", &cuda.record},
    {"cudaEventQuery", &cuda.query},
    {"cudaEventElapsedTime", &cuda.elapsed},
    {"cudaHostAlloc", &cuda.host_memory},
    {"cudaMemcpyAsync", &cuda.copy},
};

/* dlsym looks in what the library is linked with, too. */
static bool find(void *library, const char *name, void *place)
{
    void *at = dlsym(library, name);
    if (at)
        memcpy(place, &at, sizeof at);
    return at;
}

static bool find_all(void *torch, void *driver)
{
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (!find(torch, functions[i].name, functions[i].place))
            return false;
    return find(driver, "cuCtxGetCurrent", &cuda.context);
}

bool prb_cuda_look(void)
{
    if (atomic_load(&found))
        return true;
    void *torch = dlopen(TORCH, RTLD_LAZY | RTLD_NOLOAD);
    void *driver = torch ? dlopen(DRIVER, RTLD_LAZY | RTLD_NOLOAD) : NULL;
    if (driver && find_all(torch, driver))
        atomic_store(&found, true);
    if (driver)
        dlclose(driver); /* both stay loaded: NOLOAD only counted them */
    if (torch)
        dlclose(torch);
    return atomic_load(&found);
}

bool prb_cuda_found(void) { return atomic_load_explicit(&found, memory_order_relaxed); }

void prb_cuda_forked(void) { atomic_store(&found, false); }

bool prb_cuda_enter(struct prb_cuda_visit *out)
{
    void *context = NULL;
    int capturing = 0;
    /* Without a context PyTorch's function might throw: there may be no device at all. */
    if (!atomic_load_explicit(&found, memory_order_acquire) || cuda.context(&context) != SUCCESS ||
        !context || cuda.peek() != SUCCESS)
        return false;
    *out = (struct prb_cuda_visit){.mode = RELAXED};
    if (cuda.exchange_mode(&out->mode) != SUCCESS) {
        cuda.take_error();
        return false;
    }
    const struct torch_stream current = cuda.current(-1);
    out->stream = cuda.stream(&current);
    if (cuda.device(&out->device) == SUCCESS &&
        cuda.is_capturing(out->stream, &capturing) == SUCCESS && !capturing)
        return true;
    prb_cuda_leave(out);
    return false;
}

void prb_cuda_leave(const struct prb_cuda_visit *visit)
{
    int mode = visit->mode;
    cuda.exchange_mode(&mode);
    cuda.take_error();
}

bool prb_cuda_record(const struct prb_cuda_visit *visit, bool timed, void **event)
{
    if (!*event && cuda.make_event(event, timed ? 0 : DISABLE_TIMING) != SUCCESS) {
        *event = NULL;
        return false;
    }
    return cuda.record(*event, visit->stream) == SUCCESS;
}

bool prb_cuda_is_done(void *event) { return cuda.query(event) == SUCCESS; }

float prb_cuda_between(void *from, void *to)
{
    float ms;
    return cuda.elapsed(&ms, from, to) == SUCCESS ? ms : -1;
}

void *prb_cuda_host_memory(size_t size)
{
    void *memory = NULL;
    return cuda.host_memory(&memory, size, 0) == SUCCESS ? memory : NULL;
}

bool prb_cuda_copy(const struct prb_cuda_visit *visit, const void *from, void *to, size_t size)
{
    return cuda.copy(to, from, size, DEVICE_TO_HOST, visit->stream) == SUCCESS;
}
