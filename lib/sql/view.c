/* What one statement sees: rows of each table once, all stacks once, one time. */
#include <string.h>

#include "base/clock.h"
#include "sql/db.h"

#define ASK_SECONDS 0.02 /* between two questions to the watcher */

/* SQLite's progress handler: other than 0 ends the statement. */
static int past_deadline(void *context)
{
    struct prb_db *db = context;
    struct prb_statement_view *view = &db->view;
    double now = prb_clock_s();
    view->timed_out = now > view->deadline;
    if (db->go_on && now - view->asked > ASK_SECONDS) {
        view->asked = now;
        view->stopped = !db->go_on(db->go_on_context);
    }
    return view->timed_out || view->stopped;
}

#define PROGRESS_STEPS                                                                             \
    4096 /* virtual machine instructions between two readings of the clock: some 50 µs */

bool prb_view_begin(struct prb_db *db, struct prb_error *err)
{
    uint64_t *wanted = calloc(db->table_count + 1, sizeof *wanted);
    if (!wanted)
        return prb_nomem(err);
    db->view = (struct prb_statement_view){.wanted = wanted,
                                           .deadline = prb_clock_s() + db->settings.query_timeout};
    db->refused = NULL;
    sqlite3_progress_handler(db->sqlite, PROGRESS_STEPS, past_deadline, db);
    return true;
}

void prb_view_end(struct prb_db *db)
{
    while (db->view.rows) {
        struct prb_rows *next = db->view.rows->next;
        prb_rows_free(db->view.rows);
        db->view.rows = next;
    }
    free(db->view.wanted);
    prb_pushed_deinit(&db->view.pushed);
    if (db->view.stacks)
        prb_stacks_free(db->view.stacks);
    if (db->view.shared)
        db->view.shared_free(db->view.shared);
    db->view = (struct prb_statement_view){0};
}

/* A profile of yesterday has no rows of the last five minutes. */
static void warn_of_time(struct prb_db *db)
{
    double age = db->view.time - db->profile->start - db->profile->seconds;
    if (age >= 60)
        prb_db_warn(db,
                    "now() is the time of the query; this profile ended %.0f minutes before it: "
                    "use (SELECT max(timestamp) FROM profiling_data) for its end",
                    age / 60);
}

double prb_db_time(struct prb_db *db)
{
    if (db->view.time == 0) {
        db->view.time = prb_clock_epoch_s();
        if (db->profile)
            warn_of_time(db);
    }
    return db->view.time;
}

const struct prb_stacks *prb_db_stacks(struct prb_db *db, struct prb_error *err)
{
    if (!db->view.stacks) {
        const struct prb_stack_options options = {
            .native = db->view.needs & PRB_NEED_NATIVE,
            .locals = db->view.needs & PRB_NEED_LOCALS,
            .all_interpreters = true,
            .source_lines = db->settings.native_lines,
            .hide_secrets = !db->settings.reveal_secrets,
            .repr_limit = (size_t)db->settings.repr_limit,
        };
        db->view.stacks = db->take_stacks(db->target, &options, err);
        if (db->view.stacks && db->view.stacks->warning)
            prb_db_warn(db, "%s", db->view.stacks->warning);
    }
    return db->view.stacks;
}

/* Whether rows that were made for some times have those of others. */
static bool has_times(const struct prb_times *made, const struct prb_times *wanted)
{
    return !made->column || (wanted->column && strcmp(made->column, wanted->column) == 0 &&
                             made->least <= wanted->least && made->most >= wanted->most);
}

/* The times for which a table is asked: all, where there were too many already. */
static struct prb_times times_of(const struct prb_db *db, const struct prb_table *table,
                                 const struct prb_times *wanted)
{
    size_t count = 0;
    for (const struct prb_rows *rows = db->view.rows; rows; rows = rows->next)
        count += rows->table == table;
    return table->timed && count < PRB_TIME_SETS_MAX ? *wanted : (struct prb_times){0};
}

/* Names and numbers of what is recorded are each process's own. */
static bool fill_each(struct prb_db *db, struct prb_rows *rows, struct prb_error *err)
{
    struct prb_table_source *source = rows->table->recorded ? db->recorded : NULL;
    size_t process = 0;
    bool good = true;
    if (!source || !source->choose || !source->choose(source, process))
        return rows->table->fill(rows, err);
    do
        good = good && rows->table->fill(rows, err);
    while (source->choose(source, ++process));
    return good;
}

static bool fill(struct prb_db *db, struct prb_rows *rows, const struct prb_argument *arguments,
                 struct prb_error *err)
{
    const struct prb_table *table = rows->table;
    for (size_t i = 0; i < PRB_ARGUMENTS_MAX; i++) {
        if (!arguments[i].given)
            continue;
        if (!prb_value_copy(&arguments[i].value, &rows->arguments[i].value))
            return prb_nomem(err);
        rows->arguments[i].given = true;
    }
    const bool of_process = table->needs_target && !(table->kept && db->recorded);
    if (!db->target && of_process && db->ended) {
        prb_fail(err, PRB_NOT_FOUND, "%s.%s is of a process that runs, and this one has ended",
                 table->schema, table->name);
        return prb_error_remedy(err, "SHOW TABLES has what is kept of it");
    }
    if (!db->target && (of_process || (table->recorded && !db->recorded))) {
        prb_fail(err, PRB_USAGE, "%s.%s is a table of a process, and none is given", table->schema,
                 table->name);
        return prb_error_remedy(err, "name one: probing -t PID query …");
    }
    return fill_each(db, rows, err) && prb_rows_finish(rows, err);
}

/* Of the rows for these arguments: different ones have different rowids. */
static size_t number_of(const struct prb_db *db, const struct prb_table *table,
                        const struct prb_argument *arguments)
{
    size_t next = 0;
    for (const struct prb_rows *rows = db->view.rows; rows; rows = rows->next) {
        if (rows->table != table)
            continue;
        if (prb_arguments_equal(rows->arguments, arguments))
            return rows->number;
        next = rows->number >= next ? rows->number + 1 : next;
    }
    return next;
}

struct prb_rows *prb_db_rows(struct prb_db *db, size_t table, const struct prb_argument *arguments,
                             const struct prb_times *times, struct prb_error *err)
{
    const struct prb_times asked = times_of(db, db->tables[table], times);
    for (struct prb_rows *rows = db->view.rows; rows; rows = rows->next)
        if (rows->table == db->tables[table] && prb_arguments_equal(rows->arguments, arguments) &&
            has_times(&rows->times, &asked))
            return rows;
    if (db->view.row_sets >= PRB_ROW_SETS_MAX)
        return PRB_NULL(prb_fail(err, PRB_QUERY, "%s.%s is asked with more than %d arguments",
                                 db->tables[table]->schema, db->tables[table]->name,
                                 PRB_ROW_SETS_MAX));
    struct prb_rows *rows = prb_rows_new(db, db->tables[table], db->view.wanted[table]);
    if (!rows)
        return PRB_NULL(prb_nomem(err));
    rows->times = asked;
    rows->number = number_of(db, rows->table, arguments);
    if (!fill(db, rows, arguments, err)) {
        prb_rows_free(rows);
        return NULL;
    }
    rows->next = db->view.rows;
    db->view.rows = rows;
    db->view.row_sets++;
    return rows;
}
