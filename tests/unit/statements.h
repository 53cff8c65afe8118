/*
 * Statements made by chance over the tables t, u and w of tests/unit/fleet_sql.c: joins of all
 * kinds, sub-queries, CTEs, windows, aggregates, compounds, row values, collations.  What SQLite
 * leaves open is not asked: no bare columns, no order of what is concatenated, no first rows
 * without an order of all that is shown.
 */
#ifndef PRB_TESTS_UNIT_STATEMENTS_H
#define PRB_TESTS_UNIT_STATEMENTS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

struct random {
    uint64_t state;
};

/* splitmix64 */
static inline uint64_t next(struct random *random)
{
    uint64_t z = random->state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static inline unsigned below(struct random *random, unsigned limit)
{
    return (unsigned)(next(random) >> 32) % limit;
}

struct statement {
    char sql[8192];
    size_t len;
    bool ordered; /* the order of the rows is determined */
};

/* The tables of a FROM clause. */
struct scope {
    const struct scope *outer;
    struct {
        char alias[8];
        int table; /* of made_columns */
    } items[4];
    size_t count;
};

struct maker {
    struct random *random;
    struct statement *out;
    int depth, aliases;
};

#define ANY(maker, list) (list)[below((maker)->random, sizeof(list) / sizeof *(list))]

__attribute__((format(printf, 2, 3))) static inline void put(struct maker *maker,
                                                             const char *format, ...)
{
    struct statement *out = maker->out;
    va_list args;
    va_start(args, format);
    if (out->len < sizeof out->sql)
        out->len +=
            (size_t)vsnprintf(out->sql + out->len, sizeof out->sql - out->len, format, args);
    va_end(args);
}

static const char *const made_names[] = {"t", "u", "w"};
/* By class: integers, reals, texts, others; the last table is a sub-query's. */
static const char *const made_columns[][12] = {
    {"a", "b", "big", "rank", "r", "s", "host", "x", "k"},
    {"a", "rank", "me", "r", "s", "v", "host"},
    {"a", "n", "rank", "_rank", "s", "host"},
    {"a", "c", "s"},
};
#define SUBQUERY 3

static inline const char *column_in(struct maker *maker, int table)
{
    size_t count = 0;
    while (made_columns[table][count])
        count++;
    return made_columns[table][below(maker->random, (unsigned)count)];
}

/* A column of the scope, or now and then of the one around it. */
static inline void put_column(struct maker *maker, const struct scope *scope)
{
    const struct scope *from = scope->outer && below(maker->random, 4) == 0 ? scope->outer : scope;
    unsigned item = below(maker->random, (unsigned)from->count);
    const char *name = column_in(maker, from->items[item].table);
    /* the one database has no column aside */
    if (name[0] == '_')
        name = "n";
    put(maker, "%s.%s", from->items[item].alias, name);
}

static inline void put_literal(struct maker *maker)
{
    static const char *const literals[] = {"0",
                                           "1",
                                           "2",
                                           "3",
                                           "-1",
                                           "0.5",
                                           "1.0",
                                           "2.0",
                                           "-0.5",
                                           "'a'",
                                           "'A'",
                                           "'b'",
                                           "'2'",
                                           "'ab'",
                                           "''",
                                           "NULL",
                                           "x'61'",
                                           "x'ff00'",
                                           "9007199254740993",
                                           "9007199254740992.0",
                                           "9223372036854775807",
                                           "-9223372036854775808",
                                           "1e300",
                                           "CAST(2 AS INTEGER)",
                                           "CAST('2' AS TEXT)",
                                           "CAST(1 AS REAL)",
                                           "CAST('a' AS BLOB)",
                                           "'host0'",
                                           "'host1'",
                                           "(1 + 1)",
                                           "'1'",
                                           "'\xc3\xa9'"};
    put(maker, "%s", ANY(maker, literals));
}

static inline void put_select(struct maker *maker, const struct scope *outer, int columns);

static inline void put_value(struct maker *maker, const struct scope *scope)
{
    switch (below(maker->random, maker->depth > 3 ? 9 : 13)) {
    case 0:
    case 1:
        put_literal(maker);
        break;
    case 9:
        put(maker, "coalesce(");
        put_column(maker, scope);
        put(maker, ", ");
        put_literal(maker);
        put(maker, ")");
        break;
    case 10:
        put(maker, "CASE WHEN ");
        put_column(maker, scope);
        put(maker, " = ");
        put_literal(maker);
        put(maker, " THEN ");
        put_column(maker, scope);
        put(maker, " ELSE ");
        put_literal(maker);
        put(maker, " END");
        break;
    case 11:
        put(maker, "(");
        put_column(maker, scope);
        put(maker, " + 1)");
        break;
    case 12: {
        static const char *const functions[] = {"length", "typeof", "abs", "upper", "hex", "quote"};
        const char *name = ANY(maker, functions);
        /* abs() of the least integer is an error, which depends on the order of the rows */
        if (strcmp(name, "abs") == 0)
            name = "length";
        put(maker, "%s(", name);
        put_column(maker, scope);
        put(maker, ")");
        break;
    }
    default:
        put_column(maker, scope);
    }
}

static inline void put_predicate(struct maker *maker, const struct scope *scope);

static inline void put_subquery_predicate(struct maker *maker, const struct scope *scope)
{
    bool exists = below(maker->random, 2);
    if (!exists)
        put_column(maker, scope);
    put(maker, exists ? "%sEXISTS (" : " %sIN (", below(maker->random, 3) ? "" : "NOT ");
    put_select(maker, scope, 1);
    put(maker, ")");
}

static inline void put_comparison(struct maker *maker, const struct scope *scope)
{
    static const char *const ops[] = {"=",  "=",  "=",  "<",      "<=", ">",
                                      ">=", "<>", "IS", "IS NOT", "==", "!="};
    bool turned = below(maker->random, 6) == 0;
    if (turned)
        put_literal(maker);
    else if (below(maker->random, 6))
        put_column(maker, scope);
    else
        put_value(maker, scope);
    if (below(maker->random, 12) == 0)
        put(maker, " COLLATE NOCASE");
    put(maker, " %s ", ANY(maker, ops));
    if (turned || below(maker->random, 3) == 0)
        put_column(maker, scope);
    else if (below(maker->random, 8) == 0)
        put_value(maker, scope);
    else
        put_literal(maker);
    if (below(maker->random, 16) == 0)
        put(maker, " COLLATE NOCASE");
}

/* Of whole numbers alone: it says which ranks are asked. */
static inline void put_list(struct maker *maker, const struct scope *scope)
{
    unsigned item = below(maker->random, (unsigned)scope->count);
    bool of_rank = scope->items[item].table < 2 && below(maker->random, 3);
    if (of_rank)
        put(maker, "%s.%s", scope->items[item].alias,
            scope->items[item].table == 1 && below(maker->random, 2) ? "me" : "rank");
    else
        put_column(maker, scope);
    put(maker, " %sIN (%u", below(maker->random, 6) ? "" : "NOT ", below(maker->random, 5));
    for (unsigned more = below(maker->random, 3); more; more--)
        put(maker, ", %d", (int)below(maker->random, 6) - 1);
    put(maker, ")");
}

static inline void put_predicate(struct maker *maker, const struct scope *scope)
{
    static const char *const patterns[] = {"'a%'", "'%b'", "'A'", "'_'", "'%'"};
    maker->depth++;
    switch (below(maker->random, maker->depth > 4 ? 8 : 17)) {
    case 0:
        put_column(maker, scope);
        put(maker, below(maker->random, 2) ? " IS NULL" : " IS NOT NULL");
        break;
    case 1:
        if (below(maker->random, 2)) {
            put_list(maker, scope);
            break;
        }
        put_column(maker, scope);
        put(maker, " IN (");
        put_literal(maker);
        put(maker, ", ");
        put_literal(maker);
        put(maker, ")");
        break;
    case 2:
        put_column(maker, scope);
        put(maker, " BETWEEN ");
        put_literal(maker);
        put(maker, " AND ");
        put_literal(maker);
        break;
    case 3:
        put_column(maker, scope);
        put(maker, " %sLIKE %s", below(maker->random, 4) ? "" : "NOT ", ANY(maker, patterns));
        break;
    case 8:
        put(maker, "(");
        put_column(maker, scope);
        put(maker, ", ");
        put_column(maker, scope);
        put(maker, ") %s (", below(maker->random, 2) ? "=" : "<");
        put_literal(maker);
        put(maker, ", ");
        put_literal(maker);
        put(maker, ")");
        break;
    case 9:
        put(maker, "NOT (");
        put_predicate(maker, scope);
        put(maker, ")");
        break;
    case 10:
    case 11:
        put(maker, "(");
        put_predicate(maker, scope);
        put(maker, " OR ");
        put_predicate(maker, scope);
        put(maker, ")");
        break;
    case 12:
    case 13:
        put_predicate(maker, scope);
        put(maker, " AND ");
        put_predicate(maker, scope);
        break;
    case 14:
        if (maker->depth < 4) {
            put_subquery_predicate(maker, scope);
            break;
        }
        put_comparison(maker, scope);
        break;
    default:
        put_comparison(maker, scope);
    }
    maker->depth--;
}

/* One table of a FROM clause, with an alias of its own. */
static inline void put_table(struct maker *maker, struct scope *scope)
{
    size_t at = scope->count;
    bool sub = maker->depth < 2 && below(maker->random, 8) == 0;
    scope->items[at].table = sub ? SUBQUERY : (int)below(maker->random, 3);
    snprintf(scope->items[at].alias, sizeof scope->items[at].alias, "q%d", maker->aliases++ % 999);
    if (sub) {
        struct scope inner = {0};
        put(maker, "(SELECT ");
        maker->depth++;
        inner.items[0].table = (int)below(maker->random, 3);
        snprintf(inner.items[0].alias, sizeof inner.items[0].alias, "q%d", maker->aliases++ % 999);
        inner.count = 1;
        const char *alias = inner.items[0].alias;
        bool grouped = below(maker->random, 2);
        put(maker,
            grouped ? "%s.a AS a, count(*) AS c, max(%s.s) AS s FROM %s %s"
                    : "%s.a AS a, 1 AS c, %s.s AS s FROM %s %s",
            alias, alias, made_names[inner.items[0].table], alias);
        if (below(maker->random, 2)) {
            put(maker, " WHERE ");
            put_predicate(maker, &inner);
        }
        if (grouped)
            put(maker, " GROUP BY %s.a", alias);
        maker->depth--;
        put(maker, ") %s", scope->items[at].alias);
    } else {
        put(maker, "%s %s", made_names[scope->items[at].table], scope->items[at].alias);
    }
    scope->count++;
}

static inline void put_from(struct maker *maker, struct scope *scope)
{
    static const char *const joins[] = {"JOIN",      "LEFT JOIN",  "LEFT JOIN", "RIGHT JOIN",
                                        "FULL JOIN", "CROSS JOIN", ","};
    unsigned tables = 1 + (below(maker->random, 2) ? below(maker->random, 3) : 0);
    if (maker->depth > 2)
        tables = 1;
    put(maker, " FROM ");
    put_table(maker, scope);
    for (unsigned i = 1; i < tables; i++) {
        const char *join = ANY(maker, joins);
        put(maker, "%s%s ", *join == ',' ? "" : " ", join);
        put_table(maker, scope);
        if (*join == ',' || *join == 'C')
            continue;
        if (below(maker->random, 12) == 0) {
            put(maker, " USING (a)");
            continue;
        }
        put(maker, " ON ");
        if (below(maker->random, 2))
            put(maker, "%s.a = %s.a AND ", scope->items[scope->count - 2].alias,
                scope->items[scope->count - 1].alias);
        struct scope seen = *scope;
        seen.outer = NULL;
        put_predicate(maker, &seen);
    }
}

static inline void put_aggregate(struct maker *maker, const struct scope *scope)
{
    unsigned item = below(maker->random, (unsigned)scope->count);
    const char *alias = scope->items[item].alias;
    switch (below(maker->random, 7)) {
    case 0:
        put(maker, "count(*)");
        break;
    case 1:
        put(maker, "count(%s.s)", alias);
        break;
    case 2:
        put(maker, "sum(%s.a)", alias);
        break;
    case 3:
        put(maker, "min(%s.a)", alias);
        break;
    case 4:
        put(maker, "max(%s.s)", alias);
        break;
    case 5:
        put(maker, "avg(%s.a)", alias);
        break;
    default:
        put(maker, "count(DISTINCT %s.s)", alias);
    }
    if (below(maker->random, 8) == 0) {
        put(maker, " FILTER (WHERE ");
        put_predicate(maker, scope);
        put(maker, ")");
    }
}

/* Peers are one to all of these, so that ties do not matter. */
static inline void put_window(struct maker *maker, const struct scope *scope)
{
    static const char *const functions[] = {"count(*)",  "rank()",    "dense_rank()",  "sum(%s.a)",
                                            "max(%s.s)", "min(%s.a)", "percent_rank()"};
    unsigned item = below(maker->random, (unsigned)scope->count);
    const char *alias = scope->items[item].alias;
    const char *function = ANY(maker, functions);
    char text[64];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(text, sizeof text, function, alias);
#pragma GCC diagnostic pop
    put(maker, "%s OVER (", text);
    if (below(maker->random, 2)) {
        put(maker, "PARTITION BY ");
        put_column(maker, scope);
        put(maker, " ");
    }
    put(maker, "ORDER BY ");
    put_column(maker, scope);
    put(maker, ")");
}

static inline void put_where(struct maker *maker, const struct scope *scope)
{
    if (below(maker->random, 4) == 0)
        return;
    put(maker, " WHERE ");
    put_predicate(maker, scope);
}

static inline void put_grouped(struct maker *maker, const struct scope *outer, int columns, bool by)
{
    struct scope scope = {.outer = outer};
    struct statement *out = maker->out;
    /* What is shown is said before the tables are known: they are made first, and moved. */
    size_t start = out->len;
    put_from(maker, &scope);
    put_where(maker, &scope);
    char rest[4096], shown[256] = "";
    snprintf(rest, sizeof rest, "%s", out->sql + start);
    out->len = start;
    if (by) {
        put_column(maker, &(struct scope){.items = {scope.items[0]}, .count = 1});
        snprintf(shown, sizeof shown, "%s", out->sql + start);
        out->len = start;
    }
    put(maker, "SELECT ");
    for (int i = 0; i < columns; i++) {
        put(maker, "%s", i ? ", " : "");
        if (by && i == 0)
            put(maker, "%s", shown);
        else
            put_aggregate(maker, &scope);
    }
    put(maker, "%s", rest);
    if (by)
        put(maker, " GROUP BY %s", shown);
    if (by && below(maker->random, 4) == 0) {
        put(maker, " HAVING ");
        put_aggregate(maker, &scope);
        put(maker, " %s ", below(maker->random, 2) ? ">" : "=");
        put_literal(maker);
    }
}

static inline void put_plain(struct maker *maker, const struct scope *outer, int columns,
                             bool windows)
{
    struct scope scope = {.outer = outer};
    struct statement *out = maker->out;
    size_t start = out->len;
    char rest[4096];
    put_from(maker, &scope);
    put_where(maker, &scope);
    snprintf(rest, sizeof rest, "%s", out->sql + start);
    out->len = start;
    put(maker, below(maker->random, 5) ? "SELECT " : "SELECT DISTINCT ");
    for (int i = 0; i < columns; i++) {
        put(maker, "%s", i ? ", " : "");
        if (windows && below(maker->random, 2))
            put_window(maker, &scope);
        else
            put_value(maker, &scope);
    }
    put(maker, "%s", rest);
}

static inline void put_select(struct maker *maker, const struct scope *outer, int columns)
{
    maker->depth++;
    switch (below(maker->random, 6)) {
    case 0:
        put_grouped(maker, outer, columns, columns > 1 && below(maker->random, 3));
        break;
    case 1:
        put_grouped(maker, outer, columns, true);
        break;
    case 2:
        put_plain(maker, outer, columns, maker->depth < 3);
        break;
    default:
        put_plain(maker, outer, columns, false);
    }
    maker->depth--;
}

/* The first rows, in an order of all that is shown. */
static inline void put_first(struct maker *maker)
{
    static const char *const lists[] = {"a",       "s",          "r, a",   "a, s, r",  "rank, a",
                                        "s, rank", "host, rank", "a DESC", "r DESC, s"};
    const char *list = ANY(maker, lists);
    char plain[64] = "";
    for (const char *at = list; *at; at++) {
        if (strncmp(at, " DESC", 5) == 0)
            at += 4;
        else
            strncat(plain, at, 1);
    }
    struct scope scope = {.items = {{"q0", (int)below(maker->random, 2)}}, .count = 1};
    bool same = below(maker->random, 4) == 0; /* rows that cannot be told apart need no order */
    put(maker, "SELECT %s FROM %s q0", same ? "1" : plain, made_names[scope.items[0].table]);
    if (below(maker->random, 2))
        put_where(maker, &scope);
    if (!same)
        put(maker, " ORDER BY %s", list);
    put(maker, " LIMIT %u", below(maker->random, 12));
    if (below(maker->random, 3) == 0)
        put(maker, " OFFSET %u", below(maker->random, 6));
    maker->out->ordered = true;
}

static inline void make_statement(struct random *random, struct statement *out)
{
    static const char *const compounds[] = {" UNION ", " UNION ALL ", " EXCEPT ", " INTERSECT "};
    struct maker maker = {.random = random, .out = out};
    *out = (struct statement){0};
    int columns = 1 + (int)below(random, 3);
    switch (below(random, 12)) {
    case 0:
        put(&maker,
            "WITH c(a, c, s) AS (SELECT a, 1, s FROM %s WHERE a IS NOT %s), "
            "d AS (SELECT a, count(*) AS n FROM c GROUP BY a) "
            "SELECT c.s, d.n FROM c %s JOIN d ON c.a = d.a",
            made_names[below(random, 3)], below(random, 2) ? "NULL" : "1",
            below(random, 2) ? "LEFT" : "");
        break;
    case 1:
        put_first(&maker);
        break;
    case 2:
        put_select(&maker, NULL, columns);
        put(&maker, "%s", ANY(&maker, compounds));
        put_select(&maker, NULL, columns);
        break;
    case 3:
        put(&maker, "SELECT (");
        put_grouped(&maker, NULL, 1, false);
        put(&maker, ")");
        break;
    default:
        put_select(&maker, NULL, columns);
    }
}

#endif
