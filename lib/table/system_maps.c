/* system.maps: a row for each range of the address space. */
#include "inspect/target.h"

#include "sql/table.h"

static const struct prb_column columns[] = {
    {"start", PRB_INTEGER, "addr", "first byte; 64 bits with sign, so [vsyscall] is negative"},
    {"end", PRB_INTEGER, "addr", "behind the last byte"},
    {"size", PRB_INTEGER, "bytes", "end - start"},
    {"permissions", PRB_TEXT, "", "rwx, then p (private) or s (shared)"},
    {"offset", PRB_INTEGER, "bytes", "in the file"},
    {"device", PRB_TEXT, "", "major:minor, hexadecimal"},
    {"inode", PRB_INTEGER, "id", "NULL: no file"},
    {"path", PRB_TEXT, "",
     "file as the process sees it, or [heap], [stack], [vdso]; NULL: anonymous"},
    {"deleted", PRB_INTEGER, "", "1: the file is gone from its path"},
    {0},
};

static void add_map(struct prb_rows *rows, const struct prb_map *map)
{
    const char permissions[] = {map->readable ? 'r' : '-', map->writable ? 'w' : '-',
                                map->executable ? 'x' : '-', map->shared ? 's' : 'p'};
    char device[32];
    snprintf(device, sizeof device, "%02x:%02x", map->dev_major, map->dev_minor);
    prb_row_begin(rows);
    prb_row_int(rows, (int64_t)map->start);
    prb_row_int(rows, (int64_t)map->end);
    prb_row_int(rows, (int64_t)(map->end - map->start));
    prb_row_textn(rows, permissions, sizeof permissions);
    prb_row_int(rows, (int64_t)map->offset);
    prb_row_text(rows, device);
    if (map->inode)
        prb_row_int(rows, (int64_t)map->inode);
    else
        prb_row_null(rows);
    prb_row_text(rows, map->path[0] ? map->path : NULL);
    prb_row_int(rows, map->deleted);
}

static bool fill(struct prb_rows *rows, struct prb_error *err)
{
    PRB_AUTO(prb_maps) struct prb_maps maps = {0};
    if (!prb_proc_maps_now(prb_rows_target(rows)->proc, &maps, err))
        return false;
    for (size_t i = 0; i < maps.count; i++)
        add_map(rows, &maps.items[i]);
    return true;
}

const struct prb_table prb_table_system_maps = {
    .schema = "system",
    .name = "maps",
    .doc = "the ranges of the address space",
    .columns = columns,
    .needs_target = true,
    .fill = fill,
};
