/*
 * Code objects: read once, saved by address, checked again when a new reading of the target begins.
 *
 * Between two readings an address may be reused by another code object, even with its strings at
 * the old addresses.  So the first use of an entry after prb_codes_new_reading() reads its identity
 * again: the fields that name and place it, the bytes of its line table and of its name.
 */
#include "base/hash_map.h"
#include "py/code_read.h"

struct entry {
    struct prb_code_reading read;
    uint64_t generation;        /* when it was proven last */
    uint64_t loaded, announced; /* in which sample */
    bool with_variables;
};

struct prb_code_cache {
    struct prb_hash_map entries; /* by address */
    size_t held;                 /* entries in the arena: replaced ones, too */
    uint64_t generation;         /* counts the readings that something may have ended before */
    uint64_t sample;
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
    prb_hash_map_deinit(&cache->entries);
    free(cache);
}

static struct prb_code_cache *cache_of(struct prb_py *py, struct prb_error *err)
{
    if (py->codes)
        return py->codes;
    struct prb_code_cache *cache = calloc(1, sizeof *cache);
    if (!cache)
        return PRB_NULL(prb_nomem(err));
    cache->objects = prb_objects_new(py, err);
    if (!cache->objects) {
        prb_code_cache_free(cache);
        return NULL;
    }
    return py->codes = cache;
}

static struct prb_code_reader reader_of(struct prb_py *py, struct prb_code_cache *cache)
{
    return (struct prb_code_reader){py, cache->objects, &cache->arena};
}

static struct entry *load(struct prb_py *py, struct prb_code_cache *cache, prb_addr addr,
                          struct prb_error *err)
{
    struct entry *entry = prb_arena_alloc(&cache->arena, sizeof *entry);
    if (!entry)
        return PRB_NULL(prb_nomem(err));
    const struct prb_code_reader reader = reader_of(py, cache);
    if (!prb_code_read(&reader, addr, &entry->read, err))
        return NULL;
    struct prb_hash_slot *slot = prb_hash_map_add(&cache->entries, addr);
    if (!slot)
        return PRB_NULL(prb_nomem(err));
    slot->pointer = entry;
    cache->held++;
    entry->loaded = entry->announced = cache->sample;
    return entry;
}

const struct prb_code_object *prb_code_get(struct prb_py *py, prb_addr addr, bool variables,
                                           struct prb_error *err)
{
    struct prb_code_cache *cache = cache_of(py, err);
    if (!cache)
        return NULL;
    struct entry *entry = prb_hash_map_pointer(&cache->entries, addr);
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

void prb_codes_expect(struct prb_py *py, const prb_addr *codes, size_t count)
{
    struct prb_code_cache *cache = cache_of(py, NULL);
    if (!cache)
        return;
    const struct prb_code_reader reader = reader_of(py, cache);
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < count; i++)
            if (!prb_hash_map_pointer(&cache->entries, codes[i]))
                (pass ? prb_code_announce_texts : prb_code_announce)(&reader, codes[i]);
}

/* ---- again and again ---- */

const struct prb_code_object *prb_code_watched(struct prb_py *py, struct prb_view *view,
                                               prb_addr addr, bool *fresh_out,
                                               struct prb_error *err)
{
    struct prb_code_cache *cache = cache_of(py, err);
    if (!cache)
        return NULL;
    struct entry *entry = prb_hash_map_pointer(&cache->entries, addr);
    if (entry && entry->generation != cache->generation &&
        !prb_code_is_same_in(py, view, &entry->read))
        entry = NULL;
    if (!entry) {
        prb_objects_clear(cache->objects); /* what it saved is of an earlier reading */
        entry = load(py, cache, addr, err);
        if (!entry)
            return NULL;
        prb_code_is_same_in(py, view, &entry->read); /* so that the view brings it in from now on */
    }
    entry->generation = cache->generation;
    *fresh_out = entry->loaded == cache->sample;
    return &entry->read.code;
}

void prb_code_prefetch(struct prb_py *py, struct prb_view *view, prb_addr addr)
{
    struct prb_code_cache *cache = py->codes;
    struct entry *entry = cache ? prb_hash_map_pointer(&cache->entries, addr) : NULL;
    if (!entry || entry->announced == cache->sample)
        return;
    entry->announced = cache->sample;
    prb_code_reading_prefetch(py, view, &entry->read);
}

void prb_codes_next_sample(struct prb_py *py, bool none_ended)
{
    if (!py->codes)
        return;
    py->codes->sample++;
    py->codes->generation += !none_ended;
}

size_t prb_codes_count(const struct prb_py *py) { return py->codes ? py->codes->held : 0; }

void prb_codes_drop(struct prb_py *py)
{
    prb_code_cache_free(py->codes);
    py->codes = NULL;
}

void prb_codes_new_reading(struct prb_py *py)
{
    if (py->codes) {
        py->codes->sample++;
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
