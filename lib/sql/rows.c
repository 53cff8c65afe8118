/* Row sets. */
#include "sql/rows.h"

#include <string.h>

#include "base/utf8.h"
#include "sql/db.h"

int prb_table_column(const struct prb_table *table, const char *name)
{
    for (int i = 0; table->columns[i].name; i++)
        if (strcmp(table->columns[i].name, name) == 0)
            return i;
    return -1;
}

const char *prb_type_name(enum prb_type type)
{
    static const char *const names[] = {[PRB_NULL_VALUE] = "ANY",
                                        [PRB_INTEGER] = "INTEGER",
                                        [PRB_REAL] = "REAL",
                                        [PRB_TEXT] = "TEXT",
                                        [PRB_BLOB] = "BLOB"};
    return names[type];
}

size_t prb_table_visible(const struct prb_table *table)
{
    size_t n = 0;
    while (table->columns[n].name && !table->columns[n].hidden)
        n++;
    return n;
}

bool prb_value_equal(const struct prb_value *a, const struct prb_value *b)
{
    if (a->type != b->type)
        return false;
    switch (a->type) {
    case PRB_INTEGER:
        return a->integer == b->integer;
    case PRB_REAL:
        return a->real == b->real;
    case PRB_TEXT:
    case PRB_BLOB:
        return a->length == b->length && memcmp(a->text, b->text, a->length) == 0;
    default:
        return true;
    }
}

bool prb_value_copy(const struct prb_value *value, struct prb_value *out)
{
    struct prb_value copy = *value;
    if (value->type == PRB_TEXT || value->type == PRB_BLOB) {
        char *text = malloc(value->length + 1);
        if (!text)
            return false;
        if (value->length)
            memcpy(text, value->text, value->length);
        text[value->length] = '\0';
        copy.text = text;
    } else {
        copy.text = NULL;
    }
    *out = copy;
    return true;
}

const struct prb_times *prb_rows_times(const struct prb_rows *rows) { return &rows->times; }

struct prb_rows *prb_rows_new(struct prb_db *db, const struct prb_table *table, uint64_t wanted)
{
    struct prb_rows *rows = calloc(1, sizeof *rows);
    if (!rows)
        return NULL;
    rows->db = db;
    rows->table = table;
    rows->columns = prb_table_visible(table);
    rows->wanted = wanted;
    return rows;
}

void prb_rows_free(struct prb_rows *rows)
{
    if (!rows)
        return;
    for (size_t i = 0; i < PRB_ARGUMENTS_MAX; i++)
        if (rows->arguments[i].given)
            free((char *)rows->arguments[i].value.text);
    for (size_t i = 0; rows->orders && i < rows->columns; i++)
        free(rows->orders[i]);
    free(rows->orders);
    free(rows->cells);
    prb_buf_deinit(&rows->texts);
    free(rows);
}

/* ---- filling ---- */

static void add_cell(struct prb_rows *rows, struct prb_cell cell)
{
    if (rows->count == 0 || rows->cell_count >= rows->count * rows->columns)
        return; /* more cells than columns */
    if (rows->cell_count * sizeof cell + rows->texts.len > PRB_ROWS_BYTES_MAX ||
        !PRB_GROW(rows->cells, rows->cell_count, rows->cell_cap)) {
        rows->failed = true;
        return;
    }
    rows->cells[rows->cell_count++] = cell;
}

static void complete_row(struct prb_rows *rows)
{
    while (rows->cell_count < rows->count * rows->columns && !rows->failed)
        add_cell(rows, (struct prb_cell){.type = PRB_NULL_VALUE});
}

void prb_row_begin(struct prb_rows *rows)
{
    complete_row(rows);
    if (!rows->failed)
        rows->count++;
}

void prb_row_null(struct prb_rows *rows)
{
    add_cell(rows, (struct prb_cell){.type = PRB_NULL_VALUE});
}

void prb_row_int(struct prb_rows *rows, int64_t value)
{
    add_cell(rows, (struct prb_cell){.type = PRB_INTEGER, .integer = value});
}

void prb_row_real(struct prb_rows *rows, double value)
{
    add_cell(rows, (struct prb_cell){.type = PRB_REAL, .real = value});
}

void prb_row_textn(struct prb_rows *rows, const char *text, size_t len)
{
    if (rows->failed || len > INT32_MAX / 3 || rows->texts.len > PRB_ROWS_BYTES_MAX) {
        rows->failed = true;
        return;
    }
    size_t offset = rows->texts.len;
    prb_utf8_add(&rows->texts, text, len); /* file names and environments may hold any bytes */
    len = rows->texts.len - offset;
    prb_buf_addc(&rows->texts, '\0');
    rows->failed = !prb_buf_ok(&rows->texts);
    add_cell(rows, (struct prb_cell){.type = PRB_TEXT, .length = (uint32_t)len, .text = offset});
}

void prb_row_text(struct prb_rows *rows, const char *text)
{
    if (text)
        prb_row_textn(rows, text, strlen(text));
    else
        prb_row_null(rows);
}

bool prb_rows_finish(struct prb_rows *rows, struct prb_error *err)
{
    complete_row(rows);
    if (rows->failed)
        return prb_fail(err, PRB_NOMEM, "the rows of %s.%s do not fit into memory",
                        rows->table->schema, rows->table->name);
    return true;
}

struct prb_value prb_rows_value(const struct prb_rows *rows, size_t row, size_t column)
{
    const struct prb_cell *cell = &rows->cells[row * rows->columns + column];
    struct prb_value value = {.type = cell->type};
    if (cell->type == PRB_INTEGER)
        value.integer = cell->integer;
    else if (cell->type == PRB_REAL)
        value.real = cell->real;
    else if (cell->type == PRB_TEXT) {
        value.text = rows->texts.data + cell->text;
        value.length = cell->length;
    }
    return value;
}

/* ---- what fill functions ask ---- */

const struct prb_table *prb_rows_table(const struct prb_rows *rows) { return rows->table; }
struct prb_db *prb_rows_db(const struct prb_rows *rows) { return rows->db; }

struct prb_target *prb_rows_target(const struct prb_rows *rows) { return rows->db->target; }

bool prb_rows_reveal(const struct prb_rows *rows) { return rows->db->settings.reveal_secrets; }

unsigned prb_rows_needs(const struct prb_rows *rows) { return rows->db->view.needs; }

void prb_rows_warn(struct prb_rows *rows, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(rows->db->warning, sizeof rows->db->warning, format, args);
    va_end(args);
}

const struct prb_value *prb_rows_argument(const struct prb_rows *rows, const char *column)
{
    int index = prb_table_column(rows->table, column);
    if (index < (int)rows->columns || index >= (int)(rows->columns + PRB_ARGUMENTS_MAX))
        return NULL;
    const struct prb_argument *argument = &rows->arguments[index - (int)rows->columns];
    return argument->given ? &argument->value : NULL;
}

bool prb_rows_wants(const struct prb_rows *rows, const char *column)
{
    int index = prb_table_column(rows->table, column);
    return index >= 0 && (rows->wanted >> index & 1);
}

const struct prb_stacks *prb_rows_stacks(struct prb_rows *rows, struct prb_error *err)
{
    return prb_db_stacks(rows->db, err);
}

void *prb_rows_shared(struct prb_rows *rows, prb_rows_make_fn *make, void (*free)(void *shared),
                      struct prb_error *err)
{
    struct prb_statement_view *view = &rows->db->view;
    if (!view->shared) {
        view->shared = make(rows->db->target, err);
        view->shared_free = free;
    }
    return view->shared;
}
