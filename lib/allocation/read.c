/* Reading the record of allocations: see region.h for how it changes meanwhile. */
#include <string.h>
#include <time.h>

#include "allocation/allocation.h"

#define TRIES 100
#define PAUSE_NS 200000

void prb_allocations_deinit(struct prb_allocations *allocations)
{
    free(allocations->sites);
    free(allocations->frames);
    free(allocations->cells);
    *allocations = (struct prb_allocations){0};
}

const char *prb_allocation_kind_name(uint32_t kind)
{
    static const char *const names[] = {
#define PRB_KIND(name, text) text,
        PRB_ALLOCATION_KINDS(PRB_KIND)
#undef PRB_KIND
    };
    return kind < PRB_ALLOCATION_KINDS_COUNT ? names[kind] : "?";
}

double prb_cell_time(const struct prb_allocations *allocations, const struct prb_cell *cell)
{
    return allocations->head.since + ((double)cell->interval + 1) * allocations->head.interval;
}

/* Where it is mapped; 0: nowhere. */
static prb_addr find(struct prb_target *target, uint64_t *bytes_out, struct prb_error *err)
{
    const struct prb_maps *maps = prb_proc_maps(target->proc, true, err);
    for (size_t i = 0; maps && i < maps->count; i++) {
        const struct prb_map *map = &maps->items[i];
        const char *name = strrchr(map->path, '/');
        *bytes_out = map->end - map->start;
        if (name && map->offset == 0 &&
            !strncmp(name + 1, "memfd:" PRB_REGION_NAME, sizeof "memfd:" PRB_REGION_NAME - 1))
            return map->start;
        if (name && map->offset == 0 && strstr(map->path, "/memfd:" PRB_REGION_NAME))
            return map->start;
    }
    if (maps)
        prb_fail(err, PRB_NOT_FOUND, "allocations are not sampled in process %d",
                 (int)target->info.pid);
    return 0;
}

static bool fits(const struct prb_region *head, uint64_t place, uint64_t count, uint64_t size,
                 uint64_t bytes)
{
    return place >= head->size && place <= bytes && count * size <= bytes - place;
}

static bool head_is_good(const struct prb_region *head, uint64_t bytes)
{
    return head->magic == PRB_REGION_MAGIC && head->size == sizeof *head && head->cells < 2 &&
           head->interval && head->site_count <= PRB_REGION_SITES_MAX &&
           head->frame_count <= PRB_REGION_FRAMES_MAX &&
           fits(head, head->site_place, PRB_REGION_SITES_MAX, sizeof(struct prb_site), bytes) &&
           fits(head, head->frame_place, PRB_REGION_FRAMES_MAX, sizeof(struct prb_site_frame),
                bytes) &&
           fits(head, head->cell_place[head->cells], PRB_REGION_CELLS_MAX, sizeof(struct prb_cell),
                bytes);
}

static void *copy(struct prb_mem *mem, prb_addr at, size_t bytes, struct prb_error *err)
{
    void *out = malloc(bytes ? bytes : 1);
    if (!out || !bytes)
        return out ? out : PRB_NULL(prb_nomem(err));
    if (prb_mem_read(mem, at, out, bytes, err))
        return out;
    free(out);
    return NULL;
}

/* What is not as a writer makes it is taken out. */
static void check(struct prb_allocations *out)
{
    struct prb_region *head = &out->head;
    for (uint32_t i = 0; i < head->site_count; i++) {
        struct prb_site *site = &out->sites[i];
        if (site->count > PRB_SITE_FRAMES_MAX || site->first > head->frame_count ||
            site->count > head->frame_count - site->first)
            site->first = site->count = 0;
    }
    size_t kept = 0;
    for (size_t i = 0; i < PRB_REGION_CELLS_MAX; i++)
        if (out->cells[i].samples && out->cells[i].site < head->site_count)
            out->cells[kept++] = out->cells[i];
    out->cell_count = kept;
    head->why_no_python[sizeof head->why_no_python - 1] = '\0';
}

static int by_interval(const void *a, const void *b)
{
    const struct prb_cell *x = a, *y = b;
    if (x->interval != y->interval)
        return x->interval < y->interval ? -1 : 1;
    if (x->site != y->site)
        return x->site < y->site ? -1 : 1;
    return x->thread < y->thread ? -1 : x->thread > y->thread;
}

/* Once; *moved_out: the cells were moved meanwhile. */
static bool take(struct prb_mem *mem, prb_addr at, uint64_t bytes, struct prb_allocations *out,
                 bool *moved_out, struct prb_error *err)
{
    struct prb_region *head = &out->head, after;
    if (!prb_mem_read(mem, at, head, sizeof *head, err))
        return false;
    if (!head->magic)
        return prb_fail(err, PRB_NOT_FOUND, "the record of allocations is being made");
    if (!head_is_good(head, bytes))
        return prb_fail(err, PRB_CORRUPT,
                        "the record of allocations at %#llx is not of this version",
                        (unsigned long long)at);
    out->cells = copy(mem, at + head->cell_place[head->cells],
                      PRB_REGION_CELLS_MAX * sizeof *out->cells, err);
    /* The head again: cells may name sites that were added since. */
    if (!out->cells || !prb_mem_read(mem, at, &after, sizeof after, err))
        return false;
    *moved_out = head->moves % 2 || after.moves != head->moves || !head_is_good(&after, bytes);
    *head = after;
    if (*moved_out)
        return true;
    out->sites = copy(mem, at + head->site_place, head->site_count * sizeof *out->sites, err);
    out->frames =
        out->sites ? copy(mem, at + head->frame_place, head->frame_count * sizeof *out->frames, err)
                   : NULL;
    return out->frames;
}

bool prb_allocations_read(struct prb_target *target, struct prb_allocations *out,
                          struct prb_error *err)
{
    uint64_t bytes = 0;
    prb_addr at = find(target, &bytes, err);
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    for (int try = 0; at && try < TRIES; try++) {
        bool moved = true;
        if (!take(target->mem, at, bytes, out, &moved, err)) {
            prb_allocations_deinit(out);
            return false;
        }
        if (!moved) {
            check(out);
            qsort(out->cells, out->cell_count, sizeof *out->cells, by_interval);
            return true;
        }
        prb_allocations_deinit(out);
        nanosleep(&pause, NULL);
    }
    return at ? prb_fail(err, PRB_BUSY, "the record of allocations changed in every try") : false;
}
