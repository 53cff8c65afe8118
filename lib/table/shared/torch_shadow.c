/* Shadow steps beside the others: see torch_shadow.h. */
#include "table/shared/torch_shadow.h"

#include <stdlib.h>

#include "base/buf.h"
#include "base/real.h"
#include "table/recorded/each.h"
#include "training/trace.h"

#define ENOUGH 12 /* steps of a kind, for an interval */
#define WIDTH 1.96

struct kind {
    double *seconds;
    size_t count, cap;
    double median, error; /* one standard deviation */
};

struct prb_torch_shadow {
    int64_t arming;
    struct kind kinds[2]; /* others, shadow */
};

void prb_torch_shadows_deinit(struct prb_torch_shadows *shadows)
{
    for (size_t i = 0; i < shadows->count; i++)
        for (int k = 0; k < 2; k++)
            free(shadows->items[i].kinds[k].seconds);
    free(shadows->items);
}

static struct prb_torch_shadow *of_arming(struct prb_torch_shadows *shadows, int64_t arming)
{
    for (size_t i = shadows->count; i-- > 0;)
        if (shadows->items[i].arming == arming)
            return &shadows->items[i];
    if (!PRB_GROW(shadows->items, shadows->count, shadows->cap))
        return NULL;
    shadows->items[shadows->count] = (struct prb_torch_shadow){.arming = arming};
    return &shadows->items[shadows->count++];
}

static bool take_step(void *context, const struct prb_ring_value *values)
{
    struct prb_torch_shadows *shadows = context;
    int64_t bits = PRB_TRACE_HIGH(values[PRB_TRACE_STEP_RATE].integer);
    struct prb_torch_shadow *shadow =
        of_arming(shadows, PRB_TRACE_HIGH(values[PRB_TRACE_STEP_THREAD].integer));
    struct kind *kind = shadow ? &shadow->kinds[(bits & PRB_TRACE_SHADOW) != 0] : NULL;
    if (!kind || !PRB_GROW(kind->seconds, kind->count, kind->cap)) {
        shadows->failed = true;
        return false;
    }
    kind->seconds[kind->count++] = (double)values[PRB_TRACE_STEP_DURATION].integer * 1e-9;
    return true;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The median lies between two of the sorted values, of 95 %, however the values are spread. */
static void measure(struct kind *kind)
{
    size_t n = kind->count;
    if (!n)
        return;
    qsort(kind->seconds, n, sizeof *kind->seconds, by_size);
    kind->median = (kind->seconds[(n - 1) / 2] + kind->seconds[n / 2]) / 2;
    size_t half = (size_t)(WIDTH / 2 * prb_sqrt((double)n)) + 1;
    size_t low = n / 2 > half ? n / 2 - half : 0, high = n / 2 + half < n ? n / 2 + half : n - 1;
    kind->error = (kind->seconds[high] - kind->seconds[low]) / (2 * WIDTH);
}

bool prb_torch_shadows_read(struct prb_rows *rows, struct prb_torch_shadows *out,
                            struct prb_error *err)
{
    bool good =
        prb_recorded_each(rows, PRB_TRACE_STEPS_RING, PRB_TRACE_STEPS_COLUMNS, take_step, out, err);
    if (out->failed)
        return prb_nomem(err);
    for (size_t i = 0; i < out->count; i++)
        for (int k = 0; k < 2; k++)
            measure(&out->items[i].kinds[k]);
    return good;
}

static void put_real_if(struct prb_rows *rows, bool known, double value)
{
    if (known)
        prb_row_real(rows, value);
    else
        prb_row_null(rows);
}

void prb_row_torch_shadow(struct prb_rows *rows, const struct prb_torch_shadows *shadows,
                          int64_t arming)
{
    const struct kind *normal = NULL, *shadow = NULL;
    for (size_t i = 0; i < shadows->count; i++)
        if (shadows->items[i].arming == arming && shadows->items[i].kinds[1].count) {
            normal = &shadows->items[i].kinds[0];
            shadow = &shadows->items[i].kinds[1];
        }
    bool known = normal && normal->count && shadow->median > 0;
    bool enough = known && normal->count >= ENOUGH && shadow->count >= ENOUGH;
    double difference = known ? normal->median - shadow->median : 0;
    double width =
        known ? WIDTH * prb_sqrt(normal->error * normal->error + shadow->error * shadow->error) : 0;
    put_real_if(rows, known, known ? normal->median : 0);
    put_real_if(rows, known, known ? shadow->median : 0);
    put_real_if(rows, enough, enough ? (difference - width) / shadow->median : 0);
    put_real_if(rows, enough, enough ? (difference + width) / shadow->median : 0);
}
