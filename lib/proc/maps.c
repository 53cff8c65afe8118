/* Parsing /proc/PID/maps, proc_pid_maps(5).  The text may come from a file: nothing in it is taken
 * for granted. */
#include <string.h>

#include "proc/source.h"

void prb_maps_deinit(struct prb_maps *maps)
{
    free(maps->items);
    prb_arena_deinit(&maps->arena);
    *maps = (struct prb_maps){0};
}

struct cursor {
    const char *at, *end;
};

static bool hex(struct cursor *cursor, uint64_t *out)
{
    uint64_t value = 0;
    const char *start = cursor->at;
    for (; cursor->at < cursor->end; cursor->at++) {
        char c = *cursor->at;
        unsigned digit;
        if (c >= '0' && c <= '9')
            digit = (unsigned)(c - '0');
        else if (c >= 'a' && c <= 'f')
            digit = (unsigned)(c - 'a' + 10);
        else
            break;
        if (value >> 60)
            return false;
        value = value << 4 | digit;
    }
    *out = value;
    return cursor->at > start;
}

static bool decimal(struct cursor *cursor, uint64_t *out)
{
    uint64_t value = 0;
    const char *start = cursor->at;
    for (; cursor->at < cursor->end && *cursor->at >= '0' && *cursor->at <= '9'; cursor->at++) {
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*cursor->at - '0'), &value))
            return false;
    }
    *out = value;
    return cursor->at > start;
}

static bool skip(struct cursor *cursor, char c)
{
    if (cursor->at == cursor->end || *cursor->at != c)
        return false;
    cursor->at++;
    return true;
}

static bool flags(struct cursor *cursor, struct prb_map *map)
{
    if (cursor->end - cursor->at < 4)
        return false;
    const char *flag = cursor->at;
    map->readable = flag[0] == 'r';
    map->writable = flag[1] == 'w';
    map->executable = flag[2] == 'x';
    map->shared = flag[3] == 's';
    cursor->at += 4;
    return true;
}

static bool numbers(struct cursor *cursor, struct prb_map *map)
{
    uint64_t major, minor;
    if (!hex(cursor, &map->start) || !skip(cursor, '-') || !hex(cursor, &map->end) ||
        !skip(cursor, ' ') || !flags(cursor, map) || !skip(cursor, ' ') ||
        !hex(cursor, &map->offset) || !skip(cursor, ' ') || !hex(cursor, &major) ||
        !skip(cursor, ':') || !hex(cursor, &minor) || !skip(cursor, ' ') ||
        !decimal(cursor, &map->inode))
        return false;
    map->dev_major = (unsigned)major;
    map->dev_minor = (unsigned)minor;
    return map->start < map->end;
}

/* The kernel writes a line feed in a path as \012, and nothing else specially. */
static char *unescaped(struct prb_arena *arena, const char *text, size_t len)
{
    char *path = prb_arena_strndup(arena, text, len);
    char *found = path ? strstr(path, "\\012") : NULL;
    for (; found; found = strstr(found + 1, "\\012")) {
        *found = '\n';
        memmove(found + 1, found + 4, strlen(found + 4) + 1);
    }
    return path;
}

bool prb_map_set_path(struct prb_map *map, const char *name, size_t len,
                      const struct prb_map *before, struct prb_arena *arena)
{
    static const char deleted[] = " (deleted)";
    const size_t suffix = sizeof deleted - 1;
    if (map->inode && len > suffix && memcmp(name + len - suffix, deleted, suffix) == 0) {
        map->deleted = true;
        len -= suffix;
    }
    bool same = before && strlen(before->path) == len && memcmp(before->path, name, len) == 0;
    map->path = len == 0 ? "" : same ? before->path : prb_arena_strndup(arena, name, len);
    return map->path != NULL;
}

static bool path_of(struct cursor *cursor, struct prb_map *map, const struct prb_map *before,
                    struct prb_arena *arena)
{
    while (skip(cursor, ' '))
        ;
    const char *name = cursor->at;
    size_t len = (size_t)(cursor->end - cursor->at);
    if (len && memmem(name, len, "\\012", 4)) {
        if (!(name = unescaped(arena, name, len)))
            return false;
        len = strlen(name);
    }
    return prb_map_set_path(map, name, len, before, arena);
}

bool prb_maps_parse(const char *text, size_t len, struct prb_maps *out, struct prb_error *err)
{
    PRB_AUTO(prb_maps) struct prb_maps maps = {0};
    size_t cap = 0;
    for (const char *at = text, *end = text + len; at < end;) {
        const char *feed = memchr(at, '\n', (size_t)(end - at));
        struct cursor line = {at, feed ? feed : end};
        at = feed ? feed + 1 : end;
        if (!PRB_GROW(maps.items, maps.count, cap))
            return prb_nomem(err);
        struct prb_map *map = &maps.items[maps.count];
        const struct prb_map *before = maps.count ? map - 1 : NULL;
        *map = (struct prb_map){0};
        if (!numbers(&line, map) || (before && map->start < before->end))
            return prb_fail(err, PRB_CORRUPT, "line %zu of the memory map cannot be parsed",
                            maps.count + 1);
        if (!path_of(&line, map, before, &maps.arena))
            return prb_nomem(err);
        maps.count++;
    }
    *out = maps;
    maps = (struct prb_maps){0};
    return true;
}

bool prb_map_same_file(const struct prb_map *a, const struct prb_map *b)
{
    return a->inode && a->inode == b->inode && a->dev_major == b->dev_major &&
           a->dev_minor == b->dev_minor && strcmp(a->path, b->path) == 0;
}

const struct prb_map *prb_maps_find(const struct prb_maps *maps, prb_addr addr)
{
    size_t low = 0, high = maps->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (maps->items[middle].end <= addr)
            low = middle + 1;
        else
            high = middle;
    }
    return low < maps->count && maps->items[low].start <= addr ? &maps->items[low] : NULL;
}
