/*
 * Code objects: read once, kept by address, proven the same when a new look begins.
 *
 * An address may be reused by another code object while we look away, even with its strings at the
 * old addresses.  So the first use of an entry after prb_codes_renew() reads its identity again:
 * the fields that name and place it, the bytes of its line table and of its name.
 */
#include "py/code.h"

#include <string.h>

#include "base/buf.h"
#include "py/object/object.h"

#define LINE_TABLE_MAX (4u << 20) /* bytes; the largest generated modules have some 100 KB */
#define NAME_MAX_CHARACTERS 4096
#define VARIABLES_MAX 65536
#define NAME_IDENTITY 128 /* bytes of the name object that tell it from another */

/* What tells one code object from another at the same address. */
struct identity {
    uint64_t name, qualname, filename, linetable;
    uint32_t firstlineno, flags, argcount, posonlyargcount, kwonlyargcount, nlocals;
};

struct entry {
    struct prb_code_object code;
    struct identity identity;
    uint8_t name_bytes[NAME_IDENTITY];
    size_t name_bytes_len;
    uint64_t generation, loaded; /* when it was proven last, and when it was read */
    uint64_t announced;
    bool with_variables;
};

struct prb_code_cache {
    struct entry **slots;         /* open addressing by address; a power of two */
    size_t capacity, count, held; /* entries in the slots; those in the arena */
    uint64_t generation;
    struct prb_arena
        arena; /* entries and their strings: they live as long as the cache, replaced or not */
    struct prb_objects *objects;
};

void prb_code_cache_free(struct prb_code_cache *cache)
{
    if (!cache)
        return;
    prb_objects_free(cache->objects);
    prb_arena_deinit(&cache->arena);
    free(cache->slots);
    free(cache);
}

static struct prb_code_cache *cache_of(struct prb_py *py, struct prb_error *err)
{
    if (py->codes)
        return py->codes;
    struct prb_code_cache *cache = calloc(1, sizeof *cache);
    if (!cache)
        return PRB_NULL(prb_fail(err, PRB_NOMEM, "code cache"));
    cache->capacity = 1024;
    cache->slots = calloc(cache->capacity, sizeof *cache->slots);
    cache->objects = prb_objects_new(py, err);
    if (!cache->slots || !cache->objects) {
        if (!cache->slots)
            prb_fail(err, PRB_NOMEM, "code cache");
        prb_code_cache_free(cache);
        return NULL;
    }
    return py->codes = cache;
}

static size_t hash(prb_addr addr) { return (size_t)((addr >> 4) * 0x9e3779b97f4a7c15u >> 20); }

static struct entry **slot_of(struct prb_code_cache *cache, prb_addr addr)
{
    size_t i = hash(addr) & (cache->capacity - 1);
    while (cache->slots[i] && cache->slots[i]->code.addr != addr)
        i = (i + 1) & (cache->capacity - 1);
    return &cache->slots[i];
}

static bool grow(struct prb_code_cache *cache)
{
    size_t old_capacity = cache->capacity;
    struct entry **old = cache->slots;
    struct entry **slots = calloc(old_capacity * 2, sizeof *slots);
    if (!slots)
        return false;
    cache->slots = slots;
    cache->capacity = old_capacity * 2;
    for (size_t i = 0; i < old_capacity; i++)
        if (old[i])
            *slot_of(cache, old[i]->code.addr) = old[i];
    free(old);
    return true;
}

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

static struct identity identity_of(const struct prb_layout *layout, const uint8_t *head, size_t len)
{
    return (struct identity){
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

static const char *text_of(struct prb_code_cache *cache, prb_addr str, struct prb_error *err)
{
    PRB_AUTO(prb_buf) struct prb_buf text = {0};
    if (!prb_object_str(cache->objects, str, NAME_MAX_CHARACTERS, &text, err))
        return NULL;
    const char *copy = prb_arena_strndup(&cache->arena, text.data ? text.data : "", text.len);
    return copy ? copy : PRB_NULL(prb_fail(err, PRB_NOMEM, "code object"));
}

static bool read_line_table(struct prb_py *py, struct prb_code_cache *cache, prb_addr table,
                            struct prb_code_object *code, struct prb_error *err)
{
    uint64_t len = 0;
    if (!PRB_FIELD_OF(py, table, bytes, size, &len, err))
        return false;
    if (len > LINE_TABLE_MAX)
        return prb_fail(err, PRB_CORRUPT, "line table of %llu bytes", (unsigned long long)len);
    uint8_t *bytes = prb_arena_alloc(&cache->arena, len);
    if (!bytes)
        return prb_fail(err, PRB_NOMEM, "line table");
    if (!prb_mem_read(py->mem, table + (prb_addr)PRB_OFF(&py->layout, bytes, data), bytes, len,
                      err))
        return prb_error_prefix(err, "line table");
    code->lines = bytes;
    code->lines_len = len;
    return true;
}

/* ---- variables ---- */

/* Bits of co_localspluskinds, the same in 3.11–3.15: Include/internal/pycore_code.h. */
enum { KIND_HIDDEN = 0x10, KIND_LOCAL = 0x20, KIND_CELL = 0x40, KIND_FREE = 0x80 };

struct variables {
    struct prb_code_cache *cache;
    struct prb_code_object *code;
    size_t room; /* names that were counted; the target may have more by now */
    uint8_t kind;
};

static bool add_variable(void *context, prb_addr key, prb_addr name)
{
    (void)key;
    struct variables *v = context;
    if (v->code->variable_count == v->room)
        return false;
    const char *text = text_of(v->cache, name, NULL);
    v->code->variables[v->code->variable_count] = text ? text : "?";
    v->code->variable_kinds[v->code->variable_count++] = v->kind;
    return true;
}

static bool tuple_size(struct prb_py *py, prb_addr tuple, uint64_t *out, struct prb_error *err)
{
    if (!PRB_FIELD_OF(py, tuple, tuple, size, out, err))
        return false;
    if (*out > VARIABLES_MAX)
        return prb_fail(err, PRB_CORRUPT, "%llu variable names", (unsigned long long)*out);
    return true;
}

static bool room_for(struct prb_code_cache *cache, struct prb_code_object *code, size_t count,
                     struct prb_error *err)
{
    code->variables = prb_arena_alloc(&cache->arena, (count + 1) * sizeof *code->variables);
    code->variable_kinds = prb_arena_alloc(&cache->arena, count + 1);
    code->variable_count = 0;
    return code->variables && code->variable_kinds ? true : prb_fail(err, PRB_NOMEM, "variables");
}

static void mark_arguments(struct prb_code_object *code)
{
    enum { VARARGS = 4, VARKEYWORDS = 8 }; /* co_flags, Include/cpython/code.h */
    size_t args = (size_t)code->argcount + (size_t)code->kwonlyargcount +
                  !!(code->flags & VARARGS) + !!(code->flags & VARKEYWORDS);
    for (size_t i = 0; i < args && i < code->variable_count; i++)
        if (code->variable_kinds[i] & PRB_VARIABLE_LOCAL)
            code->variable_kinds[i] |= PRB_VARIABLE_ARG;
}

/* 3.11+: one tuple of names, one bytes object of kinds. */
static bool read_localsplus(struct prb_py *py, struct prb_code_cache *cache,
                            struct prb_code_object *code, struct prb_error *err)
{
    uint64_t names, kinds, count, kinds_len;
    if (!PRB_FIELD_OF(py, code->addr, code, localsplusnames, &names, err) ||
        !PRB_FIELD_OF(py, code->addr, code, localspluskinds, &kinds, err) ||
        !tuple_size(py, names, &count, err) ||
        !PRB_FIELD_OF(py, kinds, bytes, size, &kinds_len, err))
        return false;
    if (kinds_len != count)
        return prb_fail(err, PRB_CORRUPT, "%llu variables of %llu kinds", (unsigned long long)count,
                        (unsigned long long)kinds_len);
    struct variables v = {cache, code, count, 0};
    if (!room_for(cache, code, count, err) ||
        !prb_mem_read(py->mem, kinds + (prb_addr)PRB_OFF(&py->layout, bytes, data),
                      code->variable_kinds, count, err))
        return false;
    PRB_AUTO_FREE uint8_t *raw = malloc(count + 1);
    if (!raw)
        return prb_fail(err, PRB_NOMEM, "variables");
    memcpy(raw, code->variable_kinds, count);
    if (!prb_sequence_each(cache->objects, names, add_variable, &v, err))
        return false;
    for (size_t i = 0; i < code->variable_count && i < count; i++)
        code->variable_kinds[i] = (uint8_t)((raw[i] & KIND_LOCAL ? PRB_VARIABLE_LOCAL : 0) |
                                            (raw[i] & KIND_CELL ? PRB_VARIABLE_CELL : 0) |
                                            (raw[i] & KIND_FREE ? PRB_VARIABLE_FREE : 0) |
                                            (raw[i] & KIND_HIDDEN ? PRB_VARIABLE_HIDDEN : 0));
    return true;
}

/* Up to 3.10: three tuples, in the order of f_localsplus. */
static bool read_name_tuples(struct prb_py *py, struct prb_code_cache *cache,
                             struct prb_code_object *code, struct prb_error *err)
{
    static const struct {
        enum prb_field field;
        uint8_t kind;
    } parts[] = {
        {PRB_F_code_varnames, PRB_VARIABLE_LOCAL},
        {PRB_F_code_cellvars, PRB_VARIABLE_CELL},
        {PRB_F_code_freevars, PRB_VARIABLE_FREE},
    };
    uint64_t tuples[3], total = 0;
    for (size_t i = 0; i < 3; i++) {
        uint64_t count;
        if (!prb_py_field(py, code->addr, parts[i].field, &tuples[i], err) ||
            !tuple_size(py, tuples[i], &count, err))
            return false;
        total += count;
    }
    if (!room_for(cache, code, total, err))
        return false;
    for (size_t i = 0; i < 3; i++) {
        struct variables v = {cache, code, total, parts[i].kind};
        if (!prb_sequence_each(cache->objects, tuples[i], add_variable, &v, err))
            return false;
    }
    return true;
}

static bool read_variables(struct prb_py *py, struct prb_code_cache *cache, struct entry *entry,
                           struct prb_error *err)
{
    struct prb_code_object *code = &entry->code;
    bool ok = PRB_IS(&py->layout, variables, LOCALSPLUS) ? read_localsplus(py, cache, code, err)
                                                         : read_name_tuples(py, cache, code, err);
    if (!ok) {
        code->variable_count = 0;
        return prb_error_prefix(err, "variables of %s", code->name);
    }
    mark_arguments(code);
    entry->with_variables = true;
    return true;
}

/* ---- entries ---- */

static bool read_head(struct prb_py *py, prb_addr addr, uint8_t head[HEAD_MAX],
                      struct identity *identity, struct prb_error *err)
{
    size_t len = head_size(&py->layout);
    if (!prb_mem_read(py->mem, addr, head, len, err))
        return prb_error_prefix(err, "code object");
    *identity = identity_of(&py->layout, head, len);
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

/* A code object's type is called "code"; once seen, its address tells. */
static bool check_type(struct prb_py *py, prb_addr addr, struct prb_error *err)
{
    uint64_t type = 0, name = 0;
    char text[8];
    if (!PRB_FIELD_OF(py, addr, object, type, &type, err))
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

static bool read_entry(struct prb_py *py, struct prb_code_cache *cache, prb_addr addr,
                       struct entry *entry, struct prb_error *err)
{
    uint8_t head[HEAD_MAX];
    const struct prb_layout *layout = &py->layout;
    struct prb_code_object *code = &entry->code;
    code->addr = addr;
    if (!check_type(py, addr, err) || !read_head(py, addr, head, &entry->identity, err))
        return false;
    const struct identity *id = &entry->identity;
    code->first_line = (int)id->firstlineno;
    code->argcount = (int)id->argcount;
    code->posonlyargcount = (int)id->posonlyargcount;
    code->kwonlyargcount = (int)id->kwonlyargcount;
    code->flags = id->flags;
    if (!(code->name = text_of(cache, id->name, err)) ||
        !(code->filename = text_of(cache, id->filename, err)))
        return prb_error_prefix(err, "code object");
    code->qualname = id->qualname ? text_of(cache, id->qualname, NULL) : NULL;
    if (PRB_IS(layout, variables, LOCALSPLUS)) {
        code->bytecode = addr + (prb_addr)PRB_OFF(layout, code, bytecode);
        uint64_t units = 0; /* ob_size counts code units of two bytes */
        if (!PRB_FIELD_OF(py, addr, varobject, size, &units, err))
            return false;
        code->bytecode_len = units < UINT32_MAX ? units * 2 : 0;
    }
    entry->name_bytes_len =
        prb_mem_read_some(py->mem, id->name, entry->name_bytes, sizeof entry->name_bytes);
    return read_line_table(py, cache, id->linetable, code, err);
}

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

static bool still_the_same(struct prb_py *py, const struct entry *entry)
{
    uint8_t head[HEAD_MAX], name[NAME_IDENTITY];
    size_t table_len = entry->code.lines_len;
    PRB_AUTO_FREE uint8_t *table = malloc(table_len + 1);
    if (!table)
        return false;
    size_t head_len = head_size(&py->layout);
    struct prb_range ranges[] = {
        {entry->code.addr, head, head_len, 0},
        {entry->identity.name, name, entry->name_bytes_len, 0},
        {entry->identity.linetable + (prb_addr)PRB_OFF(&py->layout, bytes, data), table, table_len,
         0},
    };
    if (!prb_mem_readv(py->mem, ranges, sizeof ranges / sizeof *ranges, NULL))
        return false;
    struct identity now = identity_of(&py->layout, head, head_len);
    return memcmp(&now, &entry->identity, sizeof now) == 0 &&
           memcmp(table, entry->code.lines, table_len) == 0 &&
           same_name(&py->layout, name, entry->name_bytes, entry->name_bytes_len);
}

static struct entry *load(struct prb_py *py, struct prb_code_cache *cache, prb_addr addr,
                          struct prb_error *err)
{
    if (cache->count * 2 >= cache->capacity && !grow(cache))
        return PRB_NULL(prb_fail(err, PRB_NOMEM, "code cache"));
    struct entry *entry = prb_arena_alloc(&cache->arena, sizeof *entry);
    if (!entry)
        return PRB_NULL(prb_fail(err, PRB_NOMEM, "code cache"));
    if (!read_entry(py, cache, addr, entry, err))
        return NULL;
    struct entry **slot = slot_of(cache, addr);
    cache->count += *slot == NULL;
    cache->held++;
    entry->loaded = entry->announced = cache->generation;
    return *slot = entry;
}

const struct prb_code_object *prb_code_get(struct prb_py *py, prb_addr addr, bool variables,
                                           struct prb_error *err)
{
    struct prb_code_cache *cache = cache_of(py, err);
    if (!cache)
        return NULL;
    struct entry *entry = *slot_of(cache, addr);
    if (entry && entry->generation != cache->generation && !still_the_same(py, entry))
        entry = NULL;
    if (!entry)
        entry = load(py, cache, addr, err);
    if (!entry)
        return NULL;
    entry->generation = cache->generation;
    if (variables && !entry->with_variables && !read_variables(py, cache, entry, err))
        return NULL;
    return &entry->code;
}

/* ---- again and again ---- */

#define WATCHED_LINES 256 /* bytes of the line table: enough to tell one body from another */

static size_t watched_lines(const struct entry *entry)
{
    return entry->code.lines_len < WATCHED_LINES ? entry->code.lines_len : WATCHED_LINES;
}

static bool same_in_view(struct prb_py *py, struct prb_view *view, const struct entry *entry)
{
    const struct prb_layout *layout = &py->layout;
    size_t len = head_size(layout);
    const uint8_t *bytes = prb_view_get(view, entry->code.addr, len);
    if (!bytes)
        return false;
    struct identity now = identity_of(layout, bytes, len);
    if (memcmp(&now, &entry->identity, sizeof now) != 0)
        return false;
    bytes = prb_view_get(view, entry->identity.name, entry->name_bytes_len);
    if (!bytes || !same_name(layout, bytes, entry->name_bytes, entry->name_bytes_len))
        return false;
    len = watched_lines(entry);
    bytes = len ? prb_view_get(
                      view, entry->identity.linetable + (prb_addr)PRB_OFF(layout, bytes, data), len)
                : NULL;
    return !len || (bytes && memcmp(bytes, entry->code.lines, len) == 0);
}

const struct prb_code_object *prb_code_watched(struct prb_py *py, struct prb_view *view,
                                               prb_addr addr, bool *fresh_out,
                                               struct prb_error *err)
{
    struct prb_code_cache *cache = cache_of(py, err);
    if (!cache)
        return NULL;
    struct entry *entry = *slot_of(cache, addr);
    if (entry && entry->generation != cache->generation && !same_in_view(py, view, entry))
        entry = NULL;
    if (!entry) {
        prb_objects_clear(cache->objects); /* what it holds is of an earlier look */
        entry = load(py, cache, addr, err);
        if (!entry)
            return NULL;
        same_in_view(py, view, entry); /* so that the view brings it in from now on */
    }
    entry->generation = cache->generation;
    *fresh_out = entry->loaded == cache->generation;
    return &entry->code;
}

void prb_code_announce(struct prb_py *py, struct prb_view *view, prb_addr addr)
{
    struct prb_code_cache *cache = py->codes;
    struct entry *entry = cache ? *slot_of(cache, addr) : NULL;
    if (!entry || entry->announced == cache->generation)
        return;
    entry->announced = cache->generation;
    prb_view_want(view, addr, head_size(&py->layout));
    prb_view_want(view, entry->identity.name, entry->name_bytes_len);
    prb_view_want(view, entry->identity.linetable + (prb_addr)PRB_OFF(&py->layout, bytes, data),
                  watched_lines(entry));
}

void prb_codes_again(struct prb_py *py)
{
    if (py->codes)
        py->codes->generation++;
}

size_t prb_codes_held(const struct prb_py *py) { return py->codes ? py->codes->held : 0; }

void prb_codes_drop(struct prb_py *py)
{
    prb_code_cache_free(py->codes);
    py->codes = NULL;
}

void prb_codes_renew(struct prb_py *py)
{
    if (py->codes) {
        py->codes->generation++;
        prb_objects_clear(py->codes->objects);
    }
}

struct prb_position prb_code_position(struct prb_py *py, const struct prb_code_object *code,
                                      int instruction)
{
    return prb_line_lookup((enum prb_line_table)py->layout.trait[PRB_TRAIT_line_table], code->lines,
                           code->lines_len, code->first_line, instruction);
}
