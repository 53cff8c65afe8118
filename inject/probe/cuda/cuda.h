/*
 * The few calls of CUDA's runtime that parts of the probe make on a thread of the program: events,
 * and a copy of one element.  None of them waits for the device.
 *
 * The functions are those of the runtime that PyTorch has loaded (libc10_cuda.so and what it is
 * linked with); nothing is loaded, and no context is made.  A VISIT is what may be done between
 * prb_cuda_enter and prb_cuda_leave; there is none
 *
 *   - where the thread has no context yet (cuCtxGetCurrent),
 *   - while an error of the program's stands (cudaPeekAtLastError): it is to see it itself,
 *   - while the thread's stream is being captured: what is recorded would become part of the graph.
 *
 * During a visit the thread's capture mode is relaxed, so that a capture on another thread goes on
 * (CUDA Runtime API, cudaThreadExchangeStreamCaptureMode), and an error of ours is taken away at its
 * end: PyTorch would raise it at its next kernel.
 *
 * Costs measured on an H200 with driver 580 and CUDA 13.0: tests/bench/README.md.
 */
#ifndef PRB_PROBE_CUDA_CUDA_H
#define PRB_PROBE_CUDA_CUDA_H

#include <stdbool.h>
#include <stddef.h>

/* Find the functions, if PyTorch has loaded its part for CUDA by now: whether they are there.  Any
 * thread; cheap once found, else a look at what is loaded. */
bool prb_cuda_look(void);
/* Whether they have been found: nothing is looked for. */
bool prb_cuda_found(void);

struct prb_cuda_visit {
    void *stream; /* cudaStream_t: PyTorch's current one of this thread */
    int device;
    int mode; /* the thread's own capture mode */
};
/* False: not now. */
bool prb_cuda_enter(struct prb_cuda_visit *out);
void prb_cuda_leave(const struct prb_cuda_visit *visit);

/* Within a visit.  *event: cudaEvent_t, made when it is NULL; timed: its time can be asked for. */
bool prb_cuda_record(const struct prb_cuda_visit *visit, bool timed, void **event);
/* Whether the device has come to where the event was recorded. */
bool prb_cuda_is_done(void *event);
/* Milliseconds between two timed events that are done; below 0: not known. */
float prb_cuda_between(void *from, void *to);
/* Memory of the host that the device writes to; it stays for ever.  NULL: none is to be had. */
void *prb_cuda_host_memory(size_t size);
/* Begin to copy from the device's memory, behind what the stream has to do. */
bool prb_cuda_copy(const struct prb_cuda_visit *visit, const void *from, void *to, size_t size);

/* In the child of a fork, whose CUDA does not work. */
void prb_cuda_forked(void);

#endif
