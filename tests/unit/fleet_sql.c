/*
 * fleet: generated statements over the rows of several ranks, compared with the same rows in one
 * SQLite database.  The ranks answer in this process, as they do elsewhere: by prb_schema_answer and
 * prb_rows_answer.
 *
 * PROBING_FLEET_STATEMENTS: how many (2000).  PROBING_FLEET_SEED: where to begin, as a failure
 * prints it.
 */
#include "unit.h"

#include <stdio.h>
#include <time.h>

#include "fleet/rows/ask.h"
#include "fleet/rows/rows.h"
#include "sql/db.h"
#include "statements.h"

#define RANKS 4
#define ROWS_MOST 14
#define COLUMNS_MOST 10
#define STATEMENTS_OF_DATA 40 /* before other rows are made */

/* ---- made-up tables ---- */

struct made_table {
    struct prb_table table; /* first */
    struct prb_column columns[COLUMNS_MOST + 1];
    size_t count;
    struct prb_value cells[ROWS_MOST][COLUMNS_MOST];
    size_t rows;
};

struct rank {
    struct prb_db *db;
    struct made_table tables[3];
    size_t table_count;
};

static struct rank ranks[RANKS];
static sqlite3 *one; /* the same rows in one database */

static const struct prb_column columns_of[3][COLUMNS_MOST + 1] = {
    {{"a", PRB_INTEGER, "", ""},
     {"b", PRB_INTEGER, "", ""},
     {"r", PRB_REAL, "", ""},
     {"s", PRB_TEXT, "", ""},
     {"x", PRB_NULL_VALUE, "", "of several types"},
     {"k", PRB_BLOB, "", ""},
     {"big", PRB_INTEGER, "", "more than 2^53"},
     {0}},
    {{"a", PRB_INTEGER, "", ""},
     {"s", PRB_TEXT, "", ""},
     {"r", PRB_REAL, "", ""},
     {"me", PRB_INTEGER, "", "the rank", .of_rank = true},
     {"v", PRB_TEXT, "", "not of every rank"},
     {0}},
    {{"rank", PRB_INTEGER, "", "its own"},
     {"a", PRB_INTEGER, "", ""},
     {"n", PRB_INTEGER, "", ""},
     {"s", PRB_TEXT, "", ""},
     {0}},
};

static bool fill_made(struct prb_rows *rows, struct prb_error *err)
{
    (void)err;
    const struct made_table *made = (const struct made_table *)prb_rows_table(rows);
    for (size_t i = 0; i < made->rows; i++) {
        prb_row_begin(rows);
        for (size_t c = 0; c < made->count; c++) {
            const struct prb_value *value = &made->cells[i][c];
            if (value->type == PRB_INTEGER)
                prb_row_int(rows, value->integer);
            else if (value->type == PRB_REAL)
                prb_row_real(rows, value->real);
            else if (value->type == PRB_TEXT)
                prb_row_textn(rows, value->text, value->length);
            else if (value->type == PRB_BLOB)
                prb_row_blob(rows, value->text, value->length);
            else
                prb_row_null(rows);
        }
    }
    return true;
}

static struct prb_value text(enum prb_type type, const char *bytes, size_t length)
{
    return (struct prb_value){.type = type, .text = bytes, .length = length};
}

static struct prb_value integer(int64_t value)
{
    return (struct prb_value){.type = PRB_INTEGER, .integer = value};
}

static struct prb_value made_value(struct random *random, const struct prb_column *column)
{
    static const char *const texts[] = {"a", "A", "b", "B", "ab", "", "2", "\xc3\xa9", "a%", "10"};
    static const char *const blobs[] = {"", "a", "\xff\x00", "b"};
    static const size_t lengths[] = {0, 1, 2, 1};
    static const int64_t large[] = {INT64_MAX,        INT64_MAX - 1,    9007199254740993,
                                    9007199254740992, 9007199254740991, INT64_MIN,
                                    -9007199254740993};
    enum prb_type type = column->type;
    if (below(random, 6) == 0)
        return (struct prb_value){.type = PRB_NULL_VALUE};
    if (type == PRB_NULL_VALUE)
        type = (enum prb_type)(PRB_INTEGER + below(random, 4));
    if (strcmp(column->name, "big") == 0)
        return integer(large[below(random, 7)]);
    if (type == PRB_INTEGER)
        return integer((int64_t)below(random, 5) - 1);
    if (type == PRB_REAL)
        return (struct prb_value){.type = PRB_REAL, .real = (double)below(random, 9) * 0.5 - 1};
    if (type == PRB_TEXT) {
        /* Not '2' beside 2: after WHERE x = CAST(2 AS INTEGER) SQLite takes all x for equal, and groups
         * and ranks of a real table then depend on the order of its rows. */
        const char *word = texts[below(random, column->type == PRB_TEXT ? 10 : 6)];
        return text(PRB_TEXT, word, strlen(word));
    }
    unsigned blob = below(random, 4);
    return text(PRB_BLOB, blobs[blob], lengths[blob]);
}

/* Of a column of_rank: NULL, or nothing but the rank. */
static struct prb_value made_cell(struct random *random, const struct prb_column *column)
{
    return column->of_rank ? (struct prb_value){.type = PRB_NULL_VALUE}
                           : made_value(random, column);
}

static void run(const char *sql)
{
    char *message = NULL;
    if (sqlite3_exec(one, sql, NULL, NULL, &message) != SQLITE_OK)
        fail_msg("%s: %s", sql, message);
}

static void bind(sqlite3_stmt *stmt, int at, const struct prb_value *value)
{
    if (value->type == PRB_INTEGER)
        sqlite3_bind_int64(stmt, at, value->integer);
    else if (value->type == PRB_REAL)
        sqlite3_bind_double(stmt, at, value->real);
    else if (value->type == PRB_TEXT)
        sqlite3_bind_text(stmt, at, value->text, (int)value->length, SQLITE_STATIC);
    else if (value->type == PRB_BLOB)
        sqlite3_bind_blob(stmt, at, value->text, (int)value->length, SQLITE_STATIC);
    else
        sqlite3_bind_null(stmt, at);
}

static const char *const names[3] = {"t", "u", "w"};

static int host_of(int rank) { return rank / 2; }

/* Columns that a rank has not are NULL in the one database. */
static void insert(int table, int rank, const struct made_table *made, size_t row)
{
    sqlite3_stmt *stmt = NULL;
    char sql[200] = "", host[16];
    size_t count = 0;
    while (columns_of[table][count].name)
        count++;
    bool own = strcmp(columns_of[table][0].name, "rank") == 0;
    int used = snprintf(sql, sizeof sql, "INSERT INTO %s VALUES (", names[table]);
    for (size_t i = 0; i < count + (own ? 1 : 2); i++)
        used += snprintf(sql + used, sizeof sql - (size_t)used, "%s?", i ? "," : "");
    snprintf(sql + used, sizeof sql - (size_t)used, ")");
    assert_int_equal(sqlite3_prepare_v2(one, sql, -1, &stmt, NULL), SQLITE_OK);
    for (size_t i = 0; i < count; i++)
        for (size_t c = 0; c < made->count; c++)
            if (strcmp(made->columns[c].name, columns_of[table][i].name) == 0)
                bind(stmt, (int)i + 1, &made->cells[row][c]);
    snprintf(host, sizeof host, "host%d", host_of(rank));
    if (!own)
        sqlite3_bind_int(stmt, (int)count + 1, rank);
    sqlite3_bind_text(stmt, (int)count + (own ? 1 : 2), host, -1, SQLITE_TRANSIENT);
    assert_int_equal(sqlite3_step(stmt), SQLITE_DONE);
    sqlite3_finalize(stmt);
}

static void create(int table)
{
    char sql[300];
    bool own = strcmp(columns_of[table][0].name, "rank") == 0;
    int used = snprintf(sql, sizeof sql, "CREATE TABLE %s(", names[table]);
    for (size_t i = 0; columns_of[table][i].name; i++) {
        enum prb_type type = columns_of[table][i].type;
        used +=
            snprintf(sql + used, sizeof sql - (size_t)used, "%s%s %s", i ? ", " : "",
                     columns_of[table][i].name, type == PRB_NULL_VALUE ? "" : prb_type_name(type));
    }
    snprintf(sql + used, sizeof sql - (size_t)used, "%s, host TEXT)", own ? "" : ", rank INTEGER");
    run(sql);
}

static void make_table(struct random *random, int table, int rank)
{
    struct made_table *made = &ranks[rank].tables[ranks[rank].table_count];
    *made = (struct made_table){0};
    bool all = table != 1 || rank == 0 || below(random, 3);
    for (size_t i = 0; columns_of[table][i].name; i++)
        if (all || strcmp(columns_of[table][i].name, "v") != 0)
            made->columns[made->count++] = columns_of[table][i];
    made->table = (struct prb_table){.schema = "main",
                                     .name = names[table],
                                     .doc = "made up",
                                     .columns = made->columns,
                                     .fill = fill_made};
    made->rows = below(random, table == 0 ? ROWS_MOST + 1 : 7);
    for (size_t i = 0; i < made->rows; i++) {
        bool again = i && below(random, 3) == 0; /* equal rows are folded */
        for (size_t c = 0; c < made->count; c++)
            made->cells[i][c] = again ? made->cells[below(random, 2) ? i - 1 : 0][c]
                                : made->columns[c].of_rank && below(random, 6)
                                    ? integer(rank)
                                    : made_cell(random, &made->columns[c]);
        insert(table, rank, made, i);
    }
    ranks[rank].table_count++;
}

static void make_data(struct random *random)
{
    struct prb_error err;
    run("DROP TABLE IF EXISTS t; DROP TABLE IF EXISTS u; DROP TABLE IF EXISTS w;");
    for (int table = 0; table < 3; table++)
        create(table);
    for (int rank = 0; rank < RANKS; rank++) {
        const struct prb_table *list[3];
        prb_db_close(ranks[rank].db);
        ranks[rank].table_count = 0;
        for (int table = 0; table < 3; table++)
            if (rank == 0 || below(random, 6))
                make_table(random, table, rank);
        for (size_t i = 0; i < ranks[rank].table_count; i++)
            list[i] = &ranks[rank].tables[i].table;
        ranks[rank].db = prb_db_open_tables(NULL, list, ranks[rank].table_count, &err);
        if (!ranks[rank].db)
            fail_msg("%s", err.text);
    }
}

/* ---- asking them ---- */

static size_t asked_rows, asked_bytes, left_out;

static bool ask(void *context, const char *kind, const char *args, struct prb_answers *answers,
                struct prb_error *err)
{
    (void)context;
    PRB_AUTO(json_t) json_t *json = json_loads(args, 0, NULL);
    assert_non_null(json);
    for (int i = 0; i < RANKS; i++) {
        int rank = (i + 2) % RANKS; /* they come in any order */
        char host[16];
        PRB_AUTO(prb_buf) struct prb_buf part = {0};
        snprintf(host, sizeof host, "host%d", host_of(rank));
        if (answers->wants && !answers->wants(answers->what, rank)) {
            left_out++;
            continue;
        }
        bool good = strcmp(kind, "schema") == 0
                        ? prb_schema_answer(ranks[rank].db, json, &part, err)
                        : prb_rows_answer(ranks[rank].db, json, 1 << 20, &part, err);
        if (!good || !prb_answers_add(answers, rank, host, part.data, part.len, err))
            return false;
    }
    asked_rows += answers->rows;
    asked_bytes += answers->bytes;
    return true;
}

static struct prb_db *open_fleet(void)
{
    struct prb_error err;
    const struct prb_rows_asker asker = {.ask = ask};
    struct prb_db *db = prb_db_open_tables(NULL, NULL, 0, &err);
    if (!db || !prb_db_add_source(db, prb_rows_source(&asker, &err), &err))
        fail_msg("%s", err.text);
    return db;
}

/* ---- rows as texts, sorted ---- */

struct result {
    char **rows;
    size_t count, cap;
    bool ordered;
};

static void result_deinit(struct result *result)
{
    for (size_t i = 0; i < result->count; i++)
        free(result->rows[i]);
    free(result->rows);
    *result = (struct result){0};
}

/* 1 and 1.0 are one value to DISTINCT, which keeps either. */
static void add_number(struct prb_buf *out, double value)
{
    if (value > -9e15 && value < 9e15 && value == (double)(int64_t)value)
        prb_buf_addf(out, "%lld", (long long)value);
    else
        prb_buf_addf(out, "%.15g", value);
}

static void add_bytes(struct prb_buf *out, char mark, const void *bytes, size_t length)
{
    prb_buf_addc(out, mark);
    for (size_t i = 0; i < length; i++)
        prb_buf_addf(out, "%02x", ((const unsigned char *)bytes)[i]);
}

static void add_result(struct result *result, struct prb_buf *row)
{
    assert_true(PRB_GROW(result->rows, result->count, result->cap));
    result->rows[result->count++] = prb_buf_steal(row);
}

static bool take_row(void *context, size_t columns, const char *const *column_names,
                     const struct prb_value *row)
{
    struct prb_buf line = {0};
    (void)column_names;
    if (!row)
        return true;
    prb_buf_adds(&line, "");
    for (size_t i = 0; i < columns; i++) {
        prb_buf_addc(&line, '|');
        if (row[i].type == PRB_INTEGER)
            prb_buf_addf(&line, "%lld", (long long)row[i].integer);
        else if (row[i].type == PRB_REAL)
            add_number(&line, row[i].real);
        else if (row[i].type != PRB_NULL_VALUE)
            add_bytes(&line, row[i].type == PRB_TEXT ? '\'' : 'x', row[i].text, row[i].length);
    }
    add_result(context, &line);
    return true;
}

static bool query_one(const char *sql, struct result *out, char *why, size_t cap)
{
    sqlite3_stmt *stmt = NULL;
    int rc = sqlite3_prepare_v2(one, sql, -1, &stmt, NULL);
    while (rc == SQLITE_OK || rc == SQLITE_ROW) {
        if ((rc = sqlite3_step(stmt)) != SQLITE_ROW)
            break;
        struct prb_value row[32] = {0};
        int columns = sqlite3_column_count(stmt);
        for (int i = 0; i < columns && i < 32; i++) {
            int type = sqlite3_column_type(stmt, i);
            if (type == SQLITE_INTEGER)
                row[i] = integer(sqlite3_column_int64(stmt, i));
            else if (type == SQLITE_FLOAT)
                row[i] =
                    (struct prb_value){.type = PRB_REAL, .real = sqlite3_column_double(stmt, i)};
            else if (type != SQLITE_NULL) {
                const void *bytes = sqlite3_column_blob(stmt, i);
                row[i] = text(type == SQLITE_TEXT ? PRB_TEXT : PRB_BLOB, bytes,
                              (size_t)sqlite3_column_bytes(stmt, i));
            }
        }
        take_row(out, (size_t)columns, NULL, row);
    }
    if (rc != SQLITE_DONE)
        snprintf(why, cap, "%s", sqlite3_errmsg(one));
    sqlite3_finalize(stmt);
    return rc == SQLITE_DONE;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool same_rows(struct result *a, struct result *b)
{
    if (a->count != b->count)
        return false;
    if (a->count && !a->ordered) {
        qsort(a->rows, a->count, sizeof *a->rows, by_text);
        qsort(b->rows, b->count, sizeof *b->rows, by_text);
    }
    for (size_t i = 0; i < a->count; i++)
        if (strcmp(a->rows[i], b->rows[i]) != 0)
            return false;
    return true;
}

/* ---- the comparison ---- */

static struct counts {
    size_t statements, refused, with_rows;
} counts;

static void compare(struct prb_db *db, const struct statement *statement, uint64_t seed)
{
    struct result expected = {.ordered = statement->ordered}, got = {0};
    char why[200] = "";
    struct prb_error err = {0};
    bool good = query_one(statement->sql, &expected, why, sizeof why);
    bool ours = prb_db_query(db, statement->sql, take_row, &got, &err);
    counts.statements++;
    counts.refused += !good;
    counts.with_rows += good && expected.count > 0;
    if (good != ours)
        fail_msg("PROBING_FLEET_SEED=%llu: %s: one database: %s, ranks: %s",
                 (unsigned long long)seed, statement->sql, good ? "good" : why,
                 ours ? "good" : err.text);
    if (good && !same_rows(&expected, &got))
        fail_msg("PROBING_FLEET_SEED=%llu: %s: %zu rows, not %zu; first %s, not %s",
                 (unsigned long long)seed, statement->sql, got.count, expected.count,
                 got.count ? got.rows[0] : "-", expected.count ? expected.rows[0] : "-");
    result_deinit(&expected);
    result_deinit(&got);
}

static uint64_t number_from(const char *name, uint64_t otherwise)
{
    const char *text_of = getenv(name);
    return text_of && *text_of ? strtoull(text_of, NULL, 10) : otherwise;
}

static void statements_are_as_on_one_database(void **state)
{
    (void)state;
    struct prb_error err;
    uint64_t seed = number_from("PROBING_FLEET_SEED", (uint64_t)time(NULL) * 1000003u);
    uint64_t wanted = number_from("PROBING_FLEET_STATEMENTS", 2000);
    assert_ok(prb_sqlite_open(&one, &err), err);
    struct prb_db *db = open_fleet();
    printf("seed %llu, SQLite %s\n", (unsigned long long)seed, sqlite3_libversion());
    for (uint64_t done = 0; done < wanted; seed++) {
        struct random random = {seed};
        make_data(&random);
        for (int i = 0; i < STATEMENTS_OF_DATA && done < wanted; i++, done++) {
            struct statement statement;
            make_statement(&random, &statement);
            compare(db, &statement, seed);
        }
    }
    printf("%zu statements: %zu with rows, %zu refused by both; %zu rows and %zu bytes fetched, "
           "%zu ranks not asked\n",
           counts.statements, counts.with_rows, counts.refused, asked_rows, asked_bytes, left_out);
    prb_db_close(db);
    for (int rank = 0; rank < RANKS; rank++)
        prb_db_close(ranks[rank].db);
    sqlite3_close(one);
    assert_true(counts.with_rows > counts.statements / 4);
    assert_true(counts.refused < counts.statements / 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(statements_are_as_on_one_database),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
