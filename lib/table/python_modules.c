/* python.modules: sys.modules of every interpreter. */
#include <string.h>

#include "inspect/target.h"
#include "sql/table.h"

#define TEXT_MAX 4096 /* characters of a name or path */

static const struct prb_column columns[] = {
    {"interpreter", PRB_INTEGER, "id", "whose sys.modules; 0: the main one"},
    {"name", PRB_TEXT, "", "key in sys.modules"},
    {"file", PRB_TEXT, "", "__file__; NULL: built in"},
    {"package", PRB_TEXT, "", "__package__"},
    {"version", PRB_TEXT, "", "__version__ of a top-level module, if it is a string"},
    {"type", PRB_TEXT, "", "module, or the type of the object that is there instead"},
    {"address", PRB_INTEGER, "addr", "of the object"},
    {0},
};

struct walk {
    struct prb_rows *rows;
    size_t count;
    const struct prb_runtime *runtime;
    int64_t interpreter;
};

/* ---- one module's own names ---- */

enum { FILE_NAME, PACKAGE, VERSION, COUNT };
static const char *const attributes[COUNT] = {"__file__", "__package__", "__version__"};

struct found {
    struct prb_objects *objects;
    int wanted; /* how many of the attributes */
    int seen;
    struct prb_buf text[COUNT]; /* data NULL: not found, or no text */
};

static void found_deinit(struct found *found)
{
    for (int i = 0; i < COUNT; i++)
        prb_buf_deinit(&found->text[i]);
}
PRB_DEFINE_AUTO(found, struct found, found_deinit)

static bool look_at(void *context, prb_addr key, prb_addr value)
{
    struct found *found = context;
    PRB_AUTO(prb_buf) struct prb_buf name = {0};
    if (!prb_object_str(found->objects, key, 16, &name, NULL) || !name.data)
        return true;
    for (int i = 0; i < found->wanted; i++)
        if (strcmp(attributes[i], name.data) == 0) {
            found->seen++;
            if (prb_object_str(found->objects, value, TEXT_MAX, &found->text[i], NULL))
                prb_buf_adds(&found->text[i], ""); /* an empty text is a text */
            else
                prb_buf_deinit(&found->text[i]);
        }
    return found->seen < found->wanted;
}

static void read_attributes(const struct walk *walk, const char *name, prb_addr module,
                            struct found *found)
{
    uint64_t dict;
    bool version = prb_rows_wants(walk->rows, "version") && !strchr(name, '.');
    bool others = prb_rows_wants(walk->rows, "file") || prb_rows_wants(walk->rows, "package");
    found->objects = walk->runtime->objects;
    found->wanted = version ? COUNT : others ? VERSION : 0;
    if (found->wanted && prb_object_kind(found->objects, module, NULL) == PRB_OBJ_MODULE &&
        PRB_FIELD_OF(walk->runtime->py, module, module, dict, &dict, NULL) && dict)
        prb_dict_each(found->objects, dict, look_at, found, NULL);
}

/* ---- sys.modules ---- */

static bool add_module(void *context, prb_addr key, prb_addr module)
{
    struct walk *walk = context;
    struct prb_rows *rows = walk->rows;
    PRB_AUTO(prb_buf) struct prb_buf name = {0}, type = {0};
    PRB_AUTO(found) struct found found = {0};
    if (!prb_object_str(walk->runtime->objects, key, TEXT_MAX, &name, NULL) || !name.data)
        return true; /* no text: nothing that import puts there */
    read_attributes(walk, name.data, module, &found);
    if (prb_rows_wants(rows, "type"))
        prb_object_type_name(walk->runtime->objects, module, &type, NULL);
    walk->count++;
    prb_row_begin(rows);
    prb_row_int(rows, walk->interpreter);
    prb_row_text(rows, name.data);
    for (int i = 0; i < COUNT; i++)
        prb_row_text(rows, found.text[i].data);
    prb_row_text(rows, type.data);
    prb_row_int(rows, (int64_t)module);
    return true;
}

static bool fill_runtime(struct prb_rows *rows, const struct prb_runtime *runtime,
                         struct prb_error *err)
{
    const struct prb_raw_stacks *raw = prb_sampler_last(runtime->sampler);
    prb_objects_clear(runtime->objects);
    for (size_t i = 0; i < raw->interpreter_count; i++) {
        struct walk walk = {
            .rows = rows, .runtime = runtime, .interpreter = raw->interpreters[i].id};
        uint64_t modules;
        if (!PRB_FIELD_OF(runtime->py, raw->interpreters[i].addr, interp, modules, &modules, err))
            return false;
        if (!modules || prb_dict_each(runtime->objects, modules, add_module, &walk, err))
            continue;
        if (!walk.count)
            return prb_error_prefix(err, "sys.modules of interpreter %lld",
                                    (long long)walk.interpreter);
        prb_rows_warn(rows, "sys.modules changed while it was read: some modules are missing");
    }
    return true;
}

static bool fill(struct prb_rows *rows, struct prb_error *err)
{
    struct prb_target *target = prb_rows_target(rows);
    if (!prb_rows_stacks(rows,
                         err)) /* which interpreters there are, as the other tables see them */
        return false;
    for (size_t i = 0; i < target->runtime_count; i++)
        if (!fill_runtime(rows, &target->runtimes[i], err))
            return false;
    return prb_proc_check(target->proc, err);
}

const struct prb_table prb_table_python_modules = {
    .schema = "python",
    .name = "modules",
    .doc = "the modules that are imported",
    .columns = columns,
    .needs_target = true,
    .fill = fill,
};
