/* Every Python process: can it be looked at, and by which layout. */
#include <string.h>

#include "cli/doctor/doctor.h"
#include "cli/print/out.h"

#define COMMAND_MAX 60

PRB_DEFINE_AUTO_PTR(prb_process_list, struct prb_process_list, prb_process_list_free)

static void tell_process(struct prb_doctor *doctor, const struct prb_process *process)
{
    char command[COMMAND_MAX + 8];
    struct prb_error err = {0};
    PRB_AUTO(prb_target) struct prb_target *target = prb_target_open_pid(process->pid, &err);
    prb_process_short_command(process, COMMAND_MAX, command, sizeof command);
    if (target) {
        const struct prb_target_info *info = prb_target_info(target);
        prb_doctor_tell(doctor, "process", PRB_WORKS, "", "%d, CPython %s, %s: %s",
                        (int)process->pid, info->python, command, info->layout);
    } else if (err.code != PRB_GONE) {
        prb_doctor_tell_error(doctor, "process", PRB_FAILS, &err);
    }
}

void prb_doctor_processes(struct prb_doctor *doctor)
{
    struct prb_error err = {0};
    PRB_AUTO(prb_process_list) struct prb_process_list *list = prb_process_list(&err);
    if (!list) {
        prb_doctor_tell_error(doctor, "process", PRB_UNTOLD, &err);
        return;
    }
    for (size_t i = 0; i < list->count; i++)
        tell_process(doctor, &list->items[i]);
    if (!list->count)
        prb_doctor_tell(doctor, "process", PRB_WORKS, "", "no Python process is visible to you");
}
