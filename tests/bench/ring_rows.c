/*
 * What a row of five columns (two integers, a real, a text of 12 bytes, a time) costs: in a ring,
 * in a table of SQLite in memory, as a line of JSON in a file of /dev/shm.  Prints JSON.  A row's
 * cost is processor time of its thread, the median of batches, as others use the machine; rows a
 * second are of the clock, the best of several runs.
 */
#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "ring/ring.h"

#define BATCH 10000
#define BATCHES 100
#define RUNS 5
#define THREADS 4
#define TEXT "layer.0.mlp."

static char folder[] = "/dev/shm/probing-bench-XXXXXX";
static struct prb_ring_table *ring;
static sqlite3 *db;
static sqlite3_stmt *insert;
static FILE *lines;

static double seconds(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static bool to_ring(int64_t n)
{
    const struct prb_ring_value row[] = {{.integer = n},
                                         {.integer = n & 7},
                                         {.real = (double)n * 0.5},
                                         {.text = TEXT, .len = sizeof TEXT - 1},
                                         {.real = 1.7e9 + (double)n}};
    return prb_ring_write(ring, row);
}

static bool to_sqlite(int64_t n)
{
    sqlite3_bind_int64(insert, 1, n);
    sqlite3_bind_int64(insert, 2, n & 7);
    sqlite3_bind_double(insert, 3, (double)n * 0.5);
    sqlite3_bind_text(insert, 4, TEXT, sizeof TEXT - 1, SQLITE_STATIC);
    sqlite3_bind_double(insert, 5, 1.7e9 + (double)n);
    bool done = sqlite3_step(insert) == SQLITE_DONE;
    sqlite3_reset(insert);
    return done;
}

static bool to_json(int64_t n)
{
    return fprintf(lines, "{\"a\": %lld, \"b\": %lld, \"c\": %.17g, \"d\": \"%s\", \"e\": %.17g}\n",
                   (long long)n, (long long)(n & 7), (double)n * 0.5, TEXT, 1.7e9 + (double)n) > 0;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Nanoseconds a row; 0: it failed. */
static double cost(bool (*write_row)(int64_t n))
{
    double batch[BATCHES];
    int64_t n = 0;
    bool good = true;
    for (size_t i = 0; i < BATCHES; i++) {
        double begun = seconds(CLOCK_THREAD_CPUTIME_ID);
        for (int64_t end = n + BATCH; n < end; n++)
            good = write_row(n) && good;
        batch[i] = (seconds(CLOCK_THREAD_CPUTIME_ID) - begun) / BATCH * 1e9;
    }
    qsort(batch, BATCHES, sizeof *batch, by_size);
    return good ? batch[BATCHES / 2] : 0;
}

static void *write_many(void *failed)
{
    bool good = true;
    for (int64_t n = 0; n < BATCH * BATCHES; n++)
        good = to_ring(n) && good;
    return good ? NULL : failed;
}

/* Rows a second that so many threads write together; 0: it failed. */
static double rate(int threads)
{
    double least = 1e9;
    bool good = true;
    for (int run = 0; run < RUNS; run++) {
        pthread_t started[THREADS];
        double begun = seconds(CLOCK_MONOTONIC);
        for (int i = 0; i < threads; i++)
            if (pthread_create(&started[i], NULL, write_many, ring) != 0)
                return 0;
        for (int i = 0; i < threads; i++) {
            void *failed;
            pthread_join(started[i], &failed);
            good = good && !failed;
        }
        double took = seconds(CLOCK_MONOTONIC) - begun;
        least = took < least ? took : least;
    }
    return good ? threads * (double)BATCH * BATCHES / least : 0;
}

static bool count_row(void *context, const struct prb_ring_value *values)
{
    (void)values;
    ++*(uint64_t *)context;
    return true;
}

/* Nanoseconds a row to read all that are there. */
static double reading(void)
{
    uint64_t rows = 0;
    double begun = seconds(CLOCK_THREAD_CPUTIME_ID);
    PRB_AUTO(dir) DIR *dir = opendir(folder);
    struct prb_ring_reader *reader = dir ? prb_ring_open(dirfd(dir), "rows.ring", NULL) : NULL;
    if (reader)
        prb_ring_each(reader, count_row, &rows, NULL, NULL);
    prb_ring_close(reader);
    return rows ? (seconds(CLOCK_THREAD_CPUTIME_ID) - begun) / (double)rows * 1e9 : 0;
}

static bool begin(char json[64])
{
    if (!mkdtemp(folder))
        return false;
    snprintf(json, 64, "%s/lines.json", folder);
    ring = prb_ring_table_parse(folder, "rows", "a:integer\nb:integer\nc:real\nd:text\ne:time",
                                NULL, NULL);
    lines = fopen(json, "w");
    return ring && lines && sqlite3_open(":memory:", &db) == SQLITE_OK &&
           sqlite3_exec(db, "CREATE TABLE t(a INTEGER, b INTEGER, c REAL, d TEXT, e REAL); BEGIN",
                        NULL, NULL, NULL) == SQLITE_OK &&
           sqlite3_prepare_v2(db, "INSERT INTO t VALUES(?,?,?,?,?)", -1, &insert, NULL) ==
               SQLITE_OK;
}

int main(void)
{
    char path[64];
    if (!begin(path)) {
        fprintf(stderr, "%s: nothing can be written there\n", folder);
        return 1;
    }
    double row = cost(to_ring), sqlite = cost(to_sqlite), json = cost(to_json);
    double one = rate(1), four = rate(THREADS), read_row = reading();
    printf("{\"ring_ns\": %.1f, \"sqlite_ns\": %.1f, \"json_ns\": %.1f, \"rows_per_s\": %.0f, "
           "\"four_threads_rows_per_s\": %.0f, \"read_ns\": %.1f}\n",
           row, sqlite, json, one, four, read_row);
    unlink(path);
    snprintf(path, sizeof path, "%s/rows.ring", folder);
    unlink(path);
    rmdir(folder);
    return row <= 0 || sqlite <= 0 || json <= 0 || one <= 0 || four <= 0 || read_row <= 0;
}
