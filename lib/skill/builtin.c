/* The skills of this library, as the build made them of builtin/: bytes. */
#include "skill/skill.h"

#define BYTES(...)                                                                                 \
    (const char *)(const unsigned char[]) { __VA_ARGS__ }
#define SKILL(...) BYTES(__VA_ARGS__),
const char *const prb_skill_builtin[] = {
#include "skill/skills.inc"
    NULL,
};
