/* What the kind "debug" answers. */
#ifndef PRB_FLEET_STREAM_DEBUG_H
#define PRB_FLEET_STREAM_DEBUG_H

#include "fleet/stream/packet.h"

struct prb_debug_answer {
    char stream[PRB_STREAM_ID];
    bool exchanges;                   /* it told a key for this stream: */
    unsigned char public[PRB_SECRET]; /* of the agent's side */
    char folder[512];                 /* where the process works, on its host; "": not known */
};

#endif
