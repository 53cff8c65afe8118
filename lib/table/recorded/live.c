/*
 * Tables that a program writes itself, python.NAME: each is a ring (ring/ring.h) of the process's
 * folder.  The folder stays open, so a process that ends meanwhile keeps its tables.
 */
#include "table/recorded/live.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "ring/columns.h"
#include "ring/format.h"
#include "table/recorded/folder.h"
#include "table/recorded/known.h"
#include "table/recorded/names.h"

#define USER_TABLES_MAX 1000
#define SCHEMA "python"

struct user_table {
    struct prb_table table; /* first */
    struct prb_ring_reader *reader;
    uid_t owner; /* of its folder */
    bool ended;  /* nothing but its place says whose it is */
    int time;    /* the column that is shown as timestamp, too; -1: none */
    struct prb_column columns[PRB_RING_COLUMNS_MAX + 1];
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
    const struct prb_ring_column *columns;
    size_t count;
    bool wanted[PRB_RING_COLUMNS_MAX];
    int time;
};

static bool put_row(void *context, const struct prb_ring_value *values)
{
    const struct filling *filling = context;
    prb_row_begin(filling->rows);
    for (size_t i = 0; i < filling->count; i++) {
        if (filling->wanted[i])
            prb_row_recorded(filling->rows, &filling->columns[i], &values[i]);
        else
            prb_row_null(filling->rows);
    }
    if (filling->time >= 0)
        prb_row_recorded(filling->rows, &filling->columns[filling->time], &values[filling->time]);
    return true;
}

static void warn(struct prb_rows *rows, const struct user_table *user,
                 const struct prb_ring_counts *counts)
{
    const char *name = user->table.name;
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
    struct filling filling = {.rows = rows, .time = user->time};
    struct prb_ring_counts counts;
    filling.columns = prb_ring_columns(user->reader, &filling.count);
    for (size_t i = 0; i < filling.count; i++)
        filling.wanted[i] = prb_rows_wants(rows, filling.columns[i].name);
    if (!prb_ring_each(user->reader, put_row, &filling, &counts, err))
        return false;
    warn(rows, user, &counts);
    return true;
}

/* ---- tables ---- */

static void user_table_free(struct user_table *user)
{
    prb_ring_close(user->reader);
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

/* NULL: no ring, or one that cannot be shown. */
static struct user_table *user_table_new(int folder, const char *file, bool ended)
{
    PRB_AUTO(user_table) struct user_table *user = calloc(1, sizeof *user);
    struct stat st;
    if (!user || fstat(folder, &st) != 0 || !(user->reader = prb_ring_open(folder, file, NULL)) ||
        !prb_ring_is_name(prb_ring_name(user->reader)) ||
        !prb_recorded_name_is_free(prb_ring_name(user->reader), NULL))
        return NULL;
    user->owner = st.st_uid;
    user->ended = ended;
    size_t count;
    const struct prb_ring_column *columns = prb_ring_columns(user->reader, &count);
    for (size_t i = 0; i < count; i++)
        user->columns[i] = prb_recorded_column(&columns[i]);
    user->time = prb_recorded_time(columns, count);
    if (user->time >= 0)
        user->columns[count] = (struct prb_column)PRB_RECORDED_TIMESTAMP;
    const char *doc = prb_known_doc(prb_ring_name(user->reader));
    user->table = (struct prb_table){.schema = SCHEMA,
                                     .name = prb_ring_name(user->reader),
                                     .doc = doc ? doc : "rows that the program wrote itself",
                                     .columns = user->columns,
                                     .fill = fill};
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

static DIR *entries(struct user_tables *user)
{
    if (user->folder < 0 && user->proc)
        user->folder = prb_recorded_folder_of(user->proc);
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

static bool changed(struct prb_table_source *source)
{
    struct user_tables *user = (struct user_tables *)source;
    PRB_AUTO(dir) DIR *dir = entries(user);
    size_t files = 0;
    if (!user->listed)
        return true;
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        struct seen file;
        if (files >= USER_TABLES_MAX || !is_ring(user, entry->d_name, &file))
            continue;
        if (!was_seen(user, &file))
            return true;
        files++;
    }
    return files != user->seen_count || !user->listed;
}

static int by_name(const void *a, const void *b)
{
    return strcmp((*(const struct prb_table *const *)a)->name,
                  (*(const struct prb_table *const *)b)->name);
}

/* What a live process may write and has not written yet, behind the others. */
static size_t add_known(struct user_tables *user)
{
    size_t added = 0;
    for (size_t i = 0; user->proc && i < prb_known_count; i++)
        if (!has_name(user, prb_known_tables[i]->name))
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
        struct user_table *one = user_table_new(user->folder, entry->d_name, !user->proc);
        if (one && has_name(user, one->table.name))
            user_table_free(one);
        else if (one)
            user->tables[user->count++] = &one->table;
    }
    (void)err;
    user->listed = true;
    *out = user->tables;
    *count_out = user->count + add_known(user);
    qsort(user->tables, user->count, sizeof *user->tables, by_name);
    return true;
}

static void user_tables_free(struct prb_table_source *source)
{
    struct user_tables *user = (struct user_tables *)source;
    forget(user);
    if (user->folder >= 0)
        close(user->folder);
    free(user->seen);
    free(user->tables);
    free(user);
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
        .source = {changed, list, user_tables_free}, .proc = proc, .folder = folder};
    user->seen = calloc(USER_TABLES_MAX, sizeof *user->seen);
    user->tables = calloc(USER_TABLES_MAX + prb_known_count, sizeof *user->tables);
    if (user->seen && user->tables)
        return &user->source;
    user_tables_free(&user->source);
    return PRB_NULL(prb_nomem(err));
}

struct prb_table_source *prb_recorded_tables_of(struct prb_proc *proc, struct prb_error *err)
{
    return source_new(proc, -1, err);
}

struct prb_table_source *prb_recorded_tables_in(int folder, struct prb_error *err)
{
    return source_new(NULL, folder, err);
}
