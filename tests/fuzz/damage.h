/* Words of an image overwritten as the fuzzer's input says: records of page (1), word in it (1),
 * how (1) and value (8 bytes). */
#ifndef PRB_FUZZ_DAMAGE_H
#define PRB_FUZZ_DAMAGE_H

#include <string.h>

#include "../unit/image.h"

enum { RECORD = 11 };

/* The value as it is, or an address in the image, so that pointers meet each other. */
static uint64_t value_of(const struct image *image, uint8_t how, uint64_t value)
{
    prb_addr page = IMAGE_BASE + value % image->pages * IMAGE_PAGE;
    switch (how % 4) {
    case 0:
        return value;
    case 1:
        return page + 256;
    case 2:
        return page + (value >> 16) % 512 * 8;
    default:
        return value & 0xff;
    }
}

static void damage(struct image *image, const uint8_t *data, size_t size)
{
    for (; size >= RECORD; data += RECORD, size -= RECORD) {
        uint64_t value;
        memcpy(&value, data + 3, sizeof value);
        prb_addr at =
            IMAGE_BASE + (prb_addr)(data[0] % image->pages) * IMAGE_PAGE + 192 + data[1] * 4u;
        image_word(image, at, value_of(image, data[2], value));
    }
}

#endif
