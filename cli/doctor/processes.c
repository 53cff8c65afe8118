/* Every Python process: can it be looked at, and by which layout. */
#include <stdlib.h>
#include <string.h>

#include "cli/doctor/doctor.h"
#include "cli/print/out.h"

#define COMMAND_MAX 60
#define OTHERS_MAX 200 /* bytes */

PRB_DEFINE_AUTO_PTR(prb_process_list, struct prb_process_list, prb_process_list_free)

/* What several processes have in common, such as another user on a shared machine, is told once to
 * people. */
struct refusal {
    struct prb_error err;    /* of the first */
    char others[OTHERS_MAX]; /* ", PID" of the others, as many as it takes */
    size_t count;
};

struct refusals {
    struct refusal *items;
    size_t count;
};

static void prb_refusals_clear(struct refusals *refusals) { free(refusals->items); }
PRB_DEFINE_AUTO(prb_refusals, struct refusals, prb_refusals_clear)

/* The part of the text that names no process. */
static const char *reason(const struct prb_error *err)
{
    const char *colon = strstr(err->text, ": ");
    return colon ? colon : err->text;
}

static void keep_refusal(struct prb_doctor *doctor, struct refusals *refusals, pid_t pid,
                         const struct prb_error *err)
{
    for (size_t i = 0; prb_doctor_for_people(doctor) && i < refusals->count; i++) {
        struct refusal *same = &refusals->items[i];
        if (strcmp(reason(&same->err), reason(err)) == 0 &&
            strcmp(same->err.remedy, err->remedy) == 0) {
            size_t used = strlen(same->others);
            int len = snprintf(same->others + used, OTHERS_MAX - used, ", %d", (int)pid);
            if (used + (size_t)len >= OTHERS_MAX)
                same->others[used] = '\0'; /* the count tells */
            same->count++;
            return;
        }
    }
    struct refusal *items = realloc(refusals->items, (refusals->count + 1) * sizeof *items);
    if (!items) {
        prb_doctor_tell_error(doctor, "process", PRB_FAILS, err);
        return;
    }
    refusals->items = items;
    items[refusals->count++] = (struct refusal){.err = *err, .count = 1};
}

static void tell_refusals(struct prb_doctor *doctor, struct refusals *refusals)
{
    for (size_t i = 0; i < refusals->count; i++) {
        struct refusal *one = &refusals->items[i];
        if (one->count == 1)
            prb_doctor_tell_error(doctor, "process", PRB_FAILS, &one->err);
        else
            prb_doctor_tell(doctor, "process", PRB_FAILS, one->err.remedy,
                            "%s; the same of %zu more: %s", one->err.text, one->count - 1,
                            one->others + strlen(", "));
    }
}

static void tell_process(struct prb_doctor *doctor, const struct prb_process *process,
                         struct refusals *refusals)
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
        keep_refusal(doctor, refusals, process->pid, &err);
    }
}

void prb_doctor_processes(struct prb_doctor *doctor)
{
    struct prb_error err = {0};
    PRB_AUTO(prb_refusals) struct refusals refusals = {0};
    PRB_AUTO(prb_process_list) struct prb_process_list *list = prb_process_list(&err);
    if (!list) {
        prb_doctor_tell_error(doctor, "process", PRB_UNTOLD, &err);
        return;
    }
    for (size_t i = 0; i < list->count; i++)
        tell_process(doctor, &list->items[i], &refusals);
    tell_refusals(doctor, &refusals);
    if (!list->count)
        prb_doctor_tell(doctor, "process", PRB_WORKS, "", "no Python process is visible to you");
}
