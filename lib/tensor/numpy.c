/* numpy: arrays of numpy 1 and 2, and the scalars that are objects of their own. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "py/object/reader.h"
#include "tensor/array.h"

/* Offsets from the end of the object's head. */
enum { ARRAY_DIMS = 8, ARRAY_SHAPE = 16, ARRAY_DESCR = 40 };
enum {
    DESCR_TYPE = 0,
    DESCR_KIND = 8,
    DESCR_BYTE_ORDER = 10,
    DESCR_ITEM_SIZE_1 = 16, /* int, numpy 1 */
    DESCR_ALIGNMENT_1 = 20, /* int, never 0; the upper half of the flags, always 0, in numpy 2 */
    DESCR_ITEM_SIZE_2 = 24, /* npy_intp, numpy 2 */
};
#define ITEM_SIZE_MAX (1ll << 40)

static prb_addr body(struct prb_objects *objects, prb_addr object)
{
    return object + (uint64_t)PRB_OFF(objects->layout, object, size);
}

static bool read_at(struct prb_objects *objects, prb_addr addr, void *out, size_t len)
{
    const void *bytes = prb_objects_get(objects, addr, len);
    if (bytes)
        memcpy(out, bytes, len);
    return bytes != NULL;
}

/* ---- element types ---- */

static bool item_size(struct prb_objects *objects, prb_addr descr, int64_t *out)
{
    int32_t alignment, size;
    if (!read_at(objects, descr + DESCR_ALIGNMENT_1, &alignment, 4))
        return false;
    if (!alignment)
        return read_at(objects, descr + DESCR_ITEM_SIZE_2, out, 8) && *out >= 0 &&
               *out < ITEM_SIZE_MAX;
    if (!read_at(objects, descr + DESCR_ITEM_SIZE_1, &size, 4))
        return false;
    *out = size;
    return size >= 0;
}

/* Types of other packages (bfloat16) go by the name of their class; numpy.void itself by its size.
 */
static void void_name(struct prb_objects *objects, prb_addr descr, int64_t size, char *out,
                      size_t cap)
{
    uint64_t class_at;
    struct prb_object_type *type = NULL;
    if (prb_objects_words(objects, descr + DESCR_TYPE, &class_at, 1))
        type = prb_type_at(objects, class_at, NULL);
    if (type && strcmp(type->name, "numpy.void"))
        snprintf(out, cap, "%.48s", prb_type_short_name(type));
    else
        snprintf(out, cap, "|V%" PRId64, size);
}

static bool dtype_name(struct prb_objects *objects, prb_addr array_descr, char *out, size_t cap)
{
    static const struct {
        char kind;
        const char *name;
        bool sized; /* followed by the item size in bits */
    } kinds[] = {
        {'b', "bool", false},       {'i', "int", true},          {'u', "uint", true},
        {'f', "float", true},       {'c', "complex", true},      {'O', "object", false},
        {'M', "datetime64", false}, {'m', "timedelta64", false},
    };
    prb_addr descr = body(objects, array_descr);
    uint8_t head[3];
    int64_t size;
    if (!read_at(objects, descr + DESCR_KIND, head, sizeof head) ||
        !item_size(objects, descr, &size))
        return false;
    char kind = (char)head[0], order = (char)head[DESCR_BYTE_ORDER - DESCR_KIND];
    if (kind == 'V' || kind == 'S') {
        if (kind == 'V')
            void_name(objects, descr, size, out, cap);
        else
            snprintf(out, cap, "|S%" PRId64, size);
        return true;
    }
    if (kind == 'U') {
        snprintf(out, cap, "%cU%" PRId64, order == '>' ? '>' : '<', size / 4);
        return true;
    }
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (kinds[i].kind != kind)
            continue;
        if (order == '>' && size > 1)
            snprintf(out, cap, ">%c%" PRId64, kind, size);
        else if (kinds[i].sized)
            snprintf(out, cap, "%s%" PRId64, kinds[i].name, size * 8);
        else
            snprintf(out, cap, "%s", kinds[i].name);
        return true;
    }
    return false;
}

bool prb_numpy_dtype_read(struct prb_objects *objects, prb_addr object, char out[64],
                          struct prb_error *err)
{
    return dtype_name(objects, object, out, 64) ||
           prb_fail(err, PRB_CORRUPT, "no readable numpy dtype at 0x%" PRIx64, object);
}

/* ---- arrays ---- */

bool prb_ndarray_read(struct prb_objects *objects, prb_addr object, struct prb_array *out,
                      struct prb_error *err)
{
    prb_addr array = body(objects, object);
    struct prb_array found = {0};
    int32_t dims;
    uint64_t shape, descr;
    if (!read_at(objects, array + ARRAY_DIMS, &dims, 4) || dims < 0 || dims > PRB_ARRAY_DIMS_MAX ||
        !prb_objects_words(objects, array + ARRAY_SHAPE, &shape, 1) ||
        !prb_objects_words(objects, array + ARRAY_DESCR, &descr, 1) ||
        (dims && !read_at(objects, shape, found.shape, 8 * (size_t)dims)) ||
        !dtype_name(objects, descr, found.dtype, sizeof found.dtype))
        return prb_fail(err, PRB_CORRUPT, "no readable numpy array at 0x%" PRIx64, object);
    found.dims = (unsigned)dims;
    for (unsigned i = 0; i < found.dims; i++)
        if (found.shape[i] < 0)
            return prb_fail(err, PRB_CORRUPT, "no readable numpy array at 0x%" PRIx64, object);
    *out = found;
    return true;
}

/* ---- scalars ---- */

enum scalar { SIGNED, UNSIGNED, HALF, FLOATING, DOUBLE, COMPLEX, DOUBLE_COMPLEX, BOOL };
enum { SCALAR_MAX = 16 }; /* bytes */

static const struct {
    const char *name;
    enum scalar kind;
    unsigned size; /* bytes */
} scalars[] = {
    {"numpy.int8", SIGNED, 1},
    {"numpy.int16", SIGNED, 2},
    {"numpy.int32", SIGNED, 4},
    {"numpy.int64", SIGNED, 8},
    {"numpy.longlong", SIGNED, 8},
    {"numpy.intc", SIGNED, 4},
    {"numpy.uint8", UNSIGNED, 1},
    {"numpy.uint16", UNSIGNED, 2},
    {"numpy.uint32", UNSIGNED, 4},
    {"numpy.uint64", UNSIGNED, 8},
    {"numpy.ulonglong", UNSIGNED, 8},
    {"numpy.uintc", UNSIGNED, 4},
    {"numpy.float16", HALF, 2},
    {"numpy.float32", FLOATING, 4},
    {"numpy.float64", DOUBLE, 8},
    {"numpy.complex64", COMPLEX, 8},
    {"numpy.complex128", DOUBLE_COMPLEX, 16},
    {"numpy.bool_", BOOL, 1},
    {"numpy.bool", BOOL, 1},
};

static double half_to_double(uint16_t half)
{
    int exponent = half >> 10 & 31, fraction = half & 1023;
    double value = exponent == 31 ? (fraction ? NAN : INFINITY)
                   : exponent     ? ldexp(1024 + fraction, exponent - 25)
                                  : ldexp(fraction, -24);
    return half >> 15 ? -value : value;
}

/* The fewest digits that read back as the same float. */
static void add_float(float value, bool point_zero, struct prb_buf *out)
{
    char text[PRB_FLOAT_TEXT];
    double wide = (double)value;
    for (int digits = 1; digits <= 9 && isfinite(value); digits++) {
        snprintf(text, sizeof text, "%.*e", digits - 1, wide);
        if (strtof(text, NULL) == value) {
            wide = strtod(text, NULL);
            break;
        }
    }
    prb_float_format(wide, point_zero, text);
    prb_buf_adds(out, text);
}

static void add_half(uint16_t half, struct prb_buf *out)
{
    char text[PRB_FLOAT_TEXT];
    double value = half_to_double(half), tried = value;
    /* Five digits tell any two of them apart; the neighbours are at least 2^-11 of the value away.
     */
    for (int digits = 1; digits <= 5 && isfinite(value) && value != 0; digits++) {
        snprintf(text, sizeof text, "%.*e", digits - 1, value);
        tried = strtod(text, NULL);
        double gap = ldexp(1, (half >> 10 & 31 ? half >> 10 & 31 : 1) - 25);
        if (fabs(tried - value) < gap / 2)
            break;
        tried = value;
    }
    prb_float_format(tried, true, text);
    prb_buf_adds(out, text);
}

static void add_double(double value, bool point_zero, struct prb_buf *out)
{
    char text[PRB_FLOAT_TEXT];
    prb_float_format(value, point_zero, text);
    prb_buf_adds(out, text);
}

static void add_integer(enum scalar kind, unsigned size, const uint8_t *bytes, struct prb_buf *out)
{
    uint64_t word = 0;
    memcpy(&word, bytes, size);
    unsigned unused = 64 - 8 * size;
    if (kind == SIGNED)
        prb_buf_addf(out, "%" PRId64, (int64_t)(word << unused) >> unused);
    else if (kind == UNSIGNED)
        prb_buf_addf(out, "%" PRIu64, word);
    else
        prb_buf_adds(out, word ? "True" : "False");
}

static void add_complex(bool wide, const uint8_t *bytes, struct prb_buf *out)
{
    float narrow[2];
    double parts[2];
    memcpy(narrow, bytes, sizeof narrow);
    memcpy(parts, bytes, sizeof parts);
    for (int i = 0; i < 2; i++) {
        if (i && !(wide ? signbit(parts[i]) : signbit(narrow[i])))
            prb_buf_addc(out, '+');
        if (wide)
            add_double(parts[i], false, out);
        else
            add_float(narrow[i], false, out);
    }
    prb_buf_addc(out, 'j');
}

static void add_scalar(enum scalar kind, unsigned size, const uint8_t bytes[SCALAR_MAX],
                       struct prb_buf *out)
{
    uint16_t half;
    float single;
    double value;
    memcpy(&half, bytes, sizeof half);
    memcpy(&single, bytes, sizeof single);
    memcpy(&value, bytes, sizeof value);
    if (kind == HALF)
        add_half(half, out);
    else if (kind == FLOATING)
        add_float(single, true, out);
    else if (kind == DOUBLE)
        add_double(value, true, out);
    else if (kind == COMPLEX || kind == DOUBLE_COMPLEX)
        add_complex(kind == DOUBLE_COMPLEX, bytes, out);
    else
        add_integer(kind, size, bytes, out);
}

bool prb_scalar_read(struct prb_objects *objects, prb_addr object, const char *type_name,
                     struct prb_buf *out, struct prb_error *err)
{
    for (size_t i = 0; i < sizeof scalars / sizeof *scalars; i++) {
        if (strcmp(scalars[i].name, type_name))
            continue;
        uint8_t bytes[SCALAR_MAX] = {0};
        if (!read_at(objects, body(objects, object), bytes, scalars[i].size))
            return prb_fail_addr(err, object, "the scalar at 0x%" PRIx64 " cannot be read", object);
        add_scalar(scalars[i].kind, scalars[i].size, bytes, out);
        return true;
    }
    return prb_fail(err, PRB_UNSUPPORTED, "%s is no scalar that is known", type_name);
}
