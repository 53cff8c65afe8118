/* See sink.h. */
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "fleet/history/sink.h"
#include "ring/columns.h"
#include "store/host.h"

static bool is_new(const struct prb_taken *taken, const char *name)
{
    for (size_t i = 0; i < taken->count; i++)
        if (strcmp(taken->columns[i].name, name) == 0)
            return false;
    return true;
}

/* "NAME:TYPE,…", and the last part of the subject. */
static bool take_table(const struct prb_bus_message *message, struct prb_taken *out)
{
    const char *subject = message->headers[PRB_BUS_STREAM_SUBJECT_HEADER];
    const char *columns = message->headers[PRB_BUS_COLUMNS];
    const char *dot = subject ? strrchr(subject, '.') : NULL;
    char *save = NULL;
    if (!dot || !columns || !prb_ring_is_name(dot + 1) || !(out->names = strdup(columns)))
        return false;
    snprintf(out->name, sizeof out->name, "%s", dot + 1);
    out->schema = prb_host_is_ring(out->name) ? PRB_HOST_SCHEMA : "python";
    for (char *one = strtok_r(out->names, ",", &save); one; one = strtok_r(NULL, ",", &save)) {
        char *colon = strchr(one, ':');
        enum prb_ring_type type;
        if (!colon || out->count == PRB_RING_COLUMNS_MAX)
            return false;
        *colon = '\0';
        if (!prb_ring_is_name(one) || !is_new(out, one) || !prb_ring_type_named(colon + 1, &type))
            return false;
        out->columns[out->count++] =
            (struct prb_ring_column){.name = one, .unit = "", .doc = "", .type = type};
    }
    return out->count > 0;
}

static int take_int(const json_t *object, const char *name)
{
    json_int_t value = json_integer_value(json_object_get(object, name));
    return value < -1 || value > INT32_MAX ? -1 : (int)value;
}

static bool take_process(const struct prb_bus_message *message, struct prb_taken *out)
{
    const char *about = message->headers[PRB_BUS_PROCESS];
    const char *lost = message->headers[PRB_BUS_LOST_HEADER];
    out->object = about ? json_loads(about, 0, NULL) : NULL;
    out->host = json_string_value(json_object_get(out->object, "host"));
    out->key = json_string_value(json_object_get(out->object, "key"));
    out->job = json_string_value(json_object_get(out->object, "job"));
    out->pid = json_integer_value(json_object_get(out->object, "pid"));
    out->started = json_integer_value(json_object_get(out->object, "started"));
    out->rank = take_int(out->object, "rank");
    out->world_size = take_int(out->object, "world_size");
    out->lost = lost ? strtoull(lost, NULL, 10) : 0;
    if (out->lost > INT64_MAX)
        out->lost = INT64_MAX;
    return out->host && out->key && out->job && out->pid > 0;
}

bool prb_taken_parse(const struct prb_bus_message *message, struct prb_taken *out,
                     struct prb_error *err)
{
    *out = (struct prb_taken){.rows = message->data, .len = message->len};
    if (take_table(message, out) && take_process(message, out))
        return true;
    prb_taken_deinit(out);
    return prb_fail(err, PRB_CORRUPT, "a message does not say whose rows it has");
}

void prb_taken_deinit(struct prb_taken *taken)
{
    free(taken->names);
    free(taken->text);
    json_decref(taken->object);
    taken->names = taken->text = NULL;
    taken->object = NULL;
}

/* ---- rows ---- */

static double real_of(const json_t *value)
{
    const char *text = json_string_value(value);
    if (!text)
        return json_number_value(value);
    return strcmp(text, "NaN") == 0 ? NAN : strcmp(text, "-Infinity") == 0 ? -INFINITY : INFINITY;
}

static void take_value(const json_t *value, enum prb_ring_type type, struct prb_ring_value *out)
{
    *out = (struct prb_ring_value){.null = !value || json_is_null(value)};
    if (out->null)
        return;
    switch (type) {
    case PRB_RING_INTEGER:
        out->integer = json_integer_value(value);
        break;
    case PRB_RING_BOOLEAN:
        out->integer = json_is_true(value);
        break;
    case PRB_RING_REAL:
    case PRB_RING_TIME:
        out->real = real_of(value);
        break;
    case PRB_RING_TEXT:
        out->text = json_string_value(value);
        out->len = json_string_length(value);
        out->null = !out->text;
        break;
    }
}

/* ---- a row as agents write it: one flat object without escapes ---- */

struct scan {
    const char *at, *end;
    locale_t locale; /* "C": for numbers */
};

static bool take(struct scan *scan, char c)
{
    if (scan->at == scan->end || *scan->at != c)
        return false;
    scan->at++;
    return true;
}

static bool take_word(struct scan *scan, const char *word)
{
    size_t len = strlen(word);
    if ((size_t)(scan->end - scan->at) < len || memcmp(scan->at, word, len) != 0)
        return false;
    scan->at += len;
    return true;
}

/* Between quotes; none has an escape, a control character, or what is not UTF-8. */
static bool take_string(struct scan *scan, const char **text, size_t *len)
{
    bool ascii = true;
    if (!take(scan, '"'))
        return false;
    for (*text = scan->at; scan->at < scan->end && *scan->at != '"'; scan->at++) {
        unsigned char c = (unsigned char)*scan->at;
        if (c < ' ' || c == '\\')
            return false;
        ascii = ascii && c < 0x80;
    }
    *len = (size_t)(scan->at - *text);
    return take(scan, '"') && (ascii || prb_utf8_prefix(*text, *len) == *len);
}

static bool is_digit(const struct scan *scan)
{
    return scan->at < scan->end && *scan->at >= '0' && *scan->at <= '9';
}

/* Digits, also of a number so far: how many these are. */
static size_t take_digits(struct scan *scan, uint64_t *number)
{
    const char *first = scan->at;
    for (; is_digit(scan); scan->at++)
        *number = *number * 10 + (uint64_t)(*scan->at - '0');
    return (size_t)(scan->at - first);
}

static bool is_of_number(const struct scan *scan)
{
    return is_digit(scan) || (scan->at < scan->end && *scan->at && strchr("-+.eE", *scan->at));
}

/* One that has more digits than a double is exact with, or an exponent. */
static bool take_long_real(struct scan *scan, const char *from, struct prb_ring_value *out)
{
    char text[40], *end;
    while (is_of_number(scan))
        scan->at++;
    size_t len = (size_t)(scan->at - from);
    if (len >= sizeof text)
        return false;
    memcpy(text, from, len);
    text[len] = '\0';
    out->real = strtod_l(text, &end, scan->locale);
    return !*end && isfinite(out->real);
}

#define EXACT 15 /* digits: below 2^53, and so is the power of ten */

static bool take_number(struct scan *scan, enum prb_ring_type type, struct prb_ring_value *out)
{
    static const double powers[EXACT + 1] = {1e0, 1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                             1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
    const char *from = scan->at;
    bool negative = take(scan, '-');
    uint64_t number = 0;
    size_t digits = take_digits(scan, &number), places = 0;
    if (!digits)
        return false;
    if (type != PRB_RING_REAL && type != PRB_RING_TIME) {
        if (type != PRB_RING_INTEGER || digits > 18 || is_of_number(scan))
            return false;
        out->integer = negative ? -(int64_t)number : (int64_t)number;
        return true;
    }
    if (take(scan, '.'))
        places = take_digits(scan, &number);
    if (digits + places > EXACT || is_of_number(scan))
        return take_long_real(scan, from, out);
    /* Both are exact, so the quotient is the nearest double. */
    out->real = (double)number / powers[places];
    out->real = negative ? -out->real : out->real;
    return true;
}

/* A value of a column. */
static bool take_plain(struct scan *scan, enum prb_ring_type type, struct prb_ring_value *out)
{
    *out = (struct prb_ring_value){0};
    if (take_word(scan, "null"))
        return out->null = true;
    if (type == PRB_RING_TEXT)
        return take_string(scan, &out->text, &out->len);
    if (type == PRB_RING_BOOLEAN) {
        out->integer = take_word(scan, "true");
        return out->integer || take_word(scan, "false");
    }
    return take_number(scan, type, out);
}

/* One of no column. */
static bool pass_over(struct scan *scan)
{
    const char *text;
    size_t len;
    struct prb_ring_value number;
    return (scan->at < scan->end && *scan->at == '"') ? take_string(scan, &text, &len)
                                                      : take_number(scan, PRB_RING_REAL, &number);
}

static bool is_name(const char *column, const char *name, size_t len)
{
    return *column == *name && strncmp(column, name, len) == 0 && !column[len];
}

/* False: it may be JSON all the same. */
static bool scan_row(const struct prb_taken *taken, struct scan *scan,
                     struct prb_ring_value values[])
{
    size_t next = 0;
    for (size_t i = 0; i < taken->count; i++)
        values[i] = (struct prb_ring_value){.null = true};
    if (!take(scan, '{'))
        return false;
    do {
        const char *name;
        size_t len, column;
        if (!take_string(scan, &name, &len) || !take(scan, ':'))
            return false;
        /* They stand in the order of the table. */
        for (column = next; column < taken->count; column++)
            if (is_name(taken->columns[column].name, name, len))
                break;
        if (column == taken->count) {
            for (size_t i = 0; i < next; i++)
                if (is_name(taken->columns[i].name, name, len))
                    return false;
            if (!pass_over(scan))
                return false;
            continue;
        }
        next = column + 1;
        if (!take_plain(scan, taken->columns[column].type, &values[column]))
            return false;
    } while (take(scan, ','));
    return take(scan, '}') && scan->at == scan->end;
}

/* Any JSON; *object: what the values borrow from.  False: it is no object. */
static bool parse_row(const struct prb_taken *taken, const char *line, size_t len,
                      struct prb_ring_value values[], json_t **object)
{
    *object = json_loadb(line, len, JSON_ALLOW_NUL, NULL);
    if (!json_is_object(*object))
        return false;
    for (size_t i = 0; i < taken->count; i++)
        take_value(json_object_get(*object, taken->columns[i].name), taken->columns[i].type,
                   &values[i]);
    return true;
}

bool prb_taken_each(const struct prb_taken *taken,
                    bool (*row)(void *context, const struct prb_ring_value *values,
                                struct prb_error *err),
                    void *context, struct prb_error *err)
{
    struct prb_ring_value values[PRB_RING_COLUMNS_MAX];
    locale_t locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    bool good = locale || prb_nomem(err);
    for (const char *at = taken->rows, *end = at + taken->len; good && at < end;) {
        const char *line = memchr(at, '\n', (size_t)(end - at));
        size_t len = line ? (size_t)(line - at) : (size_t)(end - at);
        struct scan scan = {at, at + len, locale};
        PRB_AUTO(json_t) json_t *object = NULL;
        if (scan_row(taken, &scan, values) || parse_row(taken, at, len, values, &object))
            good = row(context, values, err);
        at += len + 1;
    }
    if (locale)
        freelocale(locale);
    return good;
}
