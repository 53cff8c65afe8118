/*
 * One code object: read with its names and line table, and proven to be still the same: the fields
 * that name and place it, the bytes of its line table and of its name.
 */
#include "py/code_read.h"

#include "py/object/reader.h"

#include <string.h>

#define LINE_TABLE_MAX (4u << 20) /* bytes; the largest generated modules have some 100 KB */
#define NAME_MAX_CHARACTERS 4096

/* ---- identity ---- */

static uint64_t field_in(const struct prb_layout *layout, enum prb_field field, const uint8_t *head,
                         size_t len)
{
    int32_t offset = layout->offset[field];
    unsigned width = prb_field_width(field);
    uint64_t value = 0;
    if (offset >= 0 && (size_t)offset + width <= len)
        memcpy(&value, head + offset, width);
    return value;
}

#define IN_HEAD(field) field_in(layout, PRB_F_code_##field, head, len)

static struct prb_code_identity identity_of(const struct prb_layout *layout, const uint8_t *head,
                                            size_t len)
{
    return (struct prb_code_identity){
        .name = IN_HEAD(name),
        .qualname = IN_HEAD(qualname),
        .filename = IN_HEAD(filename),
        .linetable = IN_HEAD(linetable),
        .firstlineno = (uint32_t)IN_HEAD(firstlineno),
        .flags = (uint32_t)IN_HEAD(flags),
        .argcount = (uint32_t)IN_HEAD(argcount),
        .posonlyargcount = (uint32_t)IN_HEAD(posonlyargcount),
        .kwonlyargcount = (uint32_t)IN_HEAD(kwonlyargcount),
        .nlocals = (uint32_t)IN_HEAD(nlocals),
    };
}

/* The part of a code object in front of its bytecode. */
#define HEAD_MAX 1024
static size_t head_size(const struct prb_layout *layout)
{
    size_t size = 0;
    for (int field = PRB_F_code_argcount; field < PRB_F_code_size; field++) {
        int32_t offset = layout->offset[field];
        if (offset != PRB_ABSENT && offset >= 0 &&
            (size_t)offset + prb_field_width((enum prb_field)field) > size)
            size = (size_t)offset + prb_field_width((enum prb_field)field);
    }
    return size <= HEAD_MAX ? size : HEAD_MAX;
}

static bool read_head(const struct prb_code_reader *reader, prb_addr addr,
                      struct prb_code_identity *identity, struct prb_error *err)
{
    const struct prb_layout *layout = &reader->py->layout;
    size_t len = head_size(layout);
    const uint8_t *head = prb_objects_get(reader->objects, addr, len);
    if (!head)
        return prb_fail_addr(err, addr, "code object: cannot read %zu bytes", len);
    *identity = identity_of(layout, head, len);
    return true;
}

/* ---- reading ---- */

static bool field(const struct prb_code_reader *reader, prb_addr addr, enum prb_field field,
                  uint64_t *out, struct prb_error *err)
{
    return prb_objects_field(reader->objects, addr, field, out) ||
           prb_fail_addr(err, addr, "%s cannot be read at 0x%llx", prb_field_name(field),
                         (unsigned long long)addr);
}

const char *prb_code_text(const struct prb_code_reader *reader, prb_addr str, struct prb_error *err)
{
    PRB_AUTO(prb_buf) struct prb_buf text = {0};
    if (!prb_object_str(reader->objects, str, NAME_MAX_CHARACTERS, &text, err))
        return NULL;
    const char *copy = prb_arena_strndup(reader->arena, text.data ? text.data : "", text.len);
    return copy ? copy : PRB_NULL(prb_nomem(err));
}

static bool read_line_table(const struct prb_code_reader *reader, prb_addr table,
                            struct prb_code_object *code, struct prb_error *err)
{
    struct prb_py *py = reader->py;
    const prb_addr data = table + (prb_addr)PRB_OFF(&py->layout, bytes, data);
    uint64_t len = 0;
    if (!field(reader, table, PRB_F_bytes_size, &len, err))
        return false;
    if (len > LINE_TABLE_MAX)
        return prb_fail(err, PRB_CORRUPT, "line table of %llu bytes", (unsigned long long)len);
    uint8_t *bytes = prb_arena_alloc(reader->arena, len);
    if (!bytes)
        return prb_nomem(err);
    const void *seen = len <= PRB_VIEW_MAX ? prb_objects_get(reader->objects, data, len) : NULL;
    if (seen)
        memcpy(bytes, seen, len);
    else if (!prb_mem_read(py->mem, data, bytes, len, err))
        return prb_error_prefix(err, "line table");
    code->lines = bytes;
    code->lines_len = len;
    return true;
}

/* A core without the interpreter's files has its types, but not the text of their names.  A type is
 * what `type` made; only `type` made itself. */
static bool is_nameless_type(struct prb_py *py, prb_addr type, prb_addr name)
{
    char byte;
    uint64_t made_by = 0, itself = 0;
    return !prb_mem_read(py->mem, name, &byte, 1, NULL) &&
           PRB_FIELD_OF(py, type, object, type, &made_by, NULL) && made_by != type &&
           PRB_FIELD_OF(py, made_by, object, type, &itself, NULL) && itself == made_by;
}

/* A code object's type is called "code"; once seen, its address is enough. */
static bool check_type(const struct prb_code_reader *reader, prb_addr addr, struct prb_error *err)
{
    struct prb_py *py = reader->py;
    uint64_t type = 0, name = 0;
    char text[8];
    if (!field(reader, addr, PRB_F_object_type, &type, err))
        return false;
    if (py->code_type && type == py->code_type)
        return true;
    bool named = !py->code_type && PRB_FIELD_OF(py, type, type, name, &name, NULL);
    if (named && is_nameless_type(py, type, name))
        return true; /* what is read of it must be names and tables, too */
    if (!named || !prb_mem_string(py->mem, name, text, sizeof text, NULL) ||
        strcmp(text, "code") != 0)
        return prb_fail(err, PRB_CORRUPT, "no code object at %#llx", (unsigned long long)addr);
    py->code_type = type;
    return true;
}

bool prb_code_read(const struct prb_code_reader *reader, prb_addr addr,
                   struct prb_code_reading *out, struct prb_error *err)
{
    struct prb_py *py = reader->py;
    const struct prb_layout *layout = &py->layout;
    struct prb_code_object *code = &out->code;
    code->addr = addr;
    if (!check_type(reader, addr, err) || !read_head(reader, addr, &out->identity, err))
        return false;
    const struct prb_code_identity *id = &out->identity;
    code->first_line = (int)id->firstlineno;
    code->argcount = (int)id->argcount;
    code->posonlyargcount = (int)id->posonlyargcount;
    code->kwonlyargcount = (int)id->kwonlyargcount;
    code->flags = id->flags;
    if (!(code->name = prb_code_text(reader, id->name, err)) ||
        !(code->filename = prb_code_text(reader, id->filename, err)))
        return prb_error_prefix(err, "code object");
    code->qualname = id->qualname ? prb_code_text(reader, id->qualname, NULL) : NULL;
    if (PRB_IS(layout, variables, LOCALSPLUS)) {
        code->bytecode = addr + (prb_addr)PRB_OFF(layout, code, bytecode);
        uint64_t units = 0; /* ob_size counts code units of two bytes */
        if (!field(reader, addr, PRB_F_varobject_size, &units, err))
            return false;
        code->bytecode_len = units < UINT32_MAX ? units * 2 : 0;
    }
    const void *name = prb_objects_get(reader->objects, id->name, sizeof out->name_bytes);
    out->name_bytes_len = sizeof out->name_bytes;
    if (name)
        memcpy(out->name_bytes, name, sizeof out->name_bytes);
    else /* it lies at the end of what there is */
        out->name_bytes_len =
            prb_mem_read_some(py->mem, id->name, out->name_bytes, sizeof out->name_bytes);
    return read_line_table(reader, id->linetable, code, err);
}

/* ---- many at once ---- */

void prb_code_announce(const struct prb_code_reader *reader, prb_addr addr)
{
    struct prb_view *view = reader->objects->view;
    prb_view_prefetch(view, addr, head_size(&reader->py->layout));
}

void prb_code_announce_texts(const struct prb_code_reader *reader, prb_addr addr)
{
    struct prb_code_identity id;
    if (!read_head(reader, addr, &id, NULL))
        return;
    const uint64_t parts[] = {id.name, id.filename, id.qualname, id.linetable};
    prb_objects_prefetch(reader->objects, parts, sizeof parts / sizeof *parts);
}

/* ---- the same? ---- */

/* Reference counts and cached hashes change in a name that is the same; its text lies behind them.
 */
static bool same_name(const struct prb_layout *layout, const uint8_t *a, const uint8_t *b,
                      size_t len)
{
    size_t length_at = (size_t)PRB_OFF(layout, str, length),
           text_at = (size_t)PRB_OFF(layout, str, ascii_data);
    if (length_at + 8 > len || text_at > len)
        return true;
    return memcmp(a + length_at, b + length_at, 8) == 0 &&
           memcmp(a + text_at, b + text_at, len - text_at) == 0;
}

bool prb_code_is_same(struct prb_py *py, const struct prb_code_reading *read)
{
    uint8_t head[HEAD_MAX], name[PRB_CODE_NAME_BYTES];
    size_t table_len = read->code.lines_len;
    PRB_AUTO_FREE uint8_t *table = malloc(table_len + 1);
    if (!table)
        return false;
    size_t head_len = head_size(&py->layout);
    struct prb_range ranges[] = {
        {read->code.addr, head, head_len, 0},
        {read->identity.name, name, read->name_bytes_len, 0},
        {read->identity.linetable + (prb_addr)PRB_OFF(&py->layout, bytes, data), table, table_len,
         0},
    };
    if (!prb_mem_readv(py->mem, ranges, sizeof ranges / sizeof *ranges, NULL))
        return false;
    struct prb_code_identity now = identity_of(&py->layout, head, head_len);
    return memcmp(&now, &read->identity, sizeof now) == 0 &&
           memcmp(table, read->code.lines, table_len) == 0 &&
           same_name(&py->layout, name, read->name_bytes, read->name_bytes_len);
}

#define WATCHED_LINES 256 /* bytes of the line table: enough to distinguish two bodies */

static size_t watched_lines(const struct prb_code_reading *read)
{
    return read->code.lines_len < WATCHED_LINES ? read->code.lines_len : WATCHED_LINES;
}

bool prb_code_is_same_in(struct prb_py *py, struct prb_view *view,
                         const struct prb_code_reading *read)
{
    const struct prb_layout *layout = &py->layout;
    size_t len = head_size(layout);
    const uint8_t *bytes = prb_view_get(view, read->code.addr, len);
    if (!bytes)
        return false;
    struct prb_code_identity now = identity_of(layout, bytes, len);
    if (memcmp(&now, &read->identity, sizeof now) != 0)
        return false;
    bytes = prb_view_get(view, read->identity.name, read->name_bytes_len);
    if (!bytes || !same_name(layout, bytes, read->name_bytes, read->name_bytes_len))
        return false;
    len = watched_lines(read);
    bytes = len ? prb_view_get(
                      view, read->identity.linetable + (prb_addr)PRB_OFF(layout, bytes, data), len)
                : NULL;
    return !len || (bytes && memcmp(bytes, read->code.lines, len) == 0);
}

void prb_code_reading_prefetch(struct prb_py *py, struct prb_view *view,
                               const struct prb_code_reading *read)
{
    prb_view_prefetch(view, read->code.addr, head_size(&py->layout));
    prb_view_prefetch(view, read->identity.name, read->name_bytes_len);
    prb_view_prefetch(view, read->identity.linetable + (prb_addr)PRB_OFF(&py->layout, bytes, data),
                      watched_lines(read));
}
