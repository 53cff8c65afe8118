/*
 * Numbers with units.  strtod(3) obeys the program's locale, so numbers are read here: digits, one
 * point, an exponent. KB, MB, … are powers of 1000, KiB, MiB, … and the bare letters K, M, … powers
 * of 1024.
 */
#include "inject/probe/setting_value.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

struct unit {
    const char *name;
    double factor;
};

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* Greatest first: the first that divides a number exactly is how it is written. */
static const struct unit byte_units[] = {
    {"TiB", 1099511627776.0},
    {"TB", 1e12},
    {"GiB", 1073741824.0},
    {"GB", 1e9},
    {"MiB", 1048576.0},
    {"MB", 1e6},
    {"KiB", 1024.0},
    {"KB", 1e3},
    {"T", 1099511627776.0},
    {"G", 1073741824.0},
    {"M", 1048576.0},
    {"K", 1024.0},
    {"B", 1},
};
static const struct unit span_units[] = {
    {"w", 604800}, {"d", 86400},    {"h", 3600},    {"m", 60},       {"s", 1},    {"ms", 1e-3},
    {"us", 1e-6},  {"days", 86400}, {"day", 86400}, {"hours", 3600}, {"min", 60}, {"sec", 1},
};
static const struct unit switches[] = {{"on", 1},   {"off", 0},   {"1", 1},   {"0", 0},
                                       {"true", 1}, {"false", 0}, {"yes", 1}, {"no", 0}};

static const struct unit *unit_of(const struct unit *units, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (!strcasecmp(units[i].name, name))
            return &units[i];
    return NULL;
}

static double power_of_ten(int exponent)
{
    double power = 1;
    for (int i = exponent < 0 ? -exponent : exponent; i > 0; i--)
        power *= 10;
    return power;
}

/* Digits and a point at *text, which is moved behind them; no sign: no setting is negative. */
static bool read_number(const char **text, double *out)
{
    const char *at = *text;
    double value = 0;
    int digits = 0, places = 0;
    bool point = false;
    for (; (*at >= '0' && *at <= '9') || (*at == '.' && !point); at++) {
        if (*at == '.') {
            point = true;
            continue;
        }
        if (++digits > 18)
            return false;
        value = value * 10 + (*at - '0');
        places += point;
    }
    if (!digits)
        return false;
    int exponent = 0;
    if ((*at == 'e' || *at == 'E') && (at[1] == '-' || (at[1] >= '0' && at[1] <= '9'))) {
        bool negative = at[1] == '-';
        for (at += 1 + negative; *at >= '0' && *at <= '9' && exponent < 100; at++)
            exponent = exponent * 10 + (*at - '0');
        exponent = negative ? -exponent : exponent;
    }
    if (exponent > 30 || exponent < -30)
        return false;
    exponent -= places;
    *out = exponent < 0 ? value / power_of_ten(exponent) : value * power_of_ten(exponent);
    *text = at;
    return true;
}

static bool parse_quantity(const struct unit *units, size_t count, const char *unit,
                           const char *text, double *out)
{
    double number;
    if (!read_number(&text, &number))
        return false;
    text += strspn(text, " ");
    const struct unit *found = unit_of(units, count, *text ? text : unit);
    if (!found)
        return false;
    *out = number * found->factor;
    return true;
}

bool prb_value_parse(enum prb_setting_type type, const char *unit, const char *text, double *out)
{
    const struct unit *found;
    double number;
    switch (type) {
    case PRB_SETTING_SWITCH:
        found = unit_of(switches, COUNT(switches), text);
        if (found)
            *out = found->factor;
        return found != NULL;
    case PRB_SETTING_BYTES:
        if (!parse_quantity(byte_units, COUNT(byte_units), "B", text, &number))
            return false;
        *out = number;
        return number < 9e15 && number == (double)(uint64_t)number;
    case PRB_SETTING_SPAN:
        return parse_quantity(span_units, COUNT(span_units), unit, text, out);
    case PRB_SETTING_INTEGER:
    case PRB_SETTING_REAL:
        if (!read_number(&text, &number) || *text || number > 9e15)
            return false;
        if (type == PRB_SETTING_INTEGER && number != (double)(uint64_t)number)
            return false;
        *out = number;
        return true;
    case PRB_SETTING_TEXT:
    case PRB_SETTING_PROGRAM:
        return false;
    }
    return false;
}

/* %g writes the locale's point. */
static void format_number(double number, const char *unit, char *out, size_t cap)
{
    snprintf(out, cap, "%.15g%s", number, unit);
    for (char *at = out; *at; at++)
        if (*at == ',')
            *at = '.';
}

void prb_value_format(enum prb_setting_type type, const char *unit, double number, char *out,
                      size_t cap)
{
    const struct unit *found;
    switch (type) {
    case PRB_SETTING_SWITCH:
        snprintf(out, cap, "%s", number != 0 ? "on" : "off");
        return;
    case PRB_SETTING_BYTES:
        for (size_t i = 0; i < COUNT(byte_units); i++) {
            double many = number / byte_units[i].factor;
            if (number > 0 && many >= 1 && many == (double)(uint64_t)many) {
                format_number(many, byte_units[i].factor == 1 ? "" : byte_units[i].name, out, cap);
                return;
            }
        }
        format_number(number, "", out, cap);
        return;
    case PRB_SETTING_SPAN:
        found = unit_of(span_units, COUNT(span_units), unit);
        format_number(found ? number / found->factor : number, "", out, cap);
        return;
    default:
        format_number(number, "", out, cap);
    }
}

const char *prb_value_wanted(enum prb_setting_type type)
{
    static const char *const wanted[] = {
        [PRB_SETTING_SWITCH] = "on or off",
        [PRB_SETTING_INTEGER] = "a whole number",
        [PRB_SETTING_REAL] = "a number",
        [PRB_SETTING_BYTES] = "bytes, such as 1GB, 512MiB or 4096",
        [PRB_SETTING_SPAN] = "a time, such as 7d, 12h, 30s or 0.5s",
        [PRB_SETTING_TEXT] = "a text",
        [PRB_SETTING_PROGRAM] = "the path of a program",
    };
    return wanted[type];
}
