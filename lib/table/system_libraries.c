/* system.libraries: a row for each file of code that is mapped. */
#include <string.h>

#include "inspect/target.h"
#include "proc/elf.h"
#include "sql/table.h"

static const struct prb_column columns[] = {
    {"name", PRB_TEXT, "", "the file's name without its folder"},
    {"path", PRB_TEXT, "", "as the process sees it"},
    {"version", PRB_TEXT, "", "the part of the name after .so."},
    {"start", PRB_INTEGER, "addr", "first byte of its first map"},
    {"end", PRB_INTEGER, "addr", "behind its last map"},
    {"size", PRB_INTEGER, "bytes", "of its maps"},
    {"build_id", PRB_TEXT, "", "GNU build id, hexadecimal; NULL: none, or the file cannot be read"},
    {"deleted", PRB_INTEGER, "", "1: the file is gone from its path, or was replaced"},
    {0},
};

/* Maps first … last, of one file. */
struct library {
    const struct prb_map *first;
    prb_addr end;
    uint64_t size;
    bool executable;
};

static bool same_file(const struct prb_map *a, const struct prb_map *b)
{
    return a->inode == b->inode && a->dev_major == b->dev_major && a->dev_minor == b->dev_minor &&
           strcmp(a->path, b->path) == 0;
}

/* The maps from *i on that belong together: anonymous ones between them are the file's bss. */
static struct library take(const struct prb_maps *maps, size_t *i)
{
    const struct prb_map *first = &maps->items[*i];
    struct library library = {.first = first};
    size_t last = *i;
    for (size_t k = *i; k < maps->count; k++) {
        const struct prb_map *map = &maps->items[k];
        if (map->path[0] && !(map->inode && same_file(map, first)))
            break;
        if (!map->path[0])
            continue;
        /* The beginning of the file again: mapped a second time. */
        if (k > *i && map->offset == 0 && library.executable && map->offset == first->offset)
            break;
        library.end = map->end;
        library.size += map->end - map->start;
        library.executable = library.executable || map->executable;
        last = k;
    }
    *i = last + 1;
    return library;
}

static void add_build_id(struct prb_rows *rows, struct prb_proc *proc, const struct prb_map *map)
{
    uint8_t id[64];
    char text[2 * sizeof id + 1] = "";
    int fd = prb_rows_wants(rows, "build_id") ? prb_proc_open_map(proc, map, NULL) : -1;
    PRB_AUTO(prb_elf) struct prb_elf *elf = fd >= 0 ? prb_elf_open(fd, map->path, NULL) : NULL;
    size_t len = elf ? prb_elf_build_id(elf, id) : 0;
    for (size_t i = 0; i < len && i < sizeof id; i++)
        snprintf(text + 2 * i, 3, "%02x", id[i]);
    prb_row_text(rows, len ? text : NULL);
}

static void add_library(struct prb_rows *rows, struct prb_proc *proc, const struct library *library)
{
    const char *path = library->first->path, *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path, *version = strstr(name, ".so.");
    prb_row_begin(rows);
    prb_row_text(rows, name);
    prb_row_text(rows, path);
    prb_row_text(rows, version ? version + strlen(".so.") : NULL);
    prb_row_int(rows, (int64_t)library->first->start);
    prb_row_int(rows, (int64_t)library->end);
    prb_row_int(rows, (int64_t)library->size);
    add_build_id(rows, proc, library->first);
    prb_row_int(rows, library->first->deleted);
}

static bool fill(struct prb_rows *rows, struct prb_error *err)
{
    struct prb_proc *proc = prb_rows_target(rows)->proc;
    PRB_AUTO(prb_maps) struct prb_maps maps = {0};
    if (!prb_proc_maps_now(proc, &maps, err))
        return false;
    for (size_t i = 0; i < maps.count;) {
        if (!maps.items[i].inode || maps.items[i].path[0] != '/') {
            i++;
            continue;
        }
        struct library library = take(&maps, &i);
        if (library.executable)
            add_library(rows, proc, &library);
    }
    return true;
}

const struct prb_table prb_table_system_libraries = {
    .schema = "system",
    .name = "libraries",
    .doc = "the executable and the libraries that are mapped",
    .columns = columns,
    .needs_target = true,
    .fill = fill,
};
