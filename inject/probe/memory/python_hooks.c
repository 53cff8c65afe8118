/*
 * Python's allocators of memory and of objects (PyMem_SetAllocator, 3.5+), each wrapped by ours.
 * The raw one is not: it is called without the GIL, and its blocks are seen where it calls malloc.
 *
 * The context that a wrapper is given is that of the wrapped allocator, and it is handed on: so each
 * of the words that PyMem_SetAllocator stores, one after another, fits those that were there, and a
 * free-threaded interpreter may allocate meanwhile.  Wrappers that somebody saved, and calls later,
 * go on to hand everything on.
 */
#include <string.h>

#include "inject/probe/memory/memory.h"
#include "inject/probe/python/api.h"

/* PyMemAllocatorEx (Include/cpython/pymem.h). */
struct prb_py_allocator {
    void *context;
    void *(*malloc)(void *context, size_t size);
    void *(*calloc)(void *context, size_t count, size_t size);
    void *(*realloc)(void *context, void *block, size_t size);
    void (*free)(void *context, void *block);
};

/* The domains PYMEM_DOMAIN_MEM and PYMEM_DOMAIN_OBJ. */
enum { MEM = 1, OBJ = 2 };
static struct prb_py_allocator inner[3]; /* by domain: what is wrapped */

static inline void *do_malloc(int domain, void *context, size_t size)
{
    struct prb_memory_thread *here = prb_memory_enter();
    if (!here)
        return inner[domain].malloc(context, size);
    void *block = inner[domain].malloc(context, size);
    prb_memory_leave(here, block, size, PRB_ALLOCATION_PYTHON, NULL);
    return block;
}

static inline void *do_calloc(int domain, void *context, size_t count, size_t size)
{
    struct prb_memory_thread *here = prb_memory_enter();
    if (!here)
        return inner[domain].calloc(context, count, size);
    void *block = inner[domain].calloc(context, count, size);
    prb_memory_leave(here, block, count * size, PRB_ALLOCATION_PYTHON, NULL);
    return block;
}

static inline void *do_realloc(int domain, void *context, void *block, size_t size)
{
    struct prb_memory_sample before = prb_memory_forget(block);
    struct prb_memory_thread *here = prb_memory_enter();
    if (!here)
        return inner[domain].realloc(context, block, size);
    void *moved = inner[domain].realloc(context, block, size);
    if (!moved)
        prb_memory_restore(&before);
    prb_memory_leave(here, moved, size, PRB_ALLOCATION_PYTHON, NULL);
    return moved;
}

static inline void do_free(int domain, void *context, void *block)
{
    prb_memory_forget(block);
    inner[domain].free(context, block);
}

#define DOMAIN(name, number)                                                                       \
    static void *name##_malloc(void *context, size_t size)                                         \
    {                                                                                              \
        return do_malloc(number, context, size);                                                   \
    }                                                                                              \
    static void *name##_calloc(void *context, size_t count, size_t size)                           \
    {                                                                                              \
        return do_calloc(number, context, count, size);                                            \
    }                                                                                              \
    static void *name##_realloc(void *context, void *block, size_t size)                           \
    {                                                                                              \
        return do_realloc(number, context, block, size);                                           \
    }                                                                                              \
    static void name##_free(void *context, void *block) { do_free(number, context, block); }

DOMAIN(mem, MEM)
DOMAIN(obj, OBJ)

static const struct prb_py_allocator ours[] = {
    [MEM] = {NULL, mem_malloc, mem_calloc, mem_realloc, mem_free},
    [OBJ] = {NULL, obj_malloc, obj_calloc, obj_realloc, obj_free},
};

static bool is_ours(const struct prb_py_api *py, int domain)
{
    struct prb_py_allocator now;
    py->PyMem_GetAllocator(domain, &now);
    return now.malloc == ours[domain].malloc;
}

#define FAR ((int64_t)1 << 40)

/* Whether an allocation comes to our wrapper, be it below another tool's. */
static bool is_reached(const struct prb_py_api *py, int domain, struct prb_memory_thread *here)
{
    int64_t left = here->left;
    here->left = FAR;
    void *block = domain == MEM ? py->PyMem_Malloc(1) : py->PyObject_Malloc(1);
    bool reached = here->left != FAR;
    here->left = left;
    if (domain == MEM)
        py->PyMem_Free(block);
    else
        py->PyObject_Free(block);
    return reached;
}

bool prb_memory_python_put(const struct prb_py_api *py, struct prb_error *err)
{
    if (!py->PyMem_GetAllocator || !py->PyMem_SetAllocator || !py->PyObject_Calloc ||
        !py->PyMem_Malloc || !py->PyMem_Free || !py->PyObject_Malloc || !py->PyObject_Free)
        return prb_fail(err, PRB_UNSUPPORTED, "this interpreter's allocators cannot be set");
    struct prb_memory_thread *here = prb_memory_here();
    if (!here)
        return prb_fail(err, PRB_NOMEM, "there are too many threads");
    for (int domain = MEM; domain <= OBJ; domain++) {
        if (is_reached(py, domain, here))
            continue;
        struct prb_py_allocator wrapper = ours[domain];
        py->PyMem_GetAllocator(domain, &inner[domain]);
        wrapper.context = inner[domain].context;
        py->PyMem_SetAllocator(domain, &wrapper);
    }
    return true;
}

/* One that another tool has wrapped stays: it hands everything on. */
void prb_memory_python_take_out(const struct prb_py_api *py)
{
    for (int domain = MEM; domain <= OBJ; domain++)
        if (inner[domain].malloc && is_ours(py, domain))
            py->PyMem_SetAllocator(domain, &inner[domain]);
}
