/* lib/store: columns and chunks come back bit by bit, and hostile ones are refused. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "store/chunk.h"
#include "unit.h"

#define ROWS 3000

static struct prb_packer *packer;

static int set_up(void **state)
{
    (void)state;
    packer = prb_packer_new(NULL);
    return packer ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    prb_packer_free(packer);
    return 0;
}

static uint64_t next_random(void)
{
    static uint64_t state = 88172645463325252u; /* xorshift64 */
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static struct prb_store_codec *remembered; /* that round_trip uses; NULL: none */

/* Encode a column of words, decode it, compare; returns the bytes that it took. */
static size_t round_trip(enum prb_ring_type type, const void *words, const uint8_t *nulls,
                         size_t count, struct prb_store_entry *entry)
{
    PRB_AUTO(prb_buf) struct prb_buf chunk = {0};
    PRB_AUTO(prb_store_values) struct prb_store_values values = {0};
    struct prb_store_column column = {
        .type = type, .count = count, .nulls = nulls, .codec = remembered};
    column.integers = words;
    struct prb_error err = {0};
    prb_buf_adds(&chunk, "something before");
    size_t before = chunk.len;
    assert_true(prb_store_column_encode(packer, &column, &chunk, entry, &err));
    assert_true(
        prb_store_column_decode(packer, chunk.data, chunk.len, entry, count, &values, &err));
    assert_int_equal(values.column.count, count);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(values.column.nulls && values.column.nulls[i], nulls && nulls[i]);
        if (!nulls || !nulls[i])
            assert_memory_equal(&values.column.integers[i], (const char *)words + 8 * i, 8);
    }
    return chunk.len - before;
}

static void test_integers(void **state)
{
    static int64_t values[ROWS];
    struct prb_store_entry entry;
    (void)state;
    for (int kind = 0; kind < 7; kind++) {
        int64_t sum = 0;
        for (int i = 0; i < ROWS; i++) {
            sum += (int64_t)(next_random() % 1000);
            values[i] = kind == 0   ? 7
                        : kind == 1 ? i
                        : kind == 2 ? (int64_t)next_random()
                        : kind == 3 ? (i % 2 ? INT64_MAX : INT64_MIN)
                        : kind == 4 ? sum
                        : kind == 5 ? -(int64_t)(next_random() % 5)
                                    : (int64_t)(0x7f0000000000u + 64 * (next_random() % 30));
        }
        size_t bytes = round_trip(PRB_RING_INTEGER, values, NULL, ROWS, &entry);
        if (kind < 2)
            assert_in_range(bytes, 0, 64); /* constant, and counting up */
        if (kind == 1)
            assert_int_equal(entry.least, 0);
        if (kind == 1)
            assert_int_equal(entry.most, ROWS - 1);
    }
    round_trip(PRB_RING_INTEGER, values, NULL, 0, &entry);
    assert_false(entry.flags & PRB_STORE_BOUNDED);
    round_trip(PRB_RING_INTEGER, values, NULL, 1, &entry);
}

static void test_reals(void **state)
{
    static double values[ROWS];
    static const double odd[] = {0.0,     -0.0,    NAN,      INFINITY, -INFINITY,
                                 DBL_MIN, DBL_MAX, -DBL_MAX, 5e-324,   -5e-324,
                                 0x1p53,  0x1p63,  1e308,    0.1,      1.0 / 3};
    struct prb_store_entry entry;
    (void)state;
    for (int i = 0; i < ROWS; i++)
        values[i] = odd[next_random() % (sizeof odd / sizeof *odd)];
    round_trip(PRB_RING_REAL, values, NULL, ROWS, &entry);
    for (int i = 0; i < ROWS; i++) {
        uint64_t bits = next_random();
        memcpy(&values[i], &bits, sizeof bits);
    }
    round_trip(PRB_RING_REAL, values, NULL, ROWS, &entry);
    assert_int_equal(entry.scale, PRB_STORE_BITS);

    for (int i = 0; i < ROWS; i++) /* durations */
        values[i] = (double)(100000 + next_random() % 5000) / 1e9;
    size_t scaled = round_trip(PRB_RING_REAL, values, NULL, ROWS, &entry);
    assert_int_equal(entry.scale, PRB_STORE_BILLIONS);
    assert_in_range(scaled, 0, ROWS * 3);
    values[7] = nextafter(values[7], 1); /* one that is not exact: all are kept as bits */
    round_trip(PRB_RING_REAL, values, NULL, ROWS, &entry);
    assert_int_equal(entry.scale, PRB_STORE_BITS);

    for (int i = 0; i < ROWS; i++) /* times */
        values[i] = 1.7e9 + i * 0.005 - fmod(i * 0.005, 0x1p-22);
    round_trip(PRB_RING_TIME, values, NULL, ROWS, &entry);
    assert_int_equal(entry.scale, PRB_STORE_BINARY);
    double least;
    memcpy(&least, &entry.least, sizeof least);
    assert_true(entry.flags & PRB_STORE_BOUNDED && least == values[0]);
}

/* A way that was best before is gone again, and given up when it is no longer good, or exact. */
static void test_a_remembered_way(void **state)
{
    static int64_t integers[ROWS];
    static double reals[ROWS];
    struct prb_store_codec codec = {0};
    struct prb_store_entry entry;
    (void)state;
    remembered = &codec;
    for (int i = 0; i < ROWS; i++)
        integers[i] = 1000 * i;
    round_trip(PRB_RING_INTEGER, integers, NULL, ROWS, &entry);
    unsigned order = entry.order, left = codec.left;
    assert_in_range(order, 1, 2);
    size_t good = round_trip(PRB_RING_INTEGER, integers, NULL, ROWS, &entry);
    assert_int_equal(codec.left, left - 1);
    for (int i = 0; i < ROWS; i++)
        integers[i] = (int64_t)(next_random() % 200);
    size_t bad = round_trip(PRB_RING_INTEGER, integers, NULL, ROWS, &entry);
    assert_int_equal(entry.order, order);
    assert_true(bad > 10 * good);
    assert_int_equal(codec.left, 0);
    assert_true(round_trip(PRB_RING_INTEGER, integers, NULL, ROWS, &entry) < bad);
    assert_int_equal(entry.order, 0);
    for (left = codec.left; left > 0; left--) /* all ways are tried again at times */
        round_trip(PRB_RING_INTEGER, integers, NULL, ROWS, &entry);
    assert_int_equal(codec.left, 0);

    for (int i = 0; i < ROWS; i++)
        reals[i] = (double)(100000 + next_random() % 5000) / 1e9;
    for (int turn = 0; turn < 2; turn++) {
        round_trip(PRB_RING_REAL, reals, NULL, ROWS, &entry);
        assert_int_equal(entry.scale, PRB_STORE_BILLIONS);
    }
    reals[7] = nextafter(reals[7], 1);
    round_trip(PRB_RING_REAL, reals, NULL, ROWS, &entry);
    assert_int_equal(entry.scale, PRB_STORE_BITS);
    round_trip(PRB_RING_REAL, reals, NULL, 0, &entry);
    remembered = NULL;
}

static void test_nulls(void **state)
{
    static int64_t values[ROWS];
    static uint8_t nulls[ROWS];
    struct prb_store_entry entry;
    (void)state;
    for (int i = 0; i < ROWS; i++) {
        values[i] = i;
        nulls[i] = next_random() % 3 == 0;
    }
    round_trip(PRB_RING_INTEGER, values, nulls, ROWS, &entry);
    round_trip(PRB_RING_REAL, values, nulls, ROWS, &entry);
    memset(nulls, 1, sizeof nulls);
    round_trip(PRB_RING_INTEGER, values, nulls, ROWS, &entry);
    assert_int_equal(entry.null_count, ROWS);
    assert_false(entry.flags & PRB_STORE_BOUNDED);
}

/* ---- chunks ---- */

static const struct prb_ring_column columns[] = {{"when", "s", "", PRB_RING_TIME},
                                                 {"name", "", "", PRB_RING_TEXT},
                                                 {"count", "", "", PRB_RING_INTEGER}};

static void make(struct prb_buf *out)
{
    PRB_AUTO(prb_store_rows) struct prb_store_rows *rows = prb_store_rows_new(columns, 3, NULL);
    assert_non_null(rows);
    for (int i = 0; i < ROWS; i++) {
        char name[32];
        int len = snprintf(name, sizeof name, "layers.%d", i % 10);
        struct prb_ring_value values[] = {
            {.real = 1e9 + i}, {.text = name, .len = (size_t)len}, {.integer = i}};
        values[1].null = i % 7 == 0;
        assert_true(prb_store_rows_add(rows, values, NULL));
    }
    assert_true(prb_store_chunk_make(rows, packer, out, NULL));
}

static void test_a_chunk(void **state)
{
    PRB_AUTO(prb_buf) struct prb_buf bytes = {0};
    struct prb_store_chunk chunk;
    (void)state;
    make(&bytes);
    assert_true(prb_store_chunk_open(bytes.data, bytes.len, &chunk, NULL));
    assert_int_equal(chunk.rows, ROWS);
    assert_int_equal(chunk.columns, 3);
    assert_true(prb_store_chunk_may_have(&chunk, 0, 1e9 + 5, 1e9 + 6));
    assert_false(prb_store_chunk_may_have(&chunk, 0, 2e9, INFINITY));
    assert_false(prb_store_chunk_may_have(&chunk, 2, -INFINITY, -1));
    assert_true(prb_store_chunk_may_have(&chunk, 1, 2e9, INFINITY));
    PRB_AUTO(prb_store_values) struct prb_store_values names = {0};
    assert_true(prb_store_column_decode(packer, bytes.data, bytes.len, &chunk.entries[1], ROWS,
                                        &names, NULL));
    for (int i = 0; i < ROWS; i++) {
        char name[32];
        int len = snprintf(name, sizeof name, "layers.%d", i % 10);
        assert_int_equal(names.column.nulls[i], i % 7 == 0);
        assert_int_equal(names.column.texts[i].len, i % 7 ? len : 0);
        assert_memory_equal(names.column.texts[i].data, name, i % 7 ? (size_t)len : 0);
    }
}

/* Every byte of it changed, and cut short at every length: refused or read, never out of bounds. */
static void test_hostile_chunks(void **state)
{
    PRB_AUTO(prb_buf) struct prb_buf bytes = {0};
    (void)state;
    make(&bytes);
    for (size_t i = 0; i < 16 + 3 * sizeof(struct prb_store_entry) + 200; i++)
        for (unsigned change = 1; change < 256; change = change * 3 + 1) {
            PRB_AUTO_FREE char *copy = malloc(bytes.len);
            struct prb_store_chunk chunk;
            memcpy(copy, bytes.data, bytes.len);
            copy[i] = (char)(copy[i] ^ (int)change);
            size_t len = change == 1 ? i : bytes.len;
            if (!prb_store_chunk_open(copy, len, &chunk, NULL))
                continue;
            for (size_t c = 0; c < chunk.columns && c < 3; c++) {
                PRB_AUTO(prb_store_values) struct prb_store_values values = {0};
                (void)prb_store_column_decode(packer, copy, len, &chunk.entries[c], chunk.rows,
                                              &values, NULL);
            }
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_integers),         cmocka_unit_test(test_reals),
        cmocka_unit_test(test_a_remembered_way), cmocka_unit_test(test_nulls),
        cmocka_unit_test(test_a_chunk),          cmocka_unit_test(test_hostile_chunks),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
