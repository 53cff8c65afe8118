/*
 * Secrets of a target: its environment, as it was started with and as it is now, and its arguments.
 * The program has copies of them everywhere: they are sought in all that a file is to hold.
 */
#include "inspect/secrets.h"

#include <string.h>

#include "base/file.h"
#include "proc/source.h"
#include "proc/stat.h"
#include "py/object/reader.h"
#include "py/stack.h"

#define VARIABLES_MAX 4096
#define VARIABLE_MAX 131072 /* bytes, as execve(2) has it */
#define AT_ONCE 512         /* bytes of a variable that are read first */
/* ---- where ---- */

/* Two fields of /proc/PID/stat that follow each other: the first and last byte + 1 of a place. */
static bool place_of(struct prb_proc *proc, int field, prb_addr *start, prb_addr *end)
{
    struct prb_stat stat;
    if (!prb_stat_read(proc, "stat", &stat) || stat.count <= field)
        return false;
    *start = (prb_addr)stat.field[field];
    *end = (prb_addr)stat.field[field + 1];
    return true;
}

/* ---- what ---- */

struct finding {
    struct prb_hidden *out;
    const char *text;
};

static void add(void *context, struct prb_span span)
{
    const struct finding *finding = context;
    prb_hidden_add(finding->out, finding->text + span.at, span.len);
}

static void find_in(enum prb_secret_kind kind, const char *text, size_t len, struct prb_hidden *out)
{
    struct finding finding = {out, text};
    prb_secret_each(kind, text, len, add, &finding);
}

void prb_secrets_add_text(struct prb_hidden *out, const char *text)
{
    if (text)
        find_in(PRB_SECRET_TEXT, text, strlen(text), out);
}

/* The text of a str or bytes, by its repr: up to the first escape, or to where that was cut. */
static void add_local(struct prb_hidden *out, const char *repr)
{
    const char *open = repr + strcspn(repr, "'\"");
    size_t len = *open ? strcspn(open + 1, (const char[]){*open, '\\', '\0'}) : 0;
    if (open - repr <= 1 && len)
        prb_hidden_add(out, open + 1, len);
}

void prb_secrets_add_locals(struct prb_hidden *out, const struct prb_stacks *stacks)
{
    for (size_t i = 0; i < stacks->thread_count; i++)
        for (size_t k = 0; k < stacks->threads[i].frame_count; k++) {
            const struct prb_frame *frame = &stacks->threads[i].frames[k];
            for (size_t n = 0; frame->locals && n < frame->local_count; n++) {
                const struct prb_local *local = &frame->locals[n];
                if (local->name && local->repr && prb_secret_variable(local->name))
                    add_local(out, local->repr);
                prb_secrets_add_text(out, local->repr);
            }
        }
}

/* The variable `environ` of its C library: the executable has it where its linker copied it there.
 */
static bool find_environ(struct prb_target *copy, prb_addr *out)
{
    struct prb_modules *modules = &copy->modules;
    for (size_t i = 0; i < modules->count; i++) {
        const char *name = prb_base_name(modules->items[i].path);
        bool libc = strncmp(name, "libc.so", 7) == 0 || strncmp(name, "libc-2", 6) == 0 ||
                    strncmp(name, "ld-musl", 7) == 0;
        bool program =
            copy->info.executable && strcmp(modules->items[i].path, copy->info.executable) == 0;
        struct prb_elf *elf =
            libc || program ? prb_modules_elf(modules, &modules->items[i], NULL) : NULL;
        struct prb_symbol symbol;
        if (!elf || !prb_elf_symbol(elf, "environ", &symbol, NULL))
            continue;
        *out = modules->items[i].bias + symbol.value;
        if (program)
            return true;
    }
    return *out != 0;
}

static void read_variable(struct prb_mem *mem, prb_addr at, struct prb_buf *out)
{
    char first[AT_ONCE];
    size_t got = prb_mem_read_some(mem, at, first, sizeof first), len = strnlen(first, got);
    prb_buf_add(out, first, len);
    if (got == sizeof first && len == got) {
        char *rest = prb_buf_reserve(out, VARIABLE_MAX);
        got = rest ? prb_mem_read_some(mem, at + len, rest, VARIABLE_MAX) : 0;
        out->len += strnlen(rest, got);
    }
    prb_buf_addc(out, '\0');
}

/* As it is now, read past the recording, so that it does not get into the file. */
static void read_environ(struct prb_target *copy, struct prb_buf *out)
{
    struct prb_mem *mem = prb_proc_mem(copy->proc, NULL);
    prb_addr place = 0, list, variables[VARIABLES_MAX];
    if (!mem || !find_environ(copy, &place) || !prb_mem_u64(mem, place, &list, NULL) || !list)
        return;
    size_t count = prb_mem_read_some(mem, list, variables, sizeof variables) / sizeof *variables;
    for (size_t i = 0; i < count && variables[i]; i++)
        read_variable(mem, variables[i], out);
}

/* ---- keys of multiprocessing: process.authkey, of Lib/multiprocessing/process.py ---- */

#define KEY_MAX 4096 /* bytes of a key */

static bool find_key(const struct prb_runtime *runtime, prb_addr interpreter, struct prb_buf *out)
{
    struct prb_objects *objects = runtime->objects;
    struct prb_mem *mem = prb_objects_py(objects)->mem;
    prb_addr process = 0, config = 0, key = 0, data;
    uint64_t length;
    char *bytes;
    if (!prb_module_get(objects, interpreter, "multiprocessing.process", "_current_process",
                        &process, NULL) ||
        !process || !prb_attribute_get(objects, process, "_config", &config, NULL) || !config ||
        !prb_dict_get(objects, config, "authkey", &key, NULL) || !key ||
        prb_object_kind(objects, key, NULL) != PRB_OBJ_BYTES ||
        !prb_bytes_open(objects, key, PRB_OBJ_BYTES, &data, &length, NULL) || length > KEY_MAX ||
        !(bytes = prb_buf_reserve(out, length)))
        return false;
    out->len += prb_mem_read_some(mem, data, bytes, length);
    return out->len == length;
}

static void find_keys(const struct prb_runtime *runtime, struct prb_hidden *out)
{
    struct prb_py *py = runtime->py;
    uint64_t interpreter = 0;
    prb_objects_clear(runtime->objects);
    if (!prb_mem_u64(py->mem, py->interpreters, &interpreter, NULL))
        return;
    for (int i = 0; interpreter && i < PRB_INTERPRETERS_MAX; i++) {
        PRB_AUTO(prb_buf) struct prb_buf key = {0};
        if (find_key(runtime, interpreter, &key))
            prb_hidden_add(out, key.data, key.len);
        if (!PRB_FIELD_OF(py, interpreter, interp, next, &interpreter, NULL))
            return;
    }
}

void prb_secrets_find(struct prb_target *copy, struct prb_hidden *out)
{
    PRB_AUTO(prb_buf) struct prb_buf text = {0}, now = {0}, arguments = {0};
    if (prb_proc_text(copy->proc, "environ", &text, NULL) && text.data)
        find_in(PRB_SECRET_ENVIRONMENT, text.data, text.len, out);
    read_environ(copy, &now);
    if (now.data)
        find_in(PRB_SECRET_ENVIRONMENT, now.data, now.len, out);
    if (prb_proc_text(copy->proc, "cmdline", &arguments, NULL) && arguments.data)
        find_in(PRB_SECRET_ARGUMENTS, arguments.data, arguments.len, out);
    for (size_t i = 0; i < copy->runtime_count; i++)
        find_keys(&copy->runtimes[i], out);
}

/* ---- overwriting ---- */

struct blanking {
    struct prb_mem *record;
    prb_addr start, end;
};

static void blank(void *context, struct prb_span span)
{
    const struct blanking *place = context;
    if (span.at + span.len <= place->end - place->start)
        prb_mem_record_blank(place->record, place->start + span.at,
                             place->start + span.at + span.len);
}

/* Short ones, too, where the kernel put them. */
static void blank_places(struct prb_target *copy)
{
    struct blanking place = {.record = copy->mem};
    prb_addr start, end;
    if (place_of(copy->proc, PRB_STAT_ENV_START, &start, &end))
        prb_mem_record_blank(copy->mem, start, end);
    const struct prb_proc_text *arguments = prb_proc_saved_text(copy->proc, "cmdline");
    if (arguments && arguments->text.len &&
        place_of(copy->proc, PRB_STAT_ARG_START, &place.start, &place.end))
        prb_secret_each(PRB_SECRET_ARGUMENTS, arguments->text.data, arguments->text.len, blank,
                        &place);
}

static bool mask_text(struct prb_proc *proc, const char *name, enum prb_secret_kind kind)
{
    PRB_AUTO(prb_buf) struct prb_buf masked = {0};
    const struct prb_proc_text *kept = prb_proc_saved_text(proc, name);
    if (!kept || !kept->text.len)
        return true;
    prb_secret_mask(kind, kept->text.data, kept->text.len, &masked);
    return prb_buf_ok(&masked) && prb_proc_save_text(proc, name, masked.data, masked.len);
}

/* Texts of the program; those of the kernel, which parsers read, hold none. */
static bool is_of_program(const char *name)
{
    return strcmp(name, "environ") == 0 || strcmp(name, "cmdline") == 0 ||
           strcmp(name, "probing/crash") == 0;
}

bool prb_secrets_hide(struct prb_target *copy, struct prb_hidden *secrets, struct prb_error *err)
{
    struct prb_proc *proc = copy->proc;
    blank_places(copy);
    if (!mask_text(proc, "environ", PRB_SECRET_ENVIRONMENT) ||
        !mask_text(proc, "cmdline", PRB_SECRET_ARGUMENTS) || !prb_hidden_record(secrets, copy->mem))
        return prb_nomem(err);
    for (size_t i = 0; i < proc->text_count; i++)
        if (is_of_program(proc->texts[i].name) && proc->texts[i].text.len)
            prb_hidden_apply(secrets, proc->texts[i].text.data, proc->texts[i].text.len);
    return true;
}
