/*
 * Stands for libcuda.so.1, CUDA's runtime and PyTorch's libc10_cuda.so in a program without a device: what the probe calls of
 * them.  An event is done when it was asked for so often as cuda_lag says.  A call that CUDA does not allow while a stream is
 * captured counts as harm.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#pragma GCC diagnostic ignored "-Wmissing-prototypes" /* no header here declares them */
#pragma GCC visibility push(default)
extern int cuda_capturing, cuda_lag, cuda_error, cuda_mode, cuda_harm, cuda_records, cuda_copies,
    cuda_device, cuda_no_context; /* the test reads and sets them */

enum { SUCCESS = 0, INVALID = 1, NOT_READY = 600 };

int cuda_capturing, cuda_lag, cuda_error, cuda_mode, cuda_harm, cuda_records, cuda_copies,
    cuda_device, cuda_no_context;

struct event {
    double ms;
    int asked, timed;
};

static void calls(void) { cuda_harm += cuda_capturing || cuda_mode != 2; }
static int failed(int error) { return cuda_error = error; }

int cuCtxGetCurrent(void **out)
{
    *out = cuda_no_context ? NULL : &cuda_device;
    return SUCCESS;
}
struct stream {
    uint64_t device, id;
};
struct stream current(int8_t device) __asm__("_ZN3c104cuda20getCurrentCUDAStreamEa");
struct stream current(int8_t device) { return (struct stream){(uint64_t)(uint8_t)device, 7}; }
void *stream_of(const struct stream *stream) __asm__("_ZNK3c104cuda10CUDAStream6streamEv");
void *stream_of(const struct stream *stream) { return (void *)(uintptr_t)stream->id; }
int cudaGetDevice(int *out)
{
    *out = cuda_device;
    return SUCCESS;
}
int cudaPeekAtLastError(void) { return cuda_error; }
int cudaGetLastError(void)
{
    int error = cuda_error;
    cuda_error = SUCCESS;
    return error;
}
int cudaThreadExchangeStreamCaptureMode(int *mode)
{
    int before = cuda_mode;
    cuda_mode = *mode;
    *mode = before;
    return SUCCESS;
}
int cudaStreamIsCapturing(void *stream, int *out)
{
    *out = cuda_capturing;
    return stream == (void *)7 ? SUCCESS : failed(INVALID);
}
int cudaEventCreateWithFlags(void **out, unsigned flags)
{
    struct event *event = calloc(1, sizeof *event);
    calls();
    event->timed = !(flags & 2);
    *out = event;
    return SUCCESS;
}
int cudaEventRecord(struct event *event, void *stream)
{
    struct timespec now;
    calls();
    clock_gettime(CLOCK_MONOTONIC, &now);
    event->ms = (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
    event->asked = 0;
    cuda_records++;
    return stream == (void *)7 ? SUCCESS : failed(INVALID);
}
int cudaEventQuery(struct event *event)
{
    calls();
    return event->asked++ < cuda_lag ? failed(NOT_READY) : SUCCESS;
}
int cudaEventElapsedTime(float *ms, struct event *from, struct event *to)
{
    calls();
    *ms = (float)(to->ms - from->ms);
    return from->timed && to->timed ? SUCCESS : failed(INVALID);
}
int cudaHostAlloc(void **out, size_t size, unsigned flags)
{
    calls();
    *out = flags ? NULL : calloc(1, size);
    return *out ? SUCCESS : failed(INVALID);
}
int cudaMemcpyAsync(void *to, const void *from, size_t size, int kind, void *stream)
{
    calls();
    cuda_copies++;
    memcpy(to, from, size);
    return kind == 2 && stream == (void *)7 ? SUCCESS : failed(INVALID);
}
