/* settings.h: what the environment says of how a job is asked and answered; the list is settings.def. */
#ifndef PRB_FLEET_SETTINGS_H
#define PRB_FLEET_SETTINGS_H

#include "probing.h"

enum prb_fleet_setting {
#define S(name, dotted, unit, first, least, most, doc) PRB_FLEET_##name,
#include "fleet/settings.def"
#undef S
    PRB_FLEET_SETTINGS
};

/* In s, bytes or as a count; 0: it is not set, and has no default.  What is no such value counts as
 * not set. */
double prb_fleet_setting(enum prb_fleet_setting which);
/* The same; otherwise: where it is not set. */
double prb_fleet_setting_or(enum prb_fleet_setting which, double otherwise);
/* USAGE: one of them is no such value.  Whoever opens a job or begins an agent asks first. */
bool prb_fleet_settings_check(struct prb_error *err);

#endif
