/* Recorded tables: from the functions that Python code calls, and from other parts (tables.h), to rings, under the
 * limits of the settings. */
#include "inject/probe/tables/tables.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "inject/probe/outside/outside.h"
#include "inject/probe/own_fds.h"
#include "inject/probe/part.h"
#include "inject/probe/server/server.h"
#include "inject/probe/settings.h"
#include "inject/probe/start.h"
#include "inject/probe/tables/about.h"
#include "ring/folder.h"
#include "table/recorded/names.h"

#define TABLES_AIM 8 /* so many tables of the greatest size share the memory */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char folder[PRB_RING_PATH_MAX];
static int held = -1; /* keeps the folder from being swept */
static bool was_told; /* to the collector: told */
static int64_t told[PRB_RING_SETTINGS_COUNT];
static bool sampled; /* the collector has been asked to sample stacks */
static struct prb_outside collector = {.words = {"probing.store=on"}};

static int make_folder(void *err)
{
    int fd = -1;
    char path[PRB_RING_PATH_MAX];
    if (!prb_ring_folder_new(path, &fd, err))
        return -1;
    snprintf(folder, sizeof folder, "%s", path);
    prb_tables_about(fd);
    return fd;
}

static uint64_t memory(void) { return (uint64_t)prb_settings_number("probing.max_memory", 0); }
static double retention(void) { return prb_settings_number("probing.retention_days", 0); }

/* What the collector of this process follows, for it to read.  With the lock held. */
static void tell_settings(void)
{
    int64_t values[PRB_RING_SETTINGS_COUNT];
    bool any = false;
    for (enum prb_ring_setting i = 0; i < PRB_RING_SETTINGS_COUNT; i++) {
        const char *key = prb_ring_setting_key(i);
        values[i] =
            prb_ring_setting_number(i, prb_settings_given(key) ? prb_settings_number(key, -1) : -1);
        any = any || values[i] >= 0;
    }
    bool same = was_told ? memcmp(values, told, sizeof told) == 0 : !any;
    if (same || !prb_ring_settings_write(held, values))
        return;
    memcpy(told, values, sizeof told);
    was_told = true;
}

static void set_limits(void)
{
    prb_ring_set_memory(memory());
    prb_ring_set_retention(retention());
}

/* With the lock held. */
static bool ready(struct prb_error *err)
{
    char data_dir[PRB_RING_PATH_MAX];
    if (held >= 0)
        return true;
    *err = (struct prb_error){.code = PRB_IO, .text = "the probe holds too many descriptors"};
    held = prb_own_fd_make(make_folder, err);
    if (held < 0)
        return false;
    set_limits();
    tell_settings();
    if (prb_ring_data_dir(data_dir, NULL))
        prb_ring_sweep(data_dir, retention(), memory());
    return true;
}

/* The collector samples processes that have a folder; who begins with this has no tool beside it that
 * would start one.  With the lock held. */
static void have_sampled(void)
{
    struct prb_error err;
    bool wanted = prb_settings_number("probing.pprof", 0) > 0;
    if (wanted && !sampled && ready(&err))
        prb_outside_start(&collector);
    sampled = wanted;
}

static void configure(void)
{
    set_limits();
    pthread_mutex_lock(&lock);
    have_sampled();
    if (held >= 0)
        tell_settings();
    pthread_mutex_unlock(&lock);
}

struct prb_ring_table *prb_probe_table(const char *name, const char *columns, struct prb_error *err)
{
    if (!prb_server_runs_here()) /* who was detached records nothing, until it starts again */
        return PRB_NULL(prb_fail(err, PRB_BUSY, "no probe runs in this process"));
    struct prb_ring_limits limits = {.bytes_max = memory() / TABLES_AIM, .retention = retention()};
    pthread_mutex_lock(&lock);
    bool made = ready(err);
    pthread_mutex_unlock(&lock);
    return made ? prb_ring_table_parse(folder, name, columns, &limits, err) : NULL;
}

static void *open_table(const char *name, const char *columns, char *error, size_t cap)
{
    struct prb_error err = {0};
    struct prb_ring_table *table = NULL;
    if (prb_recorded_name_is_free(name, &err))
        table = prb_probe_table(name, columns, &err);
    if (!table && snprintf(error, cap, "%s%s%s", err.text, *err.remedy ? "; " : "", err.remedy) < 0)
        *error = '\0';
    return table;
}

static int write_row(void *table, const void *packed, size_t len)
{
    return prb_ring_write_packed(table, packed, len);
}

static void end(void)
{
    static const int64_t nothing[PRB_RING_SETTINGS_COUNT] = {[0 ... PRB_RING_SETTINGS_COUNT - 1] =
                                                                 -1};
    pthread_mutex_lock(&lock);
    if (held >= 0)
        prb_ring_tables_free();
    if (held >= 0 && was_told) /* the collector leaves a process alone that was detached */
        prb_ring_settings_write(held, nothing);
    prb_own_fd_close(held);
    held = -1;
    was_told = sampled = false;
    pthread_mutex_unlock(&lock);
}

static void forked(void)
{
    lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    held = -1;
    was_told = sampled = false;
    prb_outside_forked(&collector);
    folder[0] = '\0';
}

static void status(struct prb_buf *fields)
{
    prb_fields_text(fields, PRB_FLD_PATH, folder, strlen(folder));
}

static void functions(struct prb_probe_functions *out)
{
    out->table = open_table;
    out->row = write_row;
}

const struct prb_probe_part prb_probe_part_tables = {
    .name = "tables",
    .configure = configure,
    .end = end,
    .forked = forked,
    .status = status,
    .functions = functions,
};
