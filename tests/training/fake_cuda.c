/*
 * Stands for libcuda.so.1, CUDA's runtime and PyTorch's libc10_cuda.so in a program without a device: what the probe calls of
 * them.  An event is done when it was asked for so often as cuda_lag says.  A call that CUDA does not allow while a stream is
 * captured counts as harm.  Its caching allocator counts as PyTorch's does, and has no memory.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#pragma GCC diagnostic ignored "-Wmissing-prototypes" /* no header here declares them */
#pragma GCC visibility push(default)
extern int cuda_capturing, cuda_lag, cuda_error, cuda_mode, cuda_harm, cuda_records, cuda_copies,
    cuda_device, cuda_no_context, cuda_spin_ms; /* the test reads and sets them */

enum { SUCCESS = 0, INVALID = 1, NOT_READY = 600 };

int cuda_capturing, cuda_lag, cuda_error, cuda_mode, cuda_harm, cuda_records, cuda_copies,
    cuda_device, cuda_no_context, cuda_spin_ms;

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
/* It spins, as CUDA's does by default: for cuda_spin_ms, below 0 for ever. */
int cudaStreamSynchronize(void *stream)
{
    (void)stream;
    struct timespec begin, now;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    do
        clock_gettime(CLOCK_MONOTONIC, &now);
    while (cuda_spin_ms < 0 ||
           (now.tv_sec - begin.tv_sec) * 1000 + (now.tv_nsec - begin.tv_nsec) / 1000000 <
               cuda_spin_ms);
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

/* ---- c10::cuda::CUDACachingAllocator ---- */

/* The object of a device: a lock, what was counted, and more. */
enum { LOCK_WORDS = 5, ARRAYS = 6, POOLS = 3, NUMBERS = 4, DEVICES = 2, OBJECT_WORDS = 3000 };
struct cached {
    uint64_t lock[LOCK_WORDS];
    struct {
        int64_t current, peak, allocated, freed;
    } numbers[ARRAYS][POOLS];
    uint64_t rest[200];
};

/* The object that has them: words of all kinds, then the vector. */
static uint64_t object[OBJECT_WORDS];
uint64_t *allocator __asm__("_ZN3c104cuda20CUDACachingAllocator9allocatorE");
uint64_t *allocator = object;
static struct cached *devices[DEVICES];

static void count(struct cached *device, int array, int pool, int64_t amount)
{
    int pools[] = {0, pool};
    for (int i = 0; i < 2; i++) {
        int64_t current = device->numbers[array][pools[i]].current += amount;
        if (amount < 0)
            device->numbers[array][pools[i]].freed -= amount;
        else
            device->numbers[array][pools[i]].allocated += amount;
        if (current > device->numbers[array][pools[i]].peak)
            device->numbers[array][pools[i]].peak = current;
    }
}

/* A vector that is none of devices: of pages that are not there, of a text, of zeros. */
static void mislead(uint64_t *words)
{
    static uint64_t nowhere[2] = {8, UINT64_MAX - 7}, zeros[400];
    static uint64_t to_zeros[2] = {0, 0};
    to_zeros[0] = to_zeros[1] = (uint64_t)(uintptr_t)zeros;
    words[0] = (uint64_t)(uintptr_t)nowhere;
    words[1] = words[2] = (uint64_t)(uintptr_t)(nowhere + 2);
    words[3] = (uint64_t)(uintptr_t)to_zeros;
    words[4] = words[5] = (uint64_t)(uintptr_t)(to_zeros + 2);
    words[6] = 1;
    words[7] = words[8] = UINT64_MAX;
}

void cuda_init(void);
void cuda_init(void)
{
    mislead(object + 100);
    for (int i = 0; i < DEVICES; i++)
        devices[i] = calloc(1, sizeof **devices);
    uint64_t *vector = object + OBJECT_WORDS - 3;
    vector[0] = (uint64_t)(uintptr_t)devices;
    vector[1] = vector[2] = (uint64_t)(uintptr_t)(devices + DEVICES);
}

/* A large block of whole MB, of a segment of its own that stays; below 0: it is freed. */
void cuda_allocate(int device, int mb);
void cuda_allocate(int device, int mb)
{
    const int64_t bytes = (int64_t)mb << 20, block = mb < 0 ? -1 : 1;
    struct cached *of = devices[device];
    const int large = 2, cached = (int)(of->numbers[5][large].current >> 20);
    const int allocated = (int)(of->numbers[4][large].current >> 20) + mb;
    count(of, 0, large, block);
    count(of, 2, large, block);
    count(of, 4, large, bytes);
    if (allocated > cached) {
        count(of, 1, large, 1);
        count(of, 5, large, (int64_t)(allocated - cached) << 20);
    }
}
