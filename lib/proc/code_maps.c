/*
 * Maps that are asked of the kernel one by one: ioctl_procmap_query(2), Linux 6.11.
 * A training process has tens of thousands of maps without code (CUDA's, its allocators'), and the
 * text of each costs the kernel and us a microsecond.
 */
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/ioctl.h>

#include "base/file.h"
#include "proc/source.h"

/* linux/fs.h, struct procmap_query. */
struct procmap_query {
    uint64_t size, query_flags, query_addr;
    uint64_t vma_start, vma_end, vma_flags, vma_page_size, vma_offset, inode;
    uint32_t dev_major, dev_minor, vma_name_size, build_id_size;
    uint64_t vma_name_addr, build_id_addr;
};
#define PROCMAP_QUERY _IOWR('f', 17, struct procmap_query)
enum { VMA_READABLE = 1, VMA_WRITABLE = 2, VMA_EXECUTABLE = 4, VMA_SHARED = 8 };
enum { COVERING_OR_NEXT = 16, FILE_BACKED = 32 };

static bool ask(int fd, uint64_t flags, uint64_t addr, char *name, size_t size,
                struct procmap_query *out)
{
    *out = (struct procmap_query){
        .size = sizeof *out,
        .query_flags = flags,
        .query_addr = addr,
        .vma_name_size = (uint32_t)size,
        .vma_name_addr = (uintptr_t)name,
    };
    return ioctl(fd, PROCMAP_QUERY, out) == 0;
}

/* All but its path. */
static struct prb_map map_of(const struct procmap_query *found)
{
    return (struct prb_map){
        .start = found->vma_start,
        .end = found->vma_end,
        .offset = found->vma_offset,
        .inode = found->inode,
        .dev_major = found->dev_major,
        .dev_minor = found->dev_minor,
        .readable = found->vma_flags & VMA_READABLE,
        .writable = found->vma_flags & VMA_WRITABLE,
        .executable = found->vma_flags & VMA_EXECUTABLE,
        .shared = found->vma_flags & VMA_SHARED,
        .path = "",
    };
}

bool prb_map_query(int fd, prb_addr addr, bool code, struct prb_map *out)
{
    struct procmap_query found;
    bool there = ask(fd, COVERING_OR_NEXT | (code ? VMA_EXECUTABLE | FILE_BACKED : 0), addr, NULL,
                     0, &found);
    *out = there ? map_of(&found) : (struct prb_map){.path = ""};
    return there ? found.vma_end > addr : errno == ENOENT;
}

/* Of a file, exactly; 0: it does not fit. */
static uint64_t file_key(const struct procmap_query *found)
{
    uint64_t device = (uint64_t)found->dev_major << 20 | found->dev_minor;
    return found->inode >> 32 || device >> 32 ? 0 : device << 32 | found->inode;
}

static bool name_begins(const char *path, const char *begin)
{
    return strncmp(prb_base_name(path), begin, strlen(begin)) == 0;
}

bool prb_code_maps_search(int fd, const char *begin, struct prb_hash_map *others, bool *found_out)
{
    const uint64_t code = VMA_EXECUTABLE | COVERING_OR_NEXT | FILE_BACKED;
    struct procmap_query found;
    char name[PATH_MAX];
    bool any = false;
    *found_out = false;
    for (uint64_t next = 0; ask(fd, code, next, NULL, 0, &found); next = found.vma_end) {
        uint64_t key = file_key(&found);
        any = true;
        if (found.vma_end <= next)
            return false;
        if (key && prb_hash_map_number(others, key))
            continue;
        name[0] = '\0';
        if (!ask(fd, code, found.vma_start, name, sizeof name, &found))
            return false;
        name[sizeof name - 1] = '\0';
        if (name_begins(name, begin))
            return *found_out = true;
        struct prb_hash_slot *slot =
            (key = file_key(&found)) ? prb_hash_map_add(others, key) : NULL;
        if (slot)
            slot->number = 1;
    }
    return errno == ENOENT && any;
}

bool prb_code_maps_query(int fd, struct prb_maps *out)
{
    PRB_AUTO(prb_maps) struct prb_maps maps = {0};
    struct procmap_query found;
    char name[PATH_MAX] = "";
    size_t cap = 0;
    uint64_t next = 0;
    for (;
         ask(fd, VMA_EXECUTABLE | COVERING_OR_NEXT | FILE_BACKED, next, name, sizeof name, &found);
         next = found.vma_end, name[0] = '\0') {
        const struct prb_map *before = maps.count ? &maps.items[maps.count - 1] : NULL;
        struct prb_map map = map_of(&found);
        if (map.end <= next || map.start < next ||
            !prb_map_set_path(&map, name, strnlen(name, PATH_MAX), before, &maps.arena) ||
            !PRB_GROW(maps.items, maps.count, cap))
            return false;
        maps.items[maps.count++] = map;
    }
    if (errno != ENOENT || !maps.count)
        return false;
    *out = maps;
    maps = (struct prb_maps){0};
    return true;
}
