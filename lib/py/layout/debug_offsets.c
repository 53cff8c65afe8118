/*
 * The target's own table of offsets: the first object of _PyRuntime from 3.13 on (Include/internal/
 * pycore_debug_offsets.h, PEP 768).  The data files say which of our fields stand where in it.
 */
#include "py/layout/layout.h"

#include <endian.h>
#include <string.h>

#define TABLE_MAX 4096
/* No struct that we read is larger. */
#define STRUCT_MAX (1 << 20)

enum { COOKIE_AT = 0, VERSION_AT = 8, FREE_THREADED_AT = 16, HEAD_SIZE = 24 };

/*
 * The rows of all layouts, one after the other, each list after a row BEGIN.  A field's offset is
 * the word at first, plus or minus the word at second; it must lie in a struct as large as the word
 * at size (0: the table does not say).
 */
enum rule { BEGIN, TABLE, TAKE, SUM, DIFFERENCE };
struct row {
    const char *layout; /* BEGIN */
    enum rule rule;
    enum prb_field field;
    uint16_t size, first, second;
};

static const struct row rows[] = {
#define OFFSET(struct_, field, bytes)
#define ABSENT(struct_, field)
#define TRAIT(name, value)
#define NUMBER(name, value)
#define NONE(name)
#define LAYOUT_BEGIN(id, name, major, minor, patch, free_threaded) {.layout = name, .rule = BEGIN},
#define LAYOUT_END
#define DEBUG_TABLE(size_) {.rule = TABLE, .size = size_},
#define DEBUG(struct_, field, size, place) {NULL, TAKE, PRB_F_##struct_##_##field, size, place, 0},
#define DEBUG_SUM(struct_, field, size, first, second)                                             \
    {NULL, SUM, PRB_F_##struct_##_##field, size, first, second},
#define DEBUG_DIFFERENCE(struct_, field, size, first, second)                                      \
    {NULL, DIFFERENCE, PRB_F_##struct_##_##field, size, first, second},
#include "py/layout/all.inc"
};
#define ROW_COUNT (sizeof rows / sizeof *rows)

static uint64_t word_at(const uint8_t *table, unsigned at)
{
    uint64_t word;
    memcpy(&word, table + at, sizeof word);
    return le64toh(word);
}

bool prb_debug_offsets_head(struct prb_mem *mem, prb_addr runtime, uint32_t *hexversion_out,
                            bool *free_threaded_out, struct prb_error *err)
{
    uint8_t head[HEAD_SIZE];
    if (!prb_mem_read(mem, runtime, head, sizeof head, err))
        return false;
    if (memcmp(head + COOKIE_AT, "xdebugpy", 8) != 0)
        return prb_fail(err, PRB_NOT_FOUND, "no table of offsets at 0x%llx",
                        (unsigned long long)runtime);
    uint64_t version = word_at(head, VERSION_AT), free_threaded = word_at(head, FREE_THREADED_AT);
    if (version > UINT32_MAX || free_threaded > 1)
        return prb_fail(err, PRB_CORRUPT,
                        "the table of offsets at 0x%llx has version 0x%llx, free-threaded %llu",
                        (unsigned long long)runtime, (unsigned long long)version,
                        (unsigned long long)free_threaded);
    *hexversion_out = (uint32_t)version;
    *free_threaded_out = free_threaded == 1;
    return true;
}

/* What the table says of a row's field; false when it cannot be: too large, outside its struct,
 * unaligned. */
static bool offset_of(const struct row *row, const uint8_t *table, int32_t *out)
{
    uint64_t first = word_at(table, row->first),
             second = row->rule == TAKE ? 0 : word_at(table, row->second);
    if (first > STRUCT_MAX || second > STRUCT_MAX || (row->rule == DIFFERENCE && second > first))
        return false;
    uint64_t offset = row->rule == DIFFERENCE ? first - second : first + second;
    uint64_t size = row->size ? word_at(table, row->size) : STRUCT_MAX;
    unsigned width = prb_field_width(row->field);
    if (size == 0 || size > STRUCT_MAX || offset + width > size || (width && offset % width))
        return false;
    *out = (int32_t)offset;
    return true;
}

static void apply_row(const struct row *row, const uint8_t *table, struct prb_layout *layout,
                      unsigned *agreed, unsigned *differed, unsigned *refused)
{
    int32_t offset;
    if (!offset_of(row, table, &offset)) {
        ++*refused;
    } else if (layout->offset[row->field] == offset) {
        ++*agreed;
    } else {
        ++*differed;
        layout->offset[row->field] = offset;
    }
}

/* The row TABLE of a layout; NULL when its version has no table. */
static const struct row *find_table(const char *layout)
{
    for (size_t i = 0; i + 1 < ROW_COUNT; i++)
        if (rows[i].rule == BEGIN && !strcmp(rows[i].layout, layout))
            return rows[i + 1].rule == TABLE && rows[i + 1].size ? &rows[i + 1] : NULL;
    return NULL;
}

bool prb_debug_offsets_apply(struct prb_mem *mem, prb_addr runtime, struct prb_layout *layout,
                             unsigned *agreed, unsigned *differed, unsigned *refused,
                             struct prb_error *err)
{
    const struct row *row = find_table(layout->name);
    uint8_t table[TABLE_MAX];
    if (!row || row->size > sizeof table)
        return prb_fail(err, PRB_UNSUPPORTED, "CPython %s has no table of offsets", layout->name);
    if (!prb_mem_read(mem, runtime, table, row->size, err))
        return prb_error_prefix(err, "the table of offsets of CPython %s", layout->name);
    *agreed = *differed = *refused = 0;
    for (row++; row < rows + ROW_COUNT && row->rule != BEGIN; row++)
        apply_row(row, table, layout, agreed, differed, refused);
    return true;
}

#define DEBUGGER_SUPPORT_SINCE 14 /* minor version */
#define SCRIPT_PATH_MAX 4096

bool prb_debugger_support(struct prb_mem *mem, prb_addr runtime, const struct prb_layout *layout,
                          struct prb_debugger_support *out, struct prb_error *err)
{
    const struct row *row = find_table(layout->name);
    uint64_t words[6];
    if (!row || layout->minor < DEBUGGER_SUPPORT_SINCE) {
        prb_fail(err, PRB_UNSUPPORTED,
                 "CPython %s has no remote debugging interface (PEP 768, 3.14 and later)",
                 layout->name);
        return prb_error_remedy(err, "Use --method thread");
    }
    if (!prb_mem_read(mem, runtime + row->size - sizeof words, words, sizeof words, err))
        return prb_error_prefix(err, "the table of offsets of CPython %s", layout->name);
    for (unsigned i = 0; i < 6; i++) {
        words[i] = le64toh(words[i]);
        if (words[i] > STRUCT_MAX || (i == 5 && (words[i] < 64 || words[i] > SCRIPT_PATH_MAX)))
            return prb_fail(err, PRB_CORRUPT, "the table of offsets of CPython %s cannot be parsed",
                            layout->name);
    }
    *out =
        (struct prb_debugger_support){words[0], words[1], words[2], words[3], words[4], words[5]};
    return true;
}
