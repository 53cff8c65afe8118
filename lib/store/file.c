/* Store files: opening them, and the lists of what is in one. */
#include "store/file.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "ring/columns.h"
#include "store/file_parts.h"

#define VERSION 1
#define BUSY_MS 2000
#define PROCESSES_MAX 100000
#define SHAPES_MAX 10000
#define TEXT_MAX (1 << 20)
#define STEPS 100000 /* of SQLite's virtual machine between two checks */
#define CHECKS_MAX                                                                                 \
    500 /* a statement that goes on is not ours: what calls itself a table is a view */

static const char schema[] =
    "PRAGMA application_id = 1347568211;" /* PRB_STORE_APPLICATION */
    "PRAGMA user_version = 1;"
    "CREATE TABLE about(key TEXT PRIMARY KEY, value) WITHOUT ROWID;"
    "CREATE TABLE process(id INTEGER PRIMARY KEY, pid INTEGER, started INTEGER, ended REAL,"
    " rank INTEGER, world_size INTEGER, command TEXT, UNIQUE(pid, started));"
    "CREATE TABLE shape(id INTEGER PRIMARY KEY, schema TEXT, name TEXT, columns TEXT,"
    " UNIQUE(schema, name, columns));"
    "CREATE TABLE chunk(id INTEGER PRIMARY KEY, shape INTEGER, process INTEGER, first REAL,"
    " last REAL, rows INTEGER, resolution INTEGER, data BLOB);"
    /* The last two: chunks that are too late are passed over without a look at their pages. */
    "CREATE INDEX chunk_by_time ON chunk(shape, last, first, process);"
    "CREATE TABLE mark(process INTEGER, name TEXT, inode INTEGER, places BLOB,"
    " PRIMARY KEY(process, name)) WITHOUT ROWID;"
    "CREATE TABLE gap(name TEXT, process INTEGER, from_time REAL, to_time REAL, rows INTEGER);";

/* Names that rows of the process's other tables have by number stay as long as these. */
#define NOT_NEEDED                                                                                 \
    "NOT (shape IN (SELECT id FROM shape WHERE name IN ('torch_names'))"                           \
    " AND EXISTS (SELECT 1 FROM chunk AS other WHERE other.process = chunk.process"                \
    " AND other.shape NOT IN (SELECT id FROM shape WHERE name IN ('torch_names'))))"

static const char *const statements[] = {
    [PRB_STORE_BEGIN] = "BEGIN IMMEDIATE",
    [PRB_STORE_COMMIT] = "COMMIT",
    [PRB_STORE_ROLLBACK] = "ROLLBACK",
    [PRB_STORE_FIND_PROCESS] = "SELECT id FROM process WHERE pid = ? AND started = ?",
    [PRB_STORE_ADD_PROCESS] = "INSERT INTO process(pid, started) VALUES(?, ?)",
    [PRB_STORE_CHANGE_PROCESS] =
        "UPDATE process SET ended = ?, rank = ?, world_size = ?, command = ? WHERE id = ?",
    [PRB_STORE_ADD_SHAPE] = "INSERT INTO shape(schema, name, columns) VALUES(?, ?, ?)",
    [PRB_STORE_ADD_CHUNK] = "INSERT INTO chunk(shape, process, first, last, rows, resolution, data)"
                            " VALUES(?, ?, ?, ?, ?, ?, ?)",
    [PRB_STORE_GET_MARK] = "SELECT inode, places FROM mark WHERE process = ? AND name = ?",
    [PRB_STORE_SET_MARK] = "INSERT OR REPLACE INTO mark(process, name, inode, places)"
                           " VALUES(?, ?, ?, ?)",
    [PRB_STORE_ADD_GAP] = "INSERT INTO gap(name, process, from_time, to_time, rows)"
                          " VALUES(?, ?, ?, ?, ?)",
    [PRB_STORE_SET_ABOUT] = "INSERT OR REPLACE INTO about(key, value) VALUES(?, ?)",
    [PRB_STORE_FIND_CHUNKS] =
        "SELECT data, process, resolution FROM chunk WHERE shape = ?1 AND last >= ?2"
        " AND first <= ?3 AND (process = ?4 OR ?4 = 0) ORDER BY last",
    [PRB_STORE_LIST_GAPS] = "SELECT name, process, from_time, to_time, rows FROM gap",
    [PRB_STORE_OLDEST] = "SELECT min(last) FROM chunk WHERE " NOT_NEEDED,
    [PRB_STORE_REMOVE] = "DELETE FROM chunk WHERE id IN (SELECT id FROM chunk WHERE last < ? AND"
                         " " NOT_NEEDED " ORDER BY last LIMIT ?)",
    [PRB_STORE_REMOVE_ONE] = "DELETE FROM chunk WHERE id = ?",
    [PRB_STORE_LIST_OLD] =
        "SELECT id, first, last, rows, data FROM chunk WHERE shape = ? AND process = ?"
        " AND resolution = ? AND last < ? AND last > ? AND rows <= ? ORDER BY last",
    [PRB_STORE_REMOVE_GAPS] = "DELETE FROM gap WHERE to_time < ?",
    [PRB_STORE_LAST_TIME] = "SELECT max(last) FROM chunk WHERE shape = ? AND process = ?",
};

/* ---- statements ---- */

bool prb_store_failed(struct prb_store_file *file, struct prb_error *err)
{
    int rc = sqlite3_extended_errcode(file->sqlite) & 0xff;
    enum prb_code code = rc == SQLITE_NOMEM                            ? PRB_NOMEM
                         : rc == SQLITE_CORRUPT || rc == SQLITE_NOTADB ? PRB_CORRUPT
                         : rc == SQLITE_BUSY                           ? PRB_BUSY
                                                                       : PRB_IO;
    int sys = sqlite3_system_errno(file->sqlite);
    if (rc == SQLITE_INTERRUPT)
        return prb_fail(err, PRB_CORRUPT, "%s: reading it does not come to an end", file->path);
    if (rc == SQLITE_FULL || (rc == SQLITE_IOERR && (sys == ENOSPC || sys == EDQUOT)))
        return prb_fail(err, PRB_IO, "%s: the disk is full", file->path);
    return prb_fail(err, code, "%s: %s", file->path, sqlite3_errmsg(file->sqlite));
}

sqlite3_stmt *prb_store_statement(struct prb_store_file *file, enum prb_store_statement which,
                                  struct prb_error *err)
{
    sqlite3_stmt **statement = &file->statements[which];
    file->checks = 0;
    if (!*statement && sqlite3_prepare_v3(file->sqlite, statements[which], -1,
                                          SQLITE_PREPARE_PERSISTENT, statement, NULL) != SQLITE_OK)
        return PRB_NULL(prb_store_failed(file, err));
    return *statement;
}

bool prb_store_run(struct prb_store_file *file, sqlite3_stmt *statement, struct prb_error *err)
{
    bool good = statement && sqlite3_step(statement) == SQLITE_DONE;
    if (statement && !good)
        prb_store_failed(file, err);
    if (statement)
        prb_store_reset(statement);
    return good;
}

static int check_steps(void *context)
{
    return ++((struct prb_store_file *)context)->checks > CHECKS_MAX;
}

static bool run_text(struct prb_store_file *file, const char *sql, struct prb_error *err)
{
    return sqlite3_exec(file->sqlite, sql, NULL, NULL, NULL) == SQLITE_OK ||
           prb_store_failed(file, err);
}

/* ---- the lists ---- */

static const char *text_at(struct prb_store_file *file, sqlite3_stmt *row, int column)
{
    const char *text = (const char *)sqlite3_column_text(row, column);
    int length = sqlite3_column_bytes(row, column);
    return text && length < TEXT_MAX ? prb_arena_strndup(&file->arena, text, (size_t)length)
                                     : prb_arena_strdup(&file->arena, "");
}

static bool take_process(struct prb_store_file *file, sqlite3_stmt *row)
{
    if (file->process_count >= PROCESSES_MAX ||
        !PRB_GROW(file->processes, file->process_count, file->process_cap))
        return false;
    file->processes[file->process_count++] = (struct prb_store_process){
        .id = sqlite3_column_int64(row, 0),
        .pid = sqlite3_column_int64(row, 1),
        .started = sqlite3_column_int64(row, 2),
        .ended = sqlite3_column_double(row, 3),
        .rank = sqlite3_column_int(row, 4),
        .world_size = sqlite3_column_int(row, 5),
        .command = text_at(file, row, 6),
    };
    return true;
}

/* What is not valid is left out. */
static bool take_shape(struct prb_store_file *file, sqlite3_stmt *row)
{
    struct prb_ring_column columns[PRB_RING_COLUMNS_MAX];
    struct prb_store_shape shape = {.id = sqlite3_column_int64(row, 0),
                                    .schema = text_at(file, row, 1),
                                    .name = text_at(file, row, 2)};
    char *text = (char *)text_at(file, row, 3);
    if (file->shape_count >= SHAPES_MAX || !shape.schema || !shape.name || !text)
        return false;
    if (!prb_ring_is_name(shape.schema) || !prb_ring_is_name(shape.name) ||
        !prb_ring_columns_parse(text, columns, &shape.count, NULL) ||
        !prb_ring_columns_check(columns, shape.count, NULL))
        return true;
    struct prb_ring_column *copy = prb_arena_alloc(&file->arena, shape.count * sizeof *copy);
    if (!copy || !PRB_GROW(file->shapes, file->shape_count, file->shape_cap))
        return false;
    memcpy(copy, columns, shape.count * sizeof *copy);
    shape.columns = copy;
    file->shapes[file->shape_count++] = shape;
    return true;
}

const char *const prb_store_wish_keys[PRB_STORE_WISHES] = {
    [PRB_STORE_WISH_SECONDS] = "retention",
    [PRB_STORE_WISH_RAW] = "raw",
    [PRB_STORE_WISH_MINUTES] = "minutes",
    [PRB_STORE_WISH_MEMORY] = "memory",
};

static bool take_about(struct prb_store_file *file, sqlite3_stmt *row)
{
    const char *key = (const char *)sqlite3_column_text(row, 0);
    if (key && strcmp(key, "job") == 0)
        file->job = text_at(file, row, 1);
    for (size_t i = 0; key && i < PRB_STORE_WISHES; i++)
        if (strcmp(key, prb_store_wish_keys[i]) == 0)
            file->wishes[i] = sqlite3_column_double(row, 1);
    return true;
}

static bool list(struct prb_store_file *file, const char *sql,
                 bool (*take)(struct prb_store_file *file, sqlite3_stmt *row),
                 struct prb_error *err)
{
    sqlite3_stmt *rows = NULL;
    int rc = sqlite3_prepare_v2(file->sqlite, sql, -1, &rows, NULL);
    file->checks = 0;
    bool good = rc == SQLITE_OK;
    while (good && (rc = sqlite3_step(rows)) == SQLITE_ROW)
        good = take(file, rows);
    if (!good && rc == SQLITE_ROW)
        prb_fail(err, PRB_CORRUPT, "%s: its lists are too long", file->path);
    else if (!good || rc != SQLITE_DONE)
        good = prb_store_failed(file, err);
    sqlite3_finalize(rows);
    return good;
}

bool prb_store_refresh(struct prb_store_file *file, struct prb_error *err)
{
    prb_arena_deinit(&file->arena);
    file->arena = (struct prb_arena){0};
    file->process_count = file->shape_count = 0;
    file->job = NULL;
    for (size_t i = 0; i < PRB_STORE_WISHES; i++)
        file->wishes[i] = -1;
    return list(
               file,
               "SELECT id, pid, started, ended, rank, world_size, command FROM process ORDER BY id",
               take_process, err) &&
           list(file, "SELECT id, schema, name, columns FROM shape ORDER BY id", take_shape, err) &&
           list(file, "SELECT key, value FROM about", take_about, err);
}

const struct prb_store_process *prb_store_processes(const struct prb_store_file *file,
                                                    size_t *count_out)
{
    *count_out = file->process_count;
    return file->processes;
}

const struct prb_store_shape *prb_store_shapes(const struct prb_store_file *file, size_t *count_out)
{
    *count_out = file->shape_count;
    return file->shapes;
}

const char *prb_store_job(const struct prb_store_file *file) { return file->job ? file->job : ""; }

double prb_store_wish(const struct prb_store_file *file, enum prb_store_wish which)
{
    return file->wishes[which];
}

const char *prb_store_path(const struct prb_store_file *file) { return file->path; }

/* ---- opening ---- */

void prb_store_close(struct prb_store_file *file)
{
    if (!file)
        return;
    for (size_t i = 0; i < PRB_STORE_STATEMENTS; i++)
        if (file->statements[i])
            sqlite3_finalize(file->statements[i]);
    if (file->sqlite)
        sqlite3_close_v2(file->sqlite);
    prb_store_leave(file);
    prb_packer_free(file->packer);
    prb_arena_deinit(&file->arena);
    free(file->processes);
    free(file->shapes);
    free(file->path);
    free(file);
}

static int64_t number_of(struct prb_store_file *file, const char *sql)
{
    sqlite3_stmt *row = NULL;
    int64_t number = -1;
    if (sqlite3_prepare_v2(file->sqlite, sql, -1, &row, NULL) == SQLITE_OK &&
        sqlite3_step(row) == SQLITE_ROW)
        number = sqlite3_column_int64(row, 0);
    sqlite3_finalize(row);
    return number;
}

/* A file of WAL mode whose folder we may not write to cannot be locked; when nobody has it open,
 * it needs no lock. */
static bool needs_no_lock(const struct prb_store_file *file, const char *log)
{
    struct stat st;
    int rc = sqlite3_errcode(file->sqlite) & 0xff;
    bool has_log = stat(log, &st) == 0 && st.st_size;
    return (rc == SQLITE_CANTOPEN || rc == SQLITE_READONLY) && !has_log && prb_store_alone(file);
}

static bool open_to_read(struct prb_store_file *file, struct prb_error *err)
{
    PRB_AUTO_FREE char *log = NULL;
    if (!prb_sqlite_open_file(file->path, false, &file->sqlite, err))
        return false;
    sqlite3_busy_timeout(file->sqlite, BUSY_MS);
    if (number_of(file, "PRAGMA application_id") >= 0)
        return true;
    if (asprintf(&log, "%s-wal", file->path) < 0)
        return prb_nomem(err);
    if (!needs_no_lock(file, log))
        return prb_store_failed(file, err);
    sqlite3_close_v2(file->sqlite);
    file->sqlite = NULL;
    return prb_sqlite_open_finished(file->path, &file->sqlite, err);
}

static bool check(struct prb_store_file *file, struct prb_error *err)
{
    int64_t application = number_of(file, "PRAGMA application_id");
    if (application < 0)
        return prb_store_failed(file, err);
    if (application != PRB_STORE_APPLICATION)
        return prb_fail(err, PRB_CORRUPT, "%s is not a file of the store", file->path);
    if (number_of(file, "PRAGMA user_version") > VERSION)
        return prb_fail(err, PRB_UNSUPPORTED, "%s was written by a later version", file->path);
    return true;
}

/* An empty file, by whom ever, gets the tables in one transaction. */
static bool open_to_write(struct prb_store_file *file, struct prb_error *err)
{
    if (!prb_sqlite_open_file(file->path, true, &file->sqlite, err))
        return false;
    sqlite3_busy_timeout(file->sqlite, BUSY_MS);
    if (number_of(file, "PRAGMA application_id") == 0 &&
        number_of(file, "SELECT count(*) FROM sqlite_schema") == 0 &&
        (!run_text(file, "PRAGMA auto_vacuum = INCREMENTAL", err) ||
         !run_text(file, "PRAGMA journal_mode = WAL", err) || !run_text(file, "BEGIN", err) ||
         !run_text(file, schema, err) || !run_text(file, "COMMIT", err)))
        return false;
    /* Who looks at the file itself finds what it is; where that fails, it is in the log. */
    sqlite3_exec(file->sqlite, "PRAGMA wal_checkpoint(PASSIVE)", NULL, NULL, NULL);
    return run_text(file, "PRAGMA synchronous = NORMAL", err) &&
           run_text(file, "PRAGMA cache_size = -128", err) &&
           run_text(file, "PRAGMA wal_autocheckpoint = 256", err);
}

struct prb_store_file *prb_store_open(const char *path, bool write, struct prb_error *err)
{
    PRB_AUTO(prb_store_file) struct prb_store_file *file = calloc(1, sizeof *file);
    if (!file || !(file->path = strdup(path)))
        return PRB_NULL(prb_nomem(err));
    file->write = write;
    if (!(file->packer = prb_packer_new(err)) || !prb_store_enter(file, err) ||
        !(write ? open_to_write : open_to_read)(file, err) || !check(file, err))
        return NULL;
    sqlite3_busy_timeout(file->sqlite, BUSY_MS);
    sqlite3_progress_handler(file->sqlite, STEPS, check_steps, file);
    return prb_store_refresh(file, err) ? PRB_STEAL(file) : NULL;
}
