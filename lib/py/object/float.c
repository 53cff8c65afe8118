/*
 * Floats as float.__repr__ prints them: the fewest digits that read back as the same value.
 * Pure; the decimal point of the caller's locale is skipped.  Source: PyOS_double_to_string, format
 * 'r', Python/pystrtod.c.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "py/object/reader.h"

enum { DIGITS_MAX = 17, EXPONENT_LOW = -4, EXPONENT_HIGH = 16 };

struct decimal {
    char digits[DIGITS_MAX + 1]; /* without trailing zeros */
    int exponent;                /* of the first digit */
};

/* The text of printf's %e, taken apart. */
static void parse(const char *text, struct decimal *out)
{
    int used = 0;
    for (; *text && *text != 'e'; text++)
        if (*text >= '0' && *text <= '9' && used < DIGITS_MAX)
            out->digits[used++] = *text;
    while (used > 1 && out->digits[used - 1] == '0')
        used--;
    out->digits[used] = '\0';
    out->exponent = *text ? atoi(text + 1) : 0;
}

/* Add one in the last place; false when that would make a digit more. */
static bool step_up(char *text)
{
    char *at = strchr(text, 'e');
    while (at && at-- > text) {
        if (*at >= '0' && *at < '9') {
            ++*at;
            return true;
        }
        if (*at == '9')
            *at = '0';
    }
    return false;
}

/* value, not negative, in n digits; true when that reads back as value. */
static bool round_to(double value, int n, struct decimal *out)
{
    char text[40];
    snprintf(text, sizeof text, "%.*e", n - 1, value);
    bool good = strtod(text, NULL) == value;
    /* Above a power of two values lie twice as far apart as below: the nearest text may be too low,
     * the next not. */
    if (!good && n == DIGITS_MAX - 1 && step_up(text))
        good = strtod(text, NULL) == value;
    parse(text, out);
    return good;
}

static void shortest(double value, struct decimal *out)
{
    /* Up to 15 digits a normal value's text is unique: 15 digits without trailing zeros are the
     * fewest. */
    int n = value < 2.2250738585072014e-308 ? 1 : 15;
    while (n < DIGITS_MAX && !round_to(value, n, out))
        n++;
    if (n == DIGITS_MAX)
        (void)round_to(value, n, out);
}

static void plain(const struct decimal *decimal, bool point_zero, char *out)
{
    int count = (int)strlen(decimal->digits), whole = decimal->exponent + 1;
    if (whole <= 0) {
        sprintf(out, "0.%.*s%s", -whole, "0000", decimal->digits);
    } else if (count <= whole) {
        sprintf(out, "%s%.*s%s", decimal->digits, whole - count, "00000000000000000",
                point_zero ? ".0" : "");
    } else {
        sprintf(out, "%.*s.%s", whole, decimal->digits, decimal->digits + whole);
    }
}

static void scientific(const struct decimal *decimal, char *out)
{
    sprintf(out, "%c%s%se%c%02d", decimal->digits[0], decimal->digits[1] ? "." : "",
            decimal->digits + 1, decimal->exponent < 0 ? '-' : '+', abs(decimal->exponent));
}

void prb_float_format(double value, bool point_zero, char out[PRB_FLOAT_TEXT])
{
    if (isnan(value)) {
        strcpy(out, "nan");
        return;
    }
    if (signbit(value))
        *out++ = '-';
    value = fabs(value);
    if (isinf(value)) {
        strcpy(out, "inf");
        return;
    }
    struct decimal decimal = {.digits = "0"};
    if (value > 0)
        shortest(value, &decimal);
    if (decimal.exponent < EXPONENT_LOW || decimal.exponent >= EXPONENT_HIGH)
        scientific(&decimal, out);
    else
        plain(&decimal, point_zero, out);
}
