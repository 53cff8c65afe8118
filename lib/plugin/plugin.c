/* Finding and loading plugins, and their tables as ours: see plugin.h. */
#include "plugin/plugin.h"

#include <ctype.h>
#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "plugin/host.h"
#include "plugin/probing_plugin.h"

#define ENTRY "probing_plugin_v1"
#define COLUMNS_MAX 63
#define TABLES_MAX 256
#define NOTE_MAX 1000

struct plugged {
    struct prb_table table; /* first */
    const struct probing_table *theirs;
    struct prb_column columns[COLUMNS_MAX + 1];
};

static const char installed[] =
#include "plugin/folder.inc"
    ;

/* Of this process, made once. */
static struct {
    pthread_mutex_t lock;
    bool loaded;
    const struct prb_table *tables[TABLES_MAX]; /* the first of struct plugged */
    size_t count;
    char note[NOTE_MAX]; /* what could not be loaded, or "" */
} all = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void complain(const char *format, ...)
{
    va_list args;
    size_t len = strlen(all.note);
    if (len && len + 2 < NOTE_MAX)
        len += (size_t)snprintf(all.note + len, NOTE_MAX - len, "; ");
    va_start(args, format);
    vsnprintf(all.note + len, NOTE_MAX - len, format, args);
    va_end(args);
}

/* ---- a table of theirs as one of ours ---- */

static bool fill(struct prb_rows *rows, struct prb_error *err)
{
    const struct plugged *plugged = (const struct plugged *)prb_rows_table(rows);
    const struct prb_table *table = &plugged->table;
    char why[256] = "it gave no reason";
    if (plugged->theirs->fill((struct probing_rows *)rows, why, sizeof why) == 0)
        return true;
    why[sizeof why - 1] = '\0';
    return prb_fail(err, PRB_UNSUPPORTED, "%s.%s: %s", table->schema, table->name, why);
}

static bool is_name(const char *text)
{
    if (!text || !*text || isdigit((unsigned char)*text) || strlen(text) > COLUMNS_MAX)
        return false;
    for (; *text; text++)
        if (!isalnum((unsigned char)*text) && *text != '_')
            return false;
    return true;
}

static bool take_columns(const struct probing_table *theirs, struct prb_column *out)
{
    static const enum prb_type types[] = {
        [PROBING_INTEGER] = PRB_INTEGER, [PROBING_REAL] = PRB_REAL, [PROBING_TEXT] = PRB_TEXT};
    size_t count = 0;
    for (const struct probing_column *column = theirs->columns; column->name; column++) {
        if (count == COLUMNS_MAX || !is_name(column->name) || column->type < PROBING_INTEGER ||
            column->type > PROBING_TEXT)
            return false;
        for (size_t i = 0; i < count; i++)
            if (strcasecmp(out[i].name, column->name) == 0)
                return false;
        out[count++] = (struct prb_column){.name = column->name,
                                           .type = types[column->type],
                                           .unit = column->unit ? column->unit : "",
                                           .doc = column->doc ? column->doc : ""};
    }
    return count > 0;
}

static bool is_taken(const struct prb_table *const *tables, size_t count,
                     const struct probing_table *theirs)
{
    for (size_t i = 0; i < count; i++)
        if (strcasecmp(tables[i]->schema, theirs->schema) == 0 &&
            strcasecmp(tables[i]->name, theirs->name) == 0)
            return true;
    return false;
}

/* NULL: it is wrong, and a complaint says so. */
static struct plugged *adopt(const char *plugin, const struct probing_table *theirs)
{
    if (theirs->size < sizeof *theirs || !is_name(theirs->schema) || !is_name(theirs->name) ||
        !theirs->columns || !theirs->fill) {
        complain("%s: a table of it is not whole, or its name is not valid", plugin);
        return NULL;
    }
    struct plugged *plugged = calloc(1, sizeof *plugged);
    if (!plugged)
        return NULL;
    if (!take_columns(theirs, plugged->columns)) {
        complain("%s: the columns of %s.%s are not valid", plugin, theirs->schema, theirs->name);
        free(plugged);
        return NULL;
    }
    plugged->theirs = theirs;
    plugged->table = (struct prb_table){.schema = theirs->schema,
                                        .name = theirs->name,
                                        .doc = theirs->doc ? theirs->doc : "",
                                        .columns = plugged->columns,
                                        .needs_target = theirs->needs_target != 0,
                                        .fill = fill};
    return plugged;
}

/* ---- one plugin ---- */

static void take_tables(const char *path, const struct probing_plugin *plugin,
                        const struct prb_table *const *taken, size_t taken_count)
{
    for (size_t i = 0; plugin->tables[i] && all.count < TABLES_MAX; i++) {
        const struct probing_table *theirs = plugin->tables[i];
        struct plugged *plugged = adopt(path, theirs);
        if (!plugged)
            continue;
        if (is_taken(taken, taken_count, theirs) || is_taken(all.tables, all.count, theirs)) {
            complain("%s: there is a table %s.%s already", path, theirs->schema, theirs->name);
            free(plugged);
            continue;
        }
        all.tables[all.count++] = &plugged->table;
    }
}

static void load(const char *path, const struct prb_table *const *taken, size_t taken_count)
{
    char real[4096];
    struct prb_error err = {0};
    if (!prb_plugin_is_safe(path, real, &err)) {
        complain("plugin %s is not loaded: %s", path, err.text);
        return;
    }
    void *library = dlopen(real, RTLD_NOW | RTLD_LOCAL);
    const struct probing_plugin *(*entry)(const struct probing_host *) = NULL;
    void *found = library ? dlsym(library, ENTRY) : NULL;
    memcpy(&entry, &found, sizeof entry);
    if (!entry) {
        complain("plugin %s is not loaded: %s", path, library ? "it has no " ENTRY : dlerror());
        return;
    }
    const struct probing_plugin *plugin = entry(&prb_plugin_host);
    if (!plugin || plugin->version != PROBING_PLUGIN_VERSION || plugin->size < sizeof *plugin ||
        !plugin->tables)
        complain("plugin %s does not work with this version of Probing", path);
    else
        take_tables(path, plugin, taken, taken_count);
}

/* ---- where they are ---- */

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int is_library(const struct dirent *entry)
{
    const char *dot = strrchr(entry->d_name, '.');
    return entry->d_name[0] != '.' && dot && strcmp(dot, ".so") == 0;
}

static void load_folder(const char *folder, const struct prb_table *const *taken, size_t count)
{
    struct dirent **list = NULL;
    int found = access(folder, R_OK) == 0 ? scandir(folder, &list, is_library, by_name) : 0;
    for (int i = 0; i < found; i++) {
        PRB_AUTO(prb_buf) struct prb_buf path = {0};
        prb_buf_addf(&path, "%s/%s", folder, list[i]->d_name);
        if (prb_buf_ok(&path))
            load(path.data, taken, count);
        free(list[i]);
    }
    free(list);
}

static void load_named(const char *paths, const struct prb_table *const *taken, size_t count)
{
    for (const char *at = paths; at && *at;) {
        size_t len = strcspn(at, ":");
        PRB_AUTO(prb_buf) struct prb_buf path = {0};
        prb_buf_add(&path, at, len);
        if (len && prb_buf_ok(&path))
            load(path.data, taken, count);
        at += len + (at[len] == ':');
    }
}

/* ---- the source ---- */

struct plugins {
    struct prb_table_source source; /* first */
    bool listed;
};

static bool changed(struct prb_table_source *source)
{
    return !((struct plugins *)source)->listed && (all.count || all.note[0]);
}

static bool list(struct prb_table_source *source, const struct prb_table *const **out,
                 size_t *count_out, struct prb_error *err)
{
    (void)err;
    ((struct plugins *)source)->listed = true;
    *out = all.tables;
    *count_out = all.count;
    return true;
}

static const char *note(struct prb_table_source *source)
{
    (void)source;
    return all.note[0] ? all.note : NULL;
}

static void free_source(struct prb_table_source *source) { free(source); }

struct prb_table_source *prb_plugin_tables(const struct prb_table *const *taken, size_t count,
                                           struct prb_error *err)
{
    struct plugins *plugins = calloc(1, sizeof *plugins);
    if (!plugins)
        return PRB_NULL(prb_nomem(err));
    pthread_mutex_lock(&all.lock);
    if (!all.loaded) {
        all.loaded = true;
        load_named(getenv("PROBING_PLUGINS"), taken, count);
        load_folder(installed, taken, count);
    }
    pthread_mutex_unlock(&all.lock);
    plugins->source = (struct prb_table_source){
        .changed = changed, .list = list, .note = note, .free = free_source};
    return &plugins->source;
}
