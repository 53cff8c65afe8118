/* Functions with the names of CUDA's and NCCL's that spin while they wait, and one that computes:
 * each uses so many milliseconds of its thread's processor time. */
#include <time.h>

static double used(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

__attribute__((noinline)) static int spin(int ms)
{
    double begin = used();
    while (used() - begin < ms)
        continue;
    return ms;
}

int cudaStreamSynchronize(int ms);
int ncclGroupEnd(int ms);
int compute(int ms);
int rest_and_compute(int ms);

int cudaStreamSynchronize(int ms) { return spin(ms) + 1; }
int ncclGroupEnd(int ms) { return spin(ms) + 2; }
int compute(int ms) { return spin(ms) + 3; }

/* Again and again without end. */
int rest_and_compute(int ms)
{
    const struct timespec rest = {0, (long)ms * 1000000};
    for (;;) {
        nanosleep(&rest, 0);
        spin(ms);
    }
}
