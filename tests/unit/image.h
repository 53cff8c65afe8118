/*
 * Synthetic memory of a target: objects laid out as a version's layout says, each piece on a page
 * of its own, so that every piece is a read that can be made to fail.
 */
#ifndef PRB_TESTS_IMAGE_H
#define PRB_TESTS_IMAGE_H

#include <stdlib.h>
#include <string.h>

#include "py/object/object.h"

/* Usable outside cmocka: a builder that goes wrong is a mistake of the test. */
#define IMAGE_CHECK(condition) ((condition) ? (void)0 : abort())

#define IMAGE_BASE 0x7f0000000000u
#define IMAGE_PAGE 4096
#define IMAGE_PAGES 512

struct image {
    uint8_t *bytes;
    size_t pages;                        /* in use */
    unsigned long reads;                 /* asked for so far */
    unsigned long fail_from, fail_until; /* reads [from, until) give nothing; 0: none */
    void (*before_read)(struct image *image, prb_addr addr, size_t len); /* NULL, or changes it */
    struct prb_py py;
    prb_addr type_type;
};

static size_t image_read(void *context, prb_addr addr, void *buf, size_t len)
{
    struct image *image = context;
    unsigned long number = ++image->reads;
    if (image->before_read)
        image->before_read(image, addr, len);
    size_t size = image->pages * IMAGE_PAGE;
    if ((number >= image->fail_from && number < image->fail_until) || addr < IMAGE_BASE ||
        addr - IMAGE_BASE >= size)
        return 0;
    size_t rest = size - (size_t)(addr - IMAGE_BASE);
    len = len < rest ? len : rest;
    memcpy(buf, image->bytes + (addr - IMAGE_BASE), len);
    return len;
}

/* Room for an object, zeroed; some room before it for what lies there. */
static inline prb_addr image_alloc(struct image *image)
{
    IMAGE_CHECK(image->pages < IMAGE_PAGES);
    return IMAGE_BASE + (prb_addr)image->pages++ * IMAGE_PAGE + 256;
}

static inline void image_write(struct image *image, prb_addr addr, const void *data, size_t len)
{
    IMAGE_CHECK(addr >= IMAGE_BASE && addr - IMAGE_BASE + len <= image->pages * IMAGE_PAGE);
    if (len)
        memcpy(image->bytes + (addr - IMAGE_BASE), data, len);
}

static inline void image_word(struct image *image, prb_addr addr, uint64_t word)
{
    image_write(image, addr, &word, sizeof word);
}

/* Fields that the version lacks are left out. */
static inline void image_put(struct image *image, prb_addr addr, enum prb_field field,
                             uint64_t value)
{
    int32_t offset = image->py.layout.offset[field];
    if (offset != PRB_ABSENT)
        image_write(image, addr + (uint64_t)(int64_t)offset, &value, prb_field_width(field));
}
#define PUT(image, addr, struct_, field, value)                                                    \
    image_put(image, addr, PRB_F_##struct_##_##field, value)
#define OFF(image, struct_, field) ((uint64_t)(int64_t)PRB_OFF(&(image)->py.layout, struct_, field))

static inline prb_addr image_text(struct image *image, const char *text)
{
    prb_addr addr = image_alloc(image);
    image_write(image, addr, text, strlen(text) + 1);
    return addr;
}

/* A type; base 0: none. */
static inline prb_addr image_type(struct image *image, const char *name, uint64_t flags,
                                  prb_addr base)
{
    prb_addr type = image_alloc(image);
    PUT(image, type, object, type, image->type_type);
    PUT(image, type, type, name, image_text(image, name));
    PUT(image, type, type, flags, flags);
    PUT(image, type, type, basicsize, 64);
    PUT(image, type, type, base, base);
    return type;
}

static inline prb_addr image_object(struct image *image, prb_addr type)
{
    prb_addr object = image_alloc(image);
    PUT(image, object, object, type, type);
    return object;
}

static inline void image_init(struct image *image, uint32_t hexversion, bool free_threaded)
{
    struct prb_error err = {0};
    *image = (struct image){.bytes = calloc(IMAGE_PAGES, IMAGE_PAGE)};
    IMAGE_CHECK(image->bytes);
    IMAGE_CHECK(prb_layout_find(hexversion, free_threaded, &image->py.layout, &err));
    image->py.mem = prb_mem_callback_new(image_read, image, &err);
    IMAGE_CHECK(image->py.mem);
    image->type_type = image_alloc(image);
    PUT(image, image->type_type, object, type, image->type_type);
    PUT(image, image->type_type, type, name, image_text(image, "type"));
    PUT(image, image->type_type, type, flags, 1ull << 31);
    PUT(image, image->type_type, type, basicsize, 400);
}

static inline void image_deinit(struct image *image)
{
    prb_mem_free(image->py.mem);
    free(image->bytes);
}

/* Every version there is a layout for, free-threaded ones too. */
static const struct {
    uint32_t hexversion;
    bool free_threaded;
} image_versions[] = {
    {0x030400f0, false}, {0x030500f0, false}, {0x030600f0, false}, {0x030700f0, false},
    {0x030800f0, false}, {0x030900f0, false}, {0x030a00f0, false}, {0x030b00f0, false},
    {0x030c00f0, false}, {0x030d00f0, false}, {0x030d00f0, true},  {0x030e00f0, false},
    {0x030e00f0, true},  {0x030f00f0, false}, {0x030f00f0, true},
};

#endif
