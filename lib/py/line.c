/*
 * Line tables: from an instruction's offset to its position in the source.  Pure functions over the
 * table's bytes, which are hostile: every read is bounded by the table's end, and sums have 64
 * bits, so that no table can overflow them.
 */
#include <limits.h>

#include "py/code.h"

static const struct prb_position unknown = {0, -1, -1, -1};

static struct prb_position line_only(int64_t line)
{
    struct prb_position at = unknown;
    if (line > 0 && line <= INT_MAX) {
        at.line = (int)line;
        at.end_line = (int)line;
    }
    return at;
}

/* Pairs of bytes (address increment, line increment): Objects/lnotab_notes.txt. */
static struct prb_position lookup_lnotab(const uint8_t *table, size_t len, int64_t line,
                                         int instruction, bool is_signed)
{
    int64_t addr = 0;
    for (size_t i = 0; i + 1 < len; i += 2) {
        addr += table[i];
        if (addr > instruction)
            break;
        line += is_signed ? (int8_t)table[i + 1] : table[i + 1];
    }
    return line_only(line);
}

/* Pairs (size of the range, signed line increment; -128: the range has no line): PEP 626. */
static struct prb_position lookup_lines(const uint8_t *table, size_t len, int64_t line,
                                        int instruction)
{
    int64_t end = 0;
    for (size_t i = 0; i + 1 < len; i += 2) {
        int8_t delta = (int8_t)table[i + 1];
        bool has_line = delta != -128;
        if (has_line)
            line += delta;
        end += table[i];
        if (end > instruction)
            return has_line ? line_only(line) : unknown;
    }
    return unknown;
}

/* A cursor over location entries: PEP 657, InternalDocs/code_objects.md. */
struct cursor {
    const uint8_t *next, *end;
};

static uint8_t next_byte(struct cursor *c) { return c->next < c->end ? *c->next++ : 0; }

/* Six bits a byte, the least significant first, 0x40: more follow. */
static uint64_t next_varint(struct cursor *c)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 36; shift += 6) {
        uint8_t byte = next_byte(c);
        value |= (uint64_t)(byte & 0x3f) << shift;
        if (!(byte & 0x40))
            break;
    }
    return value;
}

static int64_t next_signed_varint(struct cursor *c)
{
    uint64_t value = next_varint(c);
    return value & 1 ? -(int64_t)(value >> 1) : (int64_t)(value >> 1);
}

static int column_of(uint64_t plus_one)
{
    return plus_one == 0 || plus_one > INT_MAX ? -1 : (int)(plus_one - 1);
}

enum { CODE_ONE_LINE = 10, CODE_NO_COLUMNS = 13, CODE_LONG = 14, CODE_NONE = 15 };

/* One entry after its head: moves *line, and gives the position. */
static struct prb_position next_location(struct cursor *c, unsigned code, int64_t *line)
{
    struct prb_position at;
    if (code < CODE_ONE_LINE) {
        uint8_t byte = next_byte(c);
        at = line_only(*line);
        at.column = (int)(code << 3 | byte >> 4);
        at.end_column = at.column + (byte & 15);
    } else if (code < CODE_NO_COLUMNS) {
        *line += code - CODE_ONE_LINE;
        at = line_only(*line);
        at.column = next_byte(c);
        at.end_column = next_byte(c);
    } else if (code == CODE_NO_COLUMNS) {
        *line += next_signed_varint(c);
        at = line_only(*line);
    } else if (code == CODE_LONG) {
        *line += next_signed_varint(c);
        at = line_only(*line);
        int64_t end_line = *line + (int64_t)next_varint(c);
        if (at.line && end_line <= INT_MAX)
            at.end_line = (int)end_line;
        at.column = column_of(next_varint(c));
        at.end_column = column_of(next_varint(c));
    } else {
        at = unknown;
    }
    return at.line ? at : unknown;
}

static struct prb_position lookup_locations(const uint8_t *table, size_t len, int64_t line,
                                            int instruction)
{
    struct cursor c = {table, table + len};
    int64_t end = 0;
    while (c.next < c.end) {
        uint8_t head = *c.next++;
        if (!(head & 0x80))
            return unknown;
        end += ((head & 7) + 1) * 2;
        struct prb_position at = next_location(&c, head >> 3 & 15, &line);
        if (end > instruction)
            return at;
    }
    return unknown;
}

struct prb_position prb_line_lookup(enum prb_line_table kind, const uint8_t *table, size_t len,
                                    int first_line, int instruction)
{
    if (instruction < 0)
        return line_only(first_line);
    switch (kind) {
    case PRB_line_table_LNOTAB_UNSIGNED:
    case PRB_line_table_LNOTAB:
        return lookup_lnotab(table, len, first_line, instruction, kind == PRB_line_table_LNOTAB);
    case PRB_line_table_LINES:
        return lookup_lines(table, len, first_line, instruction);
    case PRB_line_table_LOCATIONS:
        return lookup_locations(table, len, first_line, instruction);
    }
    return unknown;
}
