/*
 * What the walk reads: the copied stack first, then pages of the target, each read once.
 * Pages outside the copy belong to the moment they are read at; they hold code, unwind tables and,
 * for stacks deeper than a copy, outer frames, which seldom change.
 */
#include <string.h>

#include "native/unwinder.h"

void prb_unwinder_pages_free(struct prb_unwinder *u)
{
    for (size_t i = 0; i < PRB_PAGES; i++)
        free(u->pages.items[i].bytes);
}

void prb_unwinder_pages_forget(struct prb_unwinder *u, bool code)
{
    for (size_t i = 0; i < PRB_PAGES; i++)
        if (code || !u->pages.items[i].of_file)
            u->pages.items[i].addr = UINT64_MAX; /* no page begins there */
    if (code)
        memset(u->pcs, 0, sizeof u->pcs);
}

static const struct prb_map *map_of(struct prb_unwinder *u, prb_addr addr)
{
    return prb_proc_map_at(u->modules->proc, addr);
}

/* The page at an aligned address, or NULL when it cannot be read. */
static const uint8_t *page_at(struct prb_unwinder *u, prb_addr addr)
{
    struct prb_page *page = &u->pages.items[addr / PRB_PAGE * UINT64_C(0x9e3779b97f4a7c15) >> 54];
    if (page->bytes && page->addr == addr)
        return page->readable ? page->bytes : NULL;
    if (!page->bytes && !(page->bytes = malloc(PRB_PAGE)))
        return NULL;
    const struct prb_map *map = map_of(u, addr);
    page->addr = addr;
    page->of_file = map && map->inode && !map->writable;
    page->readable = prb_mem_read_some(u->mem, addr, page->bytes, PRB_PAGE) == PRB_PAGE;
    return page->readable ? page->bytes : NULL;
}

bool prb_unwinder_read(struct prb_unwinder *u, prb_addr addr, void *out, size_t len)
{
    const struct prb_thread_copy *copy = u->copy;
    if (copy && addr >= copy->stack_start && addr - copy->stack_start < copy->stack_len &&
        len <= copy->stack_len - (addr - copy->stack_start)) {
        memcpy(out, copy->stack + (addr - copy->stack_start), len);
        return true;
    }
    for (size_t done = 0; done < len;) {
        if (addr > UINT64_MAX - len)
            return false;
        size_t within = (addr + done) % PRB_PAGE;
        size_t part = len - done < PRB_PAGE - within ? len - done : PRB_PAGE - within;
        const uint8_t *page = page_at(u, addr + done - within);
        if (!page)
            return false;
        memcpy((char *)out + done, page + within, part);
        done += part;
    }
    return true;
}

bool prb_unwinder_word(struct prb_unwinder *u, prb_addr addr, uint64_t *out)
{
    return prb_unwinder_read(u, addr, out, sizeof *out);
}

static bool is_executable(struct prb_unwinder *u, prb_addr pc)
{
    const struct prb_map *map = map_of(u, pc);
    return map && map->executable;
}

const struct prb_pc *prb_unwinder_pc(struct prb_unwinder *u, prb_addr pc)
{
    struct prb_pc *entry = &u->pcs[pc * UINT64_C(0x9e3779b97f4a7c15) >> 54];
    if (entry->known && entry->pc == pc)
        return entry;
    *entry = (struct prb_pc){.pc = pc, .known = true};
    entry->executable = is_executable(u, pc);
    uint8_t code[PRB_CALL_MAX];
    if (pc > PRB_CALL_MAX && pc % u->arch->code_align == 0 && is_executable(u, pc - 1) &&
        prb_unwinder_read(u, pc - PRB_CALL_MAX, code, sizeof code))
        entry->after_call = u->arch->ends_in_call(code);
    uint8_t next[16];
    if (entry->executable && prb_unwinder_read(u, pc, next, u->arch->signal_return_len))
        entry->signal_return =
            memcmp(next, u->arch->signal_return, u->arch->signal_return_len) == 0;
    return entry;
}
