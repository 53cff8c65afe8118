/* What steps took on their device: see torch_devices.h. */
#include "table/shared/torch_devices.h"

#include <stdlib.h>

#include "base/buf.h"
#include "table/recorded/each.h"
#include "training/trace.h"

enum { FORWARD, BACKWARD, OPTIMIZER, PHASES };

struct prb_torch_device {
    int64_t arming, step;
    int64_t spent[PHASES]; /* ns */
};

void prb_torch_devices_deinit(struct prb_torch_devices *devices) { free(devices->items); }

static bool take_step(void *context, const struct prb_ring_value *values)
{
    struct prb_torch_devices *devices = context;
    if (!PRB_GROW(devices->items, devices->count, devices->cap)) {
        devices->failed = true;
        return false;
    }
    devices->items[devices->count++] = (struct prb_torch_device){
        .arming = PRB_TRACE_HIGH(values[PRB_TRACE_DEVICE_THREAD].integer),
        .step = values[PRB_TRACE_DEVICE_STEP].integer,
        .spent = {values[PRB_TRACE_DEVICE_FORWARD].integer,
                  values[PRB_TRACE_DEVICE_BACKWARD].integer,
                  values[PRB_TRACE_DEVICE_OPTIMIZER].integer},
    };
    return true;
}

static int by_step(const void *a, const void *b)
{
    const struct prb_torch_device *x = a, *y = b;
    if (x->arming != y->arming)
        return (x->arming > y->arming) - (x->arming < y->arming);
    return (x->step > y->step) - (x->step < y->step);
}

bool prb_torch_devices_read(struct prb_rows *rows, struct prb_torch_devices *out,
                            struct prb_error *err)
{
    *out = (struct prb_torch_devices){0};
    if (!prb_recorded_each(rows, PRB_TRACE_DEVICE_RING, PRB_TRACE_DEVICE_COLUMNS, take_step, out,
                           err))
        return out->failed ? prb_nomem(err) : false;
    if (out->count)
        qsort(out->items, out->count, sizeof *out->items, by_step);
    return true;
}

void prb_row_torch_device(struct prb_rows *rows, const struct prb_torch_devices *devices,
                          int64_t arming, int64_t step)
{
    const struct prb_torch_device wanted = {.arming = arming, .step = step};
    const struct prb_torch_device *found =
        devices->count
            ? bsearch(&wanted, devices->items, devices->count, sizeof *devices->items, by_step)
            : NULL;
    for (int i = 0; i < PHASES; i++)
        if (found)
            prb_row_real(rows, (double)found->spent[i] * 1e-9);
        else
            prb_row_null(rows);
}
