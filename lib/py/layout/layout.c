/*
 * Layouts: the data files compiled in, and the choice among them.
 */
#include "py/layout/layout.h"

#include <string.h>

/* A file that leaves out a field, a trait or a number does not compile; one that repeats it is
 * warned of. */
#define OFFSET(struct_, field, bytes) +1
#define ABSENT(struct_, field) +1
#define TRAIT(name, value) +1
#define NUMBER(name, value) +1
#define NONE(name) +1
#define DEBUG_TABLE(size)
#define DEBUG(struct_, field, size, place)
#define DEBUG_SUM(struct_, field, size, first, second)
#define DEBUG_DIFFERENCE(struct_, field, size, first, second)
#define LAYOUT_BEGIN(id, name, major, minor, patch, free_threaded) _Static_assert(0
#define LAYOUT_END == PRB_FIELD_COUNT + PRB_TRAIT_COUNT + PRB_NUMBER_COUNT, "a layout file is not complete");
#include "py/layout/all.inc"
#undef OFFSET
#undef ABSENT
#undef TRAIT
#undef NUMBER
#undef NONE
#undef LAYOUT_BEGIN
#undef LAYOUT_END

static const struct prb_layout layouts[] = {
#define OFFSET(struct_, field, bytes) .offset[PRB_F_##struct_##_##field] = bytes,
#define ABSENT(struct_, field) .offset[PRB_F_##struct_##_##field] = PRB_ABSENT,
#define TRAIT(name, value) .trait[PRB_TRAIT_##name] = PRB_##name##_##value,
#define NUMBER(name, value) .number[PRB_N_##name] = value,
#define NONE(name) .number[PRB_N_##name] = PRB_NONE,
#define LAYOUT_BEGIN(id, name_, major_, minor_, patch, free_threaded_)                             \
    {                                                                                              \
        .name = name_, .major = major_, .minor = minor_, .measured_patch = patch,                  \
        .free_threaded = free_threaded_,
#define LAYOUT_END                                                                                 \
    }                                                                                              \
    ,
#include "py/layout/all.inc"
};

static const struct {
    const char *layout;
    uint8_t first, last;
    enum prb_field field;
    int32_t offset;
} patches[] = {
#define PATCH(layout, first, last, struct_, field, bytes)                                          \
    {layout, first, last, PRB_F_##struct_##_##field, bytes},
#if defined(__aarch64__)
#include "py/layout/patches-aarch64.def"
#else
#include "py/layout/patches.def"
#endif
#undef PATCH
};

static const struct {
    const char *name;
    unsigned width;
} fields[] = {
#define FIELD(struct_, field, width) {#struct_ "." #field, width},
#include "py/layout/fields.def"
#undef FIELD
};

const char *prb_field_name(enum prb_field field)
{
    return field < PRB_FIELD_COUNT ? fields[field].name : "?";
}

unsigned prb_field_width(enum prb_field field)
{
    return field < PRB_FIELD_COUNT ? fields[field].width : 0;
}

const char *prb_layout_name(size_t i)
{
    return i < sizeof layouts / sizeof *layouts ? layouts[i].name : NULL;
}

static bool unknown(unsigned major, unsigned minor, unsigned patch, bool free_threaded,
                    struct prb_error *err)
{
    const struct prb_layout *first = &layouts[0],
                            *last = &layouts[sizeof layouts / sizeof *layouts - 1];
    prb_fail(err, PRB_UNSUPPORTED,
             "CPython %u.%u.%u%s is not known; known are %u.%u to %u.%u, free-threaded from 3.13",
             major, minor, patch, free_threaded ? " free-threaded" : "", first->major, first->minor,
             last->major, last->minor);
    return prb_error_remedy(err, "%s", "look for a newer release of probing");
}

bool prb_layout_find(uint32_t hexversion, bool free_threaded, struct prb_layout *out,
                     struct prb_error *err)
{
    unsigned major = hexversion >> 24, minor = hexversion >> 16 & 0xff,
             patch = hexversion >> 8 & 0xff;
    unsigned level = hexversion >> 4 & 0xf;
    const struct prb_layout *found = NULL;
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts && !found; i++)
        if (layouts[i].major == major && layouts[i].minor == minor &&
            layouts[i].free_threaded == free_threaded)
            found = &layouts[i];
    if (!found)
        return unknown(major, minor, patch, free_threaded, err);
    if (level == 0xa || level == 0xb) {
        prb_fail(err, PRB_UNSUPPORTED,
                 "this CPython %u.%u.%u is a prerelease (%s), whose structures are not known",
                 major, minor, patch, level == 0xa ? "alpha" : "beta");
        return prb_error_remedy(err, "run the target with the final release of CPython %u.%u",
                                major, minor);
    }
    *out = *found;
    for (size_t i = 0; i < sizeof patches / sizeof *patches; i++)
        if (!strcmp(patches[i].layout, found->name) && patches[i].first <= patch &&
            patch <= patches[i].last)
            out->offset[patches[i].field] = patches[i].offset;
    return true;
}
