/*
 * Tables that a program writes itself, python.NAME: each is a ring (ring/ring.h) of the process's
 * folder, with what the collector moved from it to the store; or what a file of the store has.  The
 * folder stays open, so a process that ends meanwhile keeps its tables.
 */
#include "table/recorded/live.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "ring/columns.h"
#include "ring/format.h"
#include "sql/db.h"
#include "table/recorded/dump.h"
#include "table/recorded/each.h"
#include "table/recorded/folder.h"
#include "table/recorded/history.h"
#include "table/recorded/known.h"
#include "table/recorded/names.h"
#include "table/shared/training_logs.h"

#define USER_TABLES_MAX 1000
#define SCHEMA "python"

/* What a table has behind its own columns, as far as these have not the name: all but the first
 * where it is in the store. */
enum { TIMESTAMP, PID, RANK, RESOLUTION, EXTRAS };
#define COLUMNS_MAX 63 /* as SQLite reports for so many whether they are used (sql/table.h) */

struct user_table {
    struct prb_table table;         /* first */
    struct prb_ring_reader *reader; /* NULL: it is in the store only */
    const struct prb_history *history;
    uid_t owner; /* of its folder */
    bool ended;  /* nothing but its place says whose it is */
    struct prb_ring_column own[PRB_RING_COLUMNS_MAX];
    size_t count;                          /* of those */
    int time;                              /* of those, what timestamp repeats; -1: none */
    char *texts[PRB_RING_COLUMNS_MAX + 1]; /* of the columns and the name, when the store's */
    int extras[EXTRAS];                    /* column of each, 0: it is not there */
    struct prb_column columns[COLUMNS_MAX + 1];
};

/* A file as it was last seen. */
struct seen {
    dev_t device;
    ino_t inode;
};

struct user_tables {
    struct prb_table_source source; /* first */
    struct prb_proc *proc;          /* NULL: ended */
    int folder;                     /* -1: not there yet */
    struct prb_history history;
    bool stored;        /* of a file of the store, and nothing else */
    bool all;           /* and of all processes in it */
    size_t shapes_seen; /* of the store */
    struct seen *seen;
    size_t seen_count;
    const struct prb_table **tables; /* count of struct user_table, then those that are known */
    size_t count;
    bool listed;
};

/* ---- rows ---- */

void prb_row_recorded(struct prb_rows *rows, const struct prb_ring_column *column,
                      const struct prb_ring_value *value)
{
    if (value->null)
        prb_row_null(rows);
    else if (column->type == PRB_RING_TEXT)
        prb_row_textn(rows, value->text, value->len);
    else if (column->type == PRB_RING_REAL || column->type == PRB_RING_TIME)
        prb_row_real(rows, value->real);
    else
        prb_row_int(rows, value->integer);
}

struct filling {
    struct prb_rows *rows;
    const struct user_table *user;
    uint64_t wanted;
};

static void put_extra(const struct filling *filling, int extra, int64_t process,
                      enum prb_store_resolution resolution)
{
    const struct prb_store_process *who = prb_history_process(filling->user->history, process);
    if (extra == RESOLUTION)
        prb_row_text(filling->rows, prb_recorded_resolution(resolution));
    else if (!who || (extra == RANK && who->rank < 0))
        prb_row_null(filling->rows);
    else
        prb_row_int(filling->rows, extra == PID ? who->pid : who->rank);
}

static bool put_row(void *context, const struct prb_ring_value *values, int64_t process,
                    enum prb_store_resolution resolution)
{
    const struct filling *filling = context;
    const struct user_table *user = filling->user;
    prb_row_begin(filling->rows);
    for (size_t i = 0; i < user->count; i++) {
        if (filling->wanted >> i & 1)
            prb_row_recorded(filling->rows, &user->own[i], &values[i]);
        else
            prb_row_null(filling->rows);
    }
    if (user->extras[TIMESTAMP])
        prb_row_recorded(filling->rows, &user->own[user->time], &values[user->time]);
    for (int extra = PID; extra < EXTRAS; extra++)
        if (user->extras[extra])
            put_extra(filling, extra, process, resolution);
    return true;
}

static void warn_of_store(struct prb_rows *rows, const struct user_table *user,
                          const struct prb_history_counts *all)
{
    const struct prb_store_counts *counts = &all->store;
    const char *name = user->table.name;
    if (counts->broken)
        prb_rows_warn(rows, SCHEMA ".%s: %llu of %llu chunks are damaged, and left out", name,
                      (unsigned long long)counts->broken, (unsigned long long)counts->all);
    else if (counts->summed && all->raw && !prb_rows_wants(rows, "resolution"))
        prb_rows_warn(rows,
                      SCHEMA ".%s: %llu rows stand for a minute or an hour each; its column "
                             "resolution says which",
                      name, (unsigned long long)counts->summed);
}

static void warn(struct prb_rows *rows, const struct user_table *user,
                 const struct prb_history_counts *all)
{
    const struct prb_ring_counts *counts = &all->ring;
    const char *name = user->table.name;
    warn_of_store(rows, user, all);
    if (user->ended && user->owner != geteuid())
        prb_rows_warn(rows, SCHEMA ".%s was left by user %u, who may have written anything", name,
                      (unsigned)user->owner);
    if (counts->broken)
        prb_rows_warn(rows,
                      SCHEMA ".%s: %llu parts of its file are broken, and their rows are left out",
                      name, (unsigned long long)counts->broken);
    else if (counts->dropped)
        prb_rows_warn(
            rows, SCHEMA ".%s: %llu rows were dropped by the program: there was no room%s", name,
            (unsigned long long)counts->dropped, counts->full ? " (the file system was full)" : "");
    else if (counts->full)
        prb_rows_warn(rows, SCHEMA ".%s has fewer rows than allowed: the file system was full",
                      name);
}

static bool fill(struct prb_rows *rows, struct prb_error *err)
{
    const struct user_table *user = (const struct user_table *)prb_rows_table(rows);
    struct filling filling = {.rows = rows, .user = user};
    struct prb_history_counts counts;
    struct prb_history_query query = {.schema = SCHEMA,
                                      .name = user->table.name,
                                      .columns = user->own,
                                      .count = user->count,
                                      .reader = user->reader};
    struct prb_store_bound bound;
    query.bounds = &bound;
    for (size_t i = 0; i < user->count && !query.bound_count; i++)
        query.bound_count = prb_history_bound(prb_rows_times(rows), user->own[i].name, i, &bound);
    if (user->extras[TIMESTAMP] && !query.bound_count)
        query.bound_count =
            prb_history_bound(prb_rows_times(rows), "timestamp", (size_t)user->time, &bound);
    for (size_t i = 0; i < user->count; i++)
        if (prb_rows_wants(rows, user->own[i].name) ||
            ((int)i == user->time && prb_rows_wants(rows, "timestamp")))
            query.wanted |= (uint64_t)1 << i;
    filling.wanted = query.wanted;
    if (!prb_history_each(user->history, &query, put_row, &filling, &counts, err))
        return false;
    warn(rows, user, &counts);
    return true;
}

/* ---- tables ---- */

static void user_table_free(struct user_table *user)
{
    prb_ring_close(user->reader);
    for (size_t i = 0; i < sizeof user->texts / sizeof *user->texts; i++)
        free(user->texts[i]);
    free(user);
}
PRB_DEFINE_AUTO_PTR(user_table, struct user_table, user_table_free)

/* How SQL sees a column of a ring. */
static const struct {
    enum prb_type type;
    const char *unit, *doc; /* where the program gave none */
} kinds[] = {
    [PRB_RING_INTEGER] = {PRB_INTEGER, "", ""},
    [PRB_RING_REAL] = {PRB_REAL, "", ""},
    [PRB_RING_TEXT] = {PRB_TEXT, "", ""},
    [PRB_RING_BOOLEAN] = {PRB_INTEGER, "", "0 or 1"},
    [PRB_RING_TIME] = {PRB_REAL, "s", "since the epoch"},
};

struct prb_column prb_recorded_column(const struct prb_ring_column *column)
{
    return (struct prb_column){
        .name = column->name,
        .type = kinds[column->type].type,
        .unit = *column->unit ? column->unit : kinds[column->type].unit,
        .doc = *column->doc ? column->doc : kinds[column->type].doc,
    };
}

static bool has_column(const struct user_table *user, const char *name)
{
    for (size_t i = 0; i < user->count; i++)
        if (strcasecmp(user->own[i].name, name) == 0)
            return true;
    return false;
}

static void add_column(struct user_table *user, const struct prb_ring_column *column)
{
    user->columns[user->count] = prb_recorded_column(column);
    user->own[user->count++] = *column;
}

int prb_recorded_time(const struct prb_ring_column *columns, size_t count)
{
    int time = -1;
    for (size_t i = 0; i < count; i++) {
        if (strcmp(columns[i].name, "timestamp") == 0)
            return -1;
        if (strcmp(columns[i].name, "time") == 0 && columns[i].type == PRB_RING_TIME)
            time = (int)i;
    }
    return count < PRB_RING_COLUMNS_MAX ? time : -1;
}

/* The columns behind the table's own, when there is room and no column has the name. */
static void add_extras(struct user_table *user, int first)
{
    static const struct prb_column extras[] = {
        [TIMESTAMP] = PRB_RECORDED_TIMESTAMP,
        [PID] = {"pid", PRB_INTEGER, "id", "of the process that wrote the row"},
        [RANK] = {"rank", PRB_INTEGER, "id", "of that process in its job; NULL: it has none",
                  .of_rank = true},
        [RESOLUTION] = {"resolution", PRB_TEXT, "",
                        "raw: the row as it was written; minute, hour: it stands for all of these"},
    };
    size_t next = user->count;
    user->time = prb_recorded_time(user->own, user->count);
    for (int extra = TIMESTAMP; extra < EXTRAS; extra++) {
        bool wanted = extra == TIMESTAMP ? user->time >= 0 : extra >= first;
        if (!wanted || next >= COLUMNS_MAX || has_column(user, extras[extra].name))
            continue;
        user->extras[extra] = (int)next;
        user->columns[next++] = extras[extra];
    }
}

static void set_table(struct user_table *user, const char *name)
{
    const char *doc = prb_known_doc(name);
    user->table = (struct prb_table){.schema = SCHEMA,
                                     .name = name,
                                     .doc = doc ? doc : "rows that the program wrote itself",
                                     .columns = user->columns,
                                     .timed = true,
                                     .fill = fill};
}

/* NULL: no ring, or one that cannot be shown. */
static struct user_table *user_table_new(const struct user_tables *all, const char *file)
{
    PRB_AUTO(user_table) struct user_table *user = calloc(1, sizeof *user);
    struct stat st;
    if (!user || fstat(all->folder, &st) != 0 ||
        !(user->reader = prb_ring_open(all->folder, file, NULL)) ||
        !prb_ring_is_name(prb_ring_name(user->reader)) ||
        !prb_recorded_name_is_free(prb_ring_name(user->reader), NULL))
        return NULL;
    user->owner = st.st_uid;
    user->ended = !all->proc;
    user->history = &all->history;
    size_t count;
    const struct prb_ring_column *columns = prb_ring_columns(user->reader, &count);
    for (size_t i = 0; i < count; i++)
        add_column(user, &columns[i]);
    add_extras(user, all->history.store ? RESOLUTION : EXTRAS);
    set_table(user, prb_ring_name(user->reader));
    return PRB_STEAL(user);
}

/* A text of the store, which may be read anew while the table is there. */
static const char *keep(struct user_table *user, const char *text)
{
    for (size_t i = 0; i < sizeof user->texts / sizeof *user->texts; i++)
        if (!user->texts[i])
            return user->texts[i] = strdup(text);
    return NULL;
}

/* A table that the store has, and no ring: with the columns of all its shapes. */
static struct user_table *stored_table_new(const struct user_tables *all, const char *name)
{
    size_t count;
    const struct prb_store_shape *shapes = prb_store_shapes(all->history.store, &count);
    PRB_AUTO(user_table) struct user_table *user = calloc(1, sizeof *user);
    const char *copy = user ? keep(user, name) : NULL;
    if (!copy || !prb_recorded_name_is_free(name, NULL))
        return NULL;
    user->history = &all->history;
    user->owner = geteuid();
    for (size_t i = 0; i < count; i++) {
        if (strcmp(shapes[i].schema, SCHEMA) != 0 || strcmp(shapes[i].name, name) != 0)
            continue;
        for (size_t j = 0; j < shapes[i].count && user->count < PRB_RING_COLUMNS_MAX; j++) {
            struct prb_ring_column column = shapes[i].columns[j];
            if (has_column(user, column.name))
                continue;
            if (!(column.name = keep(user, column.name)))
                return NULL;
            column.unit = column.doc = "";
            add_column(user, &column);
        }
    }
    add_extras(user, all->stored ? PID : RESOLUTION);
    set_table(user, copy);
    return PRB_STEAL(user);
}

static bool has_name(const struct user_tables *user, const char *name)
{
    for (size_t i = 0; i < user->count; i++)
        if (strcasecmp(user->tables[i]->name, name) == 0)
            return true;
    return false;
}

static void forget(struct user_tables *user)
{
    for (size_t i = 0; i < user->count; i++)
        user_table_free((struct user_table *)user->tables[i]);
    user->count = 0;
}

/* ---- the folder ---- */

static void find_folder(struct user_tables *user)
{
    if (user->folder < 0 && user->proc)
        user->folder = prb_recorded_folder_of(user->proc);
    if (!user->stored)
        prb_history_find(&user->history, user->folder);
}

static DIR *entries(struct user_tables *user)
{
    find_folder(user);
    int copy =
        user->folder >= 0 ? openat(user->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    DIR *dir = copy >= 0 ? fdopendir(copy) : NULL;
    if (!dir && copy >= 0)
        close(copy);
    return dir;
}

static bool is_ring(const struct user_tables *user, const char *name, struct seen *out)
{
    struct stat st;
    size_t length = strlen(name), suffix = strlen(PRB_RING_SUFFIX);
    if (length <= suffix || strcmp(name + length - suffix, PRB_RING_SUFFIX) != 0 ||
        fstatat(user->folder, name, &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(st.st_mode))
        return false;
    *out = (struct seen){st.st_dev, st.st_ino};
    return true;
}

static bool was_seen(const struct user_tables *user, const struct seen *file)
{
    for (size_t i = 0; i < user->seen_count; i++)
        if (user->seen[i].device == file->device && user->seen[i].inode == file->inode)
            return true;
    return false;
}

static size_t shapes_of(struct user_tables *user)
{
    size_t count = 0;
    if (user->history.store)
        prb_store_shapes(user->history.store, &count);
    return count;
}

static bool changed(struct prb_table_source *source)
{
    struct user_tables *user = (struct user_tables *)source;
    PRB_AUTO(dir) DIR *dir = entries(user);
    size_t files = 0;
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        struct seen file;
        if (files >= USER_TABLES_MAX || !is_ring(user, entry->d_name, &file))
            continue;
        if (!was_seen(user, &file))
            return true;
        files++;
    }
    return files != user->seen_count || !user->listed || shapes_of(user) != user->shapes_seen;
}

static int by_name(const void *a, const void *b)
{
    return strcmp((*(const struct prb_table *const *)a)->name,
                  (*(const struct prb_table *const *)b)->name);
}

static void add_table(struct user_tables *user, struct user_table *one)
{
    if (one && (user->count >= USER_TABLES_MAX || has_name(user, one->table.name)))
        user_table_free(one);
    else if (one)
        user->tables[user->count++] = &one->table;
}

static void list_stored(struct user_tables *user)
{
    size_t count = user->shapes_seen = shapes_of(user);
    const struct prb_store_shape *shapes =
        count ? prb_store_shapes(user->history.store, &count) : NULL;
    for (size_t i = 0; i < count; i++)
        if (strcmp(shapes[i].schema, SCHEMA) == 0 && !has_name(user, shapes[i].name))
            add_table(user, stored_table_new(user, shapes[i].name));
}

/* What a live process may write and has not written yet, behind the others; of one that is stored, what
 * is made of other tables. */
static size_t add_known(struct user_tables *user)
{
    size_t added = 0;
    for (size_t i = 0; i < prb_known_count; i++)
        if ((user->proc || (user->stored && prb_known_tables[i] == &prb_training_logs_watched)) &&
            !has_name(user, prb_known_tables[i]->name))
            user->tables[user->count + added++] = prb_known_tables[i];
    return added;
}

static bool list(struct prb_table_source *source, const struct prb_table *const **out,
                 size_t *count_out, struct prb_error *err)
{
    struct user_tables *user = (struct user_tables *)source;
    forget(user);
    user->listed = true;
    user->seen_count = 0;
    PRB_AUTO(dir) DIR *dir = entries(user);
    for (struct dirent *entry;
         dir && user->seen_count < USER_TABLES_MAX && (entry = readdir(dir));) {
        struct seen file;
        if (!is_ring(user, entry->d_name, &file))
            continue;
        user->seen[user->seen_count++] = file;
        add_table(user, user_table_new(user, entry->d_name));
    }
    list_stored(user);
    (void)err;
    *out = user->tables;
    *count_out = user->count + add_known(user);
    qsort(user->tables, user->count, sizeof *user->tables, by_name);
    return true;
}

static void user_tables_free(struct prb_table_source *source)
{
    struct user_tables *user = (struct user_tables *)source;
    forget(user);
    prb_history_close(&user->history);
    if (user->folder >= 0)
        close(user->folder);
    free(user->seen);
    free(user->tables);
    free(user);
}

static bool choose(struct prb_table_source *source, size_t process)
{
    struct user_tables *user = (struct user_tables *)source;
    size_t count = 0;
    const struct prb_store_process *all =
        user->stored && user->all ? prb_store_processes(user->history.store, &count) : NULL;
    user->history.process = process < count ? all[process].id
                            : user->all     ? 0
                                            : user->history.process;
    return process < count;
}

static struct prb_table_source *source_new(struct prb_proc *proc, int folder, struct prb_error *err)
{
    struct user_tables *user = calloc(1, sizeof *user);
    if (!user) {
        if (folder >= 0)
            close(folder);
        return PRB_NULL(prb_nomem(err));
    }
    *user = (struct user_tables){
        .source = {changed, list, user_tables_free, .choose = choose},
        .proc = proc,
        .folder = folder,
        .history = {.folder = -1},
    };
    user->seen = calloc(USER_TABLES_MAX, sizeof *user->seen);
    user->tables = calloc(USER_TABLES_MAX + prb_known_count, sizeof *user->tables);
    if (user->seen && user->tables)
        return &user->source;
    user_tables_free(&user->source);
    return PRB_NULL(prb_nomem(err));
}

const struct prb_history *prb_recorded_history(struct prb_rows *rows)
{
    struct prb_table_source *source = prb_rows_db(rows)->recorded;
    const struct prb_history *dumped = source ? prb_dumped_history(source) : NULL;
    if (dumped)
        return dumped;
    struct user_tables *user = (struct user_tables *)source;
    if (user)
        find_folder(user);
    return user ? &user->history : NULL;
}

struct prb_table_source *prb_recorded_tables_of(struct prb_proc *proc, struct prb_error *err)
{
    return source_new(proc, -1, err);
}

struct prb_table_source *prb_recorded_tables_in(int folder, struct prb_error *err)
{
    return source_new(NULL, folder, err);
}

struct prb_table_source *prb_recorded_tables_stored(struct prb_store_file *store, int64_t process,
                                                    struct prb_error *err)
{
    struct prb_table_source *source = source_new(NULL, -1, err);
    if (!source) {
        prb_store_close(store);
        return NULL;
    }
    struct user_tables *user = (struct user_tables *)source;
    user->stored = true;
    user->all = process == 0;
    user->history = (struct prb_history){.folder = -1, .store = store, .process = process};
    return source;
}
