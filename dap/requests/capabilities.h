/* What the client may use: announced by initialize, corrected after attach. */
#ifndef PRB_DAP_CAPABILITIES_H
#define PRB_DAP_CAPABILITIES_H

#include "dap/session/session.h"

/* What initialize announces; a new reference. */
json_t *prb_dap_capabilities_announced(const struct prb_dap_session *session);
/* What differs for this back end and configuration; a new reference. */
json_t *prb_dap_capabilities_changed(struct prb_dap_session *session);

#endif
