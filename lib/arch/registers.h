/* General registers of a thread. */
#ifndef PRB_ARCH_REGISTERS_H
#define PRB_ARCH_REGISTERS_H

#include <stdbool.h>
#include <stdint.h>

/* In the order of the architecture's table (arch/arch.h); known has a bit for each valid one. */
#define PRB_REG_MAX 40
struct prb_registers {
    uint64_t value[PRB_REG_MAX];
    uint64_t known;
};

static inline bool prb_register_known(const struct prb_registers *registers, unsigned i)
{
    return i < PRB_REG_MAX && (registers->known >> i & 1);
}
static inline void prb_register_set(struct prb_registers *registers, unsigned i, uint64_t value)
{
    registers->value[i] = value;
    registers->known |= UINT64_C(1) << i;
}

#endif
