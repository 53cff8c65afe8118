/* Bytes to rows: see pack.h. */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "fleet/rows/bytes.h"
#include "fleet/rows/pack.h"

struct reader {
    const unsigned char *at, *end;
    bool failed; /* it wanted more than there is, or what cannot be */
};

static size_t left(const struct reader *in) { return (size_t)(in->end - in->at); }

static const unsigned char *take(struct reader *in, size_t len)
{
    if (in->failed || len > left(in)) {
        in->failed = true;
        return NULL;
    }
    const unsigned char *at = in->at;
    in->at += len;
    return at;
}

static uint64_t number(struct reader *in)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        if (in->at == in->end)
            break;
        unsigned char byte = *in->at++;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return value;
    }
    in->failed = true;
    return 0;
}

static int64_t unfolded(uint64_t value) { return (int64_t)(value >> 1 ^ -(value & 1)); }

static const char *bytes(struct reader *in, size_t *len_out)
{
    uint64_t len = number(in);
    *len_out = 0;
    const unsigned char *at = len <= left(in) ? take(in, (size_t)len) : NULL;
    if (at)
        *len_out = (size_t)len;
    else
        in->failed = true;
    return (const char *)at;
}

/* ---- the part ---- */

static bool corrupt(struct prb_error *err)
{
    return prb_fail(err, PRB_CORRUPT, "the rows cannot be parsed");
}

static void open_table(struct reader *in, struct prb_packed_table *out)
{
    uint32_t size = 0;
    const unsigned char *head = take(in, sizeof size);
    if (head)
        memcpy(&size, head, sizeof size);
    const unsigned char *section = take(in, size);
    if (!section)
        return;
    struct reader inner = {section, section + size, false};
    const unsigned char *flags = take(&inner, 1);
    out->missing = flags && (*flags & PRB_SECTION_MISSING);
    out->has_repeats = flags && (*flags & PRB_SECTION_REPEATS);
    if (flags && !out->missing) {
        uint64_t rows = number(&inner), columns = number(&inner);
        if (columns > 4096 || rows > UINT32_MAX || (columns == 0 && rows > 1))
            inner.failed = true;
        out->rows = (size_t)rows;
        out->columns = (size_t)columns;
    }
    out->data = inner.at;
    out->len = left(&inner);
    in->failed = in->failed || inner.failed || !flags;
}

bool prb_packed_open(const void *data, size_t len, struct prb_packed *out, struct prb_error *err)
{
    struct reader in = {data, (const unsigned char *)data + len, false};
    *out = (struct prb_packed){0};
    const unsigned char *magic = take(&in, sizeof PRB_PACKED_MAGIC - 1);
    if (!magic || memcmp(magic, PRB_PACKED_MAGIC, sizeof PRB_PACKED_MAGIC - 1) != 0)
        return corrupt(err);
    out->note = bytes(&in, &out->note_len);
    uint64_t tables = number(&in);
    if (in.failed || tables > PRB_PACKED_TABLES_MAX)
        return corrupt(err);
    for (; out->table_count < tables && !in.failed; out->table_count++)
        open_table(&in, &out->tables[out->table_count]);
    return (!in.failed && in.at == in.end) || corrupt(err);
}

/* ---- columns ---- */

struct column {
    struct prb_rows *rows;
    struct prb_cell *cells; /* of the first new row, and this column; NULL: not wanted */
    size_t count;
    const unsigned char *nulls; /* or NULL */
};

static bool is_null(const struct column *column, size_t i)
{
    return column->nulls && (column->nulls[i / 8] >> i % 8 & 1);
}

static struct prb_cell *cell_at(const struct column *column, size_t i)
{
    return &column->cells[i * column->rows->stored];
}

static void read_integers(struct reader *in, const struct column *column)
{
    int64_t value = 0;
    for (size_t i = 0; i < column->count && !in->failed; i++) {
        if (is_null(column, i))
            continue;
        value = (int64_t)((uint64_t)value + (uint64_t)unfolded(number(in)));
        if (column->cells)
            *cell_at(column, i) = (struct prb_cell){.type = PRB_INTEGER, .integer = value};
    }
}

static void read_reals(struct reader *in, const struct column *column)
{
    for (size_t i = 0; i < column->count && !in->failed; i++) {
        if (is_null(column, i))
            continue;
        double value = 0;
        const unsigned char *at = take(in, sizeof value);
        if (!at)
            return;
        memcpy(&value, at, sizeof value);
        if (column->cells && !isnan(value))
            *cell_at(column, i) = (struct prb_cell){.type = PRB_REAL, .real = value};
    }
}

static void read_texts(struct reader *in, const struct column *column)
{
    uint64_t count = number(in);
    if (count > left(in)) { /* a word is a byte at least */
        in->failed = true;
        return;
    }
    PRB_AUTO_FREE struct prb_cell *words = calloc(count + 1, sizeof *words);
    if (!words) {
        column->rows->failed = true;
        return;
    }
    for (size_t i = 0; i < count && !in->failed; i++) {
        size_t len;
        const char *text = bytes(in, &len);
        if (text && column->cells)
            words[i] = prb_rows_keep(column->rows, text, len, false);
    }
    for (size_t i = 0; i < column->count && !in->failed; i++) {
        if (is_null(column, i))
            continue;
        uint64_t word = number(in);
        if (word >= count)
            in->failed = true;
        else if (column->cells)
            *cell_at(column, i) = words[word];
    }
}

static void read_one(struct reader *in, const struct column *column, size_t i)
{
    struct prb_cell cell = {.type = PRB_NULL_VALUE};
    const unsigned char *type = take(in, 1), *at;
    const char *text;
    size_t len;
    switch (type ? *type : 0) {
    case PRB_INTEGER:
        cell = (struct prb_cell){.type = PRB_INTEGER, .integer = unfolded(number(in))};
        break;
    case PRB_REAL:
        cell.type = PRB_REAL;
        if ((at = take(in, sizeof cell.real)))
            memcpy(&cell.real, at, sizeof cell.real);
        if (isnan(cell.real))
            cell.type = PRB_NULL_VALUE;
        break;
    case PRB_TEXT:
    case PRB_BLOB:
        text = bytes(in, &len);
        if (text && column->cells)
            cell = prb_rows_keep(column->rows, text, len, *type == PRB_BLOB);
        break;
    default:
        in->failed = true;
    }
    if (column->cells)
        *cell_at(column, i) = cell;
}

static void read_column(struct reader *in, struct column *column)
{
    const unsigned char *head = take(in, 1);
    unsigned char kind = head ? *head & (unsigned char)~PRB_COLUMN_NULLS : 0xff;
    if (head && (*head & PRB_COLUMN_NULLS))
        column->nulls = take(in, (column->count + 7) / 8);
    if (in->failed)
        return;
    if (kind == PRB_COLUMN_INTEGER)
        read_integers(in, column);
    else if (kind == PRB_COLUMN_REAL)
        read_reals(in, column);
    else if (kind == PRB_COLUMN_TEXT)
        read_texts(in, column);
    else if (kind == PRB_COLUMN_MIXED)
        for (size_t i = 0; i < column->count && !in->failed; i++) {
            if (!is_null(column, i))
                read_one(in, column, i);
        }
    else if (kind != PRB_COLUMN_NULL)
        in->failed = true;
}

static void read_repeats(struct reader *in, struct prb_rows *rows, size_t first, size_t count)
{
    for (size_t i = 0; i < count && !in->failed; i++) {
        uint64_t repeats = number(in);
        if (repeats == 0 || repeats > UINT32_MAX)
            in->failed = true;
        else
            prb_rows_repeat(rows, first + i, (uint32_t)repeats);
    }
}

uint64_t prb_packed_count(const struct prb_packed_table *table)
{
    struct reader in = {table->data, table->data + table->len, false};
    uint64_t count = 0;
    for (size_t i = 0; table->has_repeats && i < table->rows && !in.failed; i++)
        count += number(&in);
    return table->has_repeats ? count : table->rows;
}

bool prb_packed_rows(const struct prb_packed_table *table, const int *columns, size_t column_count,
                     struct prb_rows *rows, size_t *first_out, struct prb_error *err)
{
    struct reader in = {table->data, table->data + table->len, false};
    struct prb_cell *cells = NULL;
    *first_out = rows->count;
    if (table->missing)
        return true;
    if (table->columns != column_count)
        return corrupt(err);
    if (!prb_rows_extend(rows, table->rows, &cells))
        return prb_rows_finish(rows, err);
    if (table->has_repeats)
        read_repeats(&in, rows, *first_out, table->rows);
    for (size_t i = 0; i < column_count && !in.failed && !rows->failed; i++) {
        int slot = columns[i] >= 0 ? rows->slots[columns[i]] : -1;
        struct column column = {rows, slot >= 0 ? cells + slot : NULL, table->rows, NULL};
        read_column(&in, &column);
    }
    if (in.failed || in.at != in.end)
        return corrupt(err);
    return !rows->failed || prb_rows_finish(rows, err);
}
