/*
 * Ints of any size: 30-bit digits to decimal up to a bound, beyond it the leading digits in
 * hexadecimal.  Source: Include/cpython/longintrepr.h; the size is encoded as trait int_size says.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "py/object/reader.h"

enum { DIGIT_BITS = 30 };
#define BILLION 1000000000u

/* long.tag where trait int_size is TAG: digits << 3 | immortal << 2 | sign */
enum { TAG_SIGN = 3, TAG_ZERO = 1, TAG_NEGATIVE = 2, TAG_SHIFT = 3 };

bool prb_int_open(struct prb_objects *objects, prb_addr object, struct prb_int *out,
                  struct prb_error *err)
{
    uint64_t tag;
    if (!PRB_GET(objects, object, long, tag, &tag))
        return prb_fail_addr(err, object, "the int at 0x%" PRIx64 " cannot be read", object);
    out->digits = object + (uint64_t)PRB_OFF(objects->layout, long, digits);
    if (PRB_IS(objects->layout, int_size, TAG)) {
        out->count = tag >> TAG_SHIFT;
        out->sign = (tag & TAG_SIGN) == TAG_NEGATIVE ? -1 : (tag & TAG_SIGN) == TAG_ZERO ? 0 : 1;
        if (out->sign == 0)
            out->count = 0;
    } else {
        int64_t size = (int64_t)tag;
        out->count = size < 0 ? 0 - tag : tag;
        out->sign = size < 0 ? -1 : size > 0;
    }
    return true;
}

/* n digits from the index-th on; each must be one. */
static bool read_digits(struct prb_objects *objects, const struct prb_int *number, uint64_t index,
                        uint32_t *out, size_t n, struct prb_error *err)
{
    prb_addr addr = number->digits + 4 * index;
    const void *bytes = index > UINT64_MAX / 8 || addr < number->digits
                            ? NULL
                            : prb_objects_get(objects, addr, 4 * n);
    if (!bytes)
        return prb_fail_addr(err, addr, "the digits of an int cannot be read");
    memcpy(out, bytes, 4 * n);
    for (size_t i = 0; i < n; i++)
        if (out[i] >> DIGIT_BITS)
            return prb_fail_addr(err, addr, "the digits of an int are damaged");
    return true;
}

bool prb_object_int(struct prb_objects *objects, prb_addr object, int64_t *out,
                    struct prb_error *err)
{
    struct prb_object_type *type = prb_type_of(objects, object, err);
    struct prb_int number;
    if (!type)
        return false;
    if (type->kind != PRB_OBJ_INT && type->kind != PRB_OBJ_BOOL)
        return prb_fail(err, PRB_CORRUPT, "not an int but a %s at 0x%" PRIx64, type->name, object);
    if (!prb_int_open(objects, object, &number, err))
        return false;
    if (number.count > 3)
        return prb_fail(err, PRB_CORRUPT, "the int at 0x%" PRIx64 " has more than 64 bits", object);
    uint32_t digits[3] = {0};
    if (number.count && !read_digits(objects, &number, 0, digits, number.count, err))
        return false;
    unsigned __int128 value = digits[0] | (uint64_t)digits[1] << DIGIT_BITS |
                              (unsigned __int128)digits[2] << 2 * DIGIT_BITS;
    if (value > (unsigned __int128)INT64_MAX + (number.sign < 0))
        return prb_fail(err, PRB_CORRUPT, "the int at 0x%" PRIx64 " has more than 64 bits", object);
    *out = number.sign < 0 ? (int64_t)(0 - (uint64_t)value) : (int64_t)value;
    return true;
}

/* Divide by 10^9 again and again; the remainders are the decimal text, last part first. */
char *prb_int_decimal(uint32_t *digits, size_t count)
{
    size_t size = count * 10 + 2,
           at = size; /* a digit of 30 bits gives at most 9.04 decimal ones */
    char *text = malloc(size);
    if (!text)
        return NULL;
    text[--at] = '\0';
    while (count && !digits[count - 1])
        count--;
    while (count) {
        uint64_t rest = 0;
        for (size_t i = count; i-- > 0;) {
            rest = rest << DIGIT_BITS | digits[i];
            digits[i] = (uint32_t)(rest / BILLION);
            rest %= BILLION;
        }
        while (count && !digits[count - 1])
            count--;
        for (int i = 0; i < 9 && (count || rest); i++, rest /= 10)
            text[--at] = (char)('0' + rest % 10);
    }
    if (!text[at])
        text[--at] = '0';
    memmove(text, text + at, size - at);
    return text;
}

/* The leading digits in hexadecimal, and that there are more. */
static bool write_hexadecimal(struct prb_objects *objects, const struct prb_int *number,
                              struct prb_text *text, struct prb_error *err)
{
    /* two digits of 30 bits make 15 characters; enough of them that the text is full */
    uint32_t top[PRB_INT_DIGITS_MAX];
    size_t n = text->limit / 7 + 2;
    n = n < PRB_INT_DIGITS_MAX ? n : PRB_INT_DIGITS_MAX;
    if (!read_digits(objects, number, number->count - n, top, n, err))
        return false;
    /* Digits end on whole nibbles only when the bits below them are a multiple of four. */
    uint64_t below = (number->count - n) % 2 * 2; /* (count - n) * 30 mod 4 */
    unsigned __int128 window = 0;
    unsigned bits = 0;
    bool leading = true;
    PRB_AUTO(prb_buf) struct prb_buf hex = {0};
    uint64_t top_bits = (uint64_t)n * DIGIT_BITS + below;
    for (size_t i = n; i-- > 0;) {
        window = window << DIGIT_BITS | top[i];
        bits += DIGIT_BITS;
        if (i == n - 1 && top_bits % 4) {
            bits += (unsigned)(4 - top_bits % 4); /* zeros above the first digit */
        }
        while (bits >= 4) {
            unsigned nibble = (unsigned)(window >> (bits - 4)) & 15;
            bits -= 4;
            leading = leading && !nibble;
            if (!leading)
                prb_buf_addc(&hex, "0123456789abcdef"[nibble]);
        }
        window &= ((unsigned __int128)1 << bits) - 1;
    }
    prb_text_add(text, number->sign < 0 ? "-0x" : "0x");
    prb_text_add(text, hex.data ? hex.data : "");
    text->cut = true;
    return true;
}

bool prb_int_write(struct prb_objects *objects, prb_addr object, struct prb_text *text,
                   struct prb_error *err)
{
    struct prb_int number;
    if (!prb_int_open(objects, object, &number, err))
        return false;
    if (number.count > PRB_INT_DIGITS_MAX)
        return write_hexadecimal(objects, &number, text, err);
    uint32_t digits[PRB_INT_DIGITS_MAX];
    if (number.count && !read_digits(objects, &number, 0, digits, number.count, err))
        return false;
    PRB_AUTO_FREE char *decimal = prb_int_decimal(digits, number.count);
    if (!decimal)
        return prb_nomem(err);
    if (number.sign < 0)
        prb_text_char(text, '-');
    prb_text_add(text, decimal);
    return true;
}
