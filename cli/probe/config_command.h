/* The probe's settings as config prints them; for the REPL's %config, too. */
#ifndef PRB_CLI_CONFIG_H
#define PRB_CLI_CONFIG_H

#include "cli/probe/probe.h"

bool prb_config_list(struct prb_control *control, bool json, struct prb_error *err);
/* KEY: print its value; KEY=VALUE: set it, and print it. */
bool prb_config_word(struct prb_control *control, const char *word, struct prb_error *err);

#endif
