/*
 * What all processes have in common, live or not: texts and their recording, and maps.  The sources
 * (live.c, core.c) give texts; this file, maps.c and task.c read them.
 */
#include "proc/source.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Texts that are saved: some for each thread. */
#define TEXTS_MAX (4u * PRB_TASKS_MAX)

void prb_proc_deinit(struct prb_proc *proc)
{
    for (size_t i = 0; i < proc->text_count; i++) {
        free(proc->texts[i].name);
        prb_buf_deinit(&proc->texts[i].text);
    }
    free(proc->texts);
    prb_index_deinit(&proc->text_index);
    prb_maps_deinit(&proc->maps);
    free(proc->asked);
    prb_mem_free(proc->mem);
}

void prb_proc_free(struct prb_proc *proc)
{
    if (proc)
        proc->ops->free(proc);
}

pid_t prb_proc_pid(const struct prb_proc *proc) { return proc->pid; }

bool prb_proc_live(const struct prb_proc *proc) { return proc->ops == &prb_proc_live_ops; }

bool prb_proc_exists(const struct prb_proc *proc) { return proc->exists; }

double prb_proc_time(const struct prb_proc *proc) { return proc->time; }

bool prb_proc_is_snapshot(const struct prb_proc *proc) { return proc->snapshot; }

int prb_proc_signal(const struct prb_proc *proc, pid_t *tid_out)
{
    *tid_out = proc->signalled;
    return proc->signal;
}

bool prb_proc_check(struct prb_proc *proc, struct prb_error *err)
{
    return proc->ops->check(proc, err);
}

/* ---- texts ---- */

static uint64_t hash_of(const char *name) { return prb_hash_bytes(name, strlen(name)); }

static uint64_t text_hash(const void *texts, uint32_t i)
{
    return hash_of(((const struct prb_proc_text *)texts)[i].name);
}

static bool text_has_name(const void *texts, uint32_t i, const void *name)
{
    return strcmp(((const struct prb_proc_text *)texts)[i].name, name) == 0;
}

static const struct prb_index_kind texts_by_name = {text_hash, text_has_name};

const struct prb_proc_text *prb_proc_saved_text(const struct prb_proc *proc, const char *name)
{
    uint32_t found =
        prb_index_find(&proc->text_index, &texts_by_name, proc->texts, hash_of(name), name);
    return found == PRB_NO_ITEM ? NULL : &proc->texts[found];
}

bool prb_proc_save_text(struct prb_proc *proc, const char *name, const char *text, size_t len)
{
    struct prb_proc_text *kept = (struct prb_proc_text *)prb_proc_saved_text(proc, name);
    if (!kept) {
        if (proc->text_count == TEXTS_MAX ||
            !PRB_GROW(proc->texts, proc->text_count, proc->text_cap))
            return false;
        kept = &proc->texts[proc->text_count];
        *kept = (struct prb_proc_text){.name = strdup(name)};
        if (!kept->name)
            return false;
        if (!prb_index_add(&proc->text_index, &texts_by_name, proc->texts, hash_of(name),
                           (uint32_t)proc->text_count)) {
            free(kept->name);
            return false;
        }
        proc->text_count++;
    }
    kept->text.len = 0;
    prb_buf_add(&kept->text, text, len);
    return prb_buf_ok(&kept->text);
}

void prb_proc_record(struct prb_proc *proc) { proc->recording = true; }

bool prb_proc_records(const struct prb_proc *proc) { return proc->recording; }

void prb_proc_set_stopped(struct prb_proc *proc) { proc->stopped = true; }

bool prb_proc_answer_saved(const struct prb_proc *proc, const char *name, struct prb_buf *out)
{
    const struct prb_proc_text *kept = proc->stopped ? prb_proc_saved_text(proc, name) : NULL;
    if (kept)
        prb_buf_add(out, kept->text.data, kept->text.len);
    return kept && prb_buf_ok(out);
}

bool prb_proc_record_text(struct prb_proc *proc, const char *name, const struct prb_buf *out,
                          size_t from, struct prb_error *err)
{
    if (!prb_buf_ok(out) ||
        (proc->recording && !prb_proc_save_text(proc, name, out->data + from, out->len - from)))
        return prb_nomem(err);
    return true;
}

bool prb_proc_text(struct prb_proc *proc, const char *name, struct prb_buf *out,
                   struct prb_error *err)
{
    size_t from = out->len;
    prb_buf_add(out, "", 0);
    return prb_proc_answer_saved(proc, name, out) ||
           (proc->ops->text(proc, name, out, err) &&
            prb_proc_record_text(proc, name, out, from, err));
}

#define KEPT_MAX 512   /* descriptors from there on are for others */
#define KEPT_LINE 2048 /* bytes */

bool prb_proc_line(struct prb_proc *proc, const char *name, int *fd, struct prb_buf *out)
{
    char line[KEPT_LINE];
    if (!proc->ops->open || proc->recording || proc->stopped)
        return prb_proc_text(proc, name, out, NULL);
    if (*fd < 0)
        *fd = proc->ops->open(proc, name);
    ssize_t len = *fd < 0 ? -1 : pread(*fd, line, sizeof line, 0);
    if (*fd >= 0 && (len <= 0 || *fd >= KEPT_MAX)) {
        close(*fd);
        *fd = -1;
    }
    if (len == sizeof line) /* there may be more */
        return prb_proc_text(proc, name, out, NULL);
    if (len > 0)
        prb_buf_add(out, line, (size_t)len);
    return len > 0 && prb_buf_ok(out);
}

/* The kernel gives the map in pieces: of a process that maps and unmaps meanwhile two may not fit
 * together. */
#define MAPS_TRIES 16
bool prb_proc_maps_now(struct prb_proc *proc, struct prb_maps *out, struct prb_error *err)
{
    unsigned left = prb_proc_live(proc) ? MAPS_TRIES : 1;
    struct prb_error wrong = {0};
    do {
        PRB_AUTO(prb_buf) struct prb_buf text = {0};
        if (!prb_proc_text(proc, "maps", &text, err))
            return false;
        if (prb_maps_parse(text.data ? text.data : "", text.len, out, &wrong))
            return true;
    } while (wrong.code == PRB_CORRUPT && --left);
    if (err)
        *err = wrong;
    return false;
}

bool prb_proc_ask_code_maps(struct prb_proc *proc, struct prb_maps *out)
{
    return proc->ops->code_maps && !proc->recording && proc->ops->code_maps(proc, out);
}

bool prb_proc_code_maps(struct prb_proc *proc, struct prb_maps *out, struct prb_error *err)
{
    return prb_proc_ask_code_maps(proc, out) || prb_proc_maps_now(proc, out, err);
}

const struct prb_maps *prb_proc_maps(struct prb_proc *proc, bool refresh, struct prb_error *err)
{
    if (proc->maps_read && !refresh)
        return &proc->maps;
    struct prb_maps maps;
    if (!prb_proc_maps_now(proc, &maps, err))
        return NULL;
    if (maps.count == 0) {
        prb_maps_deinit(&maps);
        return PRB_NULL(
            prb_fail(err, PRB_GONE, "process %d has no memory: it is ending", (int)proc->pid));
    }
    prb_proc_forget_maps(proc);
    proc->maps = maps;
    proc->maps_read = true;
    return &proc->maps;
}

bool prb_proc_map_from(struct prb_proc *proc, prb_addr addr, bool code, struct prb_map *out)
{
    if (proc->ops->map_from && !proc->recording && proc->ops->map_from(proc, addr, code, out))
        return out->end > 0;
    const struct prb_maps *maps = prb_proc_maps(proc, false, NULL);
    for (size_t i = 0; maps && i < maps->count; i++) {
        const struct prb_map *map = &maps->items[i];
        if (map->end > addr && (!code || (map->executable && map->inode))) {
            *out = *map;
            return true;
        }
    }
    return false;
}

/* After so many questions all maps are read: they cost as much. */
#define ASKS_MAX 256

static bool ask_for_map(struct prb_proc *proc, prb_addr addr, struct prb_map *out)
{
    return proc->ops->map_from && !proc->recording && !proc->maps_read && proc->asks++ < ASKS_MAX &&
           proc->ops->map_from(proc, addr, false, out);
}

const struct prb_map *prb_proc_map_at(struct prb_proc *proc, prb_addr addr)
{
    struct prb_map found;
    for (size_t i = 0; i < proc->asked_count; i++)
        if (addr >= proc->asked[i].start && addr < proc->asked[i].end)
            return &proc->asked[i];
    if (!ask_for_map(proc, addr, &found) ||
        !PRB_GROW(proc->asked, proc->asked_count, proc->asked_cap)) {
        const struct prb_maps *maps = prb_proc_maps(proc, false, NULL);
        return maps ? prb_maps_find(maps, addr) : NULL;
    }
    if (found.end <= addr || found.start > addr)
        return NULL;
    proc->asked[proc->asked_count] = found;
    return &proc->asked[proc->asked_count++];
}

void prb_proc_forget_maps(struct prb_proc *proc)
{
    prb_maps_deinit(&proc->maps);
    proc->maps_read = false;
    proc->asked_count = proc->asks = 0;
}

/* ---- the rest is the source's ---- */

bool prb_proc_registers(struct prb_proc *proc, pid_t tid, struct prb_registers *out,
                        struct prb_error *err)
{
    return proc->ops->registers(proc, tid, out, err);
}

int prb_proc_open_map(struct prb_proc *proc, const struct prb_map *map, struct prb_error *err)
{
    return proc->ops->open_map(proc, map, err);
}

int prb_proc_open_path(struct prb_proc *proc, const char *path)
{
    return proc->ops->open_path(proc, path);
}

struct prb_mem *prb_proc_mem(struct prb_proc *proc, struct prb_error *err)
{
    if (!proc->mem)
        proc->mem = proc->ops->mem_new(proc, err);
    return proc->mem;
}
