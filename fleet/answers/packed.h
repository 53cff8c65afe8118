/* How merged stacks travel: the pieces that prb_merged_pack writes, one behind the other (merged.c). */
#ifndef PRB_FLEET_PACKED_H
#define PRB_FLEET_PACKED_H

#include "base/buf.h"
#include "fleet/merged.h"

/* First; so many frames follow, then how many groups, by prb_proto_varint, then these. */
void prb_merged_pack_begin(struct prb_buf *out, size_t frames);
void prb_merged_pack_frame(struct prb_buf *out, const struct prb_merged_frame *frame);
void prb_merged_pack_group(struct prb_buf *out, const struct prb_merged_group *group);

#endif
