/* What a plugin may call: see probing_plugin.h. */
#include "plugin/host.h"

#include <string.h>

#include "inspect/target.h"
#include "plugin/probing_plugin.h"
#include "sql/table.h"

/* What the plugin has as struct probing_rows. */
static struct prb_rows *ours(const struct probing_rows *rows)
{
    return (struct prb_rows *)(uintptr_t)rows;
}

static struct prb_target *target_of(const struct probing_rows *rows)
{
    return prb_rows_target(ours(rows));
}

static int pid(const struct probing_rows *rows)
{
    struct prb_target *target = target_of(rows);
    return target ? (int)prb_target_info(target)->pid : 0;
}

static int runs(const struct probing_rows *rows)
{
    struct prb_target *target = target_of(rows);
    return target && prb_target_info(target)->kind == PRB_TARGET_PROCESS;
}

static size_t read_memory(const struct probing_rows *rows, uint64_t address, void *out, size_t len)
{
    struct prb_target *target = target_of(rows);
    struct prb_range range = {.addr = address, .buf = out, .len = len};
    return target && prb_mem_readv_some(target->mem, &range, 1, NULL) ? range.got : 0;
}

static long text(const struct probing_rows *rows, const char *name, char *out, size_t cap)
{
    struct prb_target *target = target_of(rows);
    PRB_AUTO(prb_buf) struct prb_buf found = {0};
    if (cap)
        *out = '\0';
    if (!target || !prb_proc_text(target->proc, name, &found, NULL))
        return -1;
    size_t kept = found.len < cap ? found.len : cap ? cap - 1 : 0;
    if (cap) {
        memcpy(out, found.data ? found.data : "", kept);
        out[kept] = '\0';
    }
    return (long)found.len;
}

static void begin(struct probing_rows *rows) { prb_row_begin(ours(rows)); }
static void null(struct probing_rows *rows) { prb_row_null(ours(rows)); }
static void integer(struct probing_rows *rows, int64_t value) { prb_row_int(ours(rows), value); }
static void real(struct probing_rows *rows, double value) { prb_row_real(ours(rows), value); }
static void string(struct probing_rows *rows, const char *value)
{
    prb_row_text(ours(rows), value);
}
static void note(struct probing_rows *rows, const char *said)
{
    prb_rows_warn(ours(rows), "%s", said);
}

const struct probing_host prb_plugin_host = {
    .version = PROBING_PLUGIN_VERSION,
    .size = sizeof prb_plugin_host,
    .pid = pid,
    .runs = runs,
    .read = read_memory,
    .text = text,
    .begin = begin,
    .null = null,
    .integer = integer,
    .real = real,
    .string = string,
    .note = note,
};
