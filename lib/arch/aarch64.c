/*
 * AArch64.  DWARF numbers: DWARF for the Arm 64-bit Architecture, section 4.1; positions: struct
 * user_pt_regs of <asm/ptrace.h>.  System call numbers: include/uapi/asm-generic/unistd.h.
 */
#include "arch/arch.h"

#include <elf.h>
#include <string.h>

#define X(n) {"x" #n, n, n, n}
static const struct prb_arch_register registers[] = {
    X(0),
    X(1),
    X(2),
    X(3),
    X(4),
    X(5),
    X(6),
    X(7),
    X(8),
    X(9),
    X(10),
    X(11),
    X(12),
    X(13),
    X(14),
    X(15),
    X(16),
    X(17),
    X(18),
    X(19),
    X(20),
    X(21),
    X(22),
    X(23),
    X(24),
    X(25),
    X(26),
    X(27),
    X(28),
    X(29),
    X(30),
    {"sp", 31, 31, 31},
    {"pc", 32, 32, 32},
    {"pstate", -1, -1, 33},
};
#undef X

/* bl imm26, or blr (with or without pointer authentication). */
static bool ends_in_call(const uint8_t code[PRB_CALL_MAX])
{
    uint32_t word;
    memcpy(&word, code + PRB_CALL_MAX - sizeof word, sizeof word);
    return word >> 26 == 0x25 || (word & 0xfffffc1f) == 0xd63f0000 ||
           (word & 0xfefff800) == 0xd63f0800;
}

/* Code that is built with pointer authentication signs the return address that it saves (paciasp), in the bits above
 * the address: 54 down to the width of addresses, which is 48 for all that is mapped without asking for more
 * (the documents of the kernel for arm64: pointer authentication, memory). */
#define CODE_MASK ((UINT64_C(1) << 48) - 1)

/* mov x8, #139; svc #0 */
static const uint8_t signal_return[] = {0x68, 0x11, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4};

static const int fragile_syscalls[] = {
    22 /* epoll_pwait */, 441 /* epoll_pwait2 */, 193 /* semop */, 192 /* semtimedop */,
    137 /* rt_sigtimedwait */, 4 /* io_getevents */, 292 /* io_pgetevents */,
    /* socket calls: accept, connect, sendto, recvfrom, sendmsg, recvmsg, accept4, recvmmsg,
       sendmmsg */
    202, 203, 206, 207, 211, 212, 242, 243, 269, -1};

const struct prb_arch prb_arch_aarch64 = {
    .name = "aarch64",
    .elf_machine = EM_AARCH64,
    .registers = registers,
    .register_count = sizeof registers / sizeof *registers,
    .sp = 31,
    .pc = 32,
    .fp = 29,
    .return_address = 30,
    .code_mask = CODE_MASK,
    .signing_rule = 0x2d, /* DW_CFA_AARCH64_negate_ra_state */
    .code_align = 4,
    .gregset_size = 34 * sizeof(uint64_t),
    .ends_in_call = ends_in_call,
    .signal_return = signal_return,
    .signal_return_len = sizeof signal_return,
    .fragile_syscalls = fragile_syscalls,
};
