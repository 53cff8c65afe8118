/* A ring's file, as its reader takes it. */
#include <stdint.h>
#include <sys/mman.h>

#include "base/cleanup.h"
#include "ring/ring.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct looked {
    const struct prb_ring_column *columns;
    size_t count;
    uint64_t sum;
};

/* Every byte that is told is looked at. */
static bool look(void *context, const struct prb_ring_value *values)
{
    struct looked *looked = context;
    for (size_t i = 0; i < looked->count; i++) {
        if (values[i].null || looked->columns[i].type != PRB_RING_TEXT)
            continue;
        if (values[i].len > PRB_RING_TEXT_MAX * 2)
            __builtin_trap();
        for (size_t c = 0; c < values[i].len; c++)
            looked->sum += (unsigned char)values[i].text[c];
    }
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    PRB_AUTO_FD int fd = memfd_create("ring", MFD_CLOEXEC);
    if (fd < 0 || write(fd, data, len) != (ssize_t)len)
        return 0;
    int taken = dup(fd);
    struct prb_ring_reader *reader = prb_ring_open_fd(taken, "ring", NULL);
    if (!reader)
        return 0;
    struct looked looked = {0};
    struct prb_ring_counts counts;
    looked.columns = prb_ring_columns(reader, &looked.count);
    if (looked.count < 1 || looked.count > PRB_RING_COLUMNS_MAX ||
        !prb_ring_each(reader, look, &looked, &counts, NULL))
        __builtin_trap();
    prb_ring_latest(reader);
    prb_ring_close(reader);
    return 0;
}
