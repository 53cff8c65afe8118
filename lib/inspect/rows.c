/*
 * Rows: a raw frame made into one of probing.h: names, positions, locals; all strings in the
 * result's arena.
 */
#include <string.h>

#include "base/file.h"
#include "inspect/reading.h"
#include "py/locals.h"
#include "py/object/reader.h"
#include "repr/repr.h"

/* ---- short file names ---- */

struct folding {
    const struct prb_runtime *runtime;
    struct prb_arena *arena;
    struct prb_folders *out;
};

static bool add_folder(void *context, prb_addr key, prb_addr value)
{
    (void)key;
    struct folding *folding = context;
    struct prb_folders *out = folding->out;
    PRB_AUTO(prb_buf) struct prb_buf text = {0};
    if (prb_object_str(folding->runtime->objects, value, 4096, &text, NULL) && text.len &&
        text.data[0] == '/' &&
        (out->items[out->count] = prb_arena_strdup(folding->arena, text.data)))
        out->count++;
    return out->count < PRB_FOLDERS_MAX;
}

void prb_folders_read(const struct prb_runtime *runtime, prb_addr interpreter,
                      struct prb_arena *arena, struct prb_folders *out)
{
    struct folding folding = {runtime, arena, out};
    uint64_t sysdict;
    prb_addr path = 0;
    if (PRB_FIELD_OF(runtime->py, interpreter, interp, sysdict, &sysdict, NULL) &&
        prb_dict_get(runtime->objects, sysdict, "path", &path, NULL) && path)
        prb_sequence_each(runtime->objects, path, add_folder, &folding, NULL);
}

void prb_reading_folders(struct prb_reading *reading)
{
    if (reading->raw->interpreter_count && reading->folders.count < PRB_FOLDERS_MAX)
        prb_folders_read(reading->runtime, reading->raw->interpreters[0].addr, &reading->box->arena,
                         &reading->folders);
}

/* Without the longest folder that it lies in; of others the last part. */
const char *prb_shorten(const struct prb_folders *folders, const char *filename)
{
    size_t best = 0;
    for (size_t i = 0; i < folders->count; i++) {
        const char *folder = folders->items[i];
        size_t n = strlen(folder);
        while (n > 1 && folder[n - 1] == '/')
            n--;
        if (n > best && strncmp(filename, folder, n) == 0 && filename[n] == '/')
            best = n + 1;
    }
    if (!best) {
        const char *slash = strrchr(filename, '/');
        best = slash && slash[1] ? (size_t)(slash + 1 - filename) : 0;
    }
    return filename + best;
}

/* ---- locals ---- */

struct collecting {
    const struct prb_reading *reading;
    struct prb_frame *frame;
    size_t cap;
};

static const char *type_of(const struct prb_reading *reading, const struct prb_variable *variable)
{
    PRB_AUTO(prb_buf) struct prb_buf text = {0};
    if (variable->is_number)
        return "int";
    if (!prb_object_type_name(reading->runtime->objects, variable->object, &text, NULL) ||
        !text.data)
        return NULL;
    return prb_arena_strdup(&reading->box->arena, text.data);
}

static const char *repr_of(const struct prb_reading *reading, const struct prb_variable *variable)
{
    struct prb_arena *arena = &reading->box->arena;
    if (variable->is_number)
        return prb_arena_printf(arena, "%lld", (long long)variable->number);
    PRB_AUTO(prb_buf) struct prb_buf text = {0};
    struct prb_repr_limits limits = {.characters = reading->options->repr_limit,
                                     .hide_secrets = reading->options->hide_secrets};
    struct prb_error err = {0};
    if (!prb_variable_repr(reading->runtime->objects, variable->name, variable->object, &limits,
                           &text, &err))
        return prb_arena_printf(arena, "<unreadable: %s>", err.text);
    return prb_arena_strndup(arena, text.data ? text.data : "", text.len);
}

static bool collect(void *context, const struct prb_variable *variable)
{
    struct collecting *c = context;
    struct prb_frame *frame = c->frame;
    if (frame->local_count >= c->cap) {
        size_t cap = c->cap ? c->cap * 2 : 16;
        struct prb_local *grown = prb_arena_alloc(&c->reading->box->arena, cap * sizeof *grown);
        if (!grown)
            return false;
        memcpy(grown, frame->locals, frame->local_count * sizeof *grown);
        frame->locals = grown;
        c->cap = cap;
    }
    frame->locals[frame->local_count++] = (struct prb_local){
        .name = prb_arena_strdup(&c->reading->box->arena, variable->name),
        .repr = repr_of(c->reading, variable),
        .type = type_of(c->reading, variable),
        .addr = variable->object,
        .arg = variable->arg,
    };
    return true;
}

static void fill_locals(const struct prb_reading *reading, const struct prb_raw_frame *raw,
                        const struct prb_code_object *code, struct prb_frame *frame)
{
    struct collecting collecting = {reading, frame, 8};
    frame->local_count = 0;
    frame->locals = prb_arena_alloc(&reading->box->arena, 8 * sizeof *frame->locals);
    if (frame->locals)
        prb_locals_each(reading->runtime->objects, raw, code, collect, &collecting, NULL);
}

/* ---- rows ---- */

struct prb_frame prb_reading_broken_row(struct prb_reading *reading, const struct prb_error *err)
{
    return (struct prb_frame){
        .kind = PRB_FRAME_BROKEN,
        .name = prb_arena_strdup(&reading->box->arena, err->text),
        .column = -1,
        .end_column = -1,
        .instruction = -1,
        .addr = err->addr,
    };
}

struct prb_frame prb_reading_broken_chain(struct prb_reading *reading,
                                          const struct prb_broken *broken)
{
    struct prb_error err;
    prb_broken_error(broken, &err);
    return prb_reading_broken_row(reading, &err);
}

/* What the rows of one code object have in common: threads often run the same functions. */
struct code_names {
    const char *name, *qualname, *filename, *short_filename;
    int instruction; /* at is the position of this one */
    struct prb_position at;
};

void prb_reading_deinit(struct prb_reading *reading) { prb_hash_map_deinit(&reading->named); }

static struct code_names *code_names_new(struct prb_reading *reading,
                                         const struct prb_code_object *code)
{
    struct prb_arena *arena = &reading->box->arena;
    struct code_names *names = prb_arena_alloc(arena, sizeof *names);
    if (!names || !(names->name = prb_arena_strdup(arena, code->name)) ||
        !(names->filename = prb_arena_strdup(arena, code->filename)))
        return NULL;
    names->qualname = code->qualname ? prb_arena_strdup(arena, code->qualname) : names->name;
    names->short_filename = prb_shorten(&reading->folders, names->filename);
    return names->qualname ? names : NULL;
}

/* NULL: out of memory. */
static const struct code_names *names_of(struct prb_reading *reading,
                                         const struct prb_code_object *code, int instruction)
{
    struct prb_hash_slot *slot = prb_hash_map_add(&reading->named, (uintptr_t)code);
    if (!slot)
        return NULL;
    struct code_names *names = slot->pointer;
    bool known = names;
    if (!known && !(names = slot->pointer = code_names_new(reading, code)))
        return NULL;
    if (!known || names->instruction != instruction) {
        names->instruction = instruction;
        names->at = prb_code_position(reading->runtime->py, code, instruction);
    }
    return names;
}

struct prb_frame prb_reading_python_row(struct prb_reading *reading,
                                        const struct prb_raw_frame *raw)
{
    struct prb_py *py = reading->runtime->py;
    struct prb_error err = {0};
    const struct prb_code_object *code =
        prb_code_get(py, raw->code, reading->options->locals, &err);
    if (!code && reading->options->locals)
        code = prb_code_get(py, raw->code, false, &err);
    if (!code)
        return prb_reading_broken_row(reading, &err);
    const struct code_names *names = names_of(reading, code, raw->instruction);
    if (!names) {
        prb_nomem(&err);
        return prb_reading_broken_row(reading, &err);
    }
    struct prb_frame row = {
        .kind = PRB_FRAME_PYTHON,
        .name = names->name,
        .qualname = names->qualname,
        .filename = names->filename,
        .short_filename = names->short_filename,
        .line = names->at.line,
        .column = names->at.column,
        .end_line = names->at.end_line,
        .end_column = names->at.end_column,
        .first_line = code->first_line,
        .addr = raw->frame,
        .code = raw->code,
        .instruction = raw->instruction,
        .is_entry = raw->entry,
        .is_shim_entry = raw->entry && PRB_IS(&py->layout, entry, SHIM),
    };
    if (reading->options->locals && code->variables) {
        (void)prb_objects_field(reading->runtime->objects, raw->frame, PRB_F_frame_globals,
                                &row.globals);
        fill_locals(reading, raw, code, &row);
    }
    return row;
}

struct prb_frame prb_reading_native_row(struct prb_reading *reading,
                                        const struct prb_native_frame *native)
{
    struct prb_arena *arena = &reading->box->arena;
    struct prb_frame row = {
        .kind = PRB_FRAME_NATIVE,
        .module = native->module ? prb_arena_strdup(arena, native->module->path) : NULL,
        .line = native->line,
        .end_line = native->line,
        .column = -1,
        .end_column = -1,
        .addr = native->cfa,
        .code = native->pc,
        .in_module = native->module ? native->pc - native->module->start : 0,
        .instruction = -1,
        .guessed = native->guessed,
    };
    row.name = native->symbol ? prb_arena_strdup(arena, native->symbol)
                              : prb_arena_printf(arena, "%#llx", (unsigned long long)native->pc);
    row.qualname = row.name;
    row.filename = native->file ? prb_arena_strdup(arena, native->file) : NULL;
    const char *path = row.filename ? row.filename : row.module;
    row.short_filename = path ? prb_base_name(path) : NULL;
    return row;
}

struct prb_frame *prb_reading_rows(struct prb_reading *reading, size_t count, struct prb_error *err)
{
    struct prb_frame *rows = prb_arena_alloc(&reading->box->arena, (count + 1) * sizeof *rows);
    return rows ? rows : PRB_NULL(prb_nomem(err));
}
