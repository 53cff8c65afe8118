/* What the kinds "hang" and "hang_deep" share. */
#ifndef PRB_FLEET_KIND_HANG_H
#define PRB_FLEET_KIND_HANG_H

#include "fleet/message/kind.h"

/* deep: load a probe where there is none. */
bool prb_hang_of_rank(struct prb_fleet_seat *seat, const json_t *args, bool deep,
                      struct prb_buf *out, struct prb_error *err);

#endif
