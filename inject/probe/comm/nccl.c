/*
 * The NCCL profiler plugin, from the probe's side: it is found by name once NCCL has loaded it, and told where rows go.
 * NCCL looks for a plugin before its first communicator and never again, so a job that runs without one gets none.
 */
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "inject/nccl/host.h"
#include "inject/probe/comm/comm.h"
#include "inject/probe/server/server.h"
#include "inject/probe/settings.h"
#include "inject/probe/tables/tables.h"
#include "inject/probe/thread.h"

#define MASK 94           /* collectives, point to point, proxy operations and steps, kernels */
#define LOOK_NS 100000000 /* no event says that NCCL has loaded it */

static atomic_bool wanted, watching;

static void *open_table(const char *name, const char *columns)
{
    struct prb_error err;
    return prb_probe_table(name, columns, &err);
}

static bool write_row(void *table, const struct prb_ring_value *values)
{
    return prb_ring_write(table, values);
}

static const struct prb_nccl_host host = {PRB_NCCL_VERSION, open_table, write_row};

/* The plugin's function; NULL: it is not loaded.  It never goes again (nodelete). */
static prb_nccl_switch_fn *find(void)
{
    void *plugin = dlopen(PRB_NCCL_LIBRARY, RTLD_LAZY | RTLD_NOLOAD);
    void *symbol = plugin ? dlsym(plugin, PRB_NCCL_SWITCH) : NULL;
    if (plugin)
        dlclose(plugin);
    return (prb_nccl_switch_fn *)symbol;
}

static int mask(void)
{
    const char *text = getenv("NCCL_PROFILE_EVENT_MASK");
    int value = text ? atoi(text) : 0;
    return value > 0 ? value : MASK;
}

static void *watch(void *unused)
{
    const struct timespec pause = {.tv_nsec = LOOK_NS};
    (void)unused;
    while (atomic_load(&wanted)) {
        prb_nccl_switch_fn *set = prb_server_runs_here() ? find() : NULL;
        if (set) {
            set(&host, mask(), (uint64_t)prb_settings_number("probing.nccl.min_msg_bytes", 0));
            break;
        }
        nanosleep(&pause, NULL);
    }
    atomic_store(&watching, false);
    return NULL;
}

void prb_nccl_configure(void)
{
    bool on = prb_settings_number("probing.nccl", 0) != 0;
    atomic_store(&wanted, on);
    prb_nccl_switch_fn *set = on ? NULL : find();
    if (set)
        set(NULL, 0, 0);
    if (on && !atomic_exchange(&watching, true) &&
        !prb_thread_start("probe-nccl", watch, NULL, NULL))
        atomic_store(&watching, false);
}

/* Whether NCCL will load it, or has. */
static bool is_coming(void)
{
    const char *name = getenv(PRB_NCCL_VARIABLE);
    return (name && strstr(name, "probing-nccl")) || find();
}

bool prb_nccl_accepts(const char *key, const char *value, struct prb_error *err)
{
    struct prb_setting_value read;
    int index = prb_setting_find(key);
    if (strcmp(key, "probing.nccl") != 0 || is_coming() ||
        !prb_setting_read(index, value, &read, NULL) || !read.number)
        return true;
    prb_fail(
        err, PRB_UNSUPPORTED,
        "NCCL looks for a profiler plugin before its first communicator only, and this process "
        "was started without ours");
    return prb_error_remedy(err,
                            "start it with `probing launch` or PROBING=1; python.comm_collective "
                            "and python.torch_nccl_flight_record serve without it");
}

void prb_nccl_end(void)
{
    atomic_store(&wanted, false);
    prb_nccl_switch_fn *set = find();
    if (set)
        set(NULL, 0, 0);
}

void prb_nccl_forked(void)
{
    atomic_store(&wanted, false);
    atomic_store(&watching, false);
}
