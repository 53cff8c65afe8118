/* Store files: writing. */
#include <math.h>
#include <string.h>

#include "ring/columns.h"
#include "store/file_parts.h"

bool prb_store_begin(struct prb_store_file *file, struct prb_error *err)
{
    return prb_store_run(file, prb_store_statement(file, PRB_STORE_BEGIN, err), err);
}

bool prb_store_commit(struct prb_store_file *file, struct prb_error *err)
{
    return prb_store_run(file, prb_store_statement(file, PRB_STORE_COMMIT, err), err);
}

void prb_store_rollback(struct prb_store_file *file)
{
    if (!sqlite3_get_autocommit(file->sqlite))
        prb_store_run(file, prb_store_statement(file, PRB_STORE_ROLLBACK, NULL), NULL);
}

bool prb_store_set_job(struct prb_store_file *file, const char *name, struct prb_error *err)
{
    sqlite3_stmt *set = prb_store_statement(file, PRB_STORE_SET_ABOUT, err);
    if (!set)
        return false;
    sqlite3_bind_text(set, 1, "job", -1, SQLITE_STATIC);
    sqlite3_bind_text(set, 2, name, -1, SQLITE_STATIC);
    return prb_store_run(file, set, err);
}

bool prb_store_set_wish(struct prb_store_file *file, enum prb_store_wish which, double value,
                        struct prb_error *err)
{
    sqlite3_stmt *set = prb_store_statement(file, PRB_STORE_SET_ABOUT, err);
    if (!set)
        return false;
    sqlite3_bind_text(set, 1, prb_store_wish_keys[which], -1, SQLITE_STATIC);
    sqlite3_bind_double(set, 2, value);
    if (!prb_store_run(file, set, err))
        return false;
    file->wishes[which] = value;
    return true;
}

static int64_t find_process(struct prb_store_file *file, const struct prb_store_process *process,
                            struct prb_error *err)
{
    PRB_AUTO(prb_store_row)
    sqlite3_stmt *find = prb_store_statement(file, PRB_STORE_FIND_PROCESS, err);
    if (!find)
        return -1;
    sqlite3_bind_int64(find, 1, process->pid);
    sqlite3_bind_int64(find, 2, process->started);
    int rc = sqlite3_step(find);
    if (rc == SQLITE_ROW)
        return sqlite3_column_int64(find, 0);
    return rc == SQLITE_DONE ? 0 : (prb_store_failed(file, err), -1);
}

int64_t prb_store_add_process(struct prb_store_file *file, const struct prb_store_process *process,
                              struct prb_error *err)
{
    int64_t id = find_process(file, process, err);
    if (id < 0)
        return 0;
    if (!id) {
        sqlite3_stmt *add = prb_store_statement(file, PRB_STORE_ADD_PROCESS, err);
        if (!add)
            return 0;
        sqlite3_bind_int64(add, 1, process->pid);
        sqlite3_bind_int64(add, 2, process->started);
        if (!prb_store_run(file, add, err))
            return 0;
        id = sqlite3_last_insert_rowid(file->sqlite);
    }
    sqlite3_stmt *change = prb_store_statement(file, PRB_STORE_CHANGE_PROCESS, err);
    if (!change)
        return 0;
    sqlite3_bind_double(change, 1, process->ended);
    sqlite3_bind_int(change, 2, process->rank);
    sqlite3_bind_int(change, 3, process->world_size);
    sqlite3_bind_text(change, 4, process->command, -1, SQLITE_STATIC);
    sqlite3_bind_int64(change, 5, id);
    return prb_store_run(file, change, err) ? id : 0;
}

/* A text that one line of a shape's columns can hold. */
static void add_part(struct prb_buf *out, const char *text, const char *without)
{
    for (; *text; text++)
        prb_buf_addc(out, strchr(without, *text) ? ' ' : *text);
}

static bool same_columns(const struct prb_store_shape *a, const struct prb_store_shape *b)
{
    bool same = a->count == b->count;
    for (size_t i = 0; same && i < a->count; i++)
        same = a->columns[i].type == b->columns[i].type &&
               strcmp(a->columns[i].name, b->columns[i].name) == 0;
    return same;
}

int64_t prb_store_add_shape(struct prb_store_file *file, const struct prb_store_shape *shape,
                            struct prb_error *err)
{
    PRB_AUTO(prb_buf) struct prb_buf columns = {0};
    for (size_t i = 0; i < file->shape_count; i++)
        if (strcmp(file->shapes[i].schema, shape->schema) == 0 &&
            strcmp(file->shapes[i].name, shape->name) == 0 && same_columns(&file->shapes[i], shape))
            return file->shapes[i].id;
    for (size_t i = 0; i < shape->count; i++) {
        const struct prb_ring_column *column = &shape->columns[i];
        prb_buf_addf(&columns, "%s:%s:", column->name, prb_ring_type_name(column->type));
        add_part(&columns, column->unit ? column->unit : "", ":\n");
        prb_buf_addc(&columns, ':');
        add_part(&columns, column->doc ? column->doc : "", "\n");
        prb_buf_addc(&columns, '\n');
    }
    if (!prb_buf_ok(&columns))
        return prb_nomem(err);
    sqlite3_stmt *add = prb_store_statement(file, PRB_STORE_ADD_SHAPE, err);
    if (!add)
        return 0;
    sqlite3_bind_text(add, 1, shape->schema, -1, SQLITE_STATIC);
    sqlite3_bind_text(add, 2, shape->name, -1, SQLITE_STATIC);
    sqlite3_bind_text(add, 3, columns.data, (int)columns.len, SQLITE_STATIC);
    if (!prb_store_run(file, add, err))
        return 0;
    int64_t id = sqlite3_last_insert_rowid(file->sqlite);
    return prb_store_refresh(file, err) ? id : 0;
}

bool prb_store_add_chunk(struct prb_store_file *file, const struct prb_store_new_chunk *chunk,
                         struct prb_error *err)
{
    sqlite3_stmt *add = prb_store_statement(file, PRB_STORE_ADD_CHUNK, err);
    if (!add)
        return false;
    sqlite3_bind_int64(add, 1, chunk->shape);
    sqlite3_bind_int64(add, 2, chunk->process);
    sqlite3_bind_double(add, 3, chunk->first);
    sqlite3_bind_double(add, 4, chunk->last);
    sqlite3_bind_int64(add, 5, (int64_t)chunk->rows);
    sqlite3_bind_int(add, 6, (int)chunk->resolution);
    sqlite3_bind_blob64(add, 7, chunk->bytes, chunk->len, SQLITE_STATIC);
    return prb_store_run(file, add, err);
}

bool prb_store_set_mark(struct prb_store_file *file, int64_t process, const char *name,
                        uint64_t inode, const struct prb_ring_mark *mark, struct prb_error *err)
{
    sqlite3_stmt *set = prb_store_statement(file, PRB_STORE_SET_MARK, err);
    size_t count = mark->count;
    if (!set)
        return false;
    while (count && !mark->places[count - 1].state)
        count--;
    sqlite3_bind_int64(set, 1, process);
    sqlite3_bind_text(set, 2, name, -1, SQLITE_STATIC);
    sqlite3_bind_int64(set, 3, (int64_t)inode);
    sqlite3_bind_blob64(set, 4, count ? (const void *)mark->places : "",
                        count * sizeof *mark->places, SQLITE_STATIC);
    return prb_store_run(file, set, err);
}

bool prb_store_add_gap(struct prb_store_file *file, const struct prb_store_gap *gap,
                       struct prb_error *err)
{
    sqlite3_stmt *add = prb_store_statement(file, PRB_STORE_ADD_GAP, err);
    if (!add)
        return false;
    sqlite3_bind_text(add, 1, gap->table, -1, SQLITE_STATIC);
    sqlite3_bind_int64(add, 2, gap->process);
    sqlite3_bind_double(add, 3, gap->from);
    sqlite3_bind_double(add, 4, gap->to);
    sqlite3_bind_int64(add, 5, gap->rows);
    return prb_store_run(file, add, err);
}

double prb_store_oldest(struct prb_store_file *file)
{
    PRB_AUTO(prb_store_row)
    sqlite3_stmt *find = prb_store_statement(file, PRB_STORE_OLDEST, NULL);
    bool known =
        find && sqlite3_step(find) == SQLITE_ROW && sqlite3_column_type(find, 0) != SQLITE_NULL;
    return known ? sqlite3_column_double(find, 0) : INFINITY;
}

bool prb_store_vacuum(struct prb_store_file *file, struct prb_error *err)
{
    return sqlite3_exec(file->sqlite, "PRAGMA incremental_vacuum; PRAGMA wal_checkpoint(TRUNCATE)",
                        NULL, NULL, NULL) == SQLITE_OK ||
           prb_store_failed(file, err);
}

bool prb_store_remove(struct prb_store_file *file, double before, int most, struct prb_error *err)
{
    sqlite3_stmt *remove = prb_store_statement(file, PRB_STORE_REMOVE, err);
    if (!remove)
        return false;
    sqlite3_bind_double(remove, 1, before);
    sqlite3_bind_int(remove, 2, most ? most : -1);
    if (!prb_store_run(file, remove, err))
        return false;
    sqlite3_stmt *gaps = most ? NULL : prb_store_statement(file, PRB_STORE_REMOVE_GAPS, err);
    if (gaps)
        sqlite3_bind_double(gaps, 1, before);
    if (gaps && !prb_store_run(file, gaps, err))
        return false;
    return prb_store_vacuum(file, err);
}
