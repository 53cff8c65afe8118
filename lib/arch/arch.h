/*
 * What differs between architectures: one constant struct each.
 *
 * A struct prb_registers holds the general registers in the order of the arch's table below; the
 * kernel's register set (PTRACE_GETREGSET with NT_PRSTATUS, and pr_reg of a core's NT_PRSTATUS
 * note) is the same bytes in the kernel's order.
 *
 * To add an architecture: arch/NAME.c with its constant struct, declared here, its name in
 * arch/local.mk and in the list of arch.c, and a case in tests/unit/arch.c.
 */
#ifndef PRB_ARCH_ARCH_H
#define PRB_ARCH_ARCH_H

#include <stddef.h>

#include "arch/registers.h"
#include "base/error.h"

struct prb_arch_register {
    const char *name;
    int dwarf;         /* its DWARF number; -1: it has none */
    int unwind;        /* libunwind's number for a remote target of this architecture; -1: none */
    uint16_t position; /* word index in the kernel's register set */
};

#define PRB_CALL_MAX 8 /* bytes before a return address that show a call */

struct prb_arch {
    const char *name;     /* as uname -m says */
    uint16_t elf_machine; /* e_machine */
    const struct prb_arch_register *registers;
    size_t register_count;   /* at most PRB_REG_MAX */
    unsigned sp, pc, fp;     /* indices into registers */
    unsigned return_address; /* the register whose DWARF rule gives the caller's program counter */
    /* The bits of a return address that are an address; the others may be a signature. */
    uint64_t code_mask;
    uint8_t signing_rule; /* the call frame instruction that says that they are signed; 0: none */
    unsigned code_align;  /* instructions begin at multiples of it */
    size_t gregset_size;  /* bytes of elf_gregset_t */
    /* Whether code, the PRB_CALL_MAX bytes that end where a return address points, ends in a call
     * instruction. */
    bool (*ends_in_call)(const uint8_t code[PRB_CALL_MAX]);
    /* The code that a signal handler returns to, which asks the kernel for rt_sigreturn. */
    const uint8_t *signal_return;
    size_t signal_return_len;
    /* System calls that end in EINTR when their thread is stopped and goes on, though no signal
     * handler ran: signal(7), "Interruption of system calls and library functions by stop signals".
     * Ends with -1. */
    const int *fragile_syscalls;
};

extern const struct prb_arch prb_arch_x86_64, prb_arch_aarch64;

/* By e_machine; NULL: not known. */
const struct prb_arch *prb_arch_find(uint16_t elf_machine);
/* The architecture this code was built for. */
const struct prb_arch *prb_arch_host(void);

/* From the kernel's register set.  CORRUPT when len is too short. */
bool prb_arch_registers(const struct prb_arch *arch, const void *gregset, size_t len,
                        struct prb_registers *out, struct prb_error *err);
/* To the kernel's register set; words that have no place in prb_registers, or are not known, are 0.
 */
bool prb_arch_gregset(const struct prb_arch *arch, const struct prb_registers *registers, void *out,
                      size_t len, struct prb_error *err);

#endif
