/* Where the agent's log lies (agent.h). */
#include <stdio.h>

#include "base/state_folder.h"
#include "fleet/agent/agent.h"

struct prb_log_file *prb_agent_log_open(const char *host, struct prb_error *err)
{
    PRB_AUTO_FREE char *folder = prb_state_folder(true, err);
    char token[PRB_BUS_TOKEN], name[100];
    if (!folder)
        return NULL;
    prb_bus_token(host, token);
    snprintf(name, sizeof name, "agent-%.80s.log", token);
    return prb_log_file_open(folder, name, err);
}
