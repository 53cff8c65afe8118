/* The dialect: tables of rewritten words and of statement forms, over the significant tokens of one
 * statement. */
#include "sql/dialect.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/nearest.h"
#include "sql/excerpt.h"

#define DEPTH_MAX 256 /* of parentheses; SQLite takes fewer */

struct parse {
    const struct prb_dialect *dialect;
    const char *text;
    size_t len;
    struct prb_token *tokens; /* without space; the last one is END or SEMICOLON */
    size_t count, cap;
    struct prb_statement *out;
    size_t depth;
    bool filters[DEPTH_MAX]; /* for each parenthesis that is open: within WHERE, ON or HAVING */
};

static void parse_deinit(struct parse *parse) { free(parse->tokens); }
PRB_DEFINE_AUTO(parse, struct parse, parse_deinit)

void prb_statement_deinit(struct prb_statement *statement)
{
    prb_buf_deinit(&statement->sql);
    free(statement->edits);
    *statement = (struct prb_statement){0};
}

static bool is_word(const struct parse *parse, size_t i, const char *word)
{
    return i < parse->count && prb_token_is(parse->text, &parse->tokens[i], word);
}

static bool is_operator(const struct parse *parse, size_t i, const char *text)
{
    const struct prb_token *token = &parse->tokens[i];
    return i < parse->count && token->kind == PRB_TOKEN_OPERATOR && token->len == strlen(text) &&
           memcmp(parse->text + token->offset, text, token->len) == 0;
}

/* ---- edits ---- */

/* Replace tokens first … last by text. */
static bool edit(struct parse *parse, size_t first, size_t last, const char *text,
                 struct prb_error *err)
{
    struct prb_statement *out = parse->out;
    if (!PRB_GROW(out->edits, out->edit_count, out->edit_cap))
        return prb_nomem(err);
    size_t from = parse->tokens[first].offset;
    size_t to = parse->tokens[last].offset + parse->tokens[last].len;
    size_t copied = out->edit_count ? out->edits[out->edit_count - 1].offset +
                                          out->edits[out->edit_count - 1].len
                                    : out->offset;
    prb_buf_add(&out->sql, parse->text + copied, from - copied);
    out->edits[out->edit_count++] = (struct prb_edit){from, to - from, out->sql.len, strlen(text)};
    prb_buf_adds(&out->sql, text);
    return true;
}

size_t prb_statement_origin(const struct prb_statement *statement, size_t sql_offset)
{
    size_t origin = statement->offset, behind = 0;
    for (size_t i = 0; i < statement->edit_count; i++) {
        const struct prb_edit *one = &statement->edits[i];
        if (sql_offset < one->out_offset)
            break;
        if (sql_offset < one->out_offset + one->out_len)
            return one->offset;
        origin = one->offset + one->len;
        behind = one->out_offset + one->out_len;
    }
    return origin + (sql_offset - behind);
}

/* ---- intervals ---- */

static const struct {
    const char *names; /* separated by spaces */
    int64_t microseconds;
} units[] = {
    {"microsecond microseconds us", 1},      {"millisecond milliseconds ms", 1000},
    {"second seconds sec secs s", 1000000},  {"minute minutes min mins m", 60000000},
    {"hour hours hr hrs h", 3600000000},     {"day days d", 86400000000},
    {"week weeks w", 604800000000},          {"month months mon mons", 2592000000000},
    {"year years yr yrs y", 31557600000000},
};

static int64_t unit_microseconds(const char *text, size_t len)
{
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        for (const char *name = units[i].names; *name;) {
            size_t n = strcspn(name, " ");
            if (n == len && strncasecmp(name, text, n) == 0)
                return units[i].microseconds;
            name += n + strspn(name + n, " ");
        }
    return 0;
}

struct cursor {
    const char *at, *end;
};

static void skip_spaces(struct cursor *c)
{
    while (c->at < c->end && (*c->at == ' ' || *c->at == '\t' || *c->at == '\n'))
        c->at++;
}

static bool at_digit(const struct cursor *c)
{
    return c->at < c->end && *c->at >= '0' && *c->at <= '9';
}

/* A decimal number of at most 15 digits, as digits and their power of ten. */
static bool decimal(struct cursor *c, int64_t *digits_out, int64_t *scale_out)
{
    int64_t digits = 0, scale = 1;
    int count = 0;
    bool fraction = false;
    for (; at_digit(c) || (!fraction && c->at < c->end && *c->at == '.'); c->at++) {
        if (*c->at == '.') {
            fraction = true;
            continue;
        }
        if (++count > 15)
            return false;
        digits = digits * 10 + (*c->at - '0');
        scale *= fraction ? 10 : 1;
    }
    *digits_out = digits;
    *scale_out = scale;
    return count > 0;
}

bool prb_interval_parse(const char *text, size_t len, int64_t *out)
{
    struct cursor c = {text, text + len};
    double sum = 0;
    bool any = false;
    for (skip_spaces(&c); c.at < c.end; skip_spaces(&c)) {
        double sign = *c.at == '-' ? -1 : 1;
        c.at += *c.at == '-' || *c.at == '+';
        int64_t digits, scale;
        if (!decimal(&c, &digits, &scale))
            return false;
        skip_spaces(&c);
        const char *unit = c.at;
        while (c.at < c.end && ((*c.at | 32) >= 'a' && (*c.at | 32) <= 'z'))
            c.at++;
        int64_t one = unit_microseconds(unit, (size_t)(c.at - unit));
        if (!one)
            return false;
        any = true;
        sum += sign * (double)digits / (double)scale * (double)one;
    }
    if (sum > 9e18 || sum < -9e18 || !any)
        return false;
    *out = (int64_t)(sum + (sum < 0 ? -0.5 : 0.5));
    return true;
}

/* ---- words rewritten inside a query ---- */

/* Each rewrites what begins at token i and moves *i to its last token; leaving *i alone and adding
 * no edit: not meant. */
typedef bool rewrite_fn(struct parse *parse, size_t *i, struct prb_error *err);

/* The interval of tokens i to *last_out; *last_out i: none begins here. */
static bool read_interval(const struct parse *parse, size_t i, size_t *last_out,
                          int64_t *microseconds_out, struct prb_error *err)
{
    const struct prb_token *amount = &parse->tokens[i + 1];
    size_t last = i + 1;
    char text[PRB_NAME_MAX];
    *last_out = i;
    if (amount->kind != PRB_TOKEN_STRING && amount->kind != PRB_TOKEN_NUMBER)
        return true;
    size_t used = prb_token_unquote(parse->text, amount, text, sizeof text);
    if (used >= sizeof text)
        return prb_query_fail(err, parse->text, parse->len, amount->offset,
                              "this interval is too long");
    const struct prb_token *unit = &parse->tokens[last + 1];
    /* interval 5 minute, interval '5' minute */
    if (unit->kind == PRB_TOKEN_WORD && unit_microseconds(parse->text + unit->offset, unit->len) &&
        strspn(text, "+-.0123456789") == used) {
        snprintf(text + used, sizeof text - used, " %.*s", (int)unit->len,
                 parse->text + unit->offset);
        last++;
    } else if (amount->kind == PRB_TOKEN_NUMBER) {
        return true;
    }
    if (!prb_interval_parse(text, strlen(text), microseconds_out)) {
        prb_query_fail(err, parse->text, parse->len, amount->offset, "not an interval: '%.60s'",
                       text);
        return prb_error_remedy(err,
                                "write it as interval '5 minutes' or interval '1 hour 30 min'");
    }
    *last_out = last;
    return true;
}

static bool interval(struct parse *parse, size_t *i, struct prb_error *err)
{
    size_t last;
    int64_t microseconds;
    char text[64];
    if (!read_interval(parse, *i, &last, &microseconds, err))
        return false;
    if (last == *i)
        return true;
    bool minus = microseconds < 0;
    uint64_t size = minus ? -(uint64_t)microseconds : (uint64_t)microseconds;
    snprintf(text, sizeof text, minus ? "(-%llu.%06llu)" : "%llu.%06llu",
             (unsigned long long)(size / 1000000), (unsigned long long)(size % 1000000));
    if (!edit(parse, *i, last, text, err))
        return false;
    *i = last;
    return true;
}

/* ---- now() as a constant ---- */

/* Words and operators that a sum may stand behind, and what may follow it: nothing binds tighter. */
static const char *const before_sum[] = {"=", "==", "<", "<=", ">", ">=", "between", "and", "("};
static const char *const after_sum[] = {"and",   "or",     "group", "order", "having", "limit",
                                        "union", "except", "then",  "as",    ")",      ","};

static bool is_one_of(const struct parse *parse, size_t i, const char *const *list, size_t count)
{
    for (size_t k = 0; k < count; k++)
        if (is_word(parse, i, list[k]) || is_operator(parse, i, list[k]))
            return true;
    return false;
}

/* Whether token i stands in a filter, where alone a constant helps. */
static void note_filter(struct parse *parse, size_t i)
{
    static const char *const begin[] = {"where", "on", "having"};
    static const char *const end[] = {"select", "from",  "group",  "order",
                                      "limit",  "union", "values", "window"};
    bool *filter = &parse->filters[parse->depth < DEPTH_MAX ? parse->depth : DEPTH_MAX - 1];
    if (is_one_of(parse, i, begin, sizeof begin / sizeof *begin)) {
        *filter = true;
    } else if (is_one_of(parse, i, end, sizeof end / sizeof *end)) {
        *filter = false;
    } else if (is_operator(parse, i, "(")) {
        if (++parse->depth < DEPTH_MAX)
            parse->filters[parse->depth] = *filter;
    } else if (is_operator(parse, i, ")") && parse->depth) {
        parse->depth--;
    }
}

/* A product of numbers, or an interval, from token i on: *last_out i - 1: none. */
static bool read_amount(const struct parse *parse, size_t i, size_t *last_out, double *out,
                        struct prb_error *err)
{
    *last_out = i - 1;
    if (is_word(parse, i, "interval")) {
        int64_t microseconds;
        size_t last;
        if (!read_interval(parse, i, &last, &microseconds, err))
            return false;
        if (last > i) {
            *last_out = last;
            *out = (double)microseconds / 1e6;
        }
        return true;
    }
    for (double product = 1;; i += 2) {
        const struct prb_token *token = &parse->tokens[i];
        const char *text = parse->text + token->offset;
        struct cursor c = {text, text + token->len};
        int64_t digits, scale;
        if (token->kind != PRB_TOKEN_NUMBER || !decimal(&c, &digits, &scale) || c.at != c.end)
            return true; /* not a product of plain numbers */
        product *= (double)digits / (double)scale;
        if (!is_operator(parse, i + 1, "*")) {
            *last_out = i;
            *out = product;
            return true;
        }
    }
}

/*
 * SQLite takes no function's value for a constant when it plans, so that a whole ring would be
 * fetched for the commonest filter of all.
 */
static bool fold_now(struct parse *parse, size_t *i, struct prb_error *err)
{
    size_t last = *i;
    double sum = parse->dialect->now;
    bool call = is_operator(parse, *i + 1, "(") && is_operator(parse, *i + 2, ")");
    bool filter = parse->depth < DEPTH_MAX && parse->filters[parse->depth];
    if (sum == 0 || !filter || !*i || (!call && is_word(parse, *i, "now")) ||
        !is_one_of(parse, *i - 1, before_sum, sizeof before_sum / sizeof *before_sum))
        return true;
    last += call ? 2 : 0;
    while (is_operator(parse, last + 1, "-") || is_operator(parse, last + 1, "+")) {
        double amount = 0;
        size_t end;
        if (!read_amount(parse, last + 2, &end, &amount, err))
            return false;
        if (end == last + 1)
            return true;
        sum += is_operator(parse, last + 1, "-") ? -amount : amount;
        last = end;
    }
    if (parse->tokens[last + 1].kind != PRB_TOKEN_END &&
        !is_one_of(parse, last + 1, after_sum, sizeof after_sum / sizeof *after_sum))
        return true;
    if (sum > 1e12 || sum < -1e12)
        return true;
    char text[64];
    bool minus = sum < 0;
    uint64_t size = (uint64_t)((minus ? -sum : sum) * 1e6 + 0.5);
    snprintf(text, sizeof text, minus ? "(-%llu.%06llu)" : "%llu.%06llu",
             (unsigned long long)(size / 1000000), (unsigned long long)(size % 1000000));
    if (!edit(parse, *i, last, text, err))
        return false;
    *i = last;
    return true;
}

static bool now(struct parse *parse, size_t *i, struct prb_error *err)
{
    return fold_now(parse, i, err);
}

static bool current_timestamp(struct parse *parse, size_t *i, struct prb_error *err)
{
    size_t first = *i, edits = parse->out->edit_count;
    if (!fold_now(parse, i, err))
        return false;
    if (parse->out->edit_count > edits || *i != first)
        return true;
    return edit(parse, *i, *i, is_operator(parse, *i + 1, "(") ? "now" : "now()", err);
}

static bool extract(struct parse *parse, size_t *i, struct prb_error *err)
{
    if (!is_operator(parse, *i + 1, "(") || parse->tokens[*i + 2].kind != PRB_TOKEN_WORD ||
        !is_word(parse, *i + 3, "from"))
        return true;
    char text[PRB_NAME_MAX + 16];
    const struct prb_token *unit = &parse->tokens[*i + 2];
    snprintf(text, sizeof text, "date_part('%.*s',", (int)(unit->len < 64 ? unit->len : 64),
             parse->text + unit->offset);
    if (!edit(parse, *i, *i + 3, text, err))
        return false;
    *i += 3;
    return true;
}

static const struct {
    const char *word;
    rewrite_fn *rewrite;
} rewrites[] = {
    {"interval", interval},
    {"current_timestamp", current_timestamp},
    {"extract", extract},
    {"now", now},
};

/* `global.` before a name. */
static bool is_global(const struct parse *parse, size_t i)
{
    return parse->dialect->global && is_word(parse, i, "global") &&
           is_operator(parse, i + 1, ".") && (i == 0 || !is_operator(parse, i - 1, "."));
}

static bool rewrite(struct parse *parse, struct prb_error *err)
{
    for (size_t i = 0; i + 1 < parse->count; i++) {
        if (parse->tokens[i].kind == PRB_TOKEN_VARIABLE)
            return prb_query_fail(err, parse->text, parse->len, parse->tokens[i].offset,
                                  "a parameter has no value here");
        note_filter(parse, i);
        if (is_global(parse, i)) {
            if (!edit(parse, i, i + 1, "", err))
                return false;
            i++;
            continue;
        }
        bool dotted = (i && is_operator(parse, i - 1, ".")) || is_operator(parse, i + 1, ".");
        for (size_t r = 0; r < sizeof rewrites / sizeof *rewrites && !dotted; r++)
            if (is_word(parse, i, rewrites[r].word)) {
                if (!rewrites[r].rewrite(parse, &i, err))
                    return false;
                break;
            }
    }
    struct prb_statement *out = parse->out;
    size_t copied = out->edit_count ? out->edits[out->edit_count - 1].offset +
                                          out->edits[out->edit_count - 1].len
                                    : out->offset;
    prb_buf_add(&out->sql, parse->text + copied, out->end - copied);
    if (!prb_buf_ok(&out->sql))
        return prb_nomem(err);
    out->kind = PRB_STATEMENT_QUERY;
    return true;
}

/* ---- statements of their own ---- */

/* %n: a table's name; %k: a dotted key; %v: the rest. */
static const struct {
    const char *form;
    enum prb_statement_kind kind;
} forms[] = {
    {"show tables", PRB_STATEMENT_SHOW_TABLES},
    {"show functions", PRB_STATEMENT_SHOW_FUNCTIONS},
    {"show all", PRB_STATEMENT_SHOW_SETTINGS},
    {"show settings", PRB_STATEMENT_SHOW_SETTINGS},
    {"show create table %n", PRB_STATEMENT_SHOW_CREATE},
    {"show columns from %n", PRB_STATEMENT_DESCRIBE},
    {"show columns in %n", PRB_STATEMENT_DESCRIBE},
    {"show %k", PRB_STATEMENT_SHOW_SETTING},
    {"describe table %n", PRB_STATEMENT_DESCRIBE},
    {"describe %n", PRB_STATEMENT_DESCRIBE},
    {"desc %n", PRB_STATEMENT_DESCRIBE},
    {"set %k = %v", PRB_STATEMENT_SET},
    {"set %k to %v", PRB_STATEMENT_SET},
};

static bool is_name(const struct prb_token *token)
{
    return token->kind == PRB_TOKEN_WORD || token->kind == PRB_TOKEN_QUOTED ||
           token->kind == PRB_TOKEN_STRING;
}

/* name or schema.name */
static size_t take_name(struct parse *parse, size_t i)
{
    struct prb_statement *out = parse->out;
    if (!is_name(&parse->tokens[i]))
        return 0;
    out->name_offset = parse->tokens[i].offset;
    out->schema[0] = '\0';
    if (!is_operator(parse, i + 1, ".")) {
        prb_token_unquote(parse->text, &parse->tokens[i], out->name, sizeof out->name);
        return 1;
    }
    if (!is_name(&parse->tokens[i + 2]))
        return 0;
    prb_token_unquote(parse->text, &parse->tokens[i], out->schema, sizeof out->schema);
    prb_token_unquote(parse->text, &parse->tokens[i + 2], out->name, sizeof out->name);
    return 3;
}

/* a.b.c */
static size_t take_key(struct parse *parse, size_t i)
{
    struct prb_statement *out = parse->out;
    size_t n = 0, used = 0;
    out->name_offset = parse->tokens[i].offset;
    for (;; n++) {
        if (!is_name(&parse->tokens[i + n]) || used + 1 >= sizeof out->name)
            return 0;
        used += prb_token_unquote(parse->text, &parse->tokens[i + n], out->name + used,
                                  sizeof out->name - used);
        n++;
        if (!is_operator(parse, i + n, ".") || used + 1 >= sizeof out->name)
            return n;
        out->name[used++] = '.';
    }
}

/* All to the end of the statement as it is; a single string without its quotes. */
static size_t take_value(struct parse *parse, size_t i)
{
    struct prb_statement *out = parse->out;
    size_t last = parse->count - 1; /* the END */
    if (i >= last)
        return 0;
    out->value_offset = parse->tokens[i].offset;
    if (i + 1 == last) {
        prb_token_unquote(parse->text, &parse->tokens[i], out->value, sizeof out->value);
        return 1;
    }
    size_t len = parse->tokens[last - 1].offset + parse->tokens[last - 1].len - out->value_offset;
    snprintf(out->value, sizeof out->value, "%.*s", (int)(len < PRB_SQL_MAX ? len : 0),
             parse->text + out->value_offset);
    return last - i;
}

/* How many tokens match the form; all of the statement's when *complete_out. */
static size_t match(struct parse *parse, const char *form, bool *complete_out)
{
    size_t i = 0;
    while (*form) {
        size_t len = strcspn(form, " "), taken;
        char word[32];
        snprintf(word, sizeof word, "%.*s", (int)len, form);
        if (strcmp(word, "%n") == 0)
            taken = take_name(parse, i);
        else if (strcmp(word, "%k") == 0)
            taken = take_key(parse, i);
        else if (strcmp(word, "%v") == 0)
            taken = take_value(parse, i);
        else
            taken = is_word(parse, i, word) || is_operator(parse, i, word);
        *complete_out = false;
        if (!taken)
            return i;
        i += taken;
        form += len + strspn(form + len, " ");
    }
    *complete_out = i + 1 == parse->count;
    return i;
}

/* Begins with SHOW, DESCRIBE or SET: one of the forms, or an error.  *own_out false: a query. */
static bool own_statement(struct parse *parse, bool *own_out, struct prb_error *err)
{
    size_t furthest = 0;
    *own_out = true;
    for (size_t f = 0; f < sizeof forms / sizeof *forms; f++) {
        bool complete;
        size_t matched = match(parse, forms[f].form, &complete);
        if (complete) {
            parse->out->kind = forms[f].kind;
            return true;
        }
        furthest = matched > furthest ? matched : furthest;
    }
    *own_out = furthest > 0;
    if (!furthest)
        return true;
    const struct prb_token *token = &parse->tokens[furthest];
    if (token->len)
        prb_query_fail(err, parse->text, parse->len, token->offset, "near \"%.*s\": syntax error",
                       (int)(token->len < 60 ? token->len : 60), parse->text + token->offset);
    else
        prb_query_fail(err, parse->text, parse->len, token->offset, "the statement ends too early");
    return prb_error_remedy(err, "forms: SHOW TABLES, DESCRIBE table, SHOW CREATE TABLE table, "
                                 "SHOW FUNCTIONS, SHOW ALL, SHOW key, SET key = value");
}

/* ---- the whole ---- */

static bool refuse_illegal(const struct parse *parse, const struct prb_token *token,
                           struct prb_error *err)
{
    char first = parse->text[token->offset];
    const char *what = first == '\''                    ? "a text that begins with ' is not closed"
                       : strchr("\"`[", first) && first ? "a quoted name is not closed"
                                                        : NULL;
    if (what)
        return prb_query_fail(err, parse->text, parse->len, token->offset, "%s", what);
    return prb_query_fail(err, parse->text, parse->len, token->offset,
                          "unrecognized token: \"%.*s\"", (int)(token->len < 60 ? token->len : 60),
                          parse->text + token->offset);
}

/* The tokens up to the semicolon or the end, which is the last one. */
static bool read_tokens(struct parse *parse, size_t *offset, struct prb_error *err)
{
    for (;;) {
        struct prb_token token = prb_token_at(parse->text, parse->len, *offset);
        *offset = token.offset + token.len;
        if (token.kind == PRB_TOKEN_SPACE)
            continue;
        if (token.kind == PRB_TOKEN_ILLEGAL)
            return refuse_illegal(parse, &token, err);
        bool last = token.kind == PRB_TOKEN_END || token.kind == PRB_TOKEN_SEMICOLON;
        if (last) {
            parse->out->end = token.offset;
            token = (struct prb_token){PRB_TOKEN_END, token.offset, 0};
        }
        if (!PRB_GROW(parse->tokens, parse->count, parse->cap))
            return prb_nomem(err);
        parse->tokens[parse->count++] = token;
        if (last)
            return true;
    }
}

static bool refuse_verb(const struct parse *parse, struct prb_error *err)
{
    static const char *const reading[] = {"SELECT", "WITH",     "VALUES", "EXPLAIN",
                                          "SHOW",   "DESCRIBE", "SET"};
    static const char *const changing[] = {
        "INSERT", "UPDATE",    "DELETE",  "REPLACE", "CREATE",  "DROP",     "ALTER",
        "ATTACH", "DETACH",    "PRAGMA",  "BEGIN",   "COMMIT",  "END",      "ROLLBACK",
        "VACUUM", "SAVEPOINT", "REINDEX", "RELEASE", "ANALYZE", "TRUNCATE", NULL};
    const struct prb_token *token = &parse->tokens[0];
    char verb[32];
    prb_token_unquote(parse->text, token, verb, sizeof verb);
    for (size_t i = 0; changing[i]; i++)
        if (strcasecmp(verb, changing[i]) == 0) {
            prb_query_fail(err, parse->text, parse->len, token->offset,
                           "%s is refused: queries only read", changing[i]);
            return prb_error_remedy(err, "use SELECT, SHOW TABLES or DESCRIBE");
        }
    prb_query_fail(err, parse->text, parse->len, token->offset, "near \"%.30s\": syntax error",
                   verb);
    const char *nearest = prb_nearest(verb, reading, sizeof reading / sizeof *reading);
    return nearest ? prb_error_remedy(err, "did you mean %s?", nearest)
                   : prb_error_remedy(err, "a statement begins with SELECT, WITH, VALUES, EXPLAIN, "
                                           "SHOW, DESCRIBE or SET");
}

bool prb_dialect_next(const struct prb_dialect *dialect, const char *text, size_t len,
                      size_t *offset, struct prb_statement *out, struct prb_error *err)
{
    if (len > PRB_SQL_MAX)
        return prb_fail(err, PRB_QUERY, "the SQL text has %zu bytes; at most %zu are taken", len,
                        PRB_SQL_MAX);
    static const struct prb_dialect plain;
    PRB_AUTO(parse)
    struct parse parse = {
        .dialect = dialect ? dialect : &plain, .text = text, .len = len, .out = out};
    *out = (struct prb_statement){.offset = *offset};
    bool own;
    if (!read_tokens(&parse, offset, err))
        return false;
    if (parse.count == 1)
        return true;
    if (!own_statement(&parse, &own, err))
        return false;
    if (own)
        return true;
    if (!is_word(&parse, 0, "select") && !is_word(&parse, 0, "with") &&
        !is_word(&parse, 0, "values") && !is_word(&parse, 0, "explain"))
        return refuse_verb(&parse, err);
    return rewrite(&parse, err);
}
