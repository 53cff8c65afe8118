/*
 * attach with "connect": the process is another server's (`probing debug --listen`), maybe on
 * another machine.  The session becomes a pipe between its client and that server: what the client
 * sends goes there as it is, the token with it, and what the server says comes back.
 */
#ifndef PRB_DAP_RELAY_H
#define PRB_DAP_RELAY_H

#include "dap/session/session.h"

/* Whether the arguments of attach name a server, and no target of ours. */
bool prb_dap_relay_wanted(const struct prb_dap_session *session, const json_t *arguments);
/* The server of arguments' "connect" has been told who the client is.  NOT_FOUND: nobody listens
 * there. */
bool prb_dap_relay_open(struct prb_dap_session *session, const json_t *arguments,
                        struct prb_error *err);
/* Whether the session is a pipe; then a request or an answer of the client goes to the server. */
bool prb_dap_relay_is_open(struct prb_dap_session *session);
void prb_dap_relay_pass(struct prb_dap_session *session, const json_t *message);
/* The client has gone, and so does the server: nothing is passed on any more.  Does nothing
 * without a relay. */
void prb_dap_relay_end(struct prb_dap_session *session);
void prb_dap_relay_close(struct prb_dap_session *session);

#endif
