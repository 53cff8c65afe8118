/* Errors that show their place.  Columns count characters (code points), from 1. */
#include "sql/excerpt.h"

#include <stdio.h>
#include <string.h>

#define MESSAGE_MAX 170
#define BEFORE_MAX 40 /* bytes of the line shown before the place */
#define SHOWN_MAX 64  /* bytes of the line shown */

static bool continues(char c) { return ((unsigned char)c & 0xc0) == 0x80; }

static size_t characters(const char *text, size_t len)
{
    size_t n = 0;
    for (size_t i = 0; i < len; i++)
        n += !continues(text[i]);
    return n;
}

/* The part of the line around offset that is shown: at whole characters. */
static void window(const char *sql, size_t line, size_t end, size_t offset, size_t *from_out,
                   size_t *to_out)
{
    size_t from = offset - line > BEFORE_MAX ? offset - BEFORE_MAX : line;
    while (from < offset && continues(sql[from]))
        from++;
    size_t to = end - from > SHOWN_MAX ? from + SHOWN_MAX : end;
    while (to > offset && to < end && continues(sql[to]))
        to--;
    *from_out = from;
    *to_out = to;
}

static void add_excerpt(struct prb_error *err, const char *sql, size_t len, size_t offset)
{
    size_t line = offset, end = offset, number = 1;
    while (line > 0 && sql[line - 1] != '\n')
        line--;
    while (end < len && sql[end] != '\n')
        end++;
    for (size_t i = 0; i < line; i++)
        number += sql[i] == '\n';
    size_t from, to;
    window(sql, line, end, offset, &from, &to);
    char shown[SHOWN_MAX + 1];
    memcpy(shown, sql + from, to - from);
    shown[to - from] = '\0';
    for (char *c = shown; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            *c = ' ';
    size_t used = strlen(err->text);
    snprintf(err->text + used, sizeof err->text - used, " (line %zu, column %zu)\n  %s\n  %*s^",
             number, characters(sql + line, offset - line) + 1, shown,
             (int)characters(sql + from, offset - from), "");
}

bool prb_query_fail(struct prb_error *err, const char *sql, size_t len, size_t offset,
                    const char *format, ...)
{
    if (!err)
        return false;
    char message[MESSAGE_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    prb_fail(err, PRB_QUERY, "%s", message);
    add_excerpt(err, sql, len, offset < len ? offset : len);
    return false;
}
