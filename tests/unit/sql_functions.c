/* sql: what the functions and aggregates give. */
#include "numbers.h"

static const struct prb_table *const tables[] = {&numbers};

static struct prb_db *open_db(void)
{
    struct prb_error err;
    struct prb_db *db = prb_db_open_tables(NULL, tables, 1, &err);
    if (!db)
        fail_msg("%s", err.text);
    return db;
}

static void times(void **state)
{
    (void)state;
    PRB_AUTO(prb_db) struct prb_db *db = open_db();
    static const struct {
        const char *expression, *value;
    } cases[] = {
        {"hour(7200)", "2"},
        {"hour(-1)", "23"},
        {"minute(3599.9)", "59"},
        {"second(61)", "1"},
        {"day(0), month(0), year(0)", "1,1,1970"},
        {"year(-0.5)", "1969"},
        {"date_trunc('hour', 7300.5)", "7200"},
        {"date_trunc('HOUR', -1)", "-3600"},
        {"date_trunc('week', 345600 + 5)", "345600"},
        {"from_unixtime(date_trunc('month', to_timestamp('2026-02-28T23:59:59Z')))",
         "'2026-02-01 00:00:00.000'"},
        {"from_unixtime(date_trunc('quarter', to_timestamp('2026-06-30')))",
         "'2026-04-01 00:00:00.000'"},
        {"from_unixtime(date_trunc('year', to_timestamp('2024-02-29')))",
         "'2024-01-01 00:00:00.000'"},
        {"date_trunc('millisecond', 1.23456)", "1.234"},
        {"to_timestamp('1970-01-02 00:00')", "86400"},
        {"to_timestamp('1970-01-01T01:00:00.25+01:00')", "0.25"},
        {"to_timestamp('1969-12-31T23:00-0100')", "0"},
        {"to_timestamp(5), to_timestamp('7.5')", "5,7.5"},
        {"to_timestamp('yesterday'), to_timestamp('2026-13-01'), to_timestamp(NULL)",
         "NULL,NULL,NULL"},
        {"hour(NULL), hour('x'), hour(1e300), hour(-1e300)", "NULL,NULL,NULL,NULL"},
        {"date_part('doy', 86400), date_part('dow', 0), date_part('epoch', 5)", "2,4,5"},
        {"date_part('week', to_timestamp('2026-01-01'))", "1"},
        {"extract(minute from 60)", "1"},
        {"now() = now(), now() > 1.7e9, typeof(now())", "1,1,'real'"},
        {"typeof(now() - interval '5 minutes'), now() - (now() - interval '5 min')", "'real',300"},
        {"current_timestamp - now()", "0"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char sql[300], expected[100];
        snprintf(sql, sizeof sql, "SELECT %s", cases[i].expression);
        snprintf(expected, sizeof expected, "%s|", cases[i].value);
        assert_values(db, sql, expected);
    }
    assert_refused(db, "SELECT date_trunc('fortnight', 0)", "'fortnight' is not a part of a time",
                   "");
    assert_refused(db, "SELECT date_trunc('dow', 0)", "date_trunc cuts to", "");
}

static void aggregates(void **state)
{
    (void)state;
    PRB_AUTO(prb_db) struct prb_db *db = open_db();
    assert_values(
        db, "SELECT median(n), quantile(n, 0), quantile(n, 1), quantile(n, 0.25) FROM numbers(5)",
        "2,0,4,1|");
    assert_values(db, "SELECT median(n), quantile(n, 0.9) FROM numbers(2)", "0.5,0.9|");
    assert_values(db, "SELECT median(n), stddev(n), stddev_pop(n), var(n) FROM numbers(0)",
                  "NULL,NULL,NULL,NULL|");
    assert_values(db, "SELECT median(text), stddev(costly) FROM numbers(1)", "NULL,NULL|");
    assert_values(db, "SELECT stddev(n), stddev_pop(n), var(n) FROM numbers(1)", "NULL,0,NULL|");
    assert_values(
        db, "SELECT var(n), var_samp(n), variance(n), var_pop(n), stddev_samp(n) FROM numbers(4)",
        "1.66667,1.66667,1.66667,1.25,1.29099|");
    assert_values(db, "SELECT var_pop(n + 1e9) FROM numbers(4)", "1.25|");
    assert_values(db, "SELECT n % 2, median(n) FROM numbers(5) GROUP BY 1", "0,2|1,2|");
    assert_refused(db, "SELECT quantile(n, 2) FROM numbers", "p must be from 0 to 1", "");
    assert_refused(db, "SELECT quantile(n, NULL) FROM numbers", "p must be from 0 to 1", "");
}

static void regular_expressions(void **state)
{
    (void)state;
    PRB_AUTO(prb_db) struct prb_db *db = open_db();
    assert_values(db, "SELECT 'forward_1' REGEXP '^for.*_[0-9]+$', 'x' REGEXP 'y', NULL REGEXP 'x'",
                  "1,0,NULL|");
    assert_values(db, "SELECT regexp_like('abc', 'b'), 5 REGEXP '^5$'", "1,1|");
    assert_values(db, "SELECT 'aaa' REGEXP '^(a{3}|[]^x[:digit:]]+)$' AS a, 'a+' REGEXP 'a\\+'",
                  "1,1|");
    assert_values(db, "SELECT count(*) FROM numbers(1000) WHERE n REGEXP '^9+$'", "3|");
    assert_refused(db, "SELECT 'x' REGEXP '('", "bad regular expression", "");
    assert_refused(db, "SELECT 'x' REGEXP '(x)\\1'", "back references", "");
    assert_refused(db, "SELECT 'x' REGEXP '((x{255}){255}){255}'", "repeats too much", "");
    assert_refused(db, "SELECT 'x' REGEXP 'x{1,99999999999999999999}'", "repeats too much", "");
    assert_refused(
        db, "SELECT 'x' REGEXP '((((((((((((((((((((x)+)+)+)+)+)+)+)+)+)+)+)+)+)+)+)+)+)+)+)+'",
        "repeats too much", "");
    assert_refused(db, "SELECT 'x' REGEXP printf('%.*c', 1001, 'x')", "longer than 1000", "");
    assert_refused(db, "SELECT 'x' REGEXP printf('%.*c', 60, '(')", "groups in groups", "");
    assert_refused(db, "SELECT printf('%.*c', 2000000, 'x') REGEXP 'x'", "longer than 1 MiB", "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times),
        cmocka_unit_test(aggregates),
        cmocka_unit_test(regular_expressions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
