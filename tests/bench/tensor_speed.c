/* How fast the statistics of float32 are, GB/s of elements and processor time, as JSON: the inner
 * loop in the first cache and over memory, all of it over this process's memory, and, given a pid
 * or a core and an address, of a tensor there, beside the reading alone.  The best of some runs. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "inspect/target.h"
#include "mem/mem.h"
#include "tensor/kernel.h"
#include "tensor/tensor.h"

enum { RUNS = 7, ELEMENTS = 64 << 20, WINDOW = 1 << 20, BINS = 40 };

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

/* Summed, so that nothing is left out; the same `among` elements again and again. */
static double sums_alone(const float *elements, size_t among)
{
    const struct prb_kernel *kernel = prb_kernel(); /* asks the CPU, which takes microseconds */
    double best = INFINITY, sum = 0;
    for (int run = 0; run < RUNS; run++) {
        double begin = now();
        for (size_t i = 0; i < ELEMENTS; i += PRB_BLOCK) {
            struct prb_block block;
            kernel->f32(elements + i % among, PRB_BLOCK, &block);
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

static void must(bool done, const struct prb_error *err)
{
    if (done)
        return;
    fprintf(stderr, "%s\n", err->text);
    exit(1);
}

static double statistics(struct prb_target *target, const struct prb_tensor *tensor, unsigned bins)
{
    struct prb_error err = {0};
    struct prb_statistics made;
    struct prb_statistics_options options = {.bins = bins};
    double begin = now();
    must(prb_tensor_statistics(target, tensor, &options, &made, &err), &err);
    return now() - begin;
}

/* What the kernel takes to hand over the same bytes. */
static double reading(struct prb_target *target, const struct prb_tensor *tensor, uint8_t *window)
{
    struct prb_error err = {0};
    uint64_t len = (uint64_t)tensor->numel * tensor->item_size;
    double begin = now();
    for (uint64_t i = 0, n; i < len; i += n) {
        n = len - i < WINDOW ? len - i : WINDOW;
        must(prb_mem_read(target->mem, tensor->data + i, window, n, &err), &err);
    }
    return now() - begin;
}

static int of_target(const char *name, const char *address)
{
    static uint8_t window[WINDOW];
    struct prb_error err = {0};
    struct prb_tensor tensor;
    double sums = INFINITY, all = INFINITY, copy = INFINITY;
    struct prb_target *target = prb_target_open(name, NULL, &err);
    must(target, &err);
    must(prb_tensor_take(target, strtoull(address, NULL, 10), &tensor, &err), &err);
    for (int run = 0; run < RUNS; run++) {
        copy = fmin(copy, reading(target, &tensor, window));
        sums = fmin(sums, statistics(target, &tensor, 0));
        if (run < 3)
            all = fmin(all, statistics(target, &tensor, BINS));
    }
    prb_target_close(target);
    double gigabytes = (double)tensor.numel * tensor.item_size * 1e-9;
    printf("{\"copy\": %.3f, \"sums\": %.3f, \"histogram\": %.3f}\n", gigabytes / copy,
           gigabytes / sums, gigabytes / all);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 2)
        return of_target(argv[1], argv[2]);
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
    printf("{\"cache\": %.3f, \"sums\": %.3f, \"reading\": %.3f}\n",
           sums_alone(elements, 4 * PRB_BLOCK), sums_alone(elements, ELEMENTS),
           with_reading(mem, &tensor));
    prb_mem_free(mem);
    free(elements);
    return 0;
}
