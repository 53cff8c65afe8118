/* Crash dumps as hosts tell of them: fleet/crashes.h. */
#include "fleet/crashes.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/json_text.h"

#define CRASHES_MAX 100000
#define TEXT_MOST 600 /* bytes of a text */

static void forget(struct prb_fleet_crash *one)
{
    free(one->path);
    free(one->kind);
    free(one->title);
    free(one->place);
    free(one->group);
}

void prb_fleet_crashes_deinit(struct prb_fleet_crashes *crashes)
{
    for (size_t i = 0; i < crashes->count; i++)
        forget(&crashes->items[i]);
    free(crashes->items);
    *crashes = (struct prb_fleet_crashes){0};
}

void prb_fleet_crashes_cut(struct prb_fleet_crashes *crashes, size_t count)
{
    while (crashes->count > count)
        forget(&crashes->items[--crashes->count]);
}

void prb_fleet_crashes_drop(struct prb_fleet_crashes *crashes, size_t index)
{
    forget(&crashes->items[index]);
    crashes->items[index] = crashes->items[--crashes->count];
}

bool prb_fleet_crashes_join(struct prb_fleet_crashes *crashes, struct prb_fleet_crashes *other)
{
    for (; other->count; other->count--) {
        if (!PRB_GROW(crashes->items, crashes->count, crashes->cap))
            return false;
        crashes->items[crashes->count++] = other->items[other->count - 1];
    }
    return true;
}

/* ---- as JSON ---- */

static void add_text(struct prb_buf *out, const char *name, const char *text)
{
    prb_buf_addf(out, "\"%s\":", name);
    prb_json_add_text(out, text ? text : "", text ? strnlen(text, TEXT_MOST) : 0);
    prb_buf_addc(out, ',');
}

bool prb_fleet_crash_json(struct prb_buf *out, const char *folder,
                          const struct prb_crash_file *file)
{
    PRB_AUTO_FREE char *path = NULL;
    if (asprintf(&path, "%s/%s", folder, file->name) < 0)
        return false;
    prb_buf_adds(out, "{\"path\":");
    prb_json_add_text(out, path, strlen(path));
    prb_buf_addc(out, ',');
    add_text(out, "kind",
             file->crashed  ? file->kind
             : file->opened ? "snapshot"
             : file->text   ? "text"
                            : "broken");
    add_text(out, "title", file->title);
    add_text(out, "place", file->place);
    add_text(out, "group", file->group);
    prb_buf_addf(out, "\"time\":%.6f,\"pid\":%d,\"rank\":%d,\"bytes\":%llu}",
                 file->time > 0 ? file->time : file->written, (int)file->pid, file->rank,
                 (unsigned long long)file->bytes);
    return prb_buf_ok(out);
}

static char *take_text(const json_t *one, const char *name, size_t most)
{
    const char *text = json_string_value(json_object_get(one, name));
    return text && strlen(text) <= most ? strdup(text) : NULL;
}

static bool take(const json_t *one, struct prb_fleet_crash *out)
{
    json_int_t pid = json_integer_value(json_object_get(one, "pid"));
    json_int_t rank = json_integer_value(json_object_get(one, "rank"));
    json_int_t bytes = json_integer_value(json_object_get(one, "bytes"));
    out->time = json_number_value(json_object_get(one, "time"));
    out->pid = pid > 0 && pid <= INT32_MAX ? (pid_t)pid : 0;
    out->rank = rank >= 0 && rank < PRB_RANKS_MAX ? (int)rank : -1;
    out->bytes = bytes > 0 ? (uint64_t)bytes : 0;
    return (out->path = take_text(one, "path", PRB_CRASH_PATH_MAX + 256)) && *out->path == '/' &&
           (out->kind = take_text(one, "kind", TEXT_MOST)) &&
           (out->title = take_text(one, "title", 3 * TEXT_MOST)) &&
           (out->place = take_text(one, "place", 3 * TEXT_MOST)) &&
           (out->group = take_text(one, "group", TEXT_MOST)) && out->time >= 0;
}

bool prb_fleet_crashes_add(struct prb_fleet_crashes *crashes, const char *host, const json_t *one,
                           bool told, struct prb_error *err)
{
    struct prb_fleet_crash new = {.told = told};
    if (crashes->count >= CRASHES_MAX) {
        crashes->left_out++;
        return true;
    }
    if (!PRB_GROW(crashes->items, crashes->count, crashes->cap))
        return prb_nomem(err);
    snprintf(new.host, sizeof new.host, "%s", host);
    if (!take(one, &new)) {
        forget(&new);
        return prb_fail(err, PRB_CORRUPT, "what %s tells of a crash cannot be parsed", host);
    }
    crashes->items[crashes->count++] = new;
    return true;
}

/* ---- one list ---- */

/* Equal files stand together; of them one that its host tells of first. */
static int by_file(const void *a, const void *b)
{
    const struct prb_fleet_crash *x = a, *y = b;
    int order = (x->time > y->time) - (x->time < y->time);
    if (!order)
        order = (x->pid > y->pid) - (x->pid < y->pid);
    if (!order)
        order = strcmp(x->path, y->path);
    if (!order)
        order = (int)x->told - (int)y->told;
    return order ? order : strcmp(x->host, y->host);
}

/* A folder that hosts share has the same file on each of them. */
static bool is_same(const struct prb_fleet_crash *x, const struct prb_fleet_crash *y)
{
    return x->time == y->time && x->pid == y->pid && x->bytes == y->bytes && x->rank == y->rank &&
           strcmp(x->path, y->path) == 0 && strcmp(x->title, y->title) == 0;
}

void prb_fleet_crashes_settle(struct prb_fleet_crashes *crashes)
{
    size_t kept = 0;
    if (crashes->count)
        qsort(crashes->items, crashes->count, sizeof *crashes->items, by_file);
    for (size_t i = 0; i < crashes->count; i++) {
        if (kept && is_same(&crashes->items[kept - 1], &crashes->items[i]))
            forget(&crashes->items[i]);
        else
            crashes->items[kept++] = crashes->items[i];
    }
    crashes->count = kept;
}
