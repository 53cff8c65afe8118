/*
 * Modules: the maps of one file grouped, its ELF file opened on first use only (a training process
 * maps hundreds of files, and few of them are ever asked for).
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "proc/elf_file.h"
#include "proc/source.h"

/* Whether a map continues the module's last map of the file, or begins the file again. */
static bool continues(const struct prb_map *last, const struct prb_map *map)
{
    if (!last || !prb_map_same_file(map, last))
        return false;
    /* Small files have code and data in the same page, mapped twice. */
    return map->offset > last->offset || (map->offset == last->offset && map->writable);
}

/* A module that begins with this map; what it points to is its own. */
static bool begin(struct prb_modules *modules, size_t *cap, const struct prb_map *map)
{
    struct prb_map *first = prb_arena_alloc(&modules->arena, sizeof *first);
    const char *path = prb_arena_strdup(&modules->arena, map->path);
    if (!first || !path || !PRB_GROW(modules->items, modules->count, *cap))
        return false;
    *first = *map;
    first->path = path;
    modules->items[modules->count++] =
        (struct prb_module){.path = path, .start = map->start, .first = first};
    return true;
}

/* FNV-1a. */
static uint64_t sum_code(const struct prb_maps *maps)
{
    uint64_t sum = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < maps->count; i++) {
        const struct prb_map *map = &maps->items[i];
        const uint64_t words[] = {map->start, map->end, map->offset, map->inode};
        for (size_t k = 0; map->executable && map->inode && k < sizeof words / sizeof *words; k++)
            sum = (sum ^ words[k]) * UINT64_C(0x100000001b3);
    }
    return sum;
}

bool prb_modules_init(struct prb_modules *out, struct prb_proc *proc, struct prb_error *err)
{
    PRB_AUTO(prb_maps) struct prb_maps of_code = {0};
    bool asked = !proc->maps_read && prb_proc_ask_code_maps(proc, &of_code);
    const struct prb_maps *maps = asked ? &of_code : prb_proc_maps(proc, false, err);
    if (!maps)
        return false;
    PRB_AUTO(prb_modules) struct prb_modules modules = {.proc = proc, .code = sum_code(maps)};
    size_t cap = 0;
    const struct prb_map *last = NULL;
    bool has_code = true;
    for (size_t i = 0; i < maps->count; i++) {
        const struct prb_map *map = &maps->items[i];
        if (!map->inode)
            continue;
        if (!continues(last, map)) {
            /* A file without code is data: a font, a model's weights. */
            modules.count -= !has_code;
            if (!begin(&modules, &cap, map))
                return prb_nomem(err);
            has_code = false;
        }
        modules.items[modules.count - 1].end = map->end;
        has_code |= map->executable;
        last = map;
    }
    modules.count -= !has_code;
    *out = modules;
    modules = (struct prb_modules){0};
    return true;
}

void prb_modules_deinit(struct prb_modules *modules)
{
    for (size_t i = 0; i < modules->count; i++)
        prb_elf_free(modules->items[i].elf);
    free(modules->items);
    prb_arena_deinit(&modules->arena);
    *modules = (struct prb_modules){0};
}

struct prb_module *prb_modules_find(struct prb_modules *modules, prb_addr addr)
{
    size_t low = 0, high = modules->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (modules->items[middle].end <= addr)
            low = middle + 1;
        else
            high = middle;
    }
    return low < modules->count && modules->items[low].start <= addr ? &modules->items[low] : NULL;
}

struct prb_elf *prb_elf_open_debug(struct prb_proc *proc, struct prb_elf *elf)
{
    uint8_t id[64];
    char path[192] = "/usr/lib/debug/.build-id/";
    size_t n = prb_elf_build_id(elf, id), used = strlen(path);
    if (n < 2)
        return NULL;
    for (size_t i = 0; i < n; i++)
        used += (size_t)snprintf(path + used, sizeof path - used, i == 0 ? "%02x/" : "%02x", id[i]);
    snprintf(path + used, sizeof path - used, ".debug");
    int fd = prb_proc_open_path(proc, path);
    PRB_AUTO(prb_elf) struct prb_elf *debug = fd < 0 ? NULL : prb_elf_open(fd, path, NULL);
    uint8_t its[64];
    if (!debug || prb_elf_build_id(debug, its) != n || memcmp(id, its, n) != 0)
        return NULL;
    return PRB_STEAL(debug);
}

struct prb_elf *prb_modules_elf(struct prb_modules *modules, struct prb_module *module,
                                struct prb_error *err)
{
    if (module->elf)
        return module->elf;
    if (module->tried)
        return PRB_NULL(prb_fail(err, PRB_NOT_FOUND, "%s could not be opened", module->path));
    struct prb_error why = {0};
    int fd = prb_proc_open_map(modules->proc, module->first, &why);
    module->tried = why.sys != EMFILE && why.sys != ENFILE; /* another time there is a descriptor */
    if (fd < 0) {
        if (err)
            *err = why;
        return NULL;
    }
    PRB_AUTO(prb_elf) struct prb_elf *elf = prb_elf_open(fd, module->path, err);
    if (!elf)
        return NULL;
    const struct prb_map *first = module->first;
    if (!prb_elf_bias(elf, first->start, first->offset, first->executable, &module->bias))
        return PRB_NULL(
            prb_fail(err, PRB_CORRUPT, "no segment of %s covers its map", module->path));
    if (!prb_elf_of_type(elf, SHT_SYMTAB))
        prb_elf_add_debug(elf, prb_elf_open_debug(modules->proc, elf));
    return module->elf = PRB_STEAL(elf);
}
