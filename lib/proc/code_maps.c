/*
 * The maps of files with code, asked of the kernel one by one: ioctl_procmap_query(2), Linux 6.11.
 * A training process has tens of thousands of maps without code (CUDA's, its allocators'), and the
 * text of each costs the kernel and us a microsecond.
 */
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/ioctl.h>

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

static bool add(struct prb_maps *maps, size_t *cap, const struct procmap_query *found)
{
    const char *name = (const char *)(uintptr_t)found->vma_name_addr;
    const struct prb_map *before = maps->count ? &maps->items[maps->count - 1] : NULL;
    struct prb_map map = {
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
    };
    if (!prb_map_set_path(&map, name, strnlen(name, PATH_MAX), before, &maps->arena) ||
        !PRB_GROW(maps->items, maps->count, *cap))
        return false;
    maps->items[maps->count++] = map;
    return true;
}

bool prb_code_maps_query(int fd, struct prb_maps *out)
{
    PRB_AUTO(prb_maps) struct prb_maps maps = {0};
    char name[PATH_MAX];
    size_t cap = 0;
    uint64_t next = 0;
    for (;;) {
        struct procmap_query query = {
            .size = sizeof query,
            .query_flags = VMA_EXECUTABLE | COVERING_OR_NEXT | FILE_BACKED,
            .query_addr = next,
            .vma_name_size = sizeof name,
            .vma_name_addr = (uintptr_t)name,
        };
        name[0] = '\0';
        if (ioctl(fd, PROCMAP_QUERY, &query) != 0) {
            if (errno != ENOENT)
                return false;
            break; /* that was the last */
        }
        if (query.vma_end <= next || query.vma_start < next || !add(&maps, &cap, &query))
            return false;
        next = query.vma_end;
    }
    if (!maps.count)
        return false;
    *out = maps;
    maps = (struct prb_maps){0};
    return true;
}
