/*
 * The table of sources.h.  ../debug/agent/parts.inc, made by ../debug/agent/local.mk, has an array
 * debug_NAME_source of each part and a P(NAME) of each in DEBUG_PARTS.
 */
#include "inject/probe/python/sources.h"

#include <string.h>

#include "inject/probe/debug/agent/parts.inc"

#define PARTS(P) P(agent) P(streams) P(show) P(frames) P(statements) P(complete) P(crash)

static const char agent_source[] = {
#include "inject/probe/python/agent.inc"
};
static const char streams_source[] = {
#include "inject/probe/python/streams.inc"
};
static const char show_source[] = {
#include "inject/probe/python/show.inc"
};
static const char frames_source[] = {
#include "inject/probe/python/frames.inc"
};
static const char statements_source[] = {
#include "inject/probe/python/statements.inc"
};
static const char complete_source[] = {
#include "inject/probe/python/complete.inc"
};
static const char crash_source[] = {
#include "inject/probe/python/crash.inc"
};

const struct prb_py_source prb_py_sources[] = {
#define P(name) {#name, "<probing " #name ">", false, name##_source, sizeof name##_source - 1},
    PARTS(P)
#undef P
#define P(name)                                                                                    \
    {#name, "<probing debug " #name ">", true, debug_##name##_source,                              \
     sizeof debug_##name##_source - 1},
        DEBUG_PARTS(P)
#undef P
            {0},
};

const struct prb_py_source *prb_py_source(const char *file)
{
    for (const struct prb_py_source *one = prb_py_sources; one->name; one++)
        if (strcmp(one->file, file) == 0)
            return one;
    return NULL;
}
