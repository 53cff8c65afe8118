/*
 * The list of architectures, and the conversion between the kernel's register sets and ours, driven
 * by their tables.
 */
#include "arch/arch.h"

#include <string.h>

static const struct prb_arch *const arches[] = {&prb_arch_x86_64, &prb_arch_aarch64};

const struct prb_arch *prb_arch_find(uint16_t elf_machine)
{
    for (size_t i = 0; i < sizeof arches / sizeof *arches; i++)
        if (arches[i]->elf_machine == elf_machine)
            return arches[i];
    return NULL;
}

const struct prb_arch *prb_arch_host(void)
{
#ifdef __aarch64__
    return &prb_arch_aarch64;
#else
    return &prb_arch_x86_64;
#endif
}

bool prb_arch_registers(const struct prb_arch *arch, const void *gregset, size_t len,
                        struct prb_registers *out, struct prb_error *err)
{
    if (len < arch->gregset_size)
        return prb_fail(err, PRB_CORRUPT, "a register set of %zu bytes, where %s has %zu", len,
                        arch->name, arch->gregset_size);
    struct prb_registers registers = {.known = 0};
    for (unsigned i = 0; i < arch->register_count; i++) {
        uint64_t word;
        memcpy(&word, (const char *)gregset + arch->registers[i].position * sizeof word,
               sizeof word);
        prb_register_set(&registers, i, word);
    }
    *out = registers;
    return true;
}

bool prb_arch_gregset(const struct prb_arch *arch, const struct prb_registers *registers, void *out,
                      size_t len, struct prb_error *err)
{
    if (len < arch->gregset_size)
        return prb_fail(err, PRB_INTERNAL, "%zu bytes are too few for the registers of %s", len,
                        arch->name);
    memset(out, 0, arch->gregset_size);
    for (unsigned i = 0; i < arch->register_count; i++)
        if (prb_register_known(registers, i))
            memcpy((char *)out + arch->registers[i].position * sizeof(uint64_t),
                   &registers->value[i], sizeof(uint64_t));
    return true;
}
