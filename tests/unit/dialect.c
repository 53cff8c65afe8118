/* sql: tokens, the dialect, intervals, excerpts, nearest names. */
#include "unit.h"

#include <stdio.h>

#include "base/nearest.h"
#include "sql/dialect.h"
#include "sql/excerpt.h"

/* ---- tokens ---- */

/* Kinds of all tokens but space, one letter each. */
static const char *kinds(const char *sql)
{
    static char out[256];
    static const char letters[] = "$ wqsbnvo;!";
    size_t n = 0, len = strlen(sql);
    for (size_t offset = 0;;) {
        struct prb_token token = prb_token_at(sql, len, offset);
        assert_int_equal(token.offset, offset);
        assert_true(token.offset + token.len <= len);
        if (token.kind == PRB_TOKEN_END)
            break;
        assert_true(token.len > 0);
        offset += token.len;
        if (token.kind != PRB_TOKEN_SPACE && n + 1 < sizeof out)
            out[n++] = letters[token.kind];
    }
    out[n] = '\0';
    return out;
}

static void tokens_of_each_kind(void **state)
{
    (void)state;
    static const struct {
        const char *sql, *kinds;
    } cases[] = {
        {"", ""},
        {" \t\n\f\r", ""},
        {"SELECT a,b FROM t;", "wwowww;"},
        {"a.b . c", "wowow"},
        {"'it''s' \"a\"\"b\" `x``y` [z ' \" z]", "sqqq"},
        {"'' \"\"", "sq"},
        {"-- comment ' \" [\nx", "w"},
        {"-- to the end", ""},
        {"/* a ; ' */x/* not closed '", "w"},
        {"/*/x", ""},
        {"/*", "oo"},
        {"a--b\n-c", "wow"},
        {"1 1.5 .5 1. 1e5 1.5E-3 0xfF 1e+2", "nnnnnnnn"},
        {"1e", "!"},
        {"1abc", "!"},
        {"0x", "!"},
        {"x'00ff' X'' x'0' x'0g'", "bb!!"},
        {"x 'a'", "ws"},
        {"? ?12 :name $name @name $a::b(c)", "vvvvvv"},
        {": $", "!!"},
        {"-> ->> == <= <> << >= >> != || = < > | & ~ + * / % ( ) , .", "oooooooooooooooooooooooo"},
        {"!x", "!w"},
        {"\\ ^ {", "!!!"},
        {"é日本_1$ ü", "ww"},
        {"\xef\xbb\xbfSELECT", "w"},
        {"'not closed", "!"},
        {"\"not closed", "!"},
        {"[not closed", "!"},
        {"'a''", "!"},
        {"select'x'from", "wsw"},
        {"SELECT/**/1", "wn"},
        {"1..2", "nn"},
        {"\x01", "!"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (strcmp(kinds(cases[i].sql), cases[i].kinds) != 0)
            fail_msg("%s: %s, not %s", cases[i].sql, kinds(cases[i].sql), cases[i].kinds);
}

static void tokens_end_at_the_length(void **state)
{
    (void)state;
    static const char *const texts[] = {"'abc'", "\"a\"\"b\"", "/* x */", "x'00'",  "1.5e-3",
                                        "->>",   "$a::b(c)",   "[a]",     "-- x\n", "\xef\xbb\xbf"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        for (size_t len = 0; len <= strlen(texts[i]); len++) {
            /* In memory of just this size, so that a sanitizer sees a byte too many. */
            char *copy = malloc(len ? len : 1);
            assert_non_null(copy);
            memcpy(copy, texts[i], len);
            for (size_t offset = 0; offset < len;) {
                struct prb_token token = prb_token_at(copy, len, offset);
                assert_true(token.len > 0 && token.offset + token.len <= len);
                offset += token.len;
            }
            free(copy);
        }
}

static void unquoting(void **state)
{
    (void)state;
    static const struct {
        const char *sql, *text;
    } cases[] = {{"'it''s'", "it's"}, {"\"a\"\"b\"", "a\"b"}, {"`a``b`", "a`b"},
                 {"[a b]", "a b"},    {"word", "word"},       {"''", ""},
                 {"''''", "'"}};
    char out[16];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct prb_token token = prb_token_at(cases[i].sql, strlen(cases[i].sql), 0);
        assert_int_equal(prb_token_unquote(cases[i].sql, &token, out, sizeof out),
                         strlen(cases[i].text));
        assert_string_equal(out, cases[i].text);
    }
    struct prb_token token = prb_token_at("'0123456789'", 12, 0);
    assert_int_equal(prb_token_unquote("'0123456789'", &token, out, 4), 10);
    assert_string_equal(out, "012");
}

/* ---- the dialect ---- */

static void parse(const char *sql, struct prb_statement *out)
{
    struct prb_error err;
    size_t offset = 0;
    assert_ok(prb_dialect_next(NULL, sql, strlen(sql), &offset, out, &err), err);
    assert_int_equal(offset, strlen(sql));
}

static void assert_rewritten(const char *from, const char *to)
{
    PRB_AUTO(prb_statement) struct prb_statement statement = {0};
    parse(from, &statement);
    assert_int_equal(statement.kind, PRB_STATEMENT_QUERY);
    assert_string_equal(statement.sql.data, to);
}

static void intervals_become_seconds(void **state)
{
    (void)state;
    assert_rewritten("SELECT now() - interval '5 minutes'", "SELECT now() - 300.000000");
    assert_rewritten("SELECT now()-INTERVAL'5 min'", "SELECT now()-300.000000");
    assert_rewritten("SELECT interval 5 minute, 1", "SELECT 300.000000, 1");
    assert_rewritten("SELECT interval '5' minute", "SELECT 300.000000");
    assert_rewritten("SELECT Interval /* ! */ '1 hour 30 min'", "SELECT 5400.000000");
    assert_rewritten("SELECT interval '-1 day'", "SELECT (-86400.000000)");
    assert_rewritten("SELECT interval '1.5 ms'", "SELECT 0.001500");
    assert_rewritten("SELECT interval 2 week + interval 1 year",
                     "SELECT 1209600.000000 + 31557600.000000");
}

static void what_only_looks_like_an_interval_stays(void **state)
{
    (void)state;
    static const char *const same[] = {
        "SELECT interval FROM t",
        "SELECT interval, '5 minutes' FROM t",
        "SELECT t.interval FROM t",
        "SELECT interval.x FROM interval",
        "SELECT 'interval ''5 minutes'''",
        "SELECT \"interval\" '5 minutes'",
        "SELECT [interval] '5 minutes'",
        "SELECT 1 -- interval '5 minutes'",
        "SELECT 1 /* interval '5 minutes' */",
        "SELECT interval - 5 FROM t",
        "SELECT myinterval, interval2",
        "SELECT interval 5",
        "SELECT 'current_timestamp', \"current_timestamp\"",
        "SELECT extract(x) FROM t",
        "SELECT 'déjà'",
    };
    for (size_t i = 0; i < sizeof same / sizeof *same; i++)
        assert_rewritten(same[i], same[i]);
}

static void other_words(void **state)
{
    (void)state;
    assert_rewritten("SELECT CURRENT_TIMESTAMP", "SELECT now()");
    assert_rewritten("SELECT current_timestamp()", "SELECT now()");
    assert_rewritten("SELECT extract(HOUR FROM t) FROM x", "SELECT date_part('HOUR', t) FROM x");
}

static void positions_lead_back(void **state)
{
    (void)state;
    PRB_AUTO(prb_statement) struct prb_statement statement = {0};
    const char *sql = "SELECT interval '5 minutes' + foo, interval 1 day + bar";
    parse(sql, &statement);
    for (const char *const *word = (const char *const[]){"SELECT", "foo", "bar", NULL}; *word;
         word++) {
        size_t place = (size_t)(strstr(statement.sql.data, *word) - statement.sql.data);
        size_t origin = prb_statement_origin(&statement, place);
        assert_memory_equal(sql + origin, *word, strlen(*word));
    }
    assert_int_equal(prb_statement_origin(&statement, 8), 7); /* inside the first number */
}

static void statements_are_split(void **state)
{
    (void)state;
    const char *sql = "SELECT ';' ; ;; -- x;\n SELECT 2;SHOW TABLES";
    const enum prb_statement_kind kinds_of[] = {PRB_STATEMENT_QUERY, PRB_STATEMENT_EMPTY,
                                                PRB_STATEMENT_EMPTY, PRB_STATEMENT_QUERY,
                                                PRB_STATEMENT_SHOW_TABLES};
    struct prb_error err;
    size_t offset = 0;
    for (size_t i = 0; i < 5; i++) {
        PRB_AUTO(prb_statement) struct prb_statement statement = {0};
        assert_ok(prb_dialect_next(NULL, sql, strlen(sql), &offset, &statement, &err), err);
        assert_int_equal(statement.kind, kinds_of[i]);
        if (i == 0)
            assert_string_equal(statement.sql.data, "SELECT ';' ");
    }
    assert_int_equal(offset, strlen(sql));
}

static void own_statements(void **state)
{
    (void)state;
    static const struct {
        const char *sql;
        enum prb_statement_kind kind;
        const char *schema, *name, *value;
    } cases[] = {
        {"show tables", PRB_STATEMENT_SHOW_TABLES, "", "", ""},
        {" /* x */ Show -- y\n TABLES ;", PRB_STATEMENT_SHOW_TABLES, "", "", ""},
        {"describe python.backtrace", PRB_STATEMENT_DESCRIBE, "python", "backtrace", ""},
        {"DESC threads", PRB_STATEMENT_DESCRIBE, "", "threads", ""},
        {"DESCRIBE TABLE \"python\".[back trace]", PRB_STATEMENT_DESCRIBE, "python", "back trace",
         ""},
        {"SHOW COLUMNS FROM x", PRB_STATEMENT_DESCRIBE, "", "x", ""},
        {"SHOW CREATE TABLE python.threads", PRB_STATEMENT_SHOW_CREATE, "python", "threads", ""},
        {"SHOW FUNCTIONS", PRB_STATEMENT_SHOW_FUNCTIONS, "", "", ""},
        {"SHOW ALL", PRB_STATEMENT_SHOW_SETTINGS, "", "", ""},
        {"SHOW probing.x", PRB_STATEMENT_SHOW_SETTING, "", "probing.x", ""},
        {"SET probing.a.b = on", PRB_STATEMENT_SET, "", "probing.a.b", "on"},
        {"set probing.a to 'it''s'", PRB_STATEMENT_SET, "", "probing.a", "it's"},
        {"SET a = on,exprs=loss@train, acc ;", PRB_STATEMENT_SET, "", "a",
         "on,exprs=loss@train, acc"},
        {"SET a = -1.5", PRB_STATEMENT_SET, "", "a", "-1.5"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        PRB_AUTO(prb_statement) struct prb_statement statement = {0};
        parse(cases[i].sql, &statement);
        assert_int_equal(statement.kind, cases[i].kind);
        if (statement.kind == PRB_STATEMENT_SHOW_TABLES ||
            statement.kind == PRB_STATEMENT_SHOW_FUNCTIONS ||
            statement.kind == PRB_STATEMENT_SHOW_SETTINGS)
            continue;
        assert_string_equal(statement.name, cases[i].name);
        if (statement.kind != PRB_STATEMENT_SET && statement.kind != PRB_STATEMENT_SHOW_SETTING)
            assert_string_equal(statement.schema, cases[i].schema);
        if (statement.kind == PRB_STATEMENT_SET)
            assert_string_equal(statement.value, cases[i].value);
    }
}

static void refusals_show_the_place(void **state)
{
    (void)state;
    static const struct {
        const char *sql, *text, *remedy;
    } cases[] = {
        {"SELECT 'abc",
         "a text that begins with ' is not closed (line 1, column 8)\n  SELECT 'abc\n         ^",
         ""},
        {"SELECT 1,\n  \"x", "a quoted name is not closed (line 2, column 3)\n    \"x\n    ^", ""},
        {"SELECT 1e", "unrecognized token: \"1e\" (line 1, column 8)", ""},
        {"SELCT 1", "near \"SELCT\": syntax error (line 1, column 1)", "did you mean SELECT?"},
        {"DELETE FROM t", "DELETE is refused: queries only read (line 1, column 1)", "use SELECT"},
        {"pragma x", "PRAGMA is refused: queries only read", "use SELECT"},
        {"SHOW CREATE VIEW x", "near \"VIEW\": syntax error (line 1, column 13)", "forms: "},
        {"DESCRIBE", "the statement ends too early (line 1, column 9)", "forms: "},
        {"SHOW TABLES x", "near \"x\": syntax error (line 1, column 13)", "forms: "},
        {"SET a", "the statement ends too early", "forms: "},
        {"SET a =", "the statement ends too early", "forms: "},
        {"SELECT interval '5 minuets'", "not an interval: '5 minuets' (line 1, column 17)",
         "write it as"},
        {"SELECT interval ''", "not an interval: ''", "write it as"},
        {"SELECT ?1", "a parameter has no value here (line 1, column 8)", ""},
        {"SELECT 'é', :x", "a parameter has no value here (line 1, column 13)", ""},
        {"(SELECT 1)", "near \"(\": syntax error", "a statement begins with"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        PRB_AUTO(prb_statement) struct prb_statement statement = {0};
        struct prb_error err = {0};
        size_t offset = 0;
        assert_false(
            prb_dialect_next(NULL, cases[i].sql, strlen(cases[i].sql), &offset, &statement, &err));
        assert_int_equal(err.code, PRB_QUERY);
        if (strncmp(err.text, cases[i].text, strlen(cases[i].text)) != 0 ||
            strncmp(err.remedy, cases[i].remedy, strlen(cases[i].remedy)) != 0)
            fail_msg("%s: %s / %s", cases[i].sql, err.text, err.remedy);
    }
}

static void long_texts(void **state)
{
    (void)state;
    const size_t len = PRB_SQL_MAX;
    char *sql = malloc(len + 2);
    assert_non_null(sql);
    memset(sql, ' ', len + 2);
    memcpy(sql, "SELECT interval '5 min'", 23);
    PRB_AUTO(prb_statement) struct prb_statement statement = {0};
    struct prb_error err;
    size_t offset = 0;
    assert_ok(prb_dialect_next(NULL, sql, len, &offset, &statement, &err), err);
    offset = 0;
    prb_statement_deinit(&statement);
    assert_false(prb_dialect_next(NULL, sql, len + 1, &offset, &statement, &err));
    assert_non_null(strstr(err.text, "at most 1048576"));
    /* An error far behind: the excerpt shows its surroundings only. */
    memset(sql, 'a', len);
    memcpy(sql, "SELECT ", 7);
    sql[len - 1] = '\'';
    offset = 0;
    assert_false(prb_dialect_next(NULL, sql, len, &offset, &statement, &err));
    assert_non_null(strstr(err.text, "column 1048576"));
    assert_true(strlen(err.text) < 200);
    /* A name and a value longer than their places are cut, not overrun. */
    memset(sql, 'a', 4000);
    memcpy(sql, "SET ", 4);
    memcpy(sql + 2000, " = ", 3);
    offset = 0;
    prb_dialect_next(NULL, sql, 4000, &offset, &statement, &err);
    prb_statement_deinit(&statement);
    free(sql);
}

static void interval_texts(void **state)
{
    (void)state;
    static const char *const bad[] = {"",        " ",          "5",
                                      "minutes", "5 foo",      "5 minutes 3",
                                      "1.2.3 s", "1e5 s",      "9999999999999999 s",
                                      "- s",     "5 minutes;", "99999999999999 years"};
    int64_t out = 0;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (prb_interval_parse(bad[i], strlen(bad[i]), &out))
            fail_msg("'%s' is no interval", bad[i]);
    assert_true(prb_interval_parse("1 year 2 mons 3 days 4h5m6s", 27, &out));
    assert_int_equal(out / 1000000, 31557600 + 2 * 2592000 + 3 * 86400 + 4 * 3600 + 5 * 60 + 6);
}

/* ---- help for mistypes ---- */

static void distances(void **state)
{
    (void)state;
    assert_int_equal(prb_edit_distance("", ""), 0);
    assert_int_equal(prb_edit_distance("abc", ""), 3);
    assert_int_equal(prb_edit_distance("Kitten", "sitting"), 3);
    assert_int_equal(prb_edit_distance("backtrace", "bakctrace"), 1);
    static const char *const names[] = {"python.backtrace", "python.threads"};
    assert_string_equal(prb_nearest("python.backtrac", names, 2), names[0]);
    assert_string_equal(prb_nearest("PYTHON.THREAD", names, 2), names[1]);
    assert_null(prb_nearest("python.torch_trace", names, 2));
    assert_null(prb_nearest("", names, 2));
}

static void excerpt_of_unicode(void **state)
{
    (void)state;
    struct prb_error err;
    const char *sql = "SELECT\n'日本語', x\tFROM y";
    prb_query_fail(&err, sql, strlen(sql), (size_t)(strchr(sql, 'x') - sql), "no %s", "x");
    assert_string_equal(err.text, "no x (line 2, column 8)\n  '日本語', x FROM y\n         ^");
    prb_query_fail(&err, "", 0, 5, "empty");
    assert_string_equal(err.text, "empty (line 1, column 1)\n  \n  ^");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokens_of_each_kind),
        cmocka_unit_test(tokens_end_at_the_length),
        cmocka_unit_test(unquoting),
        cmocka_unit_test(intervals_become_seconds),
        cmocka_unit_test(what_only_looks_like_an_interval_stays),
        cmocka_unit_test(other_words),
        cmocka_unit_test(positions_lead_back),
        cmocka_unit_test(statements_are_split),
        cmocka_unit_test(own_statements),
        cmocka_unit_test(refusals_show_the_place),
        cmocka_unit_test(long_texts),
        cmocka_unit_test(interval_texts),
        cmocka_unit_test(distances),
        cmocka_unit_test(excerpt_of_unicode),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
