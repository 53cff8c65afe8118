/* A library that allocates: each function of an allocator by its own slot (test_native.py). */
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define KEPT_MAX 1000000
#define ALIGNMENT 64

static struct {
    void *block;
    size_t size; /* of a map; 0: free(3) takes it */
} kept[KEPT_MAX];
static size_t count;

static void *by_malloc(size_t size) { return malloc(size); }
static void *by_calloc(size_t size) { return calloc(1, size); }
static void *by_realloc(size_t size) { return realloc(malloc(size / 2), size); }
static void *by_aligned_alloc(size_t size) { return aligned_alloc(ALIGNMENT, size); }
static void *by_memalign(size_t size) { return memalign(ALIGNMENT, size); }
static void *by_posix_memalign(size_t size)
{
    void *block = NULL;
    return posix_memalign(&block, ALIGNMENT, size) == 0 ? block : NULL;
}
static void *by_mmap(size_t size)
{
    void *block = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return block == MAP_FAILED ? NULL : block;
}
/* What is only reserved, and a file's, does not count. */
static void *by_reservation(size_t size)
{
    void *block = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return block == MAP_FAILED ? NULL : block;
}

static const struct {
    const char *name;
    void *(*make)(size_t size);
    int is_map;
} ways[] = {
    {"malloc", by_malloc, 0},     {"calloc", by_calloc, 0},
    {"realloc", by_realloc, 0},   {"aligned_alloc", by_aligned_alloc, 0},
    {"memalign", by_memalign, 0}, {"posix_memalign", by_posix_memalign, 0},
    {"mmap", by_mmap, 1},         {"reservation", by_reservation, 1},
};

static void release(void *block, size_t map)
{
    if (map)
        munmap(block, map);
    else
        free(block);
}

#define EXPORTED __attribute__((visibility("default")))
EXPORTED size_t native_make(const char *way, size_t blocks, size_t size, int stays);
EXPORTED void native_free(void);

/* How many blocks were made; stays: they are kept until native_free(). */
size_t native_make(const char *way, size_t blocks, size_t size, int stays)
{
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
        if (strcmp(ways[w].name, way) != 0)
            continue;
        for (size_t i = 0; i < blocks; i++) {
            char *block = ways[w].make(size);
            if (!block || count == KEPT_MAX)
                return i;
            kept[count].block = block;
            kept[count].size = ways[w].is_map ? size : 0;
            if (stays)
                count++;
            else
                release(kept[count].block, kept[count].size);
        }
        return blocks;
    }
    return 0;
}

void native_free(void)
{
    while (count) {
        count--;
        release(kept[count].block, kept[count].size);
    }
}
