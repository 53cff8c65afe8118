/* From the arguments of attach or launch to a back end. */
#ifndef PRB_DAP_ATTACH_H
#define PRB_DAP_ATTACH_H

#include "dap/session/session.h"

/* Whether the client is let in: it has shown the token, where one is needed. */
bool prb_dap_authorize(struct prb_dap_session *session, const char *token, struct prb_error *err);
/* Whether a request shows the token; the client is let in from here on. */
bool prb_dap_shows_token(struct prb_dap_session *session, const json_t *request);
/* Attach the session to a process.  settings: the arguments; how: "attach" or "launch". */
bool prb_dap_attach_to(struct prb_dap_session *session, pid_t pid, json_t *settings,
                       const char *how, struct prb_error *err);

#endif
