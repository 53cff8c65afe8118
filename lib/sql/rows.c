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

size_t prb_table_arguments(const struct prb_table *table)
{
    size_t first = prb_table_visible(table), n = 0;
    while (n < PRB_ARGUMENTS_MAX && table->columns[first + n].name &&
           !table->columns[first + n].aside)
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

bool prb_arguments_equal(const struct prb_argument a[PRB_ARGUMENTS_MAX],
                         const struct prb_argument b[PRB_ARGUMENTS_MAX])
{
    for (size_t i = 0; i < PRB_ARGUMENTS_MAX; i++)
        if (a[i].given != b[i].given || (a[i].given && !prb_value_equal(&a[i].value, &b[i].value)))
            return false;
    return true;
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

/* A cell for each column that is used and is no argument. */
static bool choose_slots(struct prb_rows *rows)
{
    rows->slots = malloc((rows->columns + 1) * sizeof *rows->slots);
    for (size_t i = 0; rows->slots && i < rows->columns; i++) {
        bool argument = i >= rows->visible && i - rows->visible < rows->argument_count;
        bool has_cell = !argument && prb_column_in(rows->wanted, i);
        rows->slots[i] = has_cell ? (int16_t)rows->stored++ : -1;
    }
    return rows->slots;
}

struct prb_rows *prb_rows_new(struct prb_db *db, const struct prb_table *table, uint64_t wanted)
{
    struct prb_rows *rows = calloc(1, sizeof *rows);
    if (!rows)
        return NULL;
    rows->db = db;
    rows->table = table;
    rows->visible = prb_table_visible(table);
    rows->argument_count = prb_table_arguments(table);
    while (table->columns[rows->columns].name)
        rows->columns++;
    rows->wanted = wanted;
    if (!choose_slots(rows)) {
        prb_rows_free(rows);
        return NULL;
    }
    return rows;
}

void prb_rows_free(struct prb_rows *rows)
{
    if (!rows)
        return;
    for (size_t i = 0; i < PRB_ARGUMENTS_MAX; i++)
        if (rows->arguments[i].given)
            free((char *)rows->arguments[i].value.text);
    for (size_t i = 0; i < rows->order_count; i++)
        free(rows->orders[i].rows);
    free(rows->slots);
    free(rows->cells);
    free(rows->repeats);
    prb_buf_deinit(&rows->texts);
    free(rows);
}

/* ---- filling ---- */

/* Whether the next cell is kept: of a column that the statement uses. */
static bool is_stored(const struct prb_rows *rows)
{
    return rows->count && rows->next_column < rows->columns &&
           rows->slots[rows->next_column] >= 0 && !rows->failed;
}

static void add_cell(struct prb_rows *rows, struct prb_cell cell)
{
    bool stored = is_stored(rows); /* else not used, or more cells than columns */
    rows->next_column++;
    if (rows->next_column == rows->visible)
        rows->next_column += rows->argument_count;
    if (!stored)
        return;
    if (rows->cell_count * sizeof cell + rows->texts.len > PRB_ROWS_BYTES_MAX ||
        (rows->cell_count == rows->cell_cap && /* no call for each cell */
         !PRB_GROW(rows->cells, rows->cell_count, rows->cell_cap))) {
        rows->failed = true;
        return;
    }
    rows->cells[rows->cell_count++] = cell;
}

static void complete_row(struct prb_rows *rows)
{
    while (rows->cell_count < rows->count * rows->stored && !rows->failed)
        add_cell(rows, (struct prb_cell){.type = PRB_NULL_VALUE});
    rows->next_column = rows->visible ? 0 : rows->argument_count;
}

static bool add_repeat(struct prb_rows *rows, uint32_t count)
{
    while (rows->repeats && rows->repeat_cap < rows->count)
        if (!PRB_GROW(rows->repeats, rows->repeat_cap, rows->repeat_cap))
            return false;
    if (rows->repeats)
        rows->repeats[rows->count - 1] = count;
    return true;
}

void prb_row_begin(struct prb_rows *rows)
{
    complete_row(rows);
    if (rows->failed)
        return;
    rows->count++;
    rows->failed = rows->repeats && !add_repeat(rows, 1);
}

void prb_rows_repeat(struct prb_rows *rows, size_t row, uint32_t count)
{
    if (rows->failed || row >= rows->count || (count == 1 && !rows->repeats))
        return;
    if (!rows->repeats) {
        rows->repeat_cap = rows->cell_cap > rows->count ? rows->cell_cap : rows->count;
        rows->repeats = malloc((rows->repeat_cap + 1) * sizeof *rows->repeats);
        for (size_t i = 0; rows->repeats && i < rows->count; i++)
            rows->repeats[i] = 1;
        rows->failed = !rows->repeats;
    }
    if (!rows->failed)
        rows->repeats[row] = count;
}

bool prb_rows_extend(struct prb_rows *rows, size_t n, struct prb_cell **cells_out)
{
    complete_row(rows);
    size_t most = PRB_ROWS_BYTES_MAX / sizeof *rows->cells / (rows->stored ? rows->stored : 1);
    if (rows->failed || n > UINT32_MAX - rows->count ||
        (rows->stored && n > most - (rows->count < most ? rows->count : most))) {
        rows->failed = true;
        return false;
    }
    size_t needed = (rows->count + n) * rows->stored;
    if (needed > rows->cell_cap) {
        size_t cap = needed + needed / 2;
        struct prb_cell *cells = reallocarray(rows->cells, cap, sizeof *cells);
        if (!cells) {
            rows->failed = true;
            return false;
        }
        rows->cells = cells;
        rows->cell_cap = cap;
    }
    *cells_out = rows->cells + rows->cell_count;
    for (size_t i = rows->cell_count; i < needed; i++)
        rows->cells[i] = (struct prb_cell){.type = PRB_NULL_VALUE};
    rows->cell_count = needed;
    for (size_t i = 0; i < n && !rows->failed; i++) {
        rows->count++;
        rows->failed = !add_repeat(rows, 1);
    }
    rows->next_column = rows->columns; /* the last row is complete */
    return !rows->failed;
}

void prb_row_null(struct prb_rows *rows)
{
    add_cell(rows, (struct prb_cell){.type = PRB_NULL_VALUE});
}

void prb_row_skip(struct prb_rows *rows, size_t count)
{
    bool before = rows->next_column < rows->visible;
    rows->next_column += count;
    if (before && rows->next_column >= rows->visible)
        rows->next_column += rows->argument_count;
}

void prb_row_int(struct prb_rows *rows, int64_t value)
{
    add_cell(rows, (struct prb_cell){.type = PRB_INTEGER, .integer = value});
}

void prb_row_real(struct prb_rows *rows, double value)
{
    add_cell(rows, (struct prb_cell){.type = PRB_REAL, .real = value});
}

struct prb_cell prb_rows_keep(struct prb_rows *rows, const char *bytes, size_t len, bool blob)
{
    struct prb_cell cell = {.type = blob ? PRB_BLOB : PRB_TEXT, .text = rows->texts.len};
    if (rows->failed || len > INT32_MAX / 3 || rows->texts.len > PRB_ROWS_BYTES_MAX) {
        rows->failed = true;
        return cell;
    }
    if (blob)
        prb_buf_add(&rows->texts, bytes, len);
    else
        prb_utf8_add(&rows->texts, bytes, len); /* file names and environments may hold any bytes */
    cell.length = (uint32_t)(rows->texts.len - cell.text);
    prb_buf_addc(&rows->texts, '\0');
    rows->failed = !prb_buf_ok(&rows->texts);
    return cell;
}

void prb_row_textn(struct prb_rows *rows, const char *text, size_t len)
{
    add_cell(rows, is_stored(rows) ? prb_rows_keep(rows, text, len, false) : (struct prb_cell){0});
}

void prb_row_blob(struct prb_rows *rows, const void *bytes, size_t len)
{
    add_cell(rows, is_stored(rows) ? prb_rows_keep(rows, bytes, len, true) : (struct prb_cell){0});
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
    struct prb_value value = {.type = PRB_NULL_VALUE};
    if (rows->slots[column] < 0)
        return value;
    const struct prb_cell *cell = &rows->cells[row * rows->stored + (size_t)rows->slots[column]];
    value.type = cell->type;
    if (cell->type == PRB_INTEGER)
        value.integer = cell->integer;
    else if (cell->type == PRB_REAL)
        value.real = cell->real;
    else if (cell->type == PRB_TEXT || cell->type == PRB_BLOB) {
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
    prb_db_warn_args(rows->db, format, args);
    va_end(args);
}

const struct prb_value *prb_rows_argument(const struct prb_rows *rows, const char *column)
{
    int index = prb_table_column(rows->table, column);
    if (index < (int)rows->visible || index >= (int)(rows->visible + rows->argument_count))
        return NULL;
    const struct prb_argument *argument = &rows->arguments[index - (int)rows->visible];
    return argument->given ? &argument->value : NULL;
}

bool prb_rows_wants(const struct prb_rows *rows, const char *column)
{
    int index = prb_table_column(rows->table, column);
    return index >= 0 && prb_column_in(rows->wanted, (size_t)index);
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
