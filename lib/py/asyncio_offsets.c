/*
 * The offsets that the C module of asyncio publishes of itself: Py_AsyncioModuleDebugOffsets of
 * Modules/_asynciomodule.c, in section .AsyncioDebug of the module's file or the interpreter's.
 */
#include <endian.h>
#include <string.h>

#include "proc/elf.h"
#include "py/asyncio.h"

#define STRUCT_MAX (1 << 20)

/* The table's words in their order. */
enum {
    TASK_SIZE,
    TASK_NAME,
    TASK_AWAITED_BY,
    TASK_IS_TASK,
    TASK_AWAITED_BY_IS_SET,
    TASK_CORO,
    TASK_NODE,
    INTERP_SIZE,
    INTERP_TASKS,
    THREAD_SIZE,
    THREAD_LOOP,
    THREAD_TASK,
    THREAD_TASKS,
    WORDS
};

static const struct {
    int word, size;
    enum prb_field field;
} rows[] = {
    {TASK_NAME, TASK_SIZE, PRB_F_asyncio_task_name},
    {TASK_AWAITED_BY, TASK_SIZE, PRB_F_asyncio_task_awaited_by},
    {TASK_AWAITED_BY_IS_SET, TASK_SIZE, PRB_F_asyncio_task_awaited_by_is_set},
    {TASK_CORO, TASK_SIZE, PRB_F_asyncio_task_coro},
    {TASK_NODE, TASK_SIZE, PRB_F_asyncio_task_node},
    {INTERP_TASKS, INTERP_SIZE, PRB_F_interp_asyncio_tasks},
    {THREAD_LOOP, THREAD_SIZE, PRB_F_thread_asyncio_loop},
    {THREAD_TASK, THREAD_SIZE, PRB_F_thread_asyncio_task},
    {THREAD_TASKS, THREAD_SIZE, PRB_F_thread_asyncio_tasks},
};

static bool may_hold_it(const struct prb_module *module)
{
    const char *slash = strrchr(module->path, '/');
    const char *name = slash ? slash + 1 : module->path;
    return strstr(name, "_asyncio") || strstr(name, "python");
}

static bool find_table(struct prb_modules *modules, prb_addr *out)
{
    for (size_t i = 0; i < modules->count; i++) {
        struct prb_module *module = &modules->items[i];
        uint64_t addr, size;
        struct prb_elf *elf = may_hold_it(module) ? prb_modules_elf(modules, module, NULL) : NULL;
        if (elf && prb_elf_section(elf, ".AsyncioDebug", &addr, &size) && size >= 8 * WORDS) {
            *out = addr + module->bias;
            return true;
        }
    }
    return false;
}

bool prb_asyncio_offsets_apply(struct prb_modules *modules, struct prb_mem *mem,
                               struct prb_layout *layout)
{
    uint64_t words[WORDS];
    prb_addr at;
    if (!PRB_HAS(layout, asyncio_task, node) || !find_table(modules, &at) ||
        !prb_mem_read(mem, at, words, sizeof words, NULL))
        return false;
    for (size_t i = 0; i < WORDS; i++)
        words[i] = le64toh(words[i]);
    if (words[TASK_SIZE] != (uint64_t)PRB_OFF(layout, asyncio_task, size))
        return false; /* another struct, whose other members we don't know */
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint64_t offset = words[rows[i].word], size = words[rows[i].size];
        unsigned width = prb_field_width(rows[i].field);
        if (size <= STRUCT_MAX && offset + width <= size && (!width || offset % width == 0))
            layout->offset[rows[i].field] = (int32_t)offset;
    }
    return true;
}
