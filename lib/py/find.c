/*
 * Finding CPython in a process: where its runtime state lies, which version it is, which layout
 * fits.
 *
 * By symbol, by section, by the cookie of its own offsets table, in the modules whose names say
 * python first, then in all.  Never by running the target's binary.  A result counts only when the
 * interpreter's own back pointers agree.
 */
#include <string.h>
#include <time.h>

#include "py/code.h"
#include "py/object/object.h"

#define RUNTIMES_MAX 8
#define SCAN_BYTES_MAX (8u << 20) /* of writable file pages of one module, for the cookie */
#define CHECK_THREADS 3
#define LIST_TRIES 32
#define CHECK_CHAIN_MAX 65536
/* An interpreter that is starting has no thread state yet for some milliseconds. */
#define START_TRIES 40
#define START_PAUSE_NS 5000000

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* ---- one module ---- */

static bool symbol_address(struct prb_elf *elf, const struct prb_module *module, const char *name,
                           prb_addr *out)
{
    struct prb_symbol symbol;
    if (!prb_elf_symbol(elf, name, &symbol, NULL))
        return false;
    *out = symbol.value + module->bias;
    return true;
}

/* Stripped and hidden: the table of 3.13+ begins with a cookie, in writable pages of the file. */
static bool scan_for_cookie(struct prb_modules *modules, const struct prb_module *module,
                            struct prb_mem *mem, prb_addr *out)
{
    static const char cookie[8] = "xdebugpy";
    const struct prb_maps *maps = prb_proc_maps(modules->proc, false, NULL);
    PRB_AUTO_FREE uint8_t *page = malloc(65536);
    size_t budget = SCAN_BYTES_MAX;
    for (size_t i = 0; maps && page && i < maps->count; i++) {
        const struct prb_map *map = &maps->items[i];
        if (!map->writable || !prb_map_same_file(map, module->first))
            continue;
        for (prb_addr at = map->start; at < map->end && budget; at += 65536) {
            size_t got = prb_mem_read_some(mem, at, page, 65536);
            budget -= budget < 65536 ? budget : 65536;
            for (size_t k = 0; k + 8 <= got; k += 8)
                if (memcmp(page + k, cookie, 8) == 0) {
                    *out = at + k;
                    return true;
                }
        }
    }
    return false;
}

/* 3.6 without a symbol table: PyInterpreterState_Head() is one load of the word we want (x86-64:
 * mov rax, [rip + rel]). */
static bool head_from_function(struct prb_elf *elf, const struct prb_module *module,
                               struct prb_mem *mem, prb_addr *out)
{
    static const uint8_t load[3] = {0x48, 0x8b, 0x05}, endbr64[4] = {0xf3, 0x0f, 0x1e, 0xfa};
    prb_addr function;
    uint8_t code[16];
    if (!symbol_address(elf, module, "PyInterpreterState_Head", &function) ||
        !prb_mem_read(mem, function, code, sizeof code, NULL))
        return false;
    size_t at = memcmp(code, endbr64, 4) == 0 ? 4 : 0;
    if (memcmp(code + at, load, 3) != 0 || code[at + 7] != 0xc3)
        return false;
    int32_t relative;
    memcpy(&relative, code + at + 3, 4);
    *out = function + at + 7 + (prb_addr)(int64_t)relative;
    return true;
}

static void find_static_gil(struct prb_elf *elf, struct prb_py *py)
{
    enum { COND_SIZE = 48 }; /* sizeof(pthread_cond_t), glibc and musl */
    symbol_address(elf, py->module, "_PyThreadState_Current", &py->tstate_current);
    if (symbol_address(elf, py->module, "gil_cond", &py->gil_static))
        py->gil_static_end = py->gil_static + COND_SIZE;
    symbol_address(elf, py->module, "gil_last_holder", &py->gil_last_holder);
    symbol_address(elf, py->module, "gil_switch_number", &py->gil_switch_number);
    symbol_address(elf, py->module, "_PyGC_generation0", &py->gc_generation0);
}

/* Where the state of the interpreter in this module lies by what its file says: runtime, or (≤3.6)
 * the list head alone. */
static bool locate_by_file(struct prb_modules *modules, struct prb_module *module,
                           struct prb_mem *mem, struct prb_py *py, const char **how,
                           struct prb_error *err)
{
    struct prb_elf *elf = prb_modules_elf(modules, module, err);
    uint64_t addr, size;
    if (!elf && err && prb_error_is_our_limit(err->sys))
        return false;
    if (elf && symbol_address(elf, module, "_PyRuntime", &py->runtime)) {
        *how = "symbol _PyRuntime";
        return true;
    }
    if (elf && prb_elf_section(elf, ".PyRuntime", &addr, &size)) {
        py->runtime = addr + module->bias;
        *how = "section .PyRuntime";
        return true;
    }
    if (elf && symbol_address(elf, module, "interp_head", &py->interpreters)) {
        find_static_gil(elf, py);
        *how = "symbol interp_head";
        return true;
    }
    if (elf && head_from_function(elf, module, mem, &py->interpreters)) {
        find_static_gil(elf, py);
        *how = "PyInterpreterState_Head";
        return true;
    }
    return prb_fail(err, PRB_NOT_PYTHON, "no interpreter state in %s", module->path);
}

/* ---- version ---- */

static bool stated_version(struct prb_modules *modules, struct prb_py *py, bool *free_threaded,
                           const char **how)
{
    *free_threaded = false;
    if (py->runtime &&
        prb_debug_offsets_head(py->mem, py->runtime, &py->hexversion, free_threaded, NULL)) {
        *how = "debug offsets";
        return true;
    }
    struct prb_elf *elf = prb_modules_elf(modules, py->module, NULL);
    prb_addr at;
    if (elf && symbol_address(elf, py->module, "Py_Version", &at) &&
        prb_mem_u32(py->mem, at, &py->hexversion, NULL) && py->hexversion >> 24 == 3) {
        *how = "Py_Version";
        return true;
    }
    return false;
}

/* Addresses that follow from the runtime's and the layout. */
static void place(struct prb_py *py)
{
    const struct prb_layout *layout = &py->layout;
    if (!py->runtime)
        return;
    if (PRB_HAS(layout, runtime, interpreters_head))
        py->interpreters = py->runtime + (prb_addr)PRB_OFF(layout, runtime, interpreters_head);
    if (PRB_HAS(layout, runtime, tstate_current))
        py->tstate_current = py->runtime + (prb_addr)PRB_OFF(layout, runtime, tstate_current);
}

/* ---- belief ---- */

/* Whether the thread states of an interpreter point back to it; how many were checked. */
static bool threads_agree_now(struct prb_py *py, prb_addr interp, unsigned *checked,
                              struct prb_error *err)
{
    uint64_t tstate = 0, back;
    if (!PRB_FIELD_OF(py, interp, interp, threads_head, &tstate, err))
        return false;
    for (unsigned i = 0; tstate && i < CHECK_THREADS; i++) {
        if (!PRB_FIELD_OF(py, tstate, thread, interp, &back, err))
            return false;
        if (back != interp)
            return prb_fail(err, PRB_CORRUPT, "thread state %#llx belongs to another interpreter",
                            (unsigned long long)tstate);
        ++*checked;
        if (!PRB_FIELD_OF(py, tstate, thread, next, &tstate, err))
            return false;
    }
    return true;
}

/* The same, tried again as long as the list's head changes: threads begin and end meanwhile. */
static bool threads_agree(struct prb_py *py, prb_addr interp, unsigned *checked,
                          struct prb_error *err)
{
    uint64_t before = 0, after = 0;
    if (!PRB_FIELD_OF(py, interp, interp, threads_head, &before, err))
        return false;
    for (int tries = 0;; tries++) {
        unsigned seen = 0;
        if (threads_agree_now(py, interp, &seen, err)) {
            *checked += seen;
            return true;
        }
        if (tries == LIST_TRIES || !PRB_FIELD_OF(py, interp, interp, threads_head, &after, NULL) ||
            (after == before && tries > 2))
            return false;
        before = after;
    }
}

/* Follows the interpreter list.  True with *checked 0: all pointers are good, but no thread has
 * begun (or all ended). */
static bool believe(struct prb_py *py, unsigned *checked, prb_addr *main_out, struct prb_error *err)
{
    *checked = 0;
    *main_out = 0;
    uint64_t interp = 0;
    if (!prb_mem_u64(py->mem, py->interpreters, &interp, err))
        return false;
    for (size_t i = 0; interp && i < CHECK_CHAIN_MAX; i++) {
        if (!threads_agree(py, interp, checked, err))
            return false;
        *main_out = interp; /* the list runs from the newest to the main one */
        if (!PRB_FIELD_OF(py, interp, interp, next, &interp, err))
            return false;
        if (interp == *main_out)
            return prb_fail(err, PRB_CORRUPT, "the interpreter list loops");
    }
    return true;
}

/* sys.hexversion, where no symbol gives the version: reading it needs a layout of about the right
 * kind, and so proves the layout. */
static bool asked_version(struct prb_py *py, prb_addr interp, uint32_t *out)
{
    uint64_t sysdict;
    prb_addr value = 0;
    int64_t number = 0;
    PRB_AUTO(prb_objects) struct prb_objects *objects = prb_objects_new(py, NULL);
    if (!objects || !PRB_FIELD_OF(py, interp, interp, sysdict, &sysdict, NULL) ||
        !prb_dict_get(objects, sysdict, "hexversion", &value, NULL) || !value ||
        !prb_object_int(objects, value, &number, NULL) || number >> 24 != 3)
        return false;
    *out = (uint32_t)number;
    return true;
}

/* The version is not known: try the layouts of the versions that do not publish it, and check each
 * against the interpreter's own state. */
static bool guess_version(struct prb_py *py, const char **how, struct prb_error *err)
{
    static const uint32_t silent[] = {0x030a0df0, 0x030912f0, 0x030812f0, 0x030710f0,
                                      0x03060ff0, 0x03050af0, 0x03040af0};
    for (size_t i = 0; i < sizeof silent / sizeof *silent; i++) {
        struct prb_py attempt = *py;
        unsigned checked;
        prb_addr main_interp;
        uint32_t found;
        if (!prb_layout_find(silent[i], false, &attempt.layout, NULL) ||
            PRB_HAS(&attempt.layout, runtime, interpreters_head) != (py->runtime != 0))
            continue;
        place(&attempt);
        if (!believe(&attempt, &checked, &main_interp, NULL) || !checked ||
            !asked_version(&attempt, main_interp, &found) || found >> 16 != silent[i] >> 16)
            continue;
        py->hexversion = found;
        *how = "sys.hexversion";
        return true;
    }
    const char *name = base_name(py->module->path);
    const char *digits = strpbrk(name, "0123456789");
    if (digits && strncmp(digits, "2.", 2) == 0)
        return prb_fail(err, PRB_UNSUPPORTED, "CPython %.3s is too old: 3.4 and newer are known",
                        digits);
    return prb_fail(err, PRB_UNSUPPORTED, "an interpreter in %s whose version cannot be found",
                    name);
}

static void version_text(uint32_t hexversion, char out[24])
{
    static const char level[16] = {[0xa] = 'a', [0xb] = 'b', [0xc] = 'c'};
    unsigned kind = hexversion >> 4 & 15;
    int n = snprintf(out, 24, "%u.%u.%u", hexversion >> 24, hexversion >> 16 & 255,
                     hexversion >> 8 & 255);
    if (level[kind])
        snprintf(out + n, 24 - (size_t)n, "%s%u",
                 kind == 0xc   ? "rc"
                 : kind == 0xb ? "b"
                               : "a",
                 hexversion & 15);
}

static void pause_for_start(void)
{
    struct timespec pause = {0, START_PAUSE_NS};
    nanosleep(&pause, NULL);
}

/* The layout of a runtime that was found, and the checks that prove it. */
static bool settle(struct prb_modules *modules, struct prb_py *py, const char *located, bool live,
                   struct prb_error *err)
{
    bool free_threaded = false;
    const char *told = NULL;
    unsigned checked = 0, agreed = 0, differed = 0, refused = 0;
    prb_addr main_interp;
    if (!stated_version(modules, py, &free_threaded, &told))
        for (int tries = 0;; tries++) {
            if (guess_version(py, &told, err))
                break;
            if (!live || tries >= START_TRIES)
                return false;
            pause_for_start();
        }
    if (!prb_layout_find(py->hexversion, free_threaded, &py->layout, err))
        return false;
    bool own_table = PRB_HAS(&py->layout, runtime, debug_offsets);
    if (own_table && !prb_debug_offsets_apply(py->mem, py->runtime, &py->layout, &agreed, &differed,
                                              &refused, err))
        return false;
    place(py);
    for (int tries = 0;; tries++) {
        if (!believe(py, &checked, &main_interp, err))
            return prb_error_prefix(err, "layout %s does not fit this interpreter",
                                    py->layout.name);
        if (checked || !live || tries >= START_TRIES)
            break;
        pause_for_start();
    }
    char version[24], offsets[80];
    version_text(py->hexversion, version);
    snprintf(offsets, sizeof offsets,
             own_table ? ", its own table: %u offsets agree, %u differ" : "", agreed, differed);
    snprintf(py->origin, sizeof py->origin,
             "CPython %s (%s, %s in %s); layout %s%s; checked on %u thread%s", version, told,
             located, base_name(py->module->path), py->layout.name, offsets, checked,
             checked == 1 ? "" : "s");
    if (!checked)
        return prb_fail(err, PRB_NOT_PYTHON, "%s is mapped, but no interpreter is running in it",
                        base_name(py->module->path));
    return true;
}

/* ---- all modules ---- */

/* "libpython3.11.so.1.0", "python3.11"; not the many extensions called "….cpython-311-….so". */
static bool named_python(const struct prb_module *module)
{
    const char *name = base_name(module->path);
    return strncmp(name, "python", 6) == 0 || strncmp(name, "libpython", 9) == 0;
}

struct search {
    struct prb_modules *modules;
    struct prb_mem *mem;
    struct prb_py *found;
    size_t count;
    struct prb_error first; /* why the first one that was found was not taken */
};

static bool locate(struct search *search, struct prb_module *module, bool scan, struct prb_py *py,
                   const char **how, struct prb_error *err)
{
    py->module = module;
    py->mem = search->mem;
    if (!scan)
        return locate_by_file(search->modules, module, search->mem, py, how, err);
    *how = "debug offsets cookie";
    return scan_for_cookie(search->modules, module, search->mem, &py->runtime) ||
           prb_fail(err, PRB_NOT_PYTHON, "no interpreter state in %s", module->path);
}

static void look_into(struct search *search, struct prb_module *module, bool scan)
{
    struct prb_py py = {0};
    struct prb_error err = {0};
    const char *located = NULL;
    if (search->count >= RUNTIMES_MAX)
        return;
    if (!locate(search, module, scan, &py, &located, &err)) {
        if (err.code != PRB_NOT_PYTHON && err.code != PRB_CORRUPT && !search->first.code)
            search->first = err;
        return;
    }
    struct prb_proc *proc = search->modules->proc;
    /* What a look-up by hash reads would not be enough for who walks the same dict in a file. */
    py.by_hash = prb_proc_live(proc) && !prb_proc_records(proc);
    if (settle(search->modules, &py, located, prb_proc_live(proc), &err))
        search->found[search->count++] = py;
    else if (!search->first.code || search->first.code == PRB_NOT_PYTHON)
        search->first = err;
}

/* First the files that are called python and the lowest mapping (the executable), then all others,
 * then the cookie in their data. */
static void look_everywhere(struct search *search)
{
    enum { LIKELY, OTHERS, SCAN, PASSES };
    for (int pass = 0; pass < PASSES && search->count == 0 && !search->first.code; pass++)
        for (size_t i = 0; i < search->modules->count; i++) {
            struct prb_module *module = &search->modules->items[i];
            bool likely = named_python(module) || i == 0;
            if (pass != SCAN && likely != (pass == LIKELY))
                continue;
            look_into(search, module, pass == SCAN);
        }
}

/* Of a core: the missing files by which an interpreter could be recognized. */
static bool not_found(struct search *search, struct prb_error *err)
{
    struct prb_modules *modules = search->modules;
    char missing[200] = "";
    size_t used = 0;
    for (size_t i = 0; i < modules->count && !prb_proc_exists(modules->proc); i++) {
        struct prb_module *module = &modules->items[i];
        if ((named_python(module) || i == 0) && used < sizeof missing &&
            !prb_modules_elf(modules, module, NULL))
            used += (size_t)snprintf(missing + used, sizeof missing - used, "%s%s",
                                     used ? ", " : "", base_name(module->path));
    }
    if (!used)
        return prb_fail(err, PRB_NOT_PYTHON, "no CPython in process %d",
                        (int)prb_proc_pid(modules->proc));
    prb_fail(err, PRB_NOT_FOUND, "CPython cannot be found in the core of process %d without its %s",
             (int)prb_proc_pid(modules->proc), missing);
    return prb_error_remedy(err, "Name the folder that holds the process's files with --sysroot, "
                                 "or its executable with --exe");
}

bool prb_py_find(struct prb_modules *modules, struct prb_mem *mem, struct prb_py **out,
                 size_t *count_out, struct prb_error *err)
{
    struct search search = {.modules = modules, .mem = mem};
    search.found = calloc(RUNTIMES_MAX, sizeof *search.found);
    if (!search.found)
        return prb_nomem(err);
    look_everywhere(&search);
    if (search.count == 0) {
        free(search.found);
        if (search.first.code) {
            if (err)
                *err = search.first;
            return false;
        }
        return not_found(&search, err);
    }
    *out = search.found;
    *count_out = search.count;
    return true;
}

prb_addr prb_py_hash_secret(struct prb_py *py)
{
    struct prb_elf *elf = py->by_hash && py->module ? py->module->elf : NULL;
    py->by_hash = false; /* asked once */
    if (elf)
        (void)symbol_address(elf, py->module, "_Py_HashSecret", &py->hash_secret);
    return py->hash_secret;
}

void prb_py_free(struct prb_py *runtimes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        prb_code_cache_free(runtimes[i].codes);
    free(runtimes);
}
