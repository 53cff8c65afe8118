/*
 * Code objects: read once, kept by address, proven the same when a new look begins.
 *
 * An address may be reused by another code object while we look away, even with its strings at the
 * old addresses.  So the first use of an entry after prb_codes_renew() reads its identity again:
 * the fields that name and place it, the bytes of its line table and of its name.
 */
#include "py/code_read.h"

struct entry {
    struct prb_code_reading read;
    uint64_t generation, loaded; /* when it was proven last, and when it was read */
    uint64_t announced;
    bool with_variables;
};

struct prb_code_cache {
    struct entry **slots;         /* open addressing by address; a power of two */
    size_t capacity, count, held; /* entries in the slots; those in the arena */
    uint64_t generation;
    struct prb_arena
        arena; /* entries and their strings: they live as long as the cache, replaced or not */
    struct prb_objects *objects;
};

void prb_code_cache_free(struct prb_code_cache *cache)
{
    if (!cache)
        return;
    prb_objects_free(cache->objects);
    prb_arena_deinit(&cache->arena);
    free(cache->slots);
    free(cache);
}

static struct prb_code_cache *cache_of(struct prb_py *py, struct prb_error *err)
{
    if (py->codes)
        return py->codes;
    struct prb_code_cache *cache = calloc(1, sizeof *cache);
    if (!cache)
        return PRB_NULL(prb_fail(err, PRB_NOMEM, "code cache"));
    cache->capacity = 1024;
    cache->slots = calloc(cache->capacity, sizeof *cache->slots);
    cache->objects = prb_objects_new(py, err);
    if (!cache->slots || !cache->objects) {
        if (!cache->slots)
            prb_fail(err, PRB_NOMEM, "code cache");
        prb_code_cache_free(cache);
        return NULL;
    }
    return py->codes = cache;
}

static size_t hash(prb_addr addr) { return (size_t)((addr >> 4) * 0x9e3779b97f4a7c15u >> 20); }

static struct entry **slot_of(struct prb_code_cache *cache, prb_addr addr)
{
    size_t i = hash(addr) & (cache->capacity - 1);
    while (cache->slots[i] && cache->slots[i]->read.code.addr != addr)
        i = (i + 1) & (cache->capacity - 1);
    return &cache->slots[i];
}

static bool grow(struct prb_code_cache *cache)
{
    size_t old_capacity = cache->capacity;
    struct entry **old = cache->slots;
    struct entry **slots = calloc(old_capacity * 2, sizeof *slots);
    if (!slots)
        return false;
    cache->slots = slots;
    cache->capacity = old_capacity * 2;
    for (size_t i = 0; i < old_capacity; i++)
        if (old[i])
            *slot_of(cache, old[i]->read.code.addr) = old[i];
    free(old);
    return true;
}

static struct prb_code_reader reader_of(struct prb_py *py, struct prb_code_cache *cache)
{
    return (struct prb_code_reader){py, cache->objects, &cache->arena};
}

static struct entry *load(struct prb_py *py, struct prb_code_cache *cache, prb_addr addr,
                          struct prb_error *err)
{
    if (cache->count * 2 >= cache->capacity && !grow(cache))
        return PRB_NULL(prb_fail(err, PRB_NOMEM, "code cache"));
    struct entry *entry = prb_arena_alloc(&cache->arena, sizeof *entry);
    if (!entry)
        return PRB_NULL(prb_fail(err, PRB_NOMEM, "code cache"));
    const struct prb_code_reader reader = reader_of(py, cache);
    if (!prb_code_read(&reader, addr, &entry->read, err))
        return NULL;
    struct entry **slot = slot_of(cache, addr);
    cache->count += *slot == NULL;
    cache->held++;
    entry->loaded = entry->announced = cache->generation;
    return *slot = entry;
}

const struct prb_code_object *prb_code_get(struct prb_py *py, prb_addr addr, bool variables,
                                           struct prb_error *err)
{
    struct prb_code_cache *cache = cache_of(py, err);
    if (!cache)
        return NULL;
    struct entry *entry = *slot_of(cache, addr);
    if (entry && entry->generation != cache->generation && !prb_code_is_same(py, &entry->read))
        entry = NULL;
    if (!entry)
        entry = load(py, cache, addr, err);
    if (!entry)
        return NULL;
    entry->generation = cache->generation;
    if (variables && !entry->with_variables) {
        const struct prb_code_reader reader = reader_of(py, cache);
        if (!prb_code_read_variables(&reader, &entry->read.code, err))
            return NULL;
        entry->with_variables = true;
    }
    return &entry->read.code;
}

/* ---- again and again ---- */

const struct prb_code_object *prb_code_watched(struct prb_py *py, struct prb_view *view,
                                               prb_addr addr, bool *fresh_out,
                                               struct prb_error *err)
{
    struct prb_code_cache *cache = cache_of(py, err);
    if (!cache)
        return NULL;
    struct entry *entry = *slot_of(cache, addr);
    if (entry && entry->generation != cache->generation &&
        !prb_code_is_same_in(py, view, &entry->read))
        entry = NULL;
    if (!entry) {
        prb_objects_clear(cache->objects); /* what it holds is of an earlier look */
        entry = load(py, cache, addr, err);
        if (!entry)
            return NULL;
        prb_code_is_same_in(py, view, &entry->read); /* so that the view brings it in from now on */
    }
    entry->generation = cache->generation;
    *fresh_out = entry->loaded == cache->generation;
    return &entry->read.code;
}

void prb_code_announce(struct prb_py *py, struct prb_view *view, prb_addr addr)
{
    struct prb_code_cache *cache = py->codes;
    struct entry *entry = cache ? *slot_of(cache, addr) : NULL;
    if (!entry || entry->announced == cache->generation)
        return;
    entry->announced = cache->generation;
    prb_code_want(py, view, &entry->read);
}

void prb_codes_again(struct prb_py *py)
{
    if (py->codes)
        py->codes->generation++;
}

size_t prb_codes_held(const struct prb_py *py) { return py->codes ? py->codes->held : 0; }

void prb_codes_drop(struct prb_py *py)
{
    prb_code_cache_free(py->codes);
    py->codes = NULL;
}

void prb_codes_renew(struct prb_py *py)
{
    if (py->codes) {
        py->codes->generation++;
        prb_objects_clear(py->codes->objects);
    }
}

struct prb_position prb_code_position(struct prb_py *py, const struct prb_code_object *code,
                                      int instruction)
{
    return prb_line_lookup((enum prb_line_table)py->layout.trait[PRB_TRAIT_line_table], code->lines,
                           code->lines_len, code->first_line, instruction);
}
