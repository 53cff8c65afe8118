/*
 * The collector's lists: rings of PyGC_Head, one for each generation, walked from the youngest to
 * the oldest, so that an object that grows older meanwhile is met twice rather than never.  Memory
 * is read in blocks that are cached for one walk of one list; marks make sure that each object is
 * given once.
 */
#include "py/gc.h"

#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "base/hash_map.h"
#include "base/progress.h"

#define BLOCK_YOUNG 16384u
#define BLOCK_OLD 131072u
#define CACHE (32u << 20)    /* bytes of blocks that are kept */
#define WAYS 4u              /* places that a block may have in it; the oldest goes */
#define HUGE_PAGE (2u << 20) /* the cache has few page faults in such ones */
#define FLAGS 3ull           /* lowest bits of the links */
#define FLAG_COLLECTING 2ull /* of prev, 3.8+: what it links to is something else meanwhile */
#define TRIES 12             /* walks of one list */
#define COLLECTION_MS 300    /* how long the end of a collection is awaited */
#define TYPE_SUBCLASS_BIT 31 /* Py_TPFLAGS_TYPE_SUBCLASS */
#define NODE_MAX 64          /* bytes of a head and of the object's head behind it */
#define PAGE 4096u
#define PLACE 16u            /* two objects with their heads lie further apart */
#define PAGES_MAX (4u << 20) /* with marks: bounds the tool's memory, 256 MiB */

/* The sizes of PyGC_Head and struct gc_generation: the layout's, and those that other builds of the
 * same release have (3.6, 3.7: aligned as double, or as long double where bpo-27987 was taken). */
struct shape {
    int32_t head, generation;
};

struct collector {
    struct prb_py *py;
    struct shape shape;
    prb_addr lists[PRB_GC_GENERATIONS + 1]; /* heads; 0: this version has none */
    prb_addr collecting;                    /* address of the flag, or 0 */
    bool checks_prev;                       /* it does not collect now */
    uint8_t *cache;                         /* CACHE bytes */
    size_t block;                           /* bytes of one in it */
    struct block {
        prb_addr start; /* what is there of it */
        size_t len;
    } blocks[CACHE / BLOCK_YOUNG];
    uint8_t next[CACHE / BLOCK_YOUNG / WAYS]; /* of the places of a block, the oldest */
    struct prb_gc_objects found;
    size_t cap;
    struct prb_hash_map pages; /* by address / PAGE + 1: struct mark_page */
    struct prb_arena arena;    /* of the pages */
    struct mark_page *last_page;
    uint64_t last_number; /* its key; 0: none */
};

static void collector_deinit(struct collector *collector)
{
    prb_progress(NULL, 0);
    free(collector->cache);
    prb_hash_map_deinit(&collector->pages);
    prb_arena_deinit(&collector->arena);
    prb_gc_objects_deinit(&collector->found);
}
PRB_DEFINE_AUTO(collector, struct collector, collector_deinit)

void prb_gc_objects_deinit(struct prb_gc_objects *objects)
{
    free(objects->items);
    *objects = (struct prb_gc_objects){0};
}

/* ---- memory ---- */

/* The objects of a young list are few and lie anywhere; those of the oldest fill what they lie in. */
static size_t block_bytes(uint8_t generation)
{
    return generation < PRB_GC_GENERATIONS - 1 ? BLOCK_YOUNG : BLOCK_OLD;
}

static void forget(struct collector *collector, size_t block)
{
    collector->block = block;
    memset(collector->blocks, 0, sizeof collector->blocks);
}

static bool has(const struct block *block, prb_addr addr, size_t len)
{
    return addr >= block->start && len <= block->len && addr - block->start <= block->len - len;
}

/* Where the bytes are, NULL: they cannot be read, or lie in two blocks. */
static const uint8_t *cached(struct collector *collector, prb_addr addr, size_t len)
{
    const size_t size = collector->block;
    const size_t set = (size_t)(addr / size % (CACHE / size / WAYS));
    const prb_addr whole = addr / size * size;
    struct block *ways = &collector->blocks[set * WAYS];
    uint8_t *bytes = collector->cache + set * WAYS * size;
    for (size_t way = 0; way < WAYS; way++)
        if (has(&ways[way], addr, len))
            return bytes + way * size + (addr - ways[way].start);
    const size_t way = collector->next[set]++ % WAYS;
    const prb_addr starts[] = {whole, addr / PAGE * PAGE}; /* the second where it begins unmapped */
    bytes += way * size;
    for (size_t i = 0; i < 2 && !has(&ways[way], addr, len); i++)
        ways[way] = (struct block){starts[i], prb_mem_read_some(collector->py->mem, starts[i],
                                                                bytes, whole + size - starts[i])};
    return has(&ways[way], addr, len) ? bytes + (addr - ways[way].start) : NULL;
}

static bool get(struct collector *collector, prb_addr addr, void *out, size_t len)
{
    const uint8_t *bytes =
        addr % collector->block + len > collector->block ? NULL : cached(collector, addr, len);
    if (!bytes)
        return prb_mem_read_some(collector->py->mem, addr, out, len) == len;
    memcpy(out, bytes, len);
    return true;
}

static uint64_t word_of(const uint8_t *bytes, int32_t offset)
{
    uint64_t word;
    memcpy(&word, bytes + offset, sizeof word);
    return word;
}

struct node {
    uint64_t next, prev; /* with their flags */
    uint64_t type;       /* of the object behind it */
};

static bool get_node(struct collector *collector, prb_addr head, bool list, struct node *out)
{
    const struct prb_layout *layout = &collector->py->layout;
    uint8_t bytes[NODE_MAX];
    int32_t type = collector->shape.head + PRB_OFF(layout, object, type);
    size_t len = list ? 16 : (size_t)type + 8;
    if (head % 4 || len > sizeof bytes || !get(collector, head, bytes, len))
        return false;
    out->next = word_of(bytes, PRB_OFF(layout, gc_head, next));
    out->prev = word_of(bytes, PRB_OFF(layout, gc_head, prev));
    out->type = list ? 0 : word_of(bytes, type);
    return true;
}

/* ---- marks ---- */

/* Which objects of one page are known: a bit for each place where one can begin.  Objects of a list
 * lie near one another as a rule, so their marks do, too. */
struct mark_page {
    uint64_t before[PAGE / PLACE / 64]; /* of the lists that were read */
    uint64_t now[PAGE / PLACE / 64];    /* of the list that is being walked */
};

struct mark {
    struct mark_page *page; /* NULL: no room */
    size_t word;
    uint64_t bit;
};

static struct mark mark_of(struct collector *collector, prb_addr object)
{
    uint64_t number = object / PAGE + 1;
    size_t place = object % PAGE / PLACE;
    if (number != collector->last_number) {
        struct prb_hash_slot *slot =
            collector->pages.count < PAGES_MAX || prb_hash_map_pointer(&collector->pages, number)
                ? prb_hash_map_add(&collector->pages, number)
                : NULL;
        if (slot && !slot->pointer)
            slot->pointer = prb_arena_alloc(&collector->arena, sizeof(struct mark_page));
        collector->last_page = slot ? slot->pointer : NULL;
        collector->last_number = collector->last_page ? number : 0;
    }
    return (struct mark){collector->last_page, place / 64, UINT64_C(1) << place % 64};
}

/* The list is read: its objects are known from now on. */
static void accept_from(struct collector *collector, size_t begin)
{
    for (size_t i = begin; i < collector->found.count; i++) {
        struct mark mark = mark_of(collector, collector->found.items[i].object);
        if (!mark.page)
            continue;
        mark.page->now[mark.word] &= ~mark.bit;
        mark.page->before[mark.word] |= mark.bit;
    }
}

/* The list is to be walked again. */
static void forget_from(struct collector *collector, size_t begin)
{
    for (size_t i = begin; i < collector->found.count; i++) {
        struct mark mark = mark_of(collector, collector->found.items[i].object);
        if (mark.page)
            mark.page->now[mark.word] &= ~mark.bit;
    }
    collector->found.count = begin;
}

/* ---- one list ---- */

enum walked { WHOLE, TORN, FULL };

/* The object of a node; FULL: no room for more.  TORN: it was met in this list already. */
static enum walked add(struct collector *collector, prb_addr object, prb_addr type,
                       uint8_t generation)
{
    struct mark mark = mark_of(collector, object);
    if (!mark.page || collector->found.count >= PRB_GC_OBJECTS_MAX ||
        !PRB_GROW(collector->found.items, collector->found.count, collector->cap))
        return FULL;
    if (mark.page->now[mark.word] & mark.bit)
        return TORN;
    if (mark.page->before[mark.word] & mark.bit)
        return WHOLE;
    collector->found.items[collector->found.count++] =
        (struct prb_gc_object){.object = object, .type = type, .generation = generation};
    mark.page->now[mark.word] |= mark.bit;
    if (collector->found.count % PRB_GC_PROGRESS == 0)
        prb_progress("objects found", collector->found.count);
    return WHOLE;
}

static enum walked walk(struct collector *collector, prb_addr list, uint8_t generation)
{
    size_t begin = collector->found.count;
    struct node node;
    if (!get_node(collector, list, true, &node))
        return TORN;
    uint64_t last = node.prev & ~FLAGS, before = list;
    size_t moved = 0; /* from a list before; more than there were: round and round among those */
    for (prb_addr at = node.next & ~FLAGS; at != list; at = node.next & ~FLAGS) {
        if (!get_node(collector, at, false, &node) || node.type % 8 || !node.type)
            return TORN;
        bool linked = (node.prev & ~FLAGS) == before;
        if (!linked && (collector->checks_prev && !(node.prev & FLAG_COLLECTING)))
            return TORN;
        size_t count = collector->found.count;
        enum walked added =
            add(collector, at + (prb_addr)collector->shape.head, node.type, generation);
        if (added != WHOLE)
            return added;
        if (collector->found.count == count && ++moved > begin)
            return TORN;
        before = at;
    }
    return before == last || !collector->checks_prev ? WHOLE : TORN;
}

/* ---- the collector ---- */

static bool collects(struct collector *collector)
{
    uint32_t flag = 0;
    return collector->collecting &&
           prb_mem_u32(collector->py->mem, collector->collecting, &flag, NULL) && flag;
}

static void pause_ms(long ms)
{
    struct timespec pause = {0, ms * 1000000};
    nanosleep(&pause, NULL);
}

/* Until it does not collect, or no longer than COLLECTION_MS in all. */
static void await_end(struct collector *collector, bool live, int *left)
{
    bool now = collects(collector);
    for (; now && live && *left > 0; now = collects(collector), (*left)--)
        pause_ms(1);
    collector->checks_prev = !now;
}

static bool ring_closes(struct collector *collector, prb_addr list)
{
    struct node head, first;
    if (!get_node(collector, list, true, &head) ||
        !get_node(collector, head.next & ~FLAGS, true, &first))
        return false;
    return (first.prev & ~FLAGS) == list || (first.prev & FLAG_COLLECTING);
}

/* Whether the objects behind the heads of a list have types. */
static bool objects_follow(struct collector *collector, prb_addr list)
{
    struct prb_py *py = collector->py;
    struct node node;
    uint64_t meta, flags;
    if (!get_node(collector, list, true, &node))
        return false;
    if ((node.next & ~FLAGS) == list)
        return true;
    return get_node(collector, node.next & ~FLAGS, false, &node) &&
           PRB_FIELD_OF(py, node.type, object, type, &meta, NULL) &&
           PRB_FIELD_OF(py, meta, type, flags, &flags, NULL) && flags >> TYPE_SUBCLASS_BIT & 1;
}

static bool shape_fits(struct collector *collector, prb_addr generations)
{
    for (int i = 0; i < PRB_GC_GENERATIONS; i++)
        collector->lists[i] = generations + (prb_addr)(i * collector->shape.generation) +
                              (prb_addr)PRB_OFF(&collector->py->layout, gc_generation, head);
    forget(collector, BLOCK_YOUNG);
    return ring_closes(collector, collector->lists[1]) &&
           ring_closes(collector, collector->lists[2]) &&
           objects_follow(collector, collector->lists[2]);
}

static bool find_shape(struct collector *collector, prb_addr generations, bool live,
                       struct prb_error *err)
{
    const struct prb_layout *layout = &collector->py->layout;
    const struct shape shapes[] = {
        {PRB_OFF(layout, gc_head, size), PRB_OFF(layout, gc_generation, size)}, {24, 32}, {32, 48}};
    /* A distribution may have taken a later release's change: Debian 13's 3.13.5 has 3.13.18's. */
    const int moved[] = {0, -4, 4};
    for (int tries = live ? TRIES : 1; tries > 0; tries--) {
        for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
            collector->shape = shapes[i];
            for (size_t j = 0; j < sizeof moved / sizeof *moved; j++)
                if (shape_fits(collector, generations + (prb_addr)moved[j]))
                    return true;
        }
        if (tries > 1)
            pause_ms(1);
    }
    uint64_t word;
    if (!prb_mem_u64(collector->py->mem, collector->lists[2], &word, err))
        return prb_error_prefix(err, "the collector's lists");
    return prb_fail(err, PRB_CORRUPT, "the collector's lists are not as CPython %s has them",
                    layout->name);
}

static bool locate(struct collector *collector, prb_addr interpreter, prb_addr *generations_out,
                   struct prb_error *err)
{
    struct prb_py *py = collector->py;
    const struct prb_layout *layout = &py->layout;
    if (PRB_HAS(layout, interp, gc_collecting))
        collector->collecting = interpreter + (prb_addr)PRB_OFF(layout, interp, gc_collecting);
    else if (PRB_HAS(layout, runtime, gc_collecting))
        collector->collecting = py->runtime + (prb_addr)PRB_OFF(layout, runtime, gc_collecting);
    if (PRB_HAS(layout, interp, gc_generations)) {
        *generations_out = interpreter + (prb_addr)PRB_OFF(layout, interp, gc_generations);
        collector->lists[PRB_GC_PERMANENT] =
            interpreter + (prb_addr)PRB_OFF(layout, interp, gc_permanent);
        return true;
    }
    if (PRB_HAS(layout, runtime, gc_generations)) {
        *generations_out = py->runtime + (prb_addr)PRB_OFF(layout, runtime, gc_generations);
        collector->lists[PRB_GC_PERMANENT] =
            py->runtime + (prb_addr)PRB_OFF(layout, runtime, gc_permanent);
        return true;
    }
    if (!py->gc_generation0)
        return prb_fail(err, PRB_UNSUPPORTED, "no symbol says where this interpreter's lists are");
    return prb_mem_u64(py->mem, py->gc_generation0, generations_out, err);
}

/* ---- all lists ---- */

static bool no_room(struct collector *collector, struct prb_error *err)
{
    if (collector->found.count < PRB_GC_OBJECTS_MAX && collector->pages.count < PAGES_MAX)
        return prb_nomem(err);
    collector->found.whole = false;
    collector->found.why = "there are more objects than are read";
    return true;
}

/* A list until it is whole; at last what the latest walk found. */
static bool take_list(struct collector *collector, uint8_t generation, bool live, int *left,
                      struct prb_error *err)
{
    size_t begin = collector->found.count;
    enum walked walked = TORN;
    for (int tries = live ? TRIES : 1; tries > 0 && walked == TORN; tries--) {
        forget(collector, block_bytes(generation));
        await_end(collector, live, left);
        forget_from(collector, begin);
        walked = walk(collector, collector->lists[generation], generation);
    }
    accept_from(collector, begin);
    if (walked == FULL)
        return no_room(collector, err);
    if (walked == TORN || !collector->checks_prev) {
        collector->found.whole = false;
        collector->found.why = !collector->checks_prev ? "a garbage collection was under way"
                               : live ? "the collector's lists changed faster than they are read"
                                      : "the collector's lists are broken";
    }
    return true;
}

bool prb_gc_take(struct prb_py *py, prb_addr interpreter, bool main, bool live,
                 struct prb_gc_objects *out, struct prb_error *err)
{
    const struct prb_layout *layout = &py->layout;
    if (!PRB_HAS(layout, gc_head, size))
        return prb_fail(err, PRB_UNSUPPORTED,
                        "CPython %s is free-threaded: its collector has no lists of objects",
                        layout->name);
    if (!PRB_HAS(layout, interp, gc_generations) && !main) {
        *out = (struct prb_gc_objects){.whole = true};
        return true;
    }
    PRB_AUTO(collector) struct collector collector = {.py = py, .found.whole = true};
    prb_addr generations = 0;
    int left = COLLECTION_MS;
    if (!(collector.cache = aligned_alloc(HUGE_PAGE, CACHE)))
        return prb_nomem(err);
    (void)madvise(collector.cache, CACHE, MADV_HUGEPAGE);
    if (!locate(&collector, interpreter, &generations, err) ||
        !find_shape(&collector, generations, live, err))
        return false;
    for (uint8_t i = 0; i <= PRB_GC_PERMANENT; i++)
        if (collector.lists[i] && !take_list(&collector, i, live, &left, err))
            return false;
    *out = collector.found;
    collector.found = (struct prb_gc_objects){0};
    return true;
}
