/* How fast the statistics of float32 are, GB/s of elements, as JSON: the sums alone over this
 * process's memory, with the reading of that memory, and, given PID and ADDRESS, those of a tensor
 * of another process.  The best of some runs. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "mem/mem.h"
#include "tensor/kernel.h"
#include "tensor/tensor.h"

enum { RUNS = 7, ELEMENTS = 64 << 20 };

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

/* Summed, so that nothing is left out. */
static double sums_alone(const float *elements)
{
    double best = INFINITY, sum = 0;
    for (int run = 0; run < RUNS; run++) {
        double begin = now();
        for (size_t i = 0; i < ELEMENTS; i += PRB_BLOCK) {
            struct prb_block block;
            prb_kernel()->f32(elements + i, PRB_BLOCK, &block);
            sum += block.squares;
        }
        best = fmin(best, now() - begin);
    }
    return isfinite(sum) ? ELEMENTS * 4.0 / best * 1e-9 : NAN;
}

static double with_reading(struct prb_mem *mem, const struct prb_tensor *tensor)
{
    double best = INFINITY;
    for (int run = 0; run < RUNS; run++) {
        struct prb_statistics made;
        double begin = now();
        if (!prb_tensor_statistics_in(mem, tensor, NULL, &made, NULL))
            return NAN;
        best = fmin(best, now() - begin);
    }
    return (double)tensor->numel * tensor->item_size / best * 1e-9;
}

static double of_process(const char *pid, const char *address)
{
    struct prb_error err = {0};
    struct prb_tensor tensor;
    struct prb_statistics made;
    double best = INFINITY;
    struct prb_target *target = prb_target_open(pid, NULL, &err);
    if (!target || !prb_tensor_take(target, strtoull(address, NULL, 10), &tensor, &err)) {
        fprintf(stderr, "%s\n", err.text);
        exit(1);
    }
    for (int run = 0; run < RUNS; run++) {
        double begin = now();
        if (!prb_tensor_statistics(target, &tensor, NULL, &made, &err)) {
            fprintf(stderr, "%s\n", err.text);
            exit(1);
        }
        best = fmin(best, now() - begin);
    }
    prb_target_close(target);
    return (double)tensor.numel * tensor.item_size / best * 1e-9;
}

int main(int argc, char **argv)
{
    if (argc > 2) {
        printf("{\"process\": %.3f}\n", of_process(argv[1], argv[2]));
        return 0;
    }
    float *elements = malloc(ELEMENTS * sizeof *elements);
    struct prb_mem *mem = prb_mem_self_new(NULL);
    if (!elements || !mem)
        return 1;
    for (size_t i = 0; i < ELEMENTS; i++)
        elements[i] = (float)(i * 2654435761u % 2000) / 1000 - 1;
    struct prb_tensor tensor = {.dims = 1,
                                .shape = {ELEMENTS},
                                .stride = {4},
                                .numel = ELEMENTS,
                                .item_size = 4,
                                .dtype = "float32",
                                .data = (prb_addr)(uintptr_t)elements};
    printf("{\"sums\": %.3f, \"reading\": %.3f}\n", sums_alone(elements),
           with_reading(mem, &tensor));
    prb_mem_free(mem);
    free(elements);
    return 0;
}
