/*
 * What the store makes of real rows: store_speed FILE TABLE COPY ROWS.  Reads the rows of TABLE in a
 * file of the store, measures, and adds them to COPY, a copy of the file, again and again with later
 * times, until it has ROWS more.  Prints JSON.  CPU time of the thread, but a commit's is the clock's.
 */
#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "store/drain.h"
#include "store/file.h"

#define COMMITS_MAX 1000
#define RUNS 5
#define CELL 8 /* bytes */

static struct prb_ring_value *values; /* rows, row by row */
static size_t rows, room, columns;
static int64_t process;

static double seconds(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static bool keep(void *context, const struct prb_ring_value *row, int64_t of,
                 enum prb_store_resolution resolution)
{
    (void)context, (void)resolution;
    if (rows == room) {
        room = room ? 2 * room : 4096;
        values = realloc(values, room * columns * sizeof *values);
    }
    memcpy(values + columns * rows++, row, columns * sizeof *values);
    process = of;
    return values != NULL;
}

static const struct prb_store_shape *find(struct prb_store_file *file, const char *name)
{
    size_t count;
    const struct prb_store_shape *shapes = prb_store_shapes(file, &count);
    for (size_t i = 0; i < count; i++)
        if (strcmp(shapes[i].name, name) == 0)
            return &shapes[i];
    return NULL;
}

/* Rows from one on, as a chunk; how many. */
static size_t fill(struct prb_store_rows *chunk, size_t from, double later, struct prb_error *err)
{
    size_t count = 0;
    prb_store_rows_clear(chunk);
    for (; from < rows && count < PRB_STORE_CHUNK_ROWS; from++, count++) {
        struct prb_ring_value row[PRB_RING_COLUMNS_MAX];
        memcpy(row, values + columns * from, columns * sizeof *row);
        row[0].real += later;
        if (!prb_store_rows_add(chunk, row, err))
            return 0;
    }
    return count;
}

struct speed {
    double encode, decode; /* s of CPU */
    size_t bytes;
};

static bool decode(struct prb_packer *packer, const struct prb_buf *bytes, struct prb_error *err)
{
    struct prb_store_chunk chunk;
    bool ok = prb_store_chunk_open(bytes->data, bytes->len, &chunk, err);
    for (size_t i = 0; ok && i < chunk.columns; i++) {
        PRB_AUTO(prb_store_values) struct prb_store_values out = {0};
        ok = prb_store_column_decode(packer, chunk.bytes, chunk.len, &chunk.entries[i], chunk.rows,
                                     &out, err);
    }
    return ok;
}

/* As the collector does, which goes on packing a column as it was packed best. */
static bool code(struct prb_store_rows *chunk, struct prb_packer *packer, struct speed *out,
                 struct prb_error *err)
{
    static struct prb_store_codec codecs[PRB_RING_COLUMNS_MAX]; /* the chunk keeps them */
    memset(codecs, 0, sizeof codecs);
    *out = (struct speed){0};
    prb_store_rows_remember(chunk, codecs);
    for (size_t at = 0, count; at < rows; at += count) {
        PRB_AUTO(prb_buf) struct prb_buf bytes = {0};
        if (!(count = fill(chunk, at, 0, err)))
            return false;
        double began = seconds(CLOCK_THREAD_CPUTIME_ID);
        if (!prb_store_chunk_make(chunk, packer, &bytes, err))
            return false;
        double made = seconds(CLOCK_THREAD_CPUTIME_ID);
        if (!decode(packer, &bytes, err))
            return false;
        out->decode += seconds(CLOCK_THREAD_CPUTIME_ID) - made;
        out->encode += made - began;
        out->bytes += bytes.len;
    }
    return true;
}

/* The same rows in a table of SQLite's, in a file: bytes. */
static double in_sqlite(const struct prb_store_shape *shape, const char *path, bool with_index)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *insert = NULL, *size = NULL;
    char text[1024] = "CREATE TABLE t(", into[256] = "INSERT INTO t VALUES(";
    double bytes = 0;
    for (size_t i = 0; i < columns; i++) {
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s'%s'", i ? ", " : "",
                 shape->columns[i].name);
        strcat(into, i ? ", ?" : "?");
    }
    strcat(text, ")");
    strcat(into, ")");
    remove(path);
    if (sqlite3_open(path, &db) == SQLITE_OK &&
        sqlite3_exec(db, text, NULL, NULL, NULL) == SQLITE_OK &&
        sqlite3_exec(db, "BEGIN", NULL, NULL, NULL) == SQLITE_OK &&
        sqlite3_prepare_v2(db, into, -1, &insert, NULL) == SQLITE_OK) {
        for (size_t row = 0; row < rows; row++) {
            for (size_t i = 0; i < columns; i++) {
                const struct prb_ring_value *value = values + columns * row + i;
                enum prb_ring_type type = shape->columns[i].type;
                if (type == PRB_RING_REAL || type == PRB_RING_TIME)
                    sqlite3_bind_double(insert, (int)i + 1, value->real);
                else
                    sqlite3_bind_int64(insert, (int)i + 1, value->integer);
            }
            sqlite3_step(insert);
            sqlite3_reset(insert);
        }
        sqlite3_finalize(insert);
        snprintf(text, sizeof text, "CREATE INDEX i ON t('%s')", shape->columns[0].name);
        if (with_index)
            sqlite3_exec(db, text, NULL, NULL, NULL);
        sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
        if (sqlite3_prepare_v2(
                db, "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size", -1,
                &size, NULL) == SQLITE_OK &&
            sqlite3_step(size) == SQLITE_ROW)
            bytes = sqlite3_column_double(size, 0);
        sqlite3_finalize(size);
    }
    sqlite3_close(db);
    remove(path);
    return bytes;
}

struct grown {
    double commits[COMMITS_MAX]; /* s */
    size_t commit_count, bytes, rows;
    double first, last;
};

static int compare(const void *a, const void *b)
{
    return (*(const double *)a > *(const double *)b) - (*(const double *)a < *(const double *)b);
}

/* One chunk, which is a commit of its own. */
static bool add(struct prb_store_file *file, int64_t shape, struct prb_store_rows *chunk,
                struct prb_packer *packer, struct grown *grown, struct prb_error *err)
{
    PRB_AUTO(prb_buf) struct prb_buf bytes = {0};
    struct prb_store_chunk made;
    struct prb_store_new_chunk new = {.shape = shape, .process = process};
    if (!prb_store_chunk_make(chunk, packer, &bytes, err) ||
        !prb_store_chunk_open(bytes.data, bytes.len, &made, err) ||
        !prb_store_chunk_bounds(&made, 0, &new.first, &new.last))
        return false;
    new.bytes = bytes.data;
    new.len = bytes.len;
    new.rows = made.rows;
    double began = seconds(CLOCK_MONOTONIC);
    if (!prb_store_begin(file, err) || !prb_store_add_chunk(file, &new, err) ||
        !prb_store_commit(file, err))
        return false;
    if (grown->commit_count < COMMITS_MAX)
        grown->commits[grown->commit_count++] = seconds(CLOCK_MONOTONIC) - began;
    grown->bytes += bytes.len;
    grown->rows += made.rows;
    grown->first = fmin(grown->first, new.first);
    grown->last = fmax(grown->last, new.last);
    return true;
}

static bool grow(const char *path, const char *name, size_t wanted, struct prb_store_rows *chunk,
                 struct prb_packer *packer, struct grown *grown, struct prb_error *err)
{
    PRB_AUTO(prb_store_file) struct prb_store_file *file = prb_store_open(path, true, err);
    const struct prb_store_shape *shape = file ? find(file, name) : NULL;
    double span = values[columns * (rows - 1)].real - values[0].real + 0.001, later = 0;
    grown->first = INFINITY;
    grown->last = -INFINITY;
    if (!shape)
        return false;
    int64_t id = shape->id;
    for (size_t at = 0, count; grown->rows < wanted; at = at + count < rows ? at + count : 0) {
        later += at ? 0 : span;
        count = fill(chunk, at, later, err);
        if (!count || !add(file, id, chunk, packer, grown, err))
            return false;
    }
    return true;
}

static bool measure(char **argv, struct prb_error *err)
{
    PRB_AUTO(prb_store_file) struct prb_store_file *file = prb_store_open(argv[1], false, err);
    const struct prb_store_shape *shape = file ? find(file, argv[2]) : NULL;
    if (!shape)
        return file && prb_fail(err, PRB_NOT_FOUND, "no table %s", argv[2]);
    columns = shape->count;
    const struct prb_store_query all = {.shape = shape, .wanted = ~UINT64_C(0)};
    struct prb_store_counts counts = {0};
    struct speed best = {0}, now;
    static struct grown grown;
    PRB_AUTO(prb_store_rows)
    struct prb_store_rows *chunk = prb_store_rows_new(shape->columns, columns, err);
    PRB_AUTO(prb_packer) struct prb_packer *packer = prb_packer_new(err);
    if (!chunk || !packer || !prb_store_each(file, &all, keep, NULL, &counts, err))
        return false;
    if (!rows)
        return prb_fail(err, PRB_NOT_FOUND, "no rows");
    for (int i = 0; i < RUNS; i++) {
        if (!code(chunk, packer, &now, err))
            return false;
        best.bytes = now.bytes;
        best.encode = i && best.encode < now.encode ? best.encode : now.encode;
        best.decode = i && best.decode < now.decode ? best.decode : now.decode;
    }
    char plain[4096];
    snprintf(plain, sizeof plain, "%s.plain", argv[3]);
    double sqlite = in_sqlite(shape, plain, false), indexed = in_sqlite(shape, plain, true);
    if (!grow(argv[3], argv[2], (size_t)atol(argv[4]), chunk, packer, &grown, err))
        return false;
    qsort(grown.commits, grown.commit_count, sizeof *grown.commits, compare);
    double cells = (double)(rows * columns * CELL), each = (double)rows;
    printf("{\"rows\": %zu, \"columns\": %zu, \"bytes\": %.4f, \"sqlite\": %.4f, \"indexed\": %.4f,"
           " \"encode\": %.2f, \"decode\": %.2f, \"commit_ms\": %.4f, \"grown\": %zu, \"first\": "
           "%.6f, \"last\": %.6f}\n",
           rows, columns, (double)best.bytes / each, sqlite / each, indexed / each,
           cells / best.encode * 1e-6, cells / best.decode * 1e-6,
           grown.commit_count ? 1e3 * grown.commits[grown.commit_count / 2] : 0, grown.rows,
           grown.first, grown.last);
    return true;
}

int main(int argc, char **argv)
{
    struct prb_error err = {0};
    if (argc != 5)
        return 2;
    bool done = measure(argv, &err);
    if (!done)
        fprintf(stderr, "store_speed: %s\n", err.text);
    free(values);
    return !done;
}
