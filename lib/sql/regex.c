/*
 * Regular expressions over regcomp(3).  Back references and large repeat counts are refused: with
 * them the C library's matcher takes exponential time or memory, and no progress handler reaches
 * into it.
 */
#include "sql/regex.h"

#include <regex.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATTERN_MAX 1000 /* bytes */
#define NODES_MAX 20000  /* of the expression once its repeats are written out */
#define DEPTH_MAX 50     /* of groups */
#define TEXT_MAX (1 << 20)

/* ---- how large a pattern becomes: regcomp writes x+ as xx*, x{3} as xxx ---- */

struct measure {
    size_t before[DEPTH_MAX]; /* nodes of each open group but its last atom */
    size_t atom[DEPTH_MAX];   /* nodes of its last atom */
    size_t depth;
};

static void begin_atom(struct measure *m, size_t nodes)
{
    m->before[m->depth] += m->atom[m->depth];
    m->atom[m->depth] = nodes;
}

/* Behind a bracket expression such as [^]a-z[:alpha:]]. */
static const char *skip_bracket(const char *c)
{
    c += c[1] == '^' ? 2 : 1;
    c += *c == ']';
    while (*c && *c != ']') {
        if (*c == '[' && c[1] && strchr(":.=", c[1])) {
            char mark = c[1];
            for (c += 2; *c && !(*c == mark && c[1] == ']'); c++)
                ;
            c += *c ? 1 : 0;
        }
        c += *c ? 1 : 0;
    }
    return *c ? c : c - 1;
}

/* The greater count of {n,m}. */
static size_t repeats(const char *c)
{
    size_t most = 1, count = 0;
    for (c++; (*c >= '0' && *c <= '9') || *c == ','; c++) {
        count = *c == ',' ? 0 : count * 10 + (size_t)(*c - '0');
        if (count > NODES_MAX)
            return NODES_MAX;
        most = count > most ? count : most;
    }
    return most + 1;
}

/* Why the pattern is refused, or NULL. */
static const char *refusal(const char *pattern)
{
    struct measure m = {0};
    if (strlen(pattern) > PATTERN_MAX)
        return "the regular expression is longer than 1000 bytes";
    for (const char *c = pattern; *c; c++) {
        if (*c == '\\' && c[1] >= '1' && c[1] <= '9')
            return "back references are not supported in regular expressions";
        if (*c == '(') {
            if (m.depth + 1 >= DEPTH_MAX)
                return "the regular expression has too many groups in groups";
            begin_atom(&m, 0);
            m.depth++;
            m.before[m.depth] = m.atom[m.depth] = 0;
        } else if (*c == ')' && m.depth > 0) {
            size_t nodes = m.before[m.depth] + m.atom[m.depth] + 1;
            m.atom[--m.depth] = nodes;
        } else if (*c == '+' || *c == '{') {
            m.atom[m.depth] *= *c == '+' ? 2 : repeats(c);
        } else if (*c != '*' && *c != '?') {
            begin_atom(&m, 1);
            c = *c == '[' ? skip_bracket(c) : *c == '\\' && c[1] ? c + 1 : c;
        }
        if (m.before[m.depth] + m.atom[m.depth] > NODES_MAX)
            return "the regular expression repeats too much";
    }
    return NULL;
}

static void release(void *regex)
{
    regfree(regex);
    free(regex);
}

/* Compiled once for a constant pattern; NULL with the context's error set. */
static regex_t *compile(sqlite3_context *context, int argument, sqlite3_value *value)
{
    regex_t *regex = sqlite3_get_auxdata(context, argument);
    if (regex)
        return regex;
    const char *pattern = (const char *)sqlite3_value_text(value);
    const char *why = pattern ? refusal(pattern) : "out of memory";
    char message[200];
    if (why) {
        sqlite3_result_error(context, why, -1);
        return NULL;
    }
    regex = malloc(sizeof *regex);
    if (!regex) {
        sqlite3_result_error_nomem(context);
        return NULL;
    }
    int rc = regcomp(regex, pattern, REG_EXTENDED | REG_NOSUB);
    if (rc != 0) {
        size_t used = (size_t)snprintf(message, sizeof message, "bad regular expression: ");
        regerror(rc, regex, message + used, sizeof message - used);
        free(regex);
        sqlite3_result_error(context, message, -1);
        return NULL;
    }
    sqlite3_set_auxdata(context, argument, regex, release);
    /* SQLite may have thrown it away already (out of memory). */
    return sqlite3_get_auxdata(context, argument);
}

static void match(sqlite3_context *context, int pattern, sqlite3_value **argv)
{
    sqlite3_value *text = argv[!pattern];
    if (sqlite3_value_type(argv[pattern]) == SQLITE_NULL || sqlite3_value_type(text) == SQLITE_NULL)
        return;
    regex_t *regex = compile(context, pattern, argv[pattern]);
    if (!regex)
        return;
    const char *bytes = (const char *)sqlite3_value_text(text);
    if (!bytes) {
        sqlite3_result_error_nomem(context);
        return;
    }
    if (sqlite3_value_bytes(text) > TEXT_MAX) {
        sqlite3_result_error(context, "a text longer than 1 MiB cannot be matched", -1);
        return;
    }
    sqlite3_result_int(context, regexec(regex, bytes, 0, NULL, 0) == 0);
}

void prb_sql_regexp(sqlite3_context *context, int argc, sqlite3_value **argv)
{
    (void)argc;
    match(context, 0, argv);
}

void prb_sql_regexp_like(sqlite3_context *context, int argc, sqlite3_value **argv)
{
    (void)argc;
    match(context, 1, argv);
}
