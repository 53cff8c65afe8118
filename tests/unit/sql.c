/* sql: the engine over tables made up here and in numbers.h. */
#include <math.h>

#include "numbers.h"

#include "inspect/reading.h"

/* ---- more made-up tables ---- */

static const struct prb_column short_columns[] = {
    {"a", PRB_INTEGER, "", "first"}, {"b", PRB_TEXT, "", "seldom filled"}, {0}};

static bool fill_short(struct prb_rows *rows, struct prb_error *err)
{
    (void)err;
    fills++;
    prb_row_begin(rows);
    prb_row_int(rows, 1);
    prb_row_begin(rows);
    prb_row_null(rows);
    prb_row_text(rows, "\xc3\xa9\xff\xe2\x82"); /* cut within a character */
    return true;
}

static const struct prb_table short_rows = {.schema = "main",
                                            .name = "short_rows",
                                            .doc = "rows with missing cells",
                                            .columns = short_columns,
                                            .needs = PRB_NEED_LOCALS,
                                            .fill = fill_short};

static bool fill_broken(struct prb_rows *rows, struct prb_error *err)
{
    (void)rows;
    prb_fail(err, PRB_GONE, "process 7 ended");
    return prb_error_remedy(err, "look at another one");
}

static const struct prb_table broken = {.schema = "fake",
                                        .name = "broken",
                                        .doc = "cannot be read",
                                        .columns = short_columns,
                                        .fill = fill_broken};

static const struct prb_table of_target = {.schema = "fake",
                                           .name = "of_target",
                                           .doc = "wants a target",
                                           .columns = short_columns,
                                           .needs_target = true,
                                           .fill = fill_short};

static bool fill_stacks(struct prb_rows *rows, struct prb_error *err)
{
    const struct prb_stacks *stacks = prb_rows_stacks(rows, err);
    if (!stacks)
        return false;
    prb_row_begin(rows);
    prb_row_real(rows, stacks->time);
    return true;
}

static const struct prb_column time_columns[] = {{"time", PRB_REAL, "s", "of the stacks"}, {0}};
static const struct prb_table stacks_a = {
    .schema = "fake", .name = "stacks_a", .doc = "", .columns = time_columns, .fill = fill_stacks};
static const struct prb_table stacks_b = {.schema = "fake",
                                          .name = "stacks_b",
                                          .doc = "",
                                          .columns = time_columns,
                                          .needs = PRB_NEED_NATIVE,
                                          .fill = fill_stacks};

static const struct prb_column moment_columns[] = {
    {"timestamp", PRB_REAL, "s", ""}, {"n", PRB_INTEGER, "", "the same"}, {0}};

/* Leaves out what it may, so that its rows are others for other times. */
static bool fill_moments(struct prb_rows *rows, struct prb_error *err)
{
    (void)err;
    const struct prb_times *times = prb_rows_times(rows);
    fills++;
    for (int i = 0; i < 10; i++) {
        if (times->column && (i < times->least || i > times->most))
            continue;
        prb_row_begin(rows);
        prb_row_real(rows, i);
        prb_row_int(rows, i);
    }
    return true;
}

static const struct prb_table moments = {.schema = "fake",
                                         .name = "moments",
                                         .doc = "",
                                         .columns = moment_columns,
                                         .timed = true,
                                         .fill = fill_moments};

/* Leaves out nothing, and has what a time's column may hold besides. */
static bool fill_odd_moments(struct prb_rows *rows, struct prb_error *err)
{
    (void)err;
    static const double reals[] = {-INFINITY, -2, 1.5, 3, 0x1p53, INFINITY, NAN};
    static const int64_t integers[] = {-3, 0, 3, (INT64_C(1) << 53) + 1, INT64_MAX};
    for (size_t i = 0; i < sizeof reals / sizeof *reals; i++) {
        prb_row_begin(rows);
        prb_row_real(rows, reals[i]);
    }
    for (size_t i = 0; i < sizeof integers / sizeof *integers; i++) {
        prb_row_begin(rows);
        prb_row_int(rows, integers[i]);
    }
    prb_row_begin(rows);
    prb_row_null(rows);
    return true;
}

static const struct prb_table odd_moments = {.schema = "fake",
                                             .name = "odd_moments",
                                             .doc = "",
                                             .columns = moment_columns,
                                             .timed = true,
                                             .fill = fill_odd_moments};

static const struct prb_table *const tables[] = {&numbers,  &short_rows, &broken,  &of_target,
                                                 &stacks_a, &stacks_b,   &moments, &odd_moments};

static struct prb_db *open_db(void)
{
    struct prb_error err;
    struct prb_db *db = prb_db_open_tables(NULL, tables, sizeof tables / sizeof *tables, &err);
    if (!db)
        fail_msg("%s", err.text);
    fills = 0;
    needs_seen = 0;
    return db;
}

/* ---- cases ---- */

static void values_come_as_they_are(void **state)
{
    (void)state;
    PRB_AUTO(prb_db) struct prb_db *db = open_db();
    assert_rows(db, "SELECT * FROM fake.numbers",
                "n,big,real,text,costly,kind|0,9223372036854775807,0,NULL,NULL,'a'|"
                "1,9223372036854775806,0.5,'odd',NULL,'a'|2,9223372036854775805,1,NULL,NULL,'a'|");
    assert_rows(db, "select a, b from short_rows",
                "a,b|1,NULL|NULL,'é\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd'|");
    assert_rows(db, "SELECT -9223372036854775808 AS x, x'0061' AS b, 7 / 2 AS d, 'a' || x'' AS t",
                "x,b,d,t|-9223372036854775808,blob,3,'a'|");
    assert_rows(db, "SELECT n FROM numbers WHERE 0", "n|");
}

static void arguments_are_pushed_down(void **state)
{
    (void)state;
    PRB_AUTO(prb_db) struct prb_db *db = open_db();
    assert_values(db, "SELECT count(*) FROM fake.numbers(10)", "10|");
    assert_values(db, "SELECT count(*), max(up_to) FROM numbers WHERE up_to = 4", "4,4|");
    assert_values(db, "SELECT text FROM numbers(2, 'it''s') WHERE text IS NOT NULL", "'it's'|");
    assert_values(db, "SELECT count(*) FROM numbers WHERE up_to IN (1, 2, 4)", "7|");
    /* The argument comes from another table: that one goes first. */
    fills = 0;
    assert_values(db,
                  "SELECT a.n, count(b.n) FROM fake.numbers a JOIN fake.numbers b ON b.up_to = a.n "
                  "GROUP BY a.n",
                  "1,1|2,2|");
    assert_int_equal(fills, 4); /* a, and b for 0, 1 and 2 */
    assert_refused(db, "SELECT * FROM numbers WHERE up_to > 3", "only up_to = value", "");
    assert_refused(db, "SELECT * FROM numbers(1, 2, 3)", "too many arguments", "");
}

/* Rows by an integer column: the same rows as by comparing, whatever the type of the other side. */
static void joins_look_rows_up(void **state)
{
    (void)state;
    PRB_AUTO(prb_db) struct prb_db *db = open_db();
    static const char *const terms[] = {
        "n = 3",
        "n = 3.0",
        "n = '3'",
        "n = 2.5",
        "n = NULL",
        "n IN (1, 3, 99, NULL)",
        "n = 3 AND big = 9223372036854775804",
        "n = 3 AND n = 4",
        "n = -1",
        "big = 9223372036854775807",
        "n = 3 OR n = 5",
        "n IS 3",
        "n = 3 AND text = 'odd'",
    };
    for (size_t i = 0; i < sizeof terms / sizeof *terms; i++) {
        char sql[300];
        snprintf(sql, sizeof sql,
                 "SELECT (SELECT group_concat(n) FROM numbers(9) WHERE %s) IS "
                 "(SELECT group_concat(n) FROM (SELECT CAST(n AS INTEGER) AS n, CAST(big AS "
                 "INTEGER) AS big, text FROM numbers(9)) "
                 "WHERE %s)",
                 terms[i], terms[i]);
        assert_values(db, sql, "1|");
    }
    assert_values(db,
                  "SELECT count(*) FROM numbers(20000) a JOIN numbers(20000) b ON b.n = a.n AND "
                  "b.big = a.big",
                  "20000|");
    assert_values(
        db,
        "SELECT group_concat(s.rowid), count(s.a) FROM short_rows s JOIN numbers n ON s.a = n.n",
        "'0',1|");
    /* Ties keep the order of the rows; rows without the cell are not found. */
    assert_values(db, "SELECT group_concat(n) FROM numbers(5) WHERE n - n = 0", "'0,1,2,3,4'|");
    assert_values(db, "SELECT count(*) FROM short_rows x JOIN short_rows y ON x.a = y.a", "1|");
}

/* An OR whose sides are looked up is read once for each side, and its rows are told apart by their
 * rowids. */
static void rows_of_an_or_are_neither_lost_nor_doubled(void **state)
{
    (void)state;
    PRB_AUTO(prb_db) struct prb_db *db = open_db();
    static const struct {
        const char *terms, *rows;
    } cases[] = {
        {"n = 2 OR n = 7", "'2,7'|"},
        {"(n = 2 AND timestamp >= 2) OR (n = 7 AND timestamp >= 7)", "'2,7'|"},
        {"(n = 2 AND timestamp >= 1) OR (n = 2 AND timestamp >= 2)", "'2'|"},
        {"(n = 1 AND timestamp < 5) OR (n = 8 AND timestamp > 7)", "'1,8'|"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char sql[200];
        snprintf(sql, sizeof sql,
                 "SELECT group_concat(n) FROM (SELECT n FROM moments WHERE %s ORDER BY n)",
                 cases[i].terms);
        assert_values(db, sql, cases[i].rows);
    }
    fills = 0;
    assert_values(db, "SELECT count(*) FROM moments WHERE timestamp > 3 AND timestamp < 6", "2|");
    assert_values(db, "SELECT count(*) FROM numbers(3) JOIN moments USING (n) WHERE timestamp > 0",
                  "2|");
    assert_values(db, "SELECT count(*) FROM numbers WHERE up_to = 2 OR up_to = 3", "5|");
}

/* The cursor checks what is said of a time, and SQLite does not again: a CAST it must check itself. */
static void times_are_compared_as_sqlite_does(void **state)
{
    (void)state;
    PRB_AUTO(prb_db) struct prb_db *db = open_db();
    static const char *const values[] = {"0",
                                         "3",
                                         "3.0",
                                         "1.5",
                                         "-1e400",
                                         "1e400",
                                         "9007199254740992",
                                         "9007199254740993",
                                         "9007199254740993.0",
                                         "9223372036854775807",
                                         "9223372036854775808.0",
                                         "NULL",
                                         "'3'",
                                         "'3x'",
                                         "''",
                                         "x'33'"};
    static const char *const operators[] = {"<", "<=", ">", ">="};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        for (size_t j = 0; j < sizeof operators / sizeof *operators; j++) {
            char sql[400];
            snprintf(sql, sizeof sql,
                     "SELECT (SELECT group_concat(ifnull(timestamp, 'none')) FROM odd_moments"
                     " WHERE timestamp %s %s) IS (SELECT group_concat(ifnull(timestamp, 'none'))"
                     " FROM odd_moments WHERE CAST(timestamp AS NUMERIC) %s %s)",
                     operators[j], values[i], operators[j], values[i]);
            assert_values(db, sql, "1|");
        }
    }
    assert_values(db, "SELECT count(*) FROM odd_moments", "13|");
    assert_values(db, "SELECT count(*) FROM odd_moments WHERE timestamp BETWEEN -2 AND 3", "5|");
    assert_values(db, "SELECT count(*) FROM odd_moments WHERE timestamp > 0 AND timestamp > 2",
                  "6|");
    assert_values(db,
                  "SELECT count(*), count(m.n) FROM numbers(5) LEFT JOIN moments m ON"
                  " m.timestamp > 2 AND m.timestamp < numbers.n",
                  "5,1|");
}

static void a_table_is_filled_once_in_a_statement(void **state)
{
    (void)state;
    PRB_AUTO(prb_db) struct prb_db *db = open_db();
    assert_values(db,
                  "SELECT count(*) FROM numbers a, numbers b, numbers c WHERE a.n <= (SELECT "
                  "max(n) FROM numbers)",
                  "27|");
    assert_int_equal(fills, 1);
    assert_values(db, "SELECT 1 FROM short_rows; SELECT 2 FROM short_rows", "1|1|2|2|2|");
}

static void needs_are_known_before_the_first_row(void **state)
{
    (void)state;
    PRB_AUTO(prb_db) struct prb_db *db = open_db();
    if (!sqlite_tells())
        skip();
    static const struct {
        const char *sql;
        unsigned needs;
    } cases[] = {
        {"SELECT n FROM numbers", 0},
        {"SELECT * FROM numbers", PRB_NEED_LOCALS},
        {"SELECT n FROM numbers WHERE costly IS NULL", PRB_NEED_LOCALS},
        {"SELECT n FROM numbers ORDER BY costly", PRB_NEED_LOCALS},
        {"SELECT n, kind FROM numbers", 0},
        {"SELECT n FROM numbers WHERE kind = 'a'", 0},
        {"SELECT n FROM numbers WHERE kind = 'b'", PRB_NEED_NATIVE},
        {"SELECT n FROM numbers WHERE kind <> 'a'", PRB_NEED_NATIVE},
        {"SELECT n FROM numbers WHERE kind IN ('a', 'b')", PRB_NEED_NATIVE},
        {"SELECT n FROM numbers, short_rows", PRB_NEED_LOCALS},
        {"SELECT n FROM numbers WHERE n = (SELECT max(a) FROM short_rows)", PRB_NEED_LOCALS},
        {"SELECT n FROM numbers UNION ALL SELECT costly FROM numbers", PRB_NEED_LOCALS},
        {"WITH x AS (SELECT n FROM numbers WHERE kind = 'b') SELECT numbers.n FROM numbers, x",
         PRB_NEED_NATIVE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        PRB_AUTO(prb_buf) struct prb_buf out = {0};
        struct prb_error err;
        needs_seen = 0;
        assert_ok(prb_db_query(db, cases[i].sql, collect, &out, &err), err);
        if (needs_seen != cases[i].needs)
            fail_msg("%s: needs %u, not %u", cases[i].sql, needs_seen, cases[i].needs);
    }
    assert_values(db, "SELECT count(costly) FROM numbers", "0|");
    assert_true(costly_wanted);
    assert_values(db, "SELECT count(n) FROM numbers", "3|");
    assert_false(costly_wanted);
}

static int stacks_taken;
static struct prb_stack_options options_seen;

static struct prb_stacks *take_fake_stacks(struct prb_target *target,
                                           const struct prb_stack_options *options,
                                           struct prb_error *err)
{
    (void)target;
    if (stacks_taken >= 100)
        return PRB_NULL(prb_fail(err, PRB_GONE, "process 9 ended"));
    stacks_taken++;
    options_seen = *options;
    /* Made as a reading makes them, so that prb_stacks_free frees them. */
    struct prb_stacks_box *box = calloc(1, sizeof *box);
    assert_non_null(box);
    box->stacks.time = stacks_taken;
    box->stacks.warning = stacks_taken == 2 ? "one thread is missing" : NULL;
    return &box->stacks;
}

static void stacks_are_taken_once(void **state)
{
    (void)state;
    PRB_AUTO(prb_db) struct prb_db *db = open_db();
    db->take_stacks = take_fake_stacks;
    stacks_taken = 0;
    assert_values(db,
                  "SELECT a.time, b.time, (SELECT time FROM stacks_a) FROM stacks_a a, stacks_b b",
                  "1,1,1|");
    assert_int_equal(stacks_taken, 1);
    assert_true(options_seen.native && options_seen.all_interpreters && !options_seen.locals);
    assert_values(db, "SET probing.repr_limit = 99; SELECT time FROM stacks_a", "2|");
    assert_false(options_seen.native);
    assert_int_equal(options_seen.repr_limit, 99);
    assert_string_equal(prb_db_warning(db), "one thread is missing");
    prb_db_warn(db, "so is %s", "another");
    prb_db_warn(db, "one thread");
    prb_db_warn(db, "one thread is missing");
    assert_string_equal(prb_db_warning(db), "one thread is missing\nso is another\none thread");
    assert_values(db, "SELECT time FROM stacks_a", "3|");
    assert_null(prb_db_warning(db));
    stacks_taken = 100;
    struct prb_error err = refused(db, "SELECT * FROM stacks_a");
    assert_int_equal(err.code, PRB_GONE);
}

static void failures_of_a_table_are_the_query_s(void **state)
{
    (void)state;
    PRB_AUTO(prb_db) struct prb_db *db = open_db();
    struct prb_error err = refused(db, "SELECT * FROM broken");
    assert_int_equal(err.code, PRB_GONE);
    assert_string_equal(err.text, "process 7 ended");
    assert_string_equal(err.remedy, "look at another one");
    err = refused(db, "SELECT n FROM numbers WHERE n IN (SELECT a FROM broken)");
    assert_int_equal(err.code, PRB_GONE);
    err = refused(db, "SELECT * FROM of_target");
    assert_int_equal(err.code, PRB_USAGE);
    assert_rows(db, "SELECT 1 AS x", "x|1|");
}

static void only_reading(void **state)
{
    (void)state;
    PRB_AUTO(prb_db) struct prb_db *db = open_db();
    static const char *const statements[] = {
        "INSERT INTO numbers(n) VALUES (1)",
        "UPDATE numbers SET n = 1",
        "DELETE FROM numbers",
        "CREATE TABLE t(x)",
        "CREATE TEMP TABLE t(x)",
        "DROP TABLE fake.numbers",
        "CREATE VIRTUAL TABLE t USING prb",
        "ATTACH '/tmp/x' AS x",
        "DETACH fake",
        "PRAGMA writable_schema=1",
        "VACUUM INTO '/tmp/x'",
        "VACUUM",
        "BEGIN",
        "COMMIT",
        "SAVEPOINT a",
        "ANALYZE",
        "REINDEX",
        "CREATE VIEW v AS SELECT 1",
        "ALTER TABLE numbers RENAME TO x",
        "REPLACE INTO numbers(n) VALUES(1)",
        "WITH x AS (SELECT 1) DELETE FROM numbers",
        "WITH x AS (SELECT 1) INSERT INTO numbers(n) SELECT 1",
        "EXPLAIN DELETE FROM numbers",
        "SELECT * FROM pragma_database_list",
        "EXPLAIN PRAGMA encoding",
        "WITH x AS (SELECT 1) UPDATE sqlite_master SET sql = ''",
    };
    for (size_t i = 0; i < sizeof statements / sizeof *statements; i++)
        assert_refused(db, statements[i], "is refused: queries only read", "use SELECT");
    assert_refused(db, "SELECT * FROM pragma_table_info('numbers')", " is refused", "DESCRIBE");
    assert_refused(db, "SELECT load_extension('x')", "", "");
    assert_refused(db, "SELECT fts3_tokenizer('x')", "", "");
    assert_refused(db, "SELECT * FROM prb", "no such table: prb", "tables: ");
    PRB_AUTO(prb_buf) struct prb_buf out = {0};
    struct prb_error err;
    assert_ok(prb_db_query(db, "EXPLAIN QUERY PLAN SELECT n FROM numbers", collect, &out, &err),
              err);
    assert_non_null(strstr(out.data, "VIRTUAL TABLE"));
}

/* SQLite before 3.38 tells no place, that since 3.41 words it otherwise. */
static void a_text_in_double_quotes(void **state)
{
    (void)state;
    PRB_AUTO(prb_db) struct prb_db *db = open_db();
    assert_refused(db, "SELECT * FROM numbers WHERE text = \"odd.one\"",
                   "no such column: odd.one (line 1, column 36)",
                   "text stands in single quotes: 'odd.one'");
    assert_refused(db, "SELECT * FROM numbers WHERE text = \"odd one\"",
                   "no such column: odd one (line 1, column 36)",
                   "text stands in single quotes: 'odd one'");
}

static void names_are_suggested(void **state)
{
    (void)state;
    PRB_AUTO(prb_db) struct prb_db *db = open_db();
    if (!sqlite_tells())
        skip();
    assert_refused(db, "SELECT * FROM fake.nubmers",
                   "no such table: fake.nubmers (line 1, column 15)", "did you mean fake.numbers?");
    assert_refused(db, "SELECT * FROM nubmers", "(line 1, column 15)",
                   "did you mean fake.numbers?");
    assert_refused(db, "SELECT * FROM system.numbers", "", "did you mean fake.numbers?");
    assert_refused(db, "SELECT * FROM short_row", "", "did you mean short_rows?");
    assert_refused(db, "SELECT * FROM memory_usage", "no such table: memory_usage",
                   "tables: fake.numbers, short_rows, fake.broken");
    assert_refused(db, "SELECT fake, txt\nFROM numbers",
                   "no such column: ", "columns of fake.numbers: n, big");
    assert_refused(db, "SELECT n, txt\nFROM numbers", "no such column: txt (line 1, column 11)",
                   "did you mean text?");
    assert_refused(db, "SELECT interval '5 minutes' + x.txt FROM numbers x",
                   "no such column: x.txt (line 1, column 31)", "did you mean text?");
    assert_refused(db, "SELECT mediam(n) FROM numbers",
                   "no such function: mediam (line 1, column 8)", "did you mean median()?");
    assert_refused(db, "SELECT hour() FROM numbers", "wrong number of arguments to function hour()",
                   "hour(t)");
    assert_refused(db, "SELECT n FROM FROM numbers",
                   "near \"FROM\": syntax error (line 1, column 15)", "");
    assert_refused(db, "SELECT (1", "incomplete input (line 1, column 10)", "");
    assert_refused(db, "DESCRIBE fake.nubmers", "no such table: fake.nubmers (line 1, column 10)",
                   "did you mean fake.numbers?");
    assert_refused(db, "SELECT n FROM numbers a, numbers b",
                   "ambiguous column name: n (line 1, column 8)", "");
    assert_refused(db, "", "empty", "SHOW TABLES");
    assert_refused(db, " ; -- nothing\n;", "empty", "SHOW TABLES");
}

static void settings(void **state)
{
    (void)state;
    PRB_AUTO(prb_db) struct prb_db *db = open_db();
    assert_rows(db, "SET probing.reveal_secrets = on", "");
    assert_true(db->settings.reveal_secrets);
    assert_rows(db, "SET PROBING.reveal_secrets TO 'off'; SET probing.query_timeout = 2.5", "");
    assert_false(db->settings.reveal_secrets);
    assert_true(db->settings.query_timeout == 2.5);
    prb_db_reveal(db, true);
    assert_true(db->settings.reveal_secrets);
    assert_refused(db, "SET probing.repr_limit = lots",
                   "probing.repr_limit must be a number from 16", "");
    assert_refused(db, "SET probing.repr_limit = 1.5", "must be a number", "");
    assert_refused(db, "SET probing.reveal_secrets = 2", "must be on or off (line 1, column 30)",
                   "");
    assert_refused(db, "SET probing.repr_limits = 20",
                   "no such setting: probing.repr_limits (line 1, column 5)",
                   "did you mean probing.repr_limit?");
    assert_refused(db, "SET repr_limit = 20", "no such setting",
                   "did you mean probing.repr_limit?");
    assert_refused(db, "SHOW probing.nothing", "no such setting", "SHOW ALL");
}

static void statements_are_bounded(void **state)
{
    (void)state;
    PRB_AUTO(prb_db) struct prb_db *db = open_db();
    struct prb_error err =
        refused(db, "SET probing.query_timeout = 0.05; WITH RECURSIVE x(i) AS (SELECT 1 UNION ALL "
                    "SELECT i + 1 FROM x) SELECT count(*) FROM x");
    assert_int_equal(err.code, PRB_TIMEOUT);
    assert_non_null(strstr(err.text, "50 ms"));
    err = refused(db, "SELECT count(*) FROM numbers(100000) a, numbers(100000) b");
    assert_int_equal(err.code, PRB_TIMEOUT);
    assert_refused(db, "SELECT zeroblob(1000000000)", "too big", "");
    assert_rows(db, "SELECT count(*) AS n FROM numbers", "n|3|");
}

static bool stop_at_two(void *context, size_t columns, const char *const *names,
                        const struct prb_value *row)
{
    (void)columns, (void)names;
    return !row || ++*(int *)context < 2;
}

struct nested {
    struct prb_db *db;
    enum prb_code code;
};

static bool query_inside(void *context, size_t columns, const char *const *names,
                         const struct prb_value *row)
{
    (void)columns, (void)names, (void)row;
    struct nested *nested = context;
    struct prb_error err = {0};
    assert_false(prb_db_query(nested->db, "SELECT 1", query_inside, nested, &err));
    nested->code = err.code;
    return false;
}

static void the_callback_ends_and_does_not_nest(void **state)
{
    (void)state;
    PRB_AUTO(prb_db) struct prb_db *db = open_db();
    struct prb_error err;
    int rows = 0;
    assert_ok(prb_db_query(db, "SELECT n FROM numbers(1000000); SELECT n FROM numbers", stop_at_two,
                           &rows, &err),
              err);
    assert_int_equal(rows, 2);
    struct nested nested = {.db = db};
    assert_ok(prb_db_query(db, "SELECT 1", query_inside, &nested, &err), err);
    assert_int_equal(nested.code, PRB_BUSY);
    assert_rows(db, "SELECT 1 AS x", "x|1|");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_come_as_they_are),
        cmocka_unit_test(arguments_are_pushed_down),
        cmocka_unit_test(joins_look_rows_up),
        cmocka_unit_test(rows_of_an_or_are_neither_lost_nor_doubled),
        cmocka_unit_test(times_are_compared_as_sqlite_does),
        cmocka_unit_test(a_table_is_filled_once_in_a_statement),
        cmocka_unit_test(needs_are_known_before_the_first_row),
        cmocka_unit_test(stacks_are_taken_once),
        cmocka_unit_test(failures_of_a_table_are_the_query_s),
        cmocka_unit_test(only_reading),
        cmocka_unit_test(a_text_in_double_quotes),
        cmocka_unit_test(names_are_suggested),
        cmocka_unit_test(settings),
        cmocka_unit_test(statements_are_bounded),
        cmocka_unit_test(the_callback_ends_and_does_not_nest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
