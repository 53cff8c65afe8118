/* ring: what is written is read, within the limits, by others, and after forks and the ends of
 * threads. */
#include "ring.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

#include "ring/writer.h"
#include "table/recorded/names.h"

static struct prb_ring_table *proof_table(const char *name, uint64_t bytes)
{
    struct prb_error err;
    const struct prb_ring_limits limits = {.bytes_max = bytes};
    struct prb_ring_table *table =
        prb_ring_table_parse(ring_folder, name, RING_PROOF_COLUMNS, &limits, &err);
    if (!table)
        fail_msg("%s", err.text);
    return table;
}

static struct ring_proofs read_proofs(const char *name, struct prb_ring_counts *counts)
{
    struct prb_error err;
    struct ring_proofs proofs = {0};
    struct prb_ring_reader *reader = ring_reader(name);
    assert_ok(prb_ring_each(reader, ring_check_proof, &proofs, counts, &err), err);
    prb_ring_close(reader);
    assert_int_equal(proofs.wrong, 0);
    assert_int_equal(counts->broken, 0);
    return proofs;
}

/* ---- values ---- */

static size_t seen;

static bool check_values(void *context, const struct prb_ring_value *values)
{
    const struct prb_ring_value *expected = context;
    expected += 5 * seen++;
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(values[i].null, expected[i].null);
        if (!values[i].null && i != 2)
            assert_int_equal(values[i].integer, expected[i].integer);
    }
    if (!values[2].null) {
        assert_int_equal(values[2].len, expected[2].len);
        assert_memory_equal(values[2].text, expected[2].text, expected[2].len);
    }
    return true;
}

static void values_come_as_they_went(void **state)
{
    (void)state;
    static const struct prb_ring_column columns[] = {
        {"i", "count", "an integer", PRB_RING_INTEGER},
        {"r", "s", "", PRB_RING_REAL},
        {"t", "", "a text", PRB_RING_TEXT},
        {"b", "", "", PRB_RING_BOOLEAN},
        {"at", NULL, NULL, PRB_RING_TIME},
    };
    const struct prb_ring_value rows[][5] = {
        {{.integer = INT64_MIN},
         {.real = -0.5},
         {.text = "h\xc3\xa9", .len = 3},
         {.integer = 1},
         {.real = 1e9}},
        {{.integer = INT64_MAX},
         {.null = true},
         {.text = "", .len = 0},
         {.integer = 0},
         {.null = true}},
        {{.null = true}, {.null = true}, {.null = true}, {.null = true}, {.null = true}},
    };
    struct prb_error err;
    struct prb_ring_table *table =
        prb_ring_table_new(ring_folder, "values", columns, 5, NULL, &err);
    assert_ok(table != NULL, err);
    for (size_t i = 0; i < 3; i++)
        assert_true(prb_ring_write(table, rows[i]));
    struct prb_ring_reader *reader = ring_reader("values");
    size_t count;
    const struct prb_ring_column *read = prb_ring_columns(reader, &count);
    assert_int_equal(count, 5);
    assert_string_equal(prb_ring_name(reader), "values");
    assert_string_equal(read[0].unit, "count");
    assert_string_equal(read[2].doc, "a text");
    assert_string_equal(read[4].unit, "");
    assert_int_equal(read[4].type, PRB_RING_TIME);
    struct prb_ring_counts counts;
    seen = 0;
    assert_ok(prb_ring_each(reader, check_values, (void *)rows, &counts, &err), err);
    assert_int_equal(seen, 3);
    assert_true(prb_ring_latest(reader) > (double)time(NULL) - 60);
    prb_ring_close(reader);
    prb_ring_table_free(table);
    assert_false(prb_ring_write(table, rows[0]));
}

static bool text_length(void *context, const struct prb_ring_value *values)
{
    *(size_t *)context = values[0].len;
    assert_memory_equal(values[0].text + values[0].len - 3, "\xe2\x82\xac", 3);
    return true;
}

static void texts_are_cut_between_characters(void **state)
{
    (void)state;
    struct prb_error err;
    static const struct prb_ring_limits small = {.bytes_max = 1};
    static char euros[3 * 40000];
    for (size_t i = 0; i < sizeof euros; i += 3)
        memcpy(euros + i, "\xe2\x82\xac", 3);
    const struct prb_ring_value value = {.text = euros, .len = sizeof euros};
    struct prb_ring_table *large = prb_ring_table_parse(ring_folder, "large", "t:text", NULL, &err);
    struct prb_ring_table *tiny = prb_ring_table_parse(ring_folder, "tiny", "t:text", &small, &err);
    assert_true(large && tiny && prb_ring_write(large, &value) && prb_ring_write(tiny, &value));
    size_t lengths[2];
    struct prb_ring_reader *a = ring_reader("large"), *b = ring_reader("tiny");
    assert_true(prb_ring_each(a, text_length, &lengths[0], NULL, &err));
    assert_true(prb_ring_each(b, text_length, &lengths[1], NULL, &err));
    assert_int_equal(lengths[0], PRB_RING_TEXT_MAX / 3 * 3);
    assert_in_range(lengths[1], 3000, 4096);
    prb_ring_close(a);
    prb_ring_close(b);
    prb_ring_table_free(large);
    prb_ring_table_free(tiny);
}

static void wrong_definitions_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *name, *columns, *text;
    } wrong[] = {
        {"", "a:integer", "not a name for a table"},
        {"1a", "a:integer", "not a name for a table"},
        {"a/b", "a:integer", "not a name for a table"},
        {"t", "", "1 to 63 columns"},
        {"t", "a:float", "not a type"},
        {"t", "a", "not a type"},
        {"t", "a:integer\nA:real", "two columns"},
        {"t", "a b:integer", "not a name for a column"},
        {"values2", "a:integer", "other columns"},
    };
    struct prb_error err;
    struct prb_ring_table *table =
        prb_ring_table_parse(ring_folder, "values2", "a:real", NULL, &err);
    assert_ok(table != NULL, err);
    assert_ptr_equal(prb_ring_table_parse(ring_folder, "values2", "\na:real\n", NULL, &err), table);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_null(prb_ring_table_parse(ring_folder, wrong[i].name, wrong[i].columns, NULL, &err));
        assert_int_equal(err.code, PRB_USAGE);
        if (!strstr(err.text, wrong[i].text))
            fail_msg("%s: %s", wrong[i].name, err.text);
    }
    assert_null(prb_ring_table_parse("/nowhere/at/all", "t", "a:real", NULL, &err));
    assert_int_equal(err.code, PRB_NOT_FOUND);
    prb_ring_table_free(table);
}

static void built_in_names_are_taken(void **state)
{
    (void)state;
    static const char *const taken[] = {"backtrace", "Threads"};
    struct prb_error err;
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++) {
        assert_false(prb_recorded_name_is_free(taken[i], &err));
        assert_int_equal(err.code, PRB_USAGE);
        assert_non_null(strstr(err.text, "built-in"));
    }
    assert_true(prb_recorded_name_is_free("backtraces", &err));
    assert_true(prb_recorded_name_is_free("system_threads", &err));
}

/* ---- packed ---- */

static void packed_rows_are_checked(void **state)
{
    (void)state;
    struct prb_error err;
    struct prb_ring_table *table = prb_ring_table_parse(
        ring_folder, "packed", "i:integer\nt:text\nb:boolean\nu:text", NULL, &err);
    assert_ok(table != NULL, err);
    struct {
        uint64_t nulls;
        int64_t i, t, b, u;
        char texts[8];
    } row = {.i = 7, .t = 3, .b = 1, .u = 5, .texts = "abcdefgh"};
    assert_int_equal(prb_ring_write_packed(table, &row, sizeof row), 0);
    assert_int_equal(prb_ring_write_packed(table, &row, sizeof row - 1), -1);
    assert_int_equal(prb_ring_write_packed(table, &row, 39), -1);
    assert_int_equal(prb_ring_write_packed(table, &row, 0), -1);
    row.b = 2;
    assert_int_equal(prb_ring_write_packed(table, &row, sizeof row), -1);
    row.b = 0;
    row.t = -1;
    assert_int_equal(prb_ring_write_packed(table, &row, sizeof row), -1);
    row.t = INT64_MAX;
    assert_int_equal(prb_ring_write_packed(table, &row, sizeof row), -1);
    row.t = 0;
    row.nulls = 2;
    assert_int_equal(prb_ring_write_packed(table, &row, sizeof row - 3), 0);
    row.nulls = 16;
    assert_int_equal(prb_ring_write_packed(table, &row, sizeof row - 3), -1);
    prb_ring_table_free(table);
    row.nulls = 2;
    assert_int_equal(prb_ring_write_packed(table, &row, sizeof row - 3), 1);
}

/* ---- limits ---- */

static void old_rows_make_room(void **state)
{
    (void)state;
    struct prb_ring_counts counts;
    struct prb_ring_table *table = proof_table("wrap", 256 << 10);
    for (int64_t n = 0; n < 20000; n++)
        assert_true(ring_write_proof(table, 1, n));
    struct ring_proofs proofs = read_proofs("wrap", &counts);
    assert_int_equal(proofs.last[1], 20000); /* the newest is there */
    assert_in_range(proofs.rows, 256 * 1024 / 300, 256 * 1024 / 64);
    assert_int_equal(counts.dropped, 0);
    prb_ring_table_free(table);
}

static void memory_is_bounded(void **state)
{
    (void)state;
    struct prb_ring_counts counts;
    struct prb_error err;
    uint64_t before = prb_ring_memory();
    prb_ring_set_memory(before + (200 << 10));
    struct prb_ring_table *table = proof_table("bounded", 8 << 20);
    assert_non_null(table);
    for (int64_t n = 0; n < 20000; n++)
        ring_write_proof(table, 2, n);
    assert_true(prb_ring_memory() <= before + (200 << 10));
    assert_null(prb_ring_table_parse(ring_folder, "more", "a:integer", NULL, &err));
    assert_int_equal(err.code, PRB_NOMEM);
    prb_ring_set_memory(0);
    for (int64_t n = 20000; n < 60000; n++)
        assert_true(ring_write_proof(table, 2, n));
    assert_true(prb_ring_memory() > before + (2 << 20));
    prb_ring_set_memory(before + (1 << 20)); /* gives back */
    assert_true(prb_ring_memory() <= before + (1 << 20));
    assert_in_range(read_proofs("bounded", &counts).rows, 1000, 20000);
    prb_ring_set_memory(0);
    prb_ring_table_free(table);
    assert_int_equal(prb_ring_memory(), before);
}

static void room_is_prepared_for_as_many_rows_again(void **state)
{
    (void)state;
    uint64_t before = prb_ring_memory(), filled;
    struct prb_ring_table *table = proof_table("prepared", 8 << 20);
    assert_non_null(table);
    int64_t n = 0;
    for (; prb_ring_memory() < before + (1 << 20); n++)
        assert_true(ring_write_proof(table, 2, n));
    filled = prb_ring_memory();
    prb_ring_prepare();
    uint64_t prepared = prb_ring_memory();
    assert_true(prepared >= filled + (1 << 20));
    prb_ring_prepare(); /* nothing was written since */
    assert_int_equal(prb_ring_memory(), prepared);
    for (int64_t end = 2 * n; n < end; n++)
        assert_true(ring_write_proof(table, 2, n));
    assert_int_equal(prb_ring_memory(), prepared); /* the rows found it */
    prb_ring_set_memory(prepared + (128 << 10));
    prb_ring_prepare();
    assert_true(prb_ring_memory() <= prepared + (128 << 10));
    prb_ring_set_memory(0);
    struct prb_ring_counts counts;
    struct ring_proofs proofs = read_proofs("prepared", &counts);
    assert_int_equal(proofs.rows, n);
    assert_int_equal(counts.dropped, 0);
    prb_ring_table_free(table);
    prb_ring_prepare();
    assert_int_equal(prb_ring_memory(), before);
}

static void few_chunks_are_reserved_at_once(void **state)
{
    (void)state;
    struct prb_ring_counts counts;
    const struct prb_ring_limits limits = {.bytes_max = 256 << 10, .chunks = 16};
    uint64_t before = prb_ring_memory();
    struct prb_ring_table *table =
        prb_ring_table_parse(ring_folder, "few", RING_PROOF_COLUMNS, &limits, NULL);
    assert_non_null(table);
    assert_int_equal(table->chunk_count, 16);
    uint64_t made = prb_ring_memory() - before;
    assert_true(made >= 256 << 10);
    for (int64_t n = 0; n < 20000; n++)
        assert_true(ring_write_proof(table, 3, n));
    assert_int_equal(prb_ring_memory() - before, made);
    assert_int_equal(read_proofs("few", &counts).last[3], 20000);
    assert_int_equal(counts.dropped, 0);
    prb_ring_table_free(table);
}

static void old_rows_are_not_read(void **state)
{
    (void)state;
    struct prb_ring_counts counts;
    struct prb_ring_table *table = proof_table("aged", 256 << 10);
    const struct timespec while_ = {1, 100000000};
    assert_true(ring_write_proof(table, 3, 0));
    nanosleep(&while_, NULL);
    assert_true(ring_write_proof(table, 3, 1));
    assert_int_equal(read_proofs("aged", &counts).rows, 2);
    prb_ring_set_retention(1); /* what a busy machine reads in time */
    assert_int_equal(read_proofs("aged", &counts).rows, 1);
    prb_ring_set_retention(0);
    assert_int_equal(read_proofs("aged", &counts).rows, 2);
    prb_ring_table_free(table);
}

static void file_size_limits_are_no_signal(void **state)
{
    (void)state;
    pid_t child = fork();
    if (child == 0) {
        struct prb_error err;
        const struct prb_ring_limits limits = {.bytes_max = 1 << 20};
        const struct rlimit small = {300 << 10, 300 << 10};
        setrlimit(RLIMIT_FSIZE, &small);
        struct prb_ring_table *table =
            prb_ring_table_parse(ring_folder, "limited", RING_PROOF_COLUMNS, &limits, &err);
        for (int64_t n = 0; table && n < 20000; n++)
            if (!ring_write_proof(table, 4, n))
                _exit(2);
        const struct rlimit none = {1 << 10, 300 << 10};
        setrlimit(RLIMIT_FSIZE, &none);
        _exit(!table || prb_ring_table_parse(ring_folder, "never", "a:real", NULL, &err) ||
              err.code != PRB_IO);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    struct prb_ring_counts counts;
    assert_int_equal(read_proofs("limited", &counts).last[4], 20000);
    assert_true(counts.full);
    char path[128];
    ring_path(path, "never");
    assert_int_not_equal(access(path, F_OK), 0);
}

/* ---- processes and threads ---- */

/* As after a detach: the next probe of the process goes on where the last one was. */
static void a_table_goes_on(void **state)
{
    (void)state;
    struct prb_ring_counts counts;
    struct prb_error err;
    int64_t n = 0;
    for (int round = 0; round < 5; round++) {
        struct prb_ring_table *table = proof_table("resumed", 256 << 10);
        for (int64_t end = n + 100; n < end; n++)
            assert_true(ring_write_proof(table, 7, n));
        assert_true(read_proofs("resumed", &counts).rows == (uint64_t)n);
        prb_ring_tables_free();
    }
    for (int round = 0; round < 90;
         round++) { /* round and round the chunks, its limits as they were */
        struct prb_ring_table *table = proof_table("resumed", (uint64_t)(round + 1) << 20);
        assert_int_equal(table->chunk_count, 64);
        for (int64_t end = n + 300; n < end; n++)
            assert_true(ring_write_proof(table, 7, n));
        prb_ring_tables_free();
        assert_true(read_proofs("resumed", &counts).last[7] == n);
    }
    assert_true(read_proofs("resumed", &counts).rows > 500);
    struct prb_ring_table *other =
        prb_ring_table_parse(ring_folder, "resumed", "a:integer", NULL, &err);
    assert_ok(other != NULL, err);
    struct prb_ring_reader *reader = ring_reader("resumed");
    size_t count;
    prb_ring_columns(reader, &count);
    assert_int_equal(count, 1);
    prb_ring_close(reader);
    prb_ring_table_free(other);
}

static void child_and_parent_write(const char *name, const char *child_name)
{
    struct prb_ring_counts counts;
    struct prb_ring_table *table = proof_table(name, 256 << 10);
    assert_true(ring_write_proof(table, 5, 0));
    assert_true(prb_ring_lock(NULL)); /* as another thread of the parent may, when it forks */
    pid_t child = fork();
    if (child == 0) {
        bool refused = !ring_write_proof(table, 5, 100);
        prb_ring_table_free(table); /* the parent's: untouched */
        struct prb_ring_table *own =
            prb_ring_table_parse(ring_folder, child_name, RING_PROOF_COLUMNS, NULL, NULL);
        bool written = own && ring_write_proof(own, 6, 0) && !ring_write_proof(table, 5, 100);
        _exit(!refused || !written);
    }
    prb_ring_unlock();
    assert_true(ring_write_proof(table, 5, 1));
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_true(ring_write_proof(table, 5, 2));
    assert_int_equal(read_proofs(name, &counts).rows, 3);
    assert_int_equal(read_proofs(child_name, &counts).rows, 1);
    prb_ring_table_free(table);
}

static void a_child_writes_to_its_own(void **state)
{
    (void)state;
    child_and_parent_write("forked", "own");
}

/* As on Linux before 4.14. */
static void the_same_without_wiped_pages(void **state)
{
    (void)state;
    void *page = prb_ring_process.token;
    bool wiped = prb_ring_process.wiped;
    if (wiped)
        assert_int_equal(madvise(page, 4096, MADV_KEEPONFORK), 0);
    prb_ring_process.wiped = false;
    child_and_parent_write("forked2", "own2");
    prb_ring_process.wiped = wiped;
    if (wiped)
        assert_int_equal(madvise(page, 4096, MADV_WIPEONFORK), 0);
}

#define THREADS 64
#define ROUNDS 4
#define ROWS_EACH 50

struct job {
    struct prb_ring_table *table;
    int64_t writer, from;
};

static void *write_some(void *context)
{
    const struct job *job = context;
    for (int64_t n = 0; n < ROWS_EACH; n++)
        if (!ring_write_proof(job->table, job->writer, job->from + n))
            return context;
    return NULL;
}

static void threads_give_their_chunk_back(void **state)
{
    (void)state;
    struct prb_ring_counts counts;
    /* Room for more chunks than threads: with as many, one that is full may be begun again. */
    struct prb_ring_table *table = proof_table("many", 32 << 20);
    for (int round = 0; round < ROUNDS; round++) {
        pthread_t threads[THREADS];
        struct job jobs[THREADS];
        for (int i = 0; i < THREADS; i++) {
            jobs[i] = (struct job){table, i, round * ROWS_EACH};
            assert_int_equal(pthread_create(&threads[i], NULL, write_some, &jobs[i]), 0);
        }
        for (int i = 0; i < THREADS; i++) {
            void *failed;
            assert_int_equal(pthread_join(threads[i], &failed), 0);
            assert_null(failed);
        }
    }
    assert_true(atomic_load(&table->reserved) <= THREADS + 2);
    assert_int_equal(read_proofs("many", &counts).rows, THREADS * ROUNDS * ROWS_EACH);
    assert_int_equal(counts.dropped, 0);
    prb_ring_table_free(table);
}

/* More threads than chunks: rows are dropped and counted, none is wrong. */
static void too_many_threads_are_counted(void **state)
{
    (void)state;
    struct prb_ring_counts counts;
    struct prb_ring_table *table = proof_table("crowd", 0);
    table->chunk_count = 2;
    assert_true(ring_write_proof(table, 0, 0));
    pthread_t thread;
    struct job job = {table, 1, 0};
    assert_int_equal(pthread_create(&thread, NULL, write_some, &job), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    table->chunk_count = 1; /* it is open */
    job = (struct job){table, 2, 0};
    for (uint32_t slot = 0; slot < 2; slot++)
        atomic_store(&table->slots[slot].use, PRB_RING_OPEN);
    atomic_store(&table->parked, 0);
    assert_int_equal(pthread_create(&thread, NULL, write_some, &job), 0);
    void *failed;
    assert_int_equal(pthread_join(thread, &failed), 0);
    assert_non_null(failed);
    assert_int_equal(read_proofs("crowd", &counts).rows, 1 + ROWS_EACH);
    assert_int_equal(counts.dropped, 1);
    prb_ring_table_free(table);
}

/* ---- marks ---- */

/* Read behind the mark, at most so many bytes at a time, and move it. */
static uint64_t read_on(const char *name, struct prb_ring_mark *mark, uint64_t most,
                        struct ring_proofs *proofs)
{
    struct prb_error err;
    struct prb_ring_counts counts = {.more = true};
    struct prb_ring_reader *reader = ring_reader(name);
    uint64_t lost = 0;
    while (counts.more) {
        PRB_AUTO(prb_ring_mark) struct prb_ring_mark next = {0};
        assert_ok(prb_ring_each_from(reader, mark->places ? mark : NULL, most, ring_check_proof,
                                     proofs, &counts, &next, &err),
                  err);
        struct prb_ring_mark old = *mark;
        *mark = next;
        next = old;
        lost += counts.lost;
    }
    assert_int_equal(prb_ring_waiting(reader, mark), 0);
    prb_ring_close(reader);
    assert_int_equal(proofs->wrong, 0);
    return lost;
}

static void a_mark_reads_every_row_once(void **state)
{
    (void)state;
    struct prb_ring_table *table = proof_table("marked", 1);
    PRB_AUTO(prb_ring_mark) struct prb_ring_mark mark = {0};
    struct ring_proofs proofs = {0};
    uint64_t lost = 0;
    int64_t n = 0;
    for (int turn = 0; turn < 60; turn++) {
        for (int64_t end = n + turn * turn % 700; n < end; n++)
            assert_true(ring_write_proof(table, 1, n));
        if (turn % 3 ==
            1) { /* a thread leaves its chunk half full; another probe finds all of them */
            pthread_t thread;
            struct job job = {table, 1, n};
            assert_int_equal(pthread_create(&thread, NULL, write_some, &job), 0);
            assert_int_equal(pthread_join(thread, NULL), 0);
            n += ROWS_EACH;
        }
        if (turn % 7 == 6) {
            prb_ring_table_free(table);
            table = proof_table("marked", 1);
        }
        lost += read_on("marked", &mark, turn % 2 ? 8000 : 0, &proofs);
        assert_int_equal(proofs.rows + lost, n); /* those that were overwritten are counted */
    }
    assert_true(lost > 0 && proofs.rows > 1000);
    PRB_AUTO(prb_ring_mark) struct prb_ring_mark late = {0};
    struct ring_proofs last = {0};
    assert_int_equal(read_on("marked", &late, 0, &last),
                     0); /* before the first reading: not lost */
    prb_ring_table_free(table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_come_as_they_went),
        cmocka_unit_test(texts_are_cut_between_characters),
        cmocka_unit_test(wrong_definitions_are_refused),
        cmocka_unit_test(built_in_names_are_taken),
        cmocka_unit_test(packed_rows_are_checked),
        cmocka_unit_test(old_rows_make_room),
        cmocka_unit_test(a_mark_reads_every_row_once),
        cmocka_unit_test(memory_is_bounded),
        cmocka_unit_test(old_rows_are_not_read),
        cmocka_unit_test(file_size_limits_are_no_signal),
        cmocka_unit_test(room_is_prepared_for_as_many_rows_again),
        cmocka_unit_test(few_chunks_are_reserved_at_once),
        cmocka_unit_test(a_table_goes_on),
        cmocka_unit_test(a_child_writes_to_its_own),
        cmocka_unit_test(the_same_without_wiped_pages),
        cmocka_unit_test(threads_give_their_chunk_back),
        cmocka_unit_test(too_many_threads_are_counted),
    };
    return cmocka_run_group_tests(tests, ring_begin, ring_end);
}
