/* One element: what its bits mean, and its text. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "py/object/reader.h"
#include "tensor/tensor.h"

/* ---- bits ---- */

float prb_half_to_float(uint16_t half)
{
    int exponent = half >> 10 & 31, fraction = half & 1023;
    double value = exponent == 31 ? (fraction ? NAN : INFINITY)
                   : exponent     ? ldexp(1024 + fraction, exponent - 25)
                                  : ldexp(fraction, -24);
    return (float)(half >> 15 ? -value : value);
}

static float tiny_to_float(const struct prb_tiny *tiny, uint8_t byte)
{
    unsigned fraction_bits = (unsigned)(8 - tiny->sign - tiny->exponent);
    unsigned fraction = byte & ((1u << fraction_bits) - 1), largest = (1u << tiny->exponent) - 1;
    unsigned exponent = byte >> fraction_bits & largest;
    bool minus = tiny->sign && byte >> 7;
    if (tiny->nan_is_minus_zero && byte == 0x80)
        return NAN;
    if (exponent == largest && tiny->infinite)
        return fraction ? NAN : minus ? -INFINITY : INFINITY;
    if (exponent == largest && !tiny->nan_is_minus_zero && fraction == (1u << fraction_bits) - 1)
        return NAN;
    double value = exponent || !tiny->sign
                       ? ldexp((double)((1u << fraction_bits) + fraction),
                               (int)exponent - tiny->bias - (int)fraction_bits)
                       : ldexp((double)fraction, 1 - tiny->bias - (int)fraction_bits);
    return (float)(minus ? -value : value);
}

void prb_tiny_table(const struct prb_tiny *tiny, float out[256])
{
    for (unsigned i = 0; i < 256; i++)
        out[i] = tiny_to_float(tiny, (uint8_t)i);
}

static float half_at(const uint8_t *bytes)
{
    uint16_t half;
    memcpy(&half, bytes, sizeof half);
    return prb_half_to_float(half);
}

static float float_at(const uint8_t *bytes)
{
    float value;
    memcpy(&value, bytes, sizeof value);
    return value;
}

static double double_at(const uint8_t *bytes)
{
    double value;
    memcpy(&value, bytes, sizeof value);
    return value;
}

static double long_double_at(const uint8_t *bytes)
{
    long double value;
    memcpy(&value, bytes, sizeof value);
    return (double)value;
}

static uint64_t natural_at(const uint8_t *bytes, unsigned size)
{
    uint64_t value = 0;
    memcpy(&value, bytes, size);
    return value;
}

static struct prb_element real(double value)
{
    return (struct prb_element){.kind = PRB_ELEMENT_REAL, .real = value};
}

static struct prb_element complex_of(double re, double im)
{
    return (struct prb_element){.kind = PRB_ELEMENT_COMPLEX, .real = re, .imag = im};
}

static struct prb_element integer(const struct prb_dtype *dtype, const uint8_t *bytes)
{
    uint64_t word = natural_at(bytes, dtype->size);
    unsigned unused = 64 - 8u * dtype->size;
    if (dtype->kind == PRB_DTYPE_UINT)
        return (struct prb_element){.kind = PRB_ELEMENT_UINT, .natural = word};
    return (struct prb_element){.kind = PRB_ELEMENT_INT,
                                .integer = (int64_t)(word << unused) >> unused};
}

struct prb_element prb_element_of(const struct prb_element_type *type, const uint8_t *given)
{
    const struct prb_dtype *dtype = type->dtype;
    uint8_t bytes[PRB_ELEMENT_BYTES] = {0};
    for (unsigned i = 0; i < dtype->size; i++)
        bytes[i] = given[type->swapped ? dtype->size - 1u - i : i];
    switch (dtype->kind) {
    case PRB_DTYPE_NAMED:
        break;
    case PRB_DTYPE_BOOL:
        return (struct prb_element){.kind = PRB_ELEMENT_BOOL, .integer = bytes[0] != 0};
    case PRB_DTYPE_INT:
    case PRB_DTYPE_UINT:
        return integer(dtype, bytes);
    case PRB_DTYPE_HALF:
        return real((double)half_at(bytes));
    case PRB_DTYPE_BFLOAT: {
        const uint8_t wide[4] = {0, 0, bytes[0], bytes[1]};
        return real((double)float_at(wide));
    }
    case PRB_DTYPE_FLOAT:
        return real((double)float_at(bytes));
    case PRB_DTYPE_DOUBLE:
        return real(double_at(bytes));
    case PRB_DTYPE_LONG_DOUBLE:
        return real(long_double_at(bytes));
    case PRB_DTYPE_TINY:
        return real((double)tiny_to_float(&dtype->tiny, bytes[0]));
    case PRB_DTYPE_COMPLEX_HALF:
        return complex_of((double)half_at(bytes), (double)half_at(bytes + 2));
    case PRB_DTYPE_COMPLEX:
        return complex_of((double)float_at(bytes), (double)float_at(bytes + 4));
    case PRB_DTYPE_COMPLEX_DOUBLE:
        return complex_of(double_at(bytes), double_at(bytes + 8));
    }
    return real(NAN);
}

/* ---- text ---- */

/* How many digits distinguish any two elements of a type; 17: all are shown. */
static int digits_of(enum prb_dtype_kind kind)
{
    return kind == PRB_DTYPE_HALF || kind == PRB_DTYPE_COMPLEX_HALF ? 5
           : kind == PRB_DTYPE_BFLOAT                               ? 4
           : kind == PRB_DTYPE_FLOAT || kind == PRB_DTYPE_COMPLEX   ? 9
                                                                    : 17;
}

/* Whether a text's value is nearer to this element than to any other of its type. */
static bool reads_back(enum prb_dtype_kind kind, double tried, double value)
{
    int fraction = kind == PRB_DTYPE_BFLOAT ? 7 : 10;
    int exponent, lowest = kind == PRB_DTYPE_BFLOAT ? -125 : -13; /* of the normal ones */
    if (kind == PRB_DTYPE_FLOAT || kind == PRB_DTYPE_COMPLEX)
        return (float)tried == (float)value;
    frexp(value, &exponent);
    exponent = exponent < lowest ? lowest : exponent;
    return fabs(tried - value) < ldexp(1, exponent - 1 - fraction) / 2;
}

static void add_real(enum prb_dtype_kind kind, double value, bool point_zero, struct prb_buf *out)
{
    char text[PRB_FLOAT_TEXT];
    double shown = value;
    int most = digits_of(kind);
    for (int digits = 1; digits <= most && most < 17 && isfinite(value) && value != 0; digits++) {
        snprintf(text, sizeof text, "%.*e", digits - 1, value);
        if (reads_back(kind, strtod(text, NULL), value)) {
            shown = strtod(text, NULL);
            break;
        }
    }
    prb_float_format(shown, point_zero, text);
    prb_buf_adds(out, text);
}

void prb_element_text(const struct prb_dtype *dtype, const struct prb_element *number,
                      struct prb_buf *out)
{
    switch (number->kind) {
    case PRB_ELEMENT_BOOL:
        prb_buf_adds(out, number->integer ? "True" : "False");
        return;
    case PRB_ELEMENT_INT:
        prb_buf_addf(out, "%" PRId64, number->integer);
        return;
    case PRB_ELEMENT_UINT:
        prb_buf_addf(out, "%" PRIu64, number->natural);
        return;
    case PRB_ELEMENT_REAL:
        add_real(dtype->kind, number->real, true, out);
        return;
    case PRB_ELEMENT_COMPLEX:
        add_real(dtype->kind, number->real, false, out);
        if (!signbit(number->imag))
            prb_buf_addc(out, '+');
        add_real(dtype->kind, number->imag, false, out);
        prb_buf_addc(out, 'j');
    }
}
