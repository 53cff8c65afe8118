/* What recorded steps took on their device, found by arming and step. */
#ifndef PRB_TABLE_TORCH_DEVICES_H
#define PRB_TABLE_TORCH_DEVICES_H

#include "sql/table.h"

struct prb_torch_devices {
    struct prb_torch_device *items;
    size_t count, cap;
    bool failed; /* out of memory */
};
void prb_torch_devices_deinit(struct prb_torch_devices *devices);

bool prb_torch_devices_read(struct prb_rows *rows, struct prb_torch_devices *out,
                            struct prb_error *err);
/* Cells: seconds of forward, backward and optimizer; NULL where the step was not measured. */
void prb_row_torch_device(struct prb_rows *rows, const struct prb_torch_devices *devices,
                          int64_t arming, int64_t step);

#endif
