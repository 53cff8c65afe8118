/*
 * attach with "connect": another server (`probing PID debug --listen`) debugs the process, maybe on
 * another machine.  The session becomes a pipe between its client and that server: what the client
 * sends, the token included, goes there unchanged, and what the server sends comes back.
 */
#ifndef PRB_DAP_RELAY_H
#define PRB_DAP_RELAY_H

#include "dap/session/session.h"

/* Whether the arguments of attach name a server, and no target here. */
bool prb_dap_relay_wanted(const struct prb_dap_session *session, const json_t *arguments);
/* Connect to the server that "connect" names, and initialize it as the client did.  NOT_FOUND: no
 * server listens there. */
bool prb_dap_relay_open(struct prb_dap_session *session, const json_t *arguments,
                        struct prb_error *err);
/* Whether the session is relayed. */
bool prb_dap_relay_is_open(struct prb_dap_session *session);
/* Send a request or an answer of the client to the server. */
void prb_dap_relay_pass(struct prb_dap_session *session, const json_t *message);
/* The client has left: close the connection to the server.  Does nothing without a relay. */
void prb_dap_relay_end(struct prb_dap_session *session);
void prb_dap_relay_close(struct prb_dap_session *session);

#endif
