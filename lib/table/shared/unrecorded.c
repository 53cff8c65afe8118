/* How recording begins, where nothing is recorded: see unrecorded.h. */
#include "table/shared/unrecorded.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/file.h"
#include "inject/control.h"
#include "inspect/target.h"
#include "sql/db.h"
#include "sql/rows.h"
#include "table/recorded/each.h"
#include "training/trace.h"

#define LIBRARY "libtorch_cpu.so"
#define PLAIN "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"
#define SETTING "probing.torch.profiling"

PRB_DEFINE_AUTO_PTR(prb_control, struct prb_control, prb_control_close)

const char *prb_rows_command(struct prb_rows *rows, char out[PRB_COMMAND_MAX])
{
    const struct prb_db *db = prb_rows_db(rows);
    const struct prb_target *target = prb_rows_target(rows);
    if (db->job) /* by its launcher's name for it, unless a shell would take that for something else */
        snprintf(out, PRB_COMMAND_MAX, "probing -t @%.120s",
                 db->job[strspn(db->job, PLAIN)] ? "JOB" : db->job);
    else if (!target || db->of_several) /* equal notes of several processes become one */
        snprintf(out, PRB_COMMAND_MAX, "probing PID");
    else
        snprintf(out, PRB_COMMAND_MAX, "probing %d", (int)target->info.pid);
    return out;
}

static bool stop(void *context, const struct prb_ring_value *values)
{
    (void)values;
    *(bool *)context = true;
    return false; /* one is enough */
}

/* Also where what was recorded has other times than the statement asks for. */
static bool was_recorded(struct prb_rows *rows)
{
    struct prb_error err = {0};
    bool any = false;
    return !prb_recorded_each(rows, PRB_TRACE_NAMES_RING, PRB_TRACE_NAMES_COLUMNS, stop, &any,
                              &err) ||
           any;
}

static bool has_torch(struct prb_proc *proc)
{
    PRB_AUTO(prb_maps) struct prb_maps maps = {0};
    if (!prb_proc_maps_now(proc, &maps, NULL))
        return true; /* not known: nothing is said of it */
    for (size_t i = 0; i < maps.count; i++)
        if (strcmp(prb_base_name(maps.items[i].path), LIBRARY) == 0)
            return true;
    return false;
}

/* As the probe says; without one it is off. */
static bool is_off(pid_t pid)
{
    PRB_AUTO_FREE char *value = NULL;
    PRB_AUTO(prb_control)
    struct prb_control *control = prb_control_present(pid) ? prb_control_open(pid, NULL) : NULL;
    return !control || !prb_control_config_get(control, SETTING, &value, NULL) ||
           strcasecmp(value, "off") == 0;
}

void prb_note_unrecorded(struct prb_rows *rows, bool others)
{
    char command[PRB_COMMAND_MAX];
    struct prb_target *target = prb_rows_target(rows);
    if (!target || target->info.kind != PRB_TARGET_PROCESS || !prb_proc_exists(target->proc) ||
        rows->count || was_recorded(rows))
        return;
    bool torch = has_torch(target->proc);
    if (others && !torch)
        return;
    bool off = is_off((pid_t)target->info.pid);
    const char *later = torch ? "" : "; PyTorch is not imported yet: recording begins when it is";
    if (off)
        prb_rows_warn(rows, "recording of PyTorch is off: `%s config " SETTING "=on` turns it on%s",
                      prb_rows_command(rows, command), later);
    else if (!torch)
        prb_rows_warn(rows, "PyTorch is not imported yet: recording begins when it is");
    else
        prb_rows_warn(rows, "recording of PyTorch is on, and nothing has been recorded yet");
}
