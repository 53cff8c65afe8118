/* fleet: rows as bytes, whole and hostile; what is asked of ranks; what a statement fetches. */
#include "numbers.h"

#include <math.h>

#include "fleet/rows/ask.h"
#include "fleet/rows/pack.h"
#include "fleet/rows/rows.h"

/* ---- a table with all that a cell can be ---- */

static const struct prb_column all_columns[] = {
    {"i", PRB_INTEGER, "", "integers"},     {"r", PRB_REAL, "", "reals"},
    {"s", PRB_TEXT, "", "texts"},           {"x", PRB_NULL_VALUE, "", "anything"},
    {"timestamp", PRB_REAL, "s", "a time"}, {0}};

static struct prb_times times_seen;

static bool fill_all(struct prb_rows *rows, struct prb_error *err)
{
    (void)err;
    times_seen = *prb_rows_times(rows);
    for (int i = 0; i < 6; i++) {
        prb_row_begin(rows);
        if (i == 3)
            continue; /* all NULL */
        prb_row_int(rows, i % 2 ? INT64_MIN + i : INT64_MAX - i);
        prb_row_real(rows, i == 1 ? -0.0 : i == 2 ? (double)NAN : i * 0.5);
        prb_row_textn(rows, i < 2 ? "two\0words" : "one", i < 2 ? 9 : 3);
        if (i == 0)
            prb_row_int(rows, -7);
        else if (i == 1)
            prb_row_real(rows, 2.5);
        else if (i == 2)
            prb_row_blob(rows, "\xff\0\x01", 3);
        else
            prb_row_text(rows, "t");
        prb_row_real(rows, 1000 + i);
    }
    return true;
}

static const struct prb_table all_table = {.schema = "fake",
                                           .name = "everything",
                                           .doc = "all that a cell can be",
                                           .columns = all_columns,
                                           .timed = true,
                                           .fill = fill_all};

static const struct prb_table *const tables[] = {&all_table, &numbers};

static struct prb_db *open_rank(void)
{
    struct prb_error err;
    struct prb_db *db = prb_db_open_tables(NULL, tables, 2, &err);
    if (!db)
        fail_msg("%s", err.text);
    return db;
}

/* ---- bytes ---- */

static void answer_of(struct prb_db *db, const char *args, struct prb_buf *out)
{
    struct prb_error err;
    PRB_AUTO(json_t) json_t *json = json_loads(args, 0, NULL);
    assert_non_null(json);
    assert_ok(prb_rows_answer(db, json, 1 << 20, out, &err), err);
}

#define EVERYTHING                                                                                 \
    "{\"tables\": [{\"schema\": \"fake\", \"name\": \"everything\", \"columns\": "                 \
    "[\"i\", \"r\", \"s\", \"x\", \"gone\"]}]}"

/* Rows of the table as of a connection of its own, appended from bytes. */
static bool append(const void *data, size_t len, struct prb_rows *rows, struct prb_error *err)
{
    static const int columns[] = {0, 1, 2, 3, -1};
    struct prb_packed part;
    size_t first;
    return prb_packed_open(data, len, &part, err) && part.table_count == 1 &&
           part.tables[0].rows < 1000 &&
           prb_packed_rows(&part.tables[0], columns, 5, rows, &first, err);
}

static void every_cell_comes_as_it_was(void **state)
{
    (void)state;
    struct prb_error err;
    PRB_AUTO(prb_db) struct prb_db *db = open_rank();
    PRB_AUTO(prb_buf) struct prb_buf bytes = {0};
    answer_of(db, EVERYTHING, &bytes);
    struct prb_rows *expected = prb_rows_new(db, &all_table, ~UINT64_C(0));
    struct prb_rows *got = prb_rows_new(db, &all_table, 0xf);
    assert_true(fill_all(expected, &err) && prb_rows_finish(expected, &err));
    assert_ok(append(bytes.data, bytes.len, got, &err), err);
    assert_int_equal(got->count, expected->count);
    for (size_t row = 0; row < got->count; row++)
        for (size_t c = 0; c < 4; c++) {
            struct prb_value a = prb_rows_value(expected, row, c), b = prb_rows_value(got, row, c);
            bool nan = a.type == PRB_REAL && isnan(a.real);
            assert_true(nan ? b.type == PRB_NULL_VALUE : prb_value_equal(&a, &b));
        }
    assert_int_equal(prb_rows_value(got, 0, 4).type, PRB_NULL_VALUE); /* not fetched */
    prb_rows_free(expected);
    prb_rows_free(got);
}

/* Cut at every byte, and with every byte changed: refused, or other rows, but nothing else. */
static void hostile_bytes_are_refused(void **state)
{
    (void)state;
    struct prb_error err = {0};
    PRB_AUTO(prb_db) struct prb_db *db = open_rank();
    PRB_AUTO(prb_buf) struct prb_buf bytes = {0};
    answer_of(db, EVERYTHING, &bytes);
    for (size_t len = 0; len < bytes.len; len++) {
        struct prb_rows *rows = prb_rows_new(db, &all_table, 0xf);
        PRB_AUTO_FREE char *copy = malloc(len + 1);
        memcpy(copy, bytes.data, len);
        assert_false(append(copy, len, rows, &err));
        assert_int_equal(err.code, PRB_CORRUPT);
        prb_rows_free(rows);
    }
    size_t refused_count = 0;
    for (size_t i = 0; i < bytes.len * 8; i++) {
        struct prb_rows *rows = prb_rows_new(db, &all_table, 0xf);
        PRB_AUTO_FREE char *copy = malloc(bytes.len + 1);
        memcpy(copy, bytes.data, bytes.len);
        copy[i / 8] = (char)(copy[i / 8] ^ 1 << i % 8);
        refused_count += !append(copy, bytes.len, rows, &err);
        prb_rows_free(rows);
    }
    assert_true(refused_count > bytes.len);
    struct prb_rows *rows = prb_rows_new(db, &all_table, 0xf);
    assert_false(append("PRB\x01\0\1\x0c\0\0\0\0\xff\xff\xff\xff\x0f\5\0\0\0\0\0", 22, rows, &err));
    prb_rows_free(rows);
}

/* ---- what is asked ---- */

static size_t rows_of(struct prb_db *db, const char *args, uint64_t *count_out)
{
    struct prb_error err;
    struct prb_packed part;
    PRB_AUTO(prb_buf) struct prb_buf bytes = {0};
    answer_of(db, args, &bytes);
    assert_ok(prb_packed_open(bytes.data, bytes.len, &part, &err), err);
    *count_out = prb_packed_count(&part.tables[0]);
    return part.tables[0].missing ? SIZE_MAX : part.tables[0].rows;
}

static void a_rank_sends_what_is_asked(void **state)
{
    (void)state;
    PRB_AUTO(prb_db) struct prb_db *db = open_rank();
    static const struct {
        const char *rest;
        size_t stored, rows;
    } cases[] = {
        {"\"columns\": [\"n\"]", 3, 3},
        {"\"columns\": []", 1, 3},
        {"\"columns\": [\"gone\"]", 1, 3},
        {"\"columns\": [\"n\"], \"arguments\": {\"up_to\": 9}", 9, 9},
        {"\"columns\": [\"kind\"], \"arguments\": {\"up_to\": 9}", 1, 9},
        {"\"columns\": [\"text\"], \"arguments\": {\"up_to\": 9}", 9, 9},
        {"\"columns\": [\"n\"], \"where\": [[[\"n\", \">=\", 1]]]", 2, 2},
        {"\"columns\": [\"n\"], \"where\": [[[\"n\", \">\", 1]], [[\"n\", \"=\", 0]]]", 2, 2},
        {"\"columns\": [\"n\"], \"where\": [[[\"n\", \">\", 0], [\"n\", \"<\", 2]]]", 1, 1},
        {"\"columns\": [\"n\"], \"where\": [[[\"text\", \"IS NULL\"]]]", 2, 2},
        {"\"columns\": [\"n\"], \"where\": [[[\"text\", \"=\", \"odd\"]]]", 1, 1},
        {"\"columns\": [\"n\"], \"where\": [[[\"gone\", \"=\", 1]]]", 0, 0},
        {"\"columns\": [\"n\"], \"where\": [[[\"gone\", \"IS NULL\"]]]", 3, 3},
        {"\"columns\": [\"n\"], \"where\": [[[\"big\", \"=\", 9223372036854775806]]]", 1, 1},
        {"\"columns\": [\"n\"], \"limit\": 2", 2, 2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char args[400];
        uint64_t count;
        snprintf(args, sizeof args,
                 "{\"tables\": [{\"schema\": \"fake\", \"name\": \"numbers\", %s}]}",
                 cases[i].rest);
        size_t stored = rows_of(db, args, &count);
        if (stored != cases[i].stored || count != cases[i].rows)
            fail_msg("%s: %zu rows for %llu", cases[i].rest, stored, (unsigned long long)count);
    }
    /* Only where no row is shown as it is, equal ones that are no neighbours become one. */
    uint64_t count;
    assert_int_equal(
        rows_of(db,
                "{\"grouped\": true, \"tables\": [{\"schema\": \"fake\", \"name\": "
                "\"numbers\", \"columns\": [\"text\"], \"arguments\": {\"up_to\": 9}}]}",
                &count),
        2);
    assert_int_equal(count, 9);
    assert_int_equal(
        rows_of(db, "{\"tables\": [{\"schema\": \"no\", \"name\": \"such\", \"columns\": []}]}",
                &count),
        SIZE_MAX);
}

static void times_go_to_the_table(void **state)
{
    (void)state;
    PRB_AUTO(prb_db) struct prb_db *db = open_rank();
    uint64_t count;
    assert_int_equal(
        rows_of(
            db,
            "{\"tables\": [{\"schema\": \"fake\", \"name\": \"everything\", \"columns\": [\"i\"],"
            "\"where\": [[[\"timestamp\", \">\", 1001.5], [\"timestamp\", \"<\", 1004]],"
            "[[\"timestamp\", \"=\", 1001]]]}]}",
            &count),
        2);
    assert_string_equal(times_seen.column, "timestamp");
    assert_true(times_seen.least == 1001 && times_seen.most == 1004);
}

static void nonsense_is_refused(void **state)
{
    (void)state;
    PRB_AUTO(prb_db) struct prb_db *db = open_rank();
    static const char *const cases[] = {
        "{}",
        "{\"tables\": 1}",
        "{\"tables\": [1]}",
        "{\"tables\": [{\"schema\": \"fake\", \"name\": \"numbers\"}]}",
        "{\"tables\": [{\"schema\": \"fake\", \"name\": \"numbers\", \"columns\": [], \"where\": "
        "[]}]}",
        "{\"tables\": [{\"schema\": \"fake\", \"name\": \"numbers\", \"columns\": [], \"where\": "
        "[[[\"n\", \"LIKE\", 1]]]}]}",
        "{\"tables\": [{\"schema\": \"fake\", \"name\": \"numbers\", \"columns\": [], \"where\": "
        "[[[1, \"=\", 1]]]}]}",
        "{\"tables\": [{\"schema\": \"fake\", \"name\": \"numbers\", \"columns\": [], \"where\": "
        "[[[\"n\", \"=\", []]]]}]}",
        "{\"tables\": [{\"schema\": \"fake\", \"name\": \"numbers\", \"columns\": [], \"limit\": "
        "-1}]}",
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct prb_error err = {0};
        PRB_AUTO(prb_buf) struct prb_buf out = {0};
        PRB_AUTO(json_t) json_t *json = json_loads(cases[i], 0, NULL);
        if (prb_rows_answer(db, json, 1 << 20, &out, &err) || err.code != PRB_CORRUPT)
            fail_msg("%s: %s", cases[i], err.text);
    }
}

/* ---- what a statement fetches ---- */

static struct prb_buf asked; /* the last question's tables */
static size_t rows_max;

static bool ask(void *context, const char *kind, const char *args, struct prb_answers *answers,
                struct prb_error *err)
{
    struct prb_db *const *ranks = context;
    PRB_AUTO(json_t) json_t *json = json_loads(args, 0, NULL);
    bool rows = strcmp(kind, "rows") == 0;
    if (rows) {
        PRB_AUTO_FREE char *text = json_dumps(json_object_get(json, "tables"), JSON_COMPACT);
        prb_buf_deinit(&asked);
        prb_buf_adds(&asked, text);
    }
    for (int rank = 0; rank < 2; rank++) {
        PRB_AUTO(prb_buf) struct prb_buf part = {0};
        bool good = rows ? prb_rows_answer(ranks[rank], json, 1 << 20, &part, err)
                         : prb_schema_answer(ranks[rank], json, &part, err);
        if (!good || !prb_answers_add(answers, rank, "node1", part.data, part.len, err))
            return false;
    }
    return true;
}

static struct prb_db *open_fleet(struct prb_db **ranks)
{
    struct prb_error err;
    const struct prb_rows_asker asker = {.context = ranks, .ask = ask, .rows_max = rows_max};
    struct prb_db *db = prb_db_open_tables(NULL, NULL, 0, &err);
    if (!db || !prb_db_add_source(db, prb_rows_source(&asker, &err), &err))
        fail_msg("%s", err.text);
    return db;
}

static void a_statement_fetches_what_it_uses(void **state)
{
    (void)state;
    PRB_AUTO(prb_db) struct prb_db *first = open_rank(), *second = open_rank();
    struct prb_db *ranks[] = {first, second};
    PRB_AUTO(prb_db) struct prb_db *db = open_fleet(ranks);
    if (!sqlite_tells())
        skip();
    static const struct {
        const char *sql, *values, *asked;
    } cases[] = {
        {"SELECT count(*) FROM fake.numbers", "6|", "\"columns\":[]}"},
        {"SELECT rank, max(n) FROM numbers GROUP BY rank", "0,2|1,2|", "\"columns\":[\"n\"]}"},
        {"SELECT DISTINCT host, _host, _local_rank FROM numbers", "'node1','node1',NULL|", ""},
        {"SELECT count(*) FROM numbers(5) WHERE rank = 1", "5|", "\"arguments\":{\"up_to\":5}"},
        {"SELECT count(*) FROM numbers WHERE n = 1", "2|", "\"where\":[[[\"n\",\"=\",1]]]"},
        {"SELECT count(*) FROM numbers WHERE n <> 1", "4|", "\"columns\":[\"n\"]}"},
        {"SELECT count(*) FROM numbers WHERE text = 'odd' AND n < 7", "2|", "[\"n\",\"<\",7]"},
        {"SELECT n FROM numbers ORDER BY n DESC LIMIT 1", "2|", "\"order\":[[\"n\",\"desc\"]]"},
        {"SELECT n FROM numbers WHERE n = n LIMIT 1", "0|", "\"columns\":[\"n\"]}"},
        {"SELECT count(*) FROM everything WHERE timestamp > now() - interval '5 minutes'", "0|",
         "\"where\":[[[\"timestamp\",\">\",1"},
        {"SELECT count(*) FROM everything WHERE timestamp BETWEEN now() - 60 * 5 AND now()", "0|",
         "[\"timestamp\",\"<=\",1"},
        {"SELECT count(*) FROM global.fake.numbers", "6|", ""},
        {"SELECT count(*) FROM numbers a JOIN numbers b ON a.n = b.n AND a.rank = b.rank", "6|",
         ""},
        {"SELECT (SELECT max(n) FROM numbers), (SELECT count(*) FROM everything)", "2,12|",
         "everything"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_values(db, cases[i].sql, cases[i].values);
        if (!strstr(asked.data, cases[i].asked))
            fail_msg("%s: asked %s", cases[i].sql, asked.data);
    }
    assert_values(db, "SELECT now() = now(), abs(now() - strftime('%s', 'now')) < 5", "1,1|");
    struct prb_error err = refused(db, "SELECT * FROM numbers a JOIN numbers b ON b.up_to = a.n");
    assert_int_equal(err.code, PRB_UNSUPPORTED);
    prb_buf_deinit(&asked);
}

static void too_many_rows_are_an_error(void **state)
{
    (void)state;
    PRB_AUTO(prb_db) struct prb_db *first = open_rank(), *second = open_rank();
    struct prb_db *ranks[] = {first, second};
    rows_max = 100;
    PRB_AUTO(prb_db) struct prb_db *db = open_fleet(ranks);
    if (!sqlite_tells())
        skip();
    assert_values(db, "SELECT count(n) FROM numbers(50)", "100|");
    struct prb_error err = refused(db, "SELECT count(n) FROM numbers(51)");
    assert_int_equal(err.code, PRB_TIMEOUT);
    assert_non_null(strstr(err.text, "fake.numbers of 2 ranks: there are more than 100 rows (1"));
    assert_non_null(strstr(err.remedy, "restrict it by WHERE"));
    rows_max = 0;
    prb_buf_deinit(&asked);
}

static void a_plan_shows_what_is_fetched(void **state)
{
    (void)state;
    struct prb_error err;
    PRB_AUTO(prb_db) struct prb_db *first = open_rank(), *second = open_rank();
    PRB_AUTO(prb_buf) struct prb_buf out = {0};
    struct prb_db *ranks[] = {first, second};
    PRB_AUTO(prb_db) struct prb_db *db = open_fleet(ranks);
    assert_ok(prb_db_plan(
                  db, "SELECT kind, count(*) FROM numbers WHERE n >= 1 AND text IS NULL GROUP BY 1",
                  collect, &out, &err),
              err);
    if (strncmp(out.data,
                "table,columns,filter,host,ranks,rows,sent,bytes|'fake.numbers','n, text, kind',"
                "'n >= 1 AND text IS NULL','node1',2,2,2,",
                80) != 0)
        fail_msg("%s", out.data);
    assert_ok(prb_db_query(db, "SELECT 1", NULL, NULL, &err), err);
    prb_buf_deinit(&asked);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_cell_comes_as_it_was),
        cmocka_unit_test(hostile_bytes_are_refused),
        cmocka_unit_test(a_rank_sends_what_is_asked),
        cmocka_unit_test(times_go_to_the_table),
        cmocka_unit_test(nonsense_is_refused),
        cmocka_unit_test(a_statement_fetches_what_it_uses),
        cmocka_unit_test(too_many_rows_are_an_error),
        cmocka_unit_test(a_plan_shows_what_is_fetched),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
