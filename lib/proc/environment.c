/* See environment.h. */
#include "proc/environment.h"

#include <string.h>

#include "base/file.h"
#include "proc/elf.h"
#include "proc/ranks.h"

#define VARIABLES_MAX 4096
#define VARIABLE_MAX 4096 /* bytes of one; longer ones say nothing of ranks */
#define BATCH 64
#define STEP 512 /* bytes of which few variables have more */
#define PAGE 4096

struct batch {
    char steps[BATCH][STEP];
    char whole[VARIABLE_MAX];
};

static const struct prb_map *mapped(const struct prb_maps *maps, const char *const *names)
{
    for (size_t i = 0; i < maps->count; i++)
        for (const char *const *name = names; *name; name++)
            if (maps->items[i].executable &&
                strncmp(prb_base_name(maps->items[i].path), *name, strlen(*name)) == 0)
                return &maps->items[i];
    return NULL;
}

/* Where libc keeps the pointer to its list; 0: not found. */
static prb_addr list_of(struct prb_proc *proc, const struct prb_map *libc)
{
    struct prb_symbol symbol;
    uint64_t bias;
    int fd = prb_proc_open_map(proc, libc, NULL);
    PRB_AUTO(prb_elf) struct prb_elf *elf = fd < 0 ? NULL : prb_elf_open(fd, libc->path, NULL);
    if (!elf || !prb_elf_symbol(elf, "environ", &symbol, NULL) ||
        !prb_elf_bias(elf, libc->start, libc->offset, true, &bias))
        return 0;
    return bias + symbol.value;
}

/* One that does not end in its step. */
static void add_long(struct prb_mem *mem, prb_addr at, char text[VARIABLE_MAX], struct prb_buf *out)
{
    size_t first = PAGE - at % PAGE; /* the next page may be missing */
    struct prb_range parts[] = {{at, text, first, 0},
                                {at + first, text + first, VARIABLE_MAX - first, 0}};
    if (!prb_mem_readv_some(mem, parts, first < VARIABLE_MAX ? 2 : 1, NULL))
        return;
    size_t got = parts[0].got + parts[1].got, len = strnlen(text, got);
    if (len < got)
        prb_buf_add(out, text, len + 1);
}

/*
 * Read a batch of variables; those that are cut are left out.  A step ends with its page, behind
 * which there may be none: the first variables lie at the end of the stack.  So one call reads all.
 */
static void add_batch(struct prb_mem *mem, const uint64_t *at, size_t count, struct batch *batch,
                      struct prb_buf *out)
{
    struct prb_range ranges[BATCH];
    for (size_t i = 0; i < count; i++) {
        size_t left = PAGE - at[i] % PAGE;
        ranges[i] = (struct prb_range){at[i], batch->steps[i], left < STEP ? left : STEP, 0};
    }
    if (!prb_mem_readv_some(mem, ranges, count, NULL))
        return;
    for (size_t i = 0; i < count; i++) {
        size_t len = strnlen(ranges[i].buf, ranges[i].got);
        if (len && len < ranges[i].got)
            prb_buf_add(out, ranges[i].buf, len + 1);
        else if (len)
            add_long(mem, at[i], batch->whole, out);
    }
}

static void add_list(struct prb_mem *mem, prb_addr list, struct prb_buf *out)
{
    uint64_t at[BATCH];
    PRB_AUTO_FREE struct batch *batch = malloc(sizeof *batch);
    for (size_t done = 0; batch && done < VARIABLES_MAX; done += BATCH) {
        size_t got = prb_mem_read_some(mem, list + done * sizeof *at, at, sizeof at) / sizeof *at;
        size_t count = 0;
        while (count < got && at[count])
            count++;
        add_batch(mem, at, count, batch, out);
        if (count < BATCH)
            return;
    }
}

static void from_memory(struct prb_proc *proc, const struct prb_maps *code, struct prb_buf *out)
{
    static const char *const torch[] = {"libtorch", NULL};
    static const char *const libcs[] = {"libc.so", "libc-2", "ld-musl", NULL};
    const struct prb_map *libc = mapped(code, torch) ? mapped(code, libcs) : NULL;
    struct prb_mem *mem = libc ? prb_proc_mem(proc, NULL) : NULL;
    prb_addr at = mem ? list_of(proc, libc) : 0;
    uint64_t list;
    if (at && prb_mem_u64(mem, at, &list, NULL) && list)
        add_list(mem, list, out);
}

bool prb_proc_environment(struct prb_proc *proc, const struct prb_maps *code, struct prb_buf *out)
{
    size_t before = out->len;
    struct prb_ranks ranks = {-1, -1, -1};
    bool ok = prb_proc_text(proc, "environ", out, NULL) && out->data;
    if (ok && out->len > before && out->data[out->len - 1])
        prb_buf_addc(out, '\0');
    if (ok)
        prb_ranks_of(out, &ranks);
    if (ranks.rank >= 0 || !prb_proc_live(proc))
        return ok;
    PRB_AUTO(prb_buf) struct prb_buf now = {0};
    PRB_AUTO(prb_maps) struct prb_maps own = {0};
    if (!code && prb_proc_code_maps(proc, &own, NULL))
        code = &own;
    if (code)
        from_memory(proc, code, &now);
    if (!now.len || !prb_buf_ok(&now))
        return ok;
    out->len = before;
    prb_buf_add(out, now.data, now.len);
    return prb_buf_ok(out);
}
