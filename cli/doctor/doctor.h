/*
 * probing doctor: checks of the machine, of this installation and of the Python processes.  Each
 * tells what it tried and, where something does not work, one remedy.
 *
 * To add a check: a function of this shape in the file of its subject, and its name in the list of
 * doctor.c.
 */
#ifndef PRB_CLI_DOCTOR_H
#define PRB_CLI_DOCTOR_H

#include "cli/command.h"

enum prb_health {
    PRB_WORKS,
    PRB_LIMITED, /* something that few need, or another program in the way */
    PRB_FAILS,
    PRB_UNTOLD, /* the check itself could not be made */
};

struct prb_doctor;

/* One result.  subject: one word; remedy: what the user can do, or "". */
void prb_doctor_tell(struct prb_doctor *doctor, const char *subject, enum prb_health health,
                     const char *remedy, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
/* The same from an error; before it: what was tried. */
void prb_doctor_tell_error(struct prb_doctor *doctor, const char *subject, enum prb_health health,
                           const struct prb_error *err);

/* Whether the text is read by people: JSON has a result for each thing. */
bool prb_doctor_for_people(const struct prb_doctor *doctor);

typedef void prb_doctor_check(struct prb_doctor *doctor);

/* machine.c */
prb_doctor_check prb_doctor_kernel, prb_doctor_looking, prb_doctor_proc, prb_doctor_shared_memory;
/* installation.c */
prb_doctor_check prb_doctor_libraries, prb_doctor_probe, prb_doctor_server,
    prb_doctor_other_probing;
/* processes.c */
prb_doctor_check prb_doctor_processes;

#endif
