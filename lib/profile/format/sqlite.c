/*
 * A profile as a SQLite file, with everything: `probing -t FILE query` and every SQLite tool read
 * it.  Tables: profile/saved.h.
 */
#include <string.h>

#include "profile/format/format.h"
#include "profile/saved.h"
#include "sql/sqlite.h"

struct writing {
    sqlite3 *sqlite;
    sqlite3_stmt *statement;
    const struct prb_profile *profile;
    int column, rc;
};

static void writing_deinit(struct writing *w)
{
    if (w->sqlite) {
        sqlite3_finalize(w->statement);
        sqlite3_close_v2(w->sqlite);
    }
}
PRB_DEFINE_AUTO(writing, struct writing, writing_deinit)

static void run(struct writing *w, const char *sql)
{
    if (w->rc == SQLITE_OK)
        w->rc = sqlite3_exec(w->sqlite, sql, NULL, NULL, NULL);
}

static void insert_into(struct writing *w, const char *table, int columns)
{
    char sql[200];
    int len = snprintf(sql, sizeof sql, "INSERT INTO %s VALUES (?", table);
    for (int i = 1; i < columns; i++)
        len += snprintf(sql + len, sizeof sql - (size_t)len, ",?");
    snprintf(sql + len, sizeof sql - (size_t)len, ")");
    sqlite3_finalize(w->statement);
    w->statement = NULL;
    if (w->rc == SQLITE_OK)
        w->rc = sqlite3_prepare_v2(w->sqlite, sql, -1, &w->statement, NULL);
    w->column = 0;
}

static void put_int(struct writing *w, int64_t value)
{
    if (w->rc == SQLITE_OK)
        w->rc = sqlite3_bind_int64(w->statement, ++w->column, value);
}
static void put_real(struct writing *w, double value)
{
    if (w->rc == SQLITE_OK)
        w->rc = sqlite3_bind_double(w->statement, ++w->column, value);
}
static void put_text(struct writing *w, const char *text)
{
    if (w->rc == SQLITE_OK)
        w->rc = text ? sqlite3_bind_text(w->statement, ++w->column, text, -1, SQLITE_TRANSIENT)
                     : sqlite3_bind_null(w->statement, ++w->column);
}
static void end_row(struct writing *w)
{
    if (w->rc == SQLITE_OK) {
        int rc = sqlite3_step(w->statement);
        w->rc = rc == SQLITE_DONE ? sqlite3_reset(w->statement) : rc;
    }
    w->column = 0;
}

static void put_meta(struct writing *w)
{
    const struct prb_profile *p = w->profile;
    const struct {
        const char *key;
        double value;
    } numbers[] = {
        {"version", PRB_SAVED_VERSION},
        {"start", p->start},
        {"seconds", p->seconds},
        {"rate", p->rate},
        {"mode", p->mode},
        {"native", p->native},
        {"timeline", ((const struct prb_profile_box *)p)->timeline.wanted},
        {"samples", (double)p->samples},
        {"thread_samples", (double)p->thread_samples},
        {"dropped", (double)p->dropped},
        {"failed", (double)p->failed},
        {"tries", (double)p->tries},
        {"rejected", (double)p->rejected},
        {"moved", (double)p->moved},
        {"skipped", (double)p->skipped},
        {"late", p->late},
        {"latest", p->latest},
        {"cpu", p->cpu},
        {"longest_stop", p->longest_stop},
        {"error", p->error},
    };
    insert_into(w, "meta", 2);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        put_text(w, numbers[i].key);
        put_real(w, numbers[i].value);
        end_row(w);
    }
}

static void put_who(struct writing *w)
{
    const struct prb_profile *p = w->profile;
    insert_into(w, "processes", 9);
    for (size_t i = 0; i < p->process_count; i++) {
        const struct prb_profile_process *one = &p->processes[i];
        put_int(w, (int64_t)i);
        put_int(w, one->pid);
        put_int(w, one->ppid);
        put_int(w, one->rank);
        put_text(w, one->command);
        put_text(w, one->python);
        put_real(w, one->start);
        put_real(w, one->end);
        put_int(w, one->ended);
        end_row(w);
    }
    insert_into(w, "threads", 10);
    for (size_t i = 0; i < p->thread_count; i++) {
        const struct prb_profile_thread *one = &p->threads[i];
        const uint64_t counts[] = {one->samples, one->gil_samples, one->idle_samples, one->dropped,
                                   one->cpu_ns};
        put_int(w, (int64_t)i);
        put_int(w, one->process);
        put_int(w, one->tid);
        put_int(w, (int64_t)one->thread_id);
        put_text(w, one->name);
        for (size_t k = 0; k < sizeof counts / sizeof *counts; k++)
            put_int(w, (int64_t)counts[k]);
        end_row(w);
    }
}

static void put_stacks(struct writing *w)
{
    const struct prb_profile *p = w->profile;
    insert_into(w, "functions", 7);
    for (size_t i = 0; i < p->function_count; i++) {
        const struct prb_profile_function *one = &p->functions[i];
        put_int(w, (int64_t)i);
        put_int(w, one->kind);
        put_text(w, one->name);
        put_text(w, one->qualname);
        put_text(w, one->filename);
        put_text(w, one->short_filename);
        put_int(w, one->first_line);
        end_row(w);
    }
    insert_into(w, "frames", 3);
    for (size_t i = 0; i < p->frame_count; i++) {
        put_int(w, (int64_t)i);
        put_int(w, p->frames[i].function);
        put_int(w, p->frames[i].line);
        end_row(w);
    }
    insert_into(w, "stacks", 3);
    for (size_t i = 1; i < p->node_count; i++) {
        put_int(w, (int64_t)i);
        put_int(w, p->nodes[i].parent);
        put_int(w, p->nodes[i].frame);
        end_row(w);
    }
    insert_into(w, "weights", 4);
    for (size_t i = 0; i < p->weight_count; i++) {
        put_int(w, p->weights[i].thread);
        put_int(w, p->weights[i].node);
        put_int(w, (int64_t)p->weights[i].samples);
        put_int(w, (int64_t)p->weights[i].ns);
        end_row(w);
    }
}

static bool put_interval(void *context, const struct prb_profile_interval *interval)
{
    struct writing *w = context;
    put_int(w, interval->thread);
    put_int(w, interval->node);
    put_int(w, interval->state);
    put_int(w, (int64_t)(interval->start * 1e9 + 0.5));
    put_int(w, (int64_t)(interval->end * 1e9 + 0.5));
    put_int(w, (int64_t)interval->samples);
    put_int(w, (int64_t)interval->ns);
    end_row(w);
    return w->rc == SQLITE_OK;
}

static bool write_sqlite(const struct prb_profile *profile, const struct prb_profile_style *style,
                         const char *path, struct prb_error *err)
{
    (void)style;
    PRB_AUTO(writing) struct writing w = {.profile = profile};
    if (!prb_sqlite_open_file(path, true, &w.sqlite, err))
        return false;
#define TABLE(name, columns) run(&w, "CREATE TABLE " #name " (" columns ")");
    run(&w, "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; BEGIN");
    PRB_SAVED_TABLES(TABLE)
#undef TABLE
    put_meta(&w);
    put_who(&w);
    put_stacks(&w);
    insert_into(&w, "stays", 7);
    bool ok = !((const struct prb_profile_box *)profile)->timeline.wanted ||
              prb_profile_each_interval(profile, put_interval, &w, err);
    sqlite3_finalize(w.statement);
    w.statement = NULL;
    run(&w, "COMMIT");
    if (ok && w.rc != SQLITE_OK)
        return prb_fail(err, PRB_IO, "%s: %s", path, sqlite3_errmsg(w.sqlite));
    return ok;
}

const struct prb_format prb_format_sqlite = {
    .description = {"sqlite", "db", "a SQLite file, for `probing -t FILE query`",
                    ".db .sqlite .sqlite3", true, true},
    .write_file = write_sqlite,
};
