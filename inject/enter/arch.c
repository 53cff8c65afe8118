/* The list of architectures, and what they share. */
#include "inject/enter/arch.h"

#include <linux/futex.h>

static const struct prb_inject_arch *const arches[] = {&prb_inject_x86_64, &prb_inject_aarch64};

const struct prb_inject_arch *prb_inject_arch_find(uint16_t elf_machine)
{
    for (size_t i = 0; i < sizeof arches / sizeof *arches; i++)
        if (arches[i]->elf_machine == elf_machine)
            return arches[i];
    return NULL;
}

bool prb_waits_for_lock(const uint64_t args[6])
{
    enum { LOCKED_WITH_WAITERS = 2 };
    switch (args[1] & FUTEX_CMD_MASK) {
    case FUTEX_WAIT:
        return (uint32_t)args[2] == LOCKED_WITH_WAITERS;
    case FUTEX_WAIT_BITSET:
        return false;
    default:
        return true;
    }
}
