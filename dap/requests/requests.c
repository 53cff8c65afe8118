/* All requests that a session answers; the build finds them (local.mk). */
#include "dap/session/request.h"

const struct prb_dap_request *const prb_dap_requests[] = {
#define R(name) &prb_dap_##name,
#include "dap/requests/requests.inc"
#undef R
    NULL,
};
