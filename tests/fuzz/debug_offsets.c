/*
 * The target's own table of offsets, any bytes: what is believed must be a place in a struct of
 * bounded size. Input: one byte for the layout, then the table.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "py/layout/layout.h"

enum { RUNTIME = 0x10000, OFFSET_MAX = 1 << 20 };

struct bytes {
    const uint8_t *data;
    size_t size;
};

static size_t read_bytes(void *context, prb_addr addr, void *buf, size_t len)
{
    const struct bytes *bytes = context;
    if (addr < RUNTIME || addr - RUNTIME >= bytes->size)
        return 0;
    size_t have = bytes->size - (size_t)(addr - RUNTIME);
    len = len < have ? len : have;
    memcpy(buf, bytes->data + (addr - RUNTIME), len);
    return len;
}

static void check(bool holds)
{
    if (!holds)
        abort();
}

/* Every offset is the file's own, or one that a struct of bounded size can have. */
static void check_layout(const struct prb_layout *ours, const struct prb_layout *now,
                         unsigned differed)
{
    unsigned changed = 0;
    for (size_t i = 0; i < PRB_FIELD_COUNT; i++) {
        if (now->offset[i] == ours->offset[i])
            continue;
        unsigned width = prb_field_width((enum prb_field)i);
        changed++;
        check(ours->offset[i] != PRB_ABSENT);
        check(now->offset[i] >= 0 && now->offset[i] <= OFFSET_MAX);
        check(!width || now->offset[i] % (int32_t)width == 0);
    }
    check(changed == differed);
    check(!memcmp(ours->trait, now->trait, sizeof ours->trait));
    check(!memcmp(ours->number, now->number, sizeof ours->number));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint32_t versions[] = {0x030c01f0, 0x030d00f0, 0x030e0af0, 0x030f02f0};
    if (!size)
        return 0;
    struct prb_layout ours, now;
    uint32_t version = versions[data[0] % 4], told;
    bool free_threaded = data[0] % 4 && data[0] & 4;
    check(prb_layout_find(version, free_threaded, &ours, NULL));
    now = ours;
    struct bytes bytes = {data + 1, size - 1};
    PRB_AUTO(prb_mem) struct prb_mem *mem = prb_mem_callback_new(read_bytes, &bytes, NULL);
    check(mem != NULL);
    if (prb_debug_offsets_head(mem, RUNTIME, &told, &free_threaded, NULL))
        check(size > 24 && !memcmp(data + 1, "xdebugpy", 8));
    unsigned agreed = 0, differed = 0, refused = 0;
    if (prb_debug_offsets_apply(mem, RUNTIME, &now, &agreed, &differed, &refused, NULL))
        check(version >> 16 != 0x030c && agreed + differed + refused > 40);
    check_layout(&ours, &now, differed);
    return 0;
}
