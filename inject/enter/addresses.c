/*
 * Addresses in the target: the functions that the stub calls, and the code in which a borrowed
 * thread must not have a frame.  They are computed from the target's own files and mappings, so its
 * C library may differ from ours.
 */
#include <string.h>

#include "arch/arch.h"
#include "base/file.h"
#include "inject/enter/steps.h"
#include "proc/elf_file.h"

/* A '*' at the end of the pattern stands for anything. */
static bool name_is(const char *name, const char *pattern)
{
    for (; *pattern && *pattern == *name; pattern++)
        name++;
    return *pattern == *name || (pattern[0] == '*' && pattern[1] == '\0');
}

bool prb_path_is(const char *path, const char *name) { return name_is(prb_base_name(path), name); }

static struct prb_module *module_named(struct prb_modules *modules, const char *const *names)
{
    for (; *names; names++)
        for (size_t i = 0; i < modules->count; i++)
            if (prb_path_is(modules->items[i].path, *names))
                return &modules->items[i];
    return NULL;
}

static const char *const libc_names[] = {"libc.so.6", "libc-2.*", NULL};
static const char *const libpthread_names[] = {"libpthread.so.0", "libpthread-2.*", NULL};
static const char *const libdl_names[] = {"libdl.so.2", "libdl-2.*", NULL};
static const char *const loader_names[] = {"ld-linux*", "ld-2.*", "ld.so*", "ld64.so*", NULL};

struct prb_module *prb_libc(struct prb_modules *modules)
{
    return module_named(modules, libc_names);
}

/* ---- is it Python ---- */

bool prb_is_python(struct prb_modules *modules)
{
    static const char *const names[] = {"libpython*", NULL};
    if (module_named(modules, names))
        return true;
    /* The executable is mapped first, or at a random address: try modules named like Python, then
     * the first one. */
    for (size_t i = 0; i < modules->count; i++) {
        struct prb_module *module = &modules->items[i];
        if (i > 0 && !prb_path_is(module->path, "python*") && !prb_path_is(module->path, "uwsgi*"))
            continue;
        struct prb_elf *elf = prb_modules_elf(modules, module, NULL);
        struct prb_symbol symbol;
        if (elf && prb_elf_symbol(elf, "PyEval_EvalCode", &symbol, NULL))
            return true;
    }
    return false;
}

/* ---- functions ---- */

static bool look_up(struct prb_modules *modules, struct prb_module *module, const char *name,
                    prb_addr *out)
{
    struct prb_elf *elf = module ? prb_modules_elf(modules, module, NULL) : NULL;
    struct prb_symbol symbol;
    if (!elf || !prb_elf_symbol(elf, name, &symbol, NULL))
        return false;
    *out = symbol.value + module->bias;
    return true;
}

struct libraries {
    struct prb_module *libc, *pthread, *dl, *loader;
};

static bool find_functions(struct prb_addresses *addresses, struct prb_modules *modules,
                           const struct libraries *in, struct prb_error *err)
{
    struct prb_module *const homes[] = {in->libc, in->pthread, in->dl};
    enum { NEEDED = 4, COUNT = 7 };
    static const char *const names[COUNT] = {
        "pthread_create", "pthread_self", "pthread_detach", "munmap", "dlopen", "dlsym", "dlerror"};
    prb_addr *const out[COUNT] = {
        &addresses->pthread_create, &addresses->pthread_self, &addresses->pthread_detach,
        &addresses->munmap,         &addresses->dlopen,       &addresses->dlsym,
        &addresses->dlerror,
    };
    size_t found = 0;
    for (size_t k = 0; k < sizeof homes / sizeof *homes && found < COUNT; k++) {
        struct prb_error why = {0};
        struct prb_elf *elf = homes[k] ? prb_modules_elf(modules, homes[k], &why) : NULL;
        struct prb_symbol symbols[COUNT];
        if (homes[k] == in->libc && !elf) {
            if (err)
                *err = why;
            return false;
        }
        if (elf && !prb_elf_symbols(elf, names, COUNT, symbols, err))
            return false;
        for (size_t i = 0; elf && i < COUNT; i++)
            if (symbols[i].name && !*out[i]) {
                *out[i] = symbols[i].value + homes[k]->bias;
                found++;
            }
    }
    for (size_t i = 0; i < NEEDED; i++)
        if (!*out[i])
            return prb_fail(err, PRB_UNSUPPORTED, "the target's C library %s has no %s",
                            in->libc->path, names[i]);
    if (addresses->dlopen && addresses->dlsym)
        return true;
    /* glibc before 2.34, in a program that did not load libdl. */
    addresses->private_dlopen = true;
    if (look_up(modules, in->libc, "__libc_dlopen_mode", &addresses->dlopen) &&
        look_up(modules, in->libc, "__libc_dlsym", &addresses->dlsym))
        return true;
    return prb_fail(err, PRB_UNSUPPORTED, "the target's C library %s has no dlopen",
                    in->libc->path);
}

/* ---- code to keep away from ---- */

struct gather {
    struct prb_addresses *addresses;
    size_t cap;
    struct prb_modules *modules;
};

static bool add(struct gather *gather, prb_addr start, prb_addr end, const char *what)
{
    struct prb_addresses *addresses = gather->addresses;
    if (end <= start)
        return true;
    if (!PRB_GROW(addresses->dangers, addresses->danger_count, gather->cap))
        return false;
    addresses->dangers[addresses->danger_count++] = (struct prb_danger){start, end, what, true};
    return true;
}

/* The next map of a module's code from addr on. */
static bool next_code(struct prb_proc *proc, const struct prb_module *module, prb_addr addr,
                      struct prb_map *out)
{
    return prb_proc_map_from(proc, addr, true, out) && out->start >= module->start &&
           out->end <= module->end;
}

static bool add_module(struct gather *gather, struct prb_proc *proc,
                       const struct prb_module *module, const char *what)
{
    struct prb_map map;
    bool good = true;
    for (prb_addr at = module->start; good && next_code(proc, module, at, &map); at = map.end)
        good = add(gather, map.start, map.end, what);
    return good;
}

/* Functions whose callers must not be borrowed. */
static const struct {
    const char *name, *what;
} functions[] = {
    {"pthread_create", "pthread_create"},
    {"pthread_exit", "the end of a thread"},
    {"pthread_join", "pthread_join"},
    {"pthread_timedjoin_np", "pthread_join"},
    {"pthread_clockjoin_np", "pthread_join"},
    {"pthread_tryjoin_np", "pthread_join"},
    {"pthread_detach", "pthread_detach"},
    {"pthread_cancel", "pthread_cancel"},
    {"fork", "fork"},
    {"vfork", "fork"},
    {"_Fork", "fork"},
    {"__fork", "fork"},
    {"posix_spawn", "fork"},
    {"posix_spawnp", "fork"},
    {"system", "fork"},
    {"popen", "fork"},
    {"exit", "the end of the process"},
    {"_exit", "the end of the process"},
    {"quick_exit", "the end of the process"},
    {"__cxa_finalize", "the end of the process"},
    {"atexit", "atexit"},
    {"on_exit", "atexit"},
    {"__cxa_atexit", "atexit"},
    {"__cxa_thread_atexit_impl", "atexit"},
    {"dlopen", "the loader"},
    {"dlclose", "the loader"},
    {"dlsym", "the loader"},
    {"dlvsym", "the loader"},
    {"dlmopen", "the loader"},
    {"dladdr", "the loader"},
    {"dladdr1", "the loader"},
    {"dlinfo", "the loader"},
    {"dlerror", "the loader"},
    {"dl_iterate_phdr", "the loader"},
    {"__libc_dlopen_mode", "the loader"},
    {"__libc_dlsym", "the loader"},
    {"__libc_dlclose", "the loader"},
};

static bool add_functions(struct gather *gather, struct prb_module *module)
{
    enum { COUNT = sizeof functions / sizeof *functions };
    struct prb_elf *elf = prb_modules_elf(gather->modules, module, NULL);
    const char *names[COUNT];
    struct prb_symbol symbols[COUNT];
    for (size_t i = 0; i < COUNT; i++)
        names[i] = functions[i].name;
    if (!elf)
        return true;
    if (!prb_elf_symbols(elf, names, COUNT, symbols, NULL))
        return false;
    for (size_t i = 0; i < COUNT; i++) {
        prb_addr start = symbols[i].value + module->bias;
        if (symbols[i].name && !add(gather, start, start + symbols[i].size, functions[i].what))
            return false;
    }
    return true;
}

/* ---- instructions in a module's code ---- */

/* Whether returns are checked against a shadow stack (CET), which we do not write. */
static bool has_shadow_stack(struct prb_proc *proc)
{
    PRB_AUTO(prb_buf) struct prb_buf text = {0};
    if (!prb_proc_text(proc, "status", &text, NULL))
        return false;
    const char *line = strstr(text.data, "\nx86_Thread_features:");
    const char *end = line ? strchr(line + 1, '\n') : NULL;
    return end && memmem(line, (size_t)(end - line), "shstk", 5);
}

#define PIECE (64u << 10)
#define TEXT_MAX (16u << 20)
#define CODE_MAX 16 /* bytes of what is searched for */

struct search {
    const uint8_t *code;
    size_t len;      /* 0: do not search */
    prb_addr *first; /* the first place, NULL: not wanted */
    bool handler;    /* a thread inside a signal handler has these places on its stack */
};

static bool is_there(struct prb_mem *mem, prb_addr at, const struct search *search)
{
    uint8_t code[CODE_MAX];
    return search->len <= sizeof code && prb_mem_read(mem, at, code, search->len, NULL) &&
           memcmp(code, search->code, search->len) == 0;
}

/* What begins in the first PIECE bytes. */
static bool search_piece(struct gather *gather, struct prb_mem *mem, const struct search *search,
                         const uint8_t *bytes, size_t len, prb_addr start)
{
    const uint8_t *at = bytes;
    size_t end = PIECE + search->len - 1 < len ? PIECE + search->len - 1 : len;
    for (; (at = memmem(at, end - (size_t)(at - bytes), search->code, search->len)); at++) {
        prb_addr place = start + (prb_addr)(at - bytes);
        if (place % prb_arch_host()->code_align)
            continue; /* data among the code */
        if (search->first && !*search->first && is_there(mem, place, search))
            *search->first = place;
        if (!search->handler && *search->first)
            return true;
        if (!search->handler)
            continue;
        if (!add(gather, place - 1, place + search->len, "a signal handler"))
            return false;
        gather->addresses->dangers[gather->addresses->danger_count - 1].called = false;
    }
    return true;
}

/* Where signal handlers return to; and in the C library, the instructions that we use.  The file is
 * searched: to read all of the code in memory would make it resident in the target. */
static bool search_code(struct gather *gather, struct prb_proc *proc, struct prb_module *module,
                        bool libc, struct prb_error *err)
{
    struct prb_addresses *addresses = gather->addresses;
    const struct prb_inject_arch *arch = addresses->arch;
    const struct prb_arch *host = prb_arch_host();
    bool by_return = libc && !has_shadow_stack(proc);
    const struct search searches[] = {
        {host->signal_return, host->signal_return_len, by_return ? &addresses->signal_return : NULL,
         true},
        {arch->syscall_code, libc ? arch->syscall_len : 0, &addresses->syscall_code, false},
        {arch->syscall_return_code, by_return ? arch->syscall_return_len : 0,
         &addresses->syscall_return, false},
    };
    struct prb_map map;
    struct prb_mem *mem = prb_proc_mem(proc, err);
    struct prb_elf *elf = mem ? prb_modules_elf(gather->modules, module, err) : NULL;
    PRB_AUTO_FREE uint8_t *piece = malloc(PIECE + CODE_MAX);
    if (!elf || !piece)
        return elf ? prb_nomem(err) : false;
    if (!next_code(proc, module, module->start, &map) || map.end - map.start > TEXT_MAX)
        return prb_fail(err, PRB_CORRUPT, "no code of %s is mapped", module->path);
    for (prb_addr at = map.start; at < map.end; at += PIECE) {
        size_t len = map.end - at < PIECE + CODE_MAX ? map.end - at : PIECE + CODE_MAX;
        if (prb_read_at(elf->fd, piece, len, map.offset + (at - map.start)) != len)
            return prb_fail(err, PRB_CORRUPT, "%s is shorter than what is mapped", module->path);
        for (size_t i = 0; i < sizeof searches / sizeof *searches; i++) {
            const struct search *search = &searches[i];
            bool known = search->first && *search->first && !search->handler;
            if (search->len && !known && !search_piece(gather, mem, search, piece, len, at))
                return prb_nomem(err);
        }
    }
    return true;
}

/* ---- the allocator ---- */

/* Exported functions of the allocator's object file. */
static const char *const allocator[] = {
    "malloc",           "free",           "calloc",         "realloc",         "memalign",
    "aligned_alloc",    "posix_memalign", "valloc",         "pvalloc",         "cfree",
    "malloc_*",         "mallopt",        "mallinfo*",      "mallwatch",       "__malloc_*",
    "__libc_malloc*",   "__libc_free",    "__libc_calloc",  "__libc_realloc",  "__libc_memalign",
    "__libc_valloc",    "__libc_pvalloc", "__libc_mallopt", "__libc_mallinfo", "__libc_freeres",
    "__posix_memalign", "__malloc",       "__free",         "__calloc",        "__realloc",
    "__memalign",       "__mallinfo",     "__mallopt",
};

static bool of_allocator(const char *name)
{
    for (size_t i = 0; i < sizeof allocator / sizeof *allocator; i++)
        if (name_is(name, allocator[i]))
            return true;
    return false;
}

static int by_value(const void *left, const void *right)
{
    const struct prb_symbol *a = left, *b = right;
    return a->value < b->value ? -1 : a->value > b->value;
}

/* The allocator's internals are local symbols, and old versions have no return address inside the
 * exported functions.  So each range reaches from the last other function before an exported one to
 * the first other function after it. */
static bool add_allocator(struct gather *gather, struct prb_module *libc, struct prb_error *err)
{
    struct prb_elf *elf = prb_modules_elf(gather->modules, libc, err);
    size_t count = 0;
    PRB_AUTO_FREE struct prb_symbol *exports = elf ? prb_elf_exports(elf, &count, err) : NULL;
    if (!exports)
        return false;
    qsort(exports, count, sizeof *exports, by_value);
    for (size_t i = 0; i < count; i++) {
        if (!of_allocator(exports[i].name))
            continue;
        size_t before = i, behind = i;
        while (before > 0 && of_allocator(exports[before - 1].name))
            before--;
        while (behind < count && of_allocator(exports[behind].name))
            behind++;
        prb_addr start =
            before ? exports[before - 1].value + exports[before - 1].size : exports[i].value;
        prb_addr end = behind < count ? exports[behind].value
                                      : exports[behind - 1].value + exports[behind - 1].size;
        if (!add(gather, start + libc->bias, end + libc->bias, "the allocator"))
            return prb_nomem(err);
        i = behind - 1;
    }
    return true;
}

/* Allocators that replace the C library's, whole: their locks may be anywhere in them. */
static const char *const allocators[] = {
    "libjemalloc*",  "libtcmalloc*", "libmimalloc*", "libsnmalloc*",  "librpmalloc*", "libhoard*",
    "libtbbmalloc*", "libscudo*",    "libasan*",     "liblsan*",      "libtsan*",     "libmsan*",
    "libefence*",    "libduma*",     "libmemray*",   "libheaptrack*", NULL,
};

static bool replaces_malloc(const struct prb_module *module)
{
    for (const char *const *name = allocators; *name; name++)
        if (prb_path_is(module->path, *name))
            return true;
    return false;
}

static int by_start(const void *left, const void *right)
{
    const struct prb_danger *a = left, *b = right;
    return a->start < b->start ? -1 : a->start > b->start;
}

/* Sort them, and merge those that overlap. */
static void put_in_order(struct prb_addresses *addresses)
{
    size_t kept = 0;
    qsort(addresses->dangers, addresses->danger_count, sizeof *addresses->dangers, by_start);
    for (size_t i = 0; i < addresses->danger_count; i++) {
        struct prb_danger *last = kept ? &addresses->dangers[kept - 1] : NULL;
        const struct prb_danger *now = &addresses->dangers[i];
        if (last && now->start < last->end) {
            last->end = now->end > last->end ? now->end : last->end;
            last->called = last->called && now->called;
        } else
            addresses->dangers[kept++] = *now;
    }
    addresses->danger_count = kept;
}

static bool gather_dangers(struct gather *gather, struct prb_proc *proc, const struct libraries *in,
                           struct prb_error *err)
{
    struct prb_module *const homes[] = {in->libc, in->pthread};
    if (!add_allocator(gather, in->libc, err))
        return false;
    for (size_t i = 0; i < sizeof homes / sizeof *homes; i++) {
        if (homes[i] && !add_functions(gather, homes[i]))
            return prb_nomem(err);
        if (homes[i] && !search_code(gather, proc, homes[i], homes[i] == in->libc, err))
            return false;
    }
    bool good = !in->dl || add_module(gather, proc, in->dl, "the loader");
    good = good && add_module(gather, proc, in->loader, "the loader");
    for (size_t i = 0; i < gather->modules->count && good; i++) {
        struct prb_module *module = &gather->modules->items[i];
        if (replaces_malloc(module))
            good = add_module(gather, proc, module, "the allocator");
        else if (prb_path_is(module->path, "libgcc_s*")) {
            prb_addr start;
            if (look_up(gather->modules, module, "__register_frame", &start))
                good = add(gather, start, start + 256, "the unwinder's tables");
        }
    }
    return good || prb_nomem(err);
}

const struct prb_danger *prb_danger_at(const struct prb_addresses *addresses, prb_addr addr)
{
    size_t low = 0, high = addresses->danger_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (addresses->dangers[middle].end < addr)
            low = middle + 1;
        else
            high = middle;
    }
    return low < addresses->danger_count && addresses->dangers[low].start < addr
               ? &addresses->dangers[low]
               : NULL;
}

/* ---- all ---- */

/* A probe that is loaded already: libprobe.so, a memory file, or our copy. */
static struct prb_module *probe_module(struct prb_modules *modules)
{
    static const char tail[] = "libprobe.so";
    for (size_t i = 0; i < modules->count; i++) {
        size_t len = strlen(modules->items[i].path);
        if (len >= sizeof tail - 1 &&
            strcmp(modules->items[i].path + len - (sizeof tail - 1), tail) == 0)
            return &modules->items[i];
    }
    return NULL;
}

bool prb_addresses_init(struct prb_addresses *out, struct prb_proc *proc,
                        struct prb_modules *modules, struct prb_error *err)
{
    PRB_AUTO(prb_addresses)
    struct prb_addresses addresses = {.arch = prb_inject_arch_find(prb_arch_host()->elf_machine)};
    struct libraries in = {
        .libc = prb_libc(modules),
        .pthread = module_named(modules, libpthread_names),
        .dl = module_named(modules, libdl_names),
        .loader = module_named(modules, loader_names),
    };
    if (!in.libc || !in.loader)
        return prb_fail(err, PRB_UNSUPPORTED, "no GNU C library is mapped in process %d",
                        (int)prb_proc_pid(proc));
    struct gather gather = {.addresses = &addresses, .modules = modules};
    if (!find_functions(&addresses, modules, &in, err) || !gather_dangers(&gather, proc, &in, err))
        return false;
    if (!addresses.syscall_code)
        return prb_fail(err, PRB_UNSUPPORTED, "%s has no system call instruction", in.libc->path);
    put_in_order(&addresses);
    look_up(modules, probe_module(modules), "prb_probe_start", &addresses.probe_start);
    *out = addresses;
    addresses = (struct prb_addresses){0};
    return true;
}

void prb_addresses_deinit(struct prb_addresses *addresses)
{
    free(addresses->dangers);
    *addresses = (struct prb_addresses){0};
}
