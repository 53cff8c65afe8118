/*
 * Reads profiles that were saved as SQLite files.  The file is not trusted: every index must point
 * to an entry that was read before, every count is bounded, and only the tables are read.
 */
#include "profile/saved.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "profile/collapsed.h"
#include "sql/sqlite.h"

#define ROWS_MAX 200000000 /* of one table */
#define STEPS 100000       /* of SQLite's virtual machine between two checks */
#define STEPS_MAX 10000000 /* checks: a table that goes on is not ours */

struct reading {
    sqlite3 *sqlite;
    struct prb_profile_box *box;
    int64_t row; /* of the table */
    double version;
    uint64_t checks;
};

static void reading_deinit(struct reading *reading)
{
    if (reading->sqlite)
        sqlite3_close_v2(reading->sqlite);
    if (reading->box)
        prb_profile_free(&reading->box->profile);
}
PRB_DEFINE_AUTO(reading, struct reading, reading_deinit)

static int check_steps(void *context) { return ++((struct reading *)context)->checks > STEPS_MAX; }

static const char *text(struct reading *reading, sqlite3_stmt *row, int column)
{
    return prb_profile_text(reading->box, (const char *)sqlite3_column_text(row, column));
}

static uint64_t count(sqlite3_stmt *row, int column)
{
    int64_t value = sqlite3_column_int64(row, column);
    return value > 0 ? (uint64_t)value : 0;
}

/* An index below limit. */
static bool below(sqlite3_stmt *row, int column, size_t limit)
{
    int64_t value = sqlite3_column_int64(row, column);
    return sqlite3_column_type(row, column) == SQLITE_INTEGER && value >= 0 &&
           (uint64_t)value < limit;
}

/* ---- one function for each table; false: the row cannot be parsed ---- */

static bool take_meta(struct reading *reading, sqlite3_stmt *row)
{
    struct prb_profile *p = &reading->box->profile;
    const char *key = (const char *)sqlite3_column_text(row, 0);
    double value = sqlite3_column_double(row, 1), mode = -1, native = 0, timeline = 0;
    const struct {
        const char *key;
        double *real;
        uint64_t *number;
    } keys[] = {
        {"version", &reading->version, NULL},
        {"start", &p->start, NULL},
        {"seconds", &p->seconds, NULL},
        {"rate", &p->rate, NULL},
        {"mode", &mode, NULL},
        {"native", &native, NULL},
        {"timeline", &timeline, NULL},
        {"samples", NULL, &p->samples},
        {"thread_samples", NULL, &p->thread_samples},
        {"dropped", NULL, &p->dropped},
        {"failed", NULL, &p->failed},
        {"tries", NULL, &p->tries},
        {"rejected", NULL, &p->rejected},
        {"moved", NULL, &p->moved},
        {"skipped", NULL, &p->skipped},
        {"late", &p->late, NULL},
        {"latest", &p->latest, NULL},
        {"cpu", &p->cpu, NULL},
        {"longest_stop", &p->longest_stop, NULL},
        {"error", &p->error, NULL},
    };
    for (size_t i = 0; key && i < sizeof keys / sizeof *keys; i++) {
        if (strcmp(keys[i].key, key) != 0)
            continue;
        if (!isfinite(value) || value < 0 || value > 1e18)
            return false;
        if (keys[i].real)
            *keys[i].real = value;
        else
            *keys[i].number = (uint64_t)value;
    }
    if (mode > PRB_PROFILE_LIVE)
        return false;
    if (mode >= 0)
        p->mode = (enum prb_profile_mode)mode;
    p->native |= native != 0;
    reading->box->timeline.wanted |= timeline != 0;
    return true;
}

static bool take_processes(struct reading *reading, sqlite3_stmt *row)
{
    const struct prb_profile_process process = {
        .pid = sqlite3_column_int(row, 1),
        .ppid = sqlite3_column_int(row, 2),
        .rank = sqlite3_column_int(row, 3),
        .command = text(reading, row, 4),
        .python = text(reading, row, 5),
        .start = sqlite3_column_double(row, 6),
        .end = sqlite3_column_double(row, 7),
        .ended = sqlite3_column_int(row, 8),
    };
    return prb_profile_process(reading->box, &process) == reading->row;
}

static bool take_threads(struct reading *reading, sqlite3_stmt *row)
{
    if (!below(row, 1, reading->box->profile.process_count))
        return false;
    const struct prb_profile_thread thread = {
        .process = (uint32_t)sqlite3_column_int64(row, 1),
        .tid = sqlite3_column_int(row, 2),
        .thread_id = (uint64_t)sqlite3_column_int64(row, 3),
        .name = text(reading, row, 4),
        .samples = count(row, 5),
        .gil_samples = count(row, 6),
        .idle_samples = count(row, 7),
        .dropped = count(row, 8),
        .cpu_ns = count(row, 9),
    };
    return prb_profile_thread(reading->box, &thread) == reading->row;
}

static bool take_functions(struct reading *reading, sqlite3_stmt *row)
{
    if (!below(row, 1, PRB_FRAME_TASK + 1))
        return false;
    const struct prb_profile_function function = {
        .kind = (enum prb_frame_kind)sqlite3_column_int(row, 1),
        .name = text(reading, row, 2),
        .qualname = text(reading, row, 3),
        .filename = text(reading, row, 4),
        .short_filename = text(reading, row, 5),
        .first_line = sqlite3_column_int(row, 6),
    };
    return prb_profile_function(reading->box, &function) == reading->row;
}

static bool take_frames(struct reading *reading, sqlite3_stmt *row)
{
    return below(row, 1, reading->box->profile.function_count) &&
           prb_profile_frame(reading->box, (uint32_t)sqlite3_column_int64(row, 1),
                             sqlite3_column_int(row, 2)) == reading->row;
}

static bool take_stacks(struct reading *reading, sqlite3_stmt *row)
{
    const struct prb_profile *p = &reading->box->profile;
    return below(row, 1, p->node_count) && below(row, 2, p->frame_count) &&
           prb_profile_node(reading->box, (uint32_t)sqlite3_column_int64(row, 1),
                            (uint32_t)sqlite3_column_int64(row, 2)) == reading->row + 1;
}

static bool take_weights(struct reading *reading, sqlite3_stmt *row)
{
    const struct prb_profile *p = &reading->box->profile;
    if (!below(row, 0, p->thread_count) || !below(row, 1, p->node_count))
        return false;
    uint32_t weight = prb_profile_weight(reading->box, (uint32_t)sqlite3_column_int64(row, 0),
                                         (uint32_t)sqlite3_column_int64(row, 1));
    if (weight != reading->row)
        return false;
    reading->box->weights[weight].samples = count(row, 2);
    reading->box->weights[weight].ns = count(row, 3);
    return true;
}

static bool take_stays(struct reading *reading, sqlite3_stmt *row)
{
    const struct prb_profile *p = &reading->box->profile;
    if (!below(row, 0, p->thread_count) || !below(row, 1, p->node_count) ||
        count(row, 4) < count(row, 3))
        return false;
    prb_profile_add_interval(reading->box, (uint32_t)sqlite3_column_int64(row, 0),
                             (uint32_t)sqlite3_column_int64(row, 1),
                             (unsigned)sqlite3_column_int(row, 2), count(row, 3), count(row, 4),
                             count(row, 5), count(row, 6));
    return !reading->box->timeline.lost;
}

/* ---- the file ---- */

typedef bool take_fn(struct reading *reading, sqlite3_stmt *row);

static bool is_table(struct reading *reading, const char *name)
{
    sqlite3_stmt *row = NULL;
    bool ok = sqlite3_prepare_v2(reading->sqlite,
                                 "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?1 "
                                 "AND rootpage > 0",
                                 -1, &row, NULL) == SQLITE_OK &&
              sqlite3_bind_text(row, 1, name, -1, SQLITE_STATIC) == SQLITE_OK &&
              sqlite3_step(row) == SQLITE_ROW;
    sqlite3_finalize(row);
    return ok;
}

static bool read_table(struct reading *reading, const char *name, take_fn *take,
                       struct prb_error *err)
{
    char sql[64];
    sqlite3_stmt *row = NULL;
    snprintf(sql, sizeof sql, "SELECT * FROM %s ORDER BY rowid", name);
    if (!is_table(reading, name) ||
        sqlite3_prepare_v2(reading->sqlite, sql, -1, &row, NULL) != SQLITE_OK)
        return prb_fail(err, PRB_CORRUPT, "its table %s cannot be read", name);
    int rc = SQLITE_DONE;
    bool ok = true;
    for (reading->row = 0; ok && (rc = sqlite3_step(row)) == SQLITE_ROW; reading->row++)
        ok = reading->row < ROWS_MAX && take(reading, row) && !reading->box->failed;
    sqlite3_finalize(row);
    if (reading->box->failed)
        return prb_nomem(err);
    if (!ok)
        return prb_fail(err, PRB_CORRUPT, "row %lld of its table %s cannot be parsed",
                        (long long)reading->row, name);
    return rc == SQLITE_DONE ||
           prb_fail(err, PRB_CORRUPT, "its table %s: %s", name, sqlite3_errmsg(reading->sqlite));
}

static bool read_all(struct reading *reading, struct prb_error *err)
{
    static const struct {
        const char *name;
        take_fn *take;
    } tables[] = {
#define TABLE(name, columns) {#name, take_##name},
        PRB_SAVED_TABLES(TABLE)
#undef TABLE
    };
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        if (!read_table(reading, tables[i].name, tables[i].take, err))
            return false;
        if (i == 0 && reading->version != PRB_SAVED_VERSION)
            return prb_fail(err, PRB_UNSUPPORTED, "it is not a profile of version %d",
                            PRB_SAVED_VERSION);
    }
    return true;
}

struct prb_profile *prb_profile_open(const char *path, struct prb_error *err)
{
    PRB_AUTO(reading) struct reading reading = {0};
    if (access(path, R_OK) != 0)
        return PRB_NULL(prb_fail_sys(err, errno, "%s cannot be read", path));
    if (!prb_profile_is(path))
        return prb_profile_read_collapsed(path, err);
    if (!prb_sqlite_open_file(path, false, &reading.sqlite, err) ||
        !(reading.box = prb_profile_new(err)))
        return NULL;
    sqlite3_progress_handler(reading.sqlite, STEPS, check_steps, &reading);
    if (!read_all(&reading, err)) {
        prb_error_prefix(err, "%s", path);
        return NULL;
    }
    struct prb_profile_box *box = PRB_STEAL(reading.box);
    return &box->profile;
}

bool prb_profile_is(const char *path)
{
    char head[16];
    struct stat st;
    PRB_AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    return fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
           pread(fd, head, sizeof head, 0) == sizeof head &&
           memcmp(head, "SQLite format 3", 16) == 0;
}
