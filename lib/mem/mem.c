/*
 * The wrappers over every memory source: counting, and turning short reads into errors.
 * Sources only fill prb_range.got; nothing here knows where the bytes come from.
 */
#include "mem/mem.h"

#include <string.h>

/* prb_mem_string reads up to here at a time, and never across a page, so that the page after may be
 * missing. */
#define STRING_STEP 256
#define PAGE 4096

bool prb_mem_readv_some(struct prb_mem *mem, struct prb_range *ranges, size_t count,
                        struct prb_error *err)
{
    mem->calls++;
    if (!mem->ops->readv(mem, ranges, count, err))
        return false;
    for (size_t i = 0; i < count; i++)
        mem->bytes += ranges[i].got;
    return true;
}

bool prb_mem_readv(struct prb_mem *mem, struct prb_range *ranges, size_t count,
                   struct prb_error *err)
{
    if (!prb_mem_readv_some(mem, ranges, count, err))
        return false;
    for (size_t i = 0; i < count; i++) {
        if (ranges[i].got < ranges[i].len)
            return prb_fail_addr(err, ranges[i].addr + ranges[i].got,
                                 "cannot read %zu bytes of memory at 0x%llx", ranges[i].len,
                                 (unsigned long long)ranges[i].addr);
    }
    return true;
}

bool prb_mem_read(struct prb_mem *mem, prb_addr addr, void *buf, size_t len, struct prb_error *err)
{
    struct prb_range range = {.addr = addr, .buf = buf, .len = len};
    return prb_mem_readv(mem, &range, 1, err);
}

size_t prb_mem_read_some(struct prb_mem *mem, prb_addr addr, void *buf, size_t len)
{
    struct prb_range range = {.addr = addr, .buf = buf, .len = len};
    return prb_mem_readv_some(mem, &range, 1, NULL) ? range.got : 0;
}

bool prb_mem_u64(struct prb_mem *mem, prb_addr addr, uint64_t *out, struct prb_error *err)
{
    uint64_t word;
    if (!prb_mem_read(mem, addr, &word, sizeof word, err))
        return false;
    *out = word;
    return true;
}

bool prb_mem_u32(struct prb_mem *mem, prb_addr addr, uint32_t *out, struct prb_error *err)
{
    uint32_t word;
    if (!prb_mem_read(mem, addr, &word, sizeof word, err))
        return false;
    *out = word;
    return true;
}

bool prb_mem_string(struct prb_mem *mem, prb_addr addr, char *out, size_t cap,
                    struct prb_error *err)
{
    if (cap == 0)
        return prb_fail(err, PRB_INTERNAL, "no room for a string");
    char step[STRING_STEP];
    size_t used = 0;
    while (used < cap - 1) {
        size_t want = cap - 1 - used;
        size_t page_left = PAGE - (size_t)((addr + used) % PAGE);
        want = want < sizeof step ? want : sizeof step;
        want = want < page_left ? want : page_left;
        if (!prb_mem_read(mem, addr + used, step, want, err))
            return false;
        size_t n = strnlen(step, want);
        memcpy(out + used, step, n);
        used += n;
        if (n < want)
            break;
    }
    out[used] = '\0';
    return true;
}

void prb_mem_free(struct prb_mem *mem)
{
    if (mem)
        mem->ops->free(mem);
}
