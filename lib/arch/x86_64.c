/*
 * x86-64.  DWARF numbers: System V ABI, AMD64 supplement, figure 3.36, which libunwind's numbers
 * follow; positions: struct user_regs_struct of <sys/user.h>.  System call numbers:
 * arch/x86/entry/syscalls/syscall_64.tbl.
 */
#include "arch/arch.h"

#include <elf.h>

static const struct prb_arch_register registers[] = {
    {"rax", 0, 0, 10},   {"rdx", 1, 1, 12},       {"rcx", 2, 2, 11},        {"rbx", 3, 3, 5},
    {"rsi", 4, 4, 13},   {"rdi", 5, 5, 14},       {"rbp", 6, 6, 4},         {"rsp", 7, 7, 19},
    {"r8", 8, 8, 9},     {"r9", 9, 9, 8},         {"r10", 10, 10, 7},       {"r11", 11, 11, 6},
    {"r12", 12, 12, 3},  {"r13", 13, 13, 2},      {"r14", 14, 14, 1},       {"r15", 15, 15, 0},
    {"rip", 16, 16, 16}, {"eflags", 49, -1, 18},  {"orig_rax", -1, -1, 15}, {"cs", 51, -1, 17},
    {"ss", 52, -1, 20},  {"fs_base", 58, -1, 21}, {"gs_base", 59, -1, 22},  {"ds", 53, -1, 23},
    {"es", 50, -1, 24},  {"fs", 54, -1, 25},      {"gs", 55, -1, 26},
};

/* Bytes of ModRM, SIB and displacement of an indirect call (FF /2); 0: this is not one. */
static size_t operand_length(const uint8_t *modrm)
{
    unsigned mod = modrm[0] >> 6, reg = modrm[0] >> 3 & 7, rm = modrm[0] & 7;
    if (reg != 2)
        return 0;
    if (mod == 3)
        return 1;
    size_t sib = rm == 4;
    bool wide = mod == 2 || (mod == 0 && (rm == 5 || (sib && (modrm[1] & 7) == 5)));
    return 1 + sib + (wide ? 4 : mod == 1 ? 1 : 0);
}

/* call rel32 (E8), or call r/m64 (FF /2) of 2 to 7 bytes, whose operand fills up to the end
 * exactly. */
static bool ends_in_call(const uint8_t code[PRB_CALL_MAX])
{
    const uint8_t *end = code + PRB_CALL_MAX;
    if (end[-5] == 0xe8)
        return true;
    for (size_t len = 2; len <= 7; len++)
        if (end[-len] == 0xff && operand_length(end - len + 1) == len - 1)
            return true;
    return false;
}

/* mov $15, %rax; syscall */
static const uint8_t signal_return[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};

static const int fragile_syscalls[] = {
    232 /* epoll_wait */, 281 /* epoll_pwait */, 441 /* epoll_pwait2 */, 65 /* semop */,
    220 /* semtimedop */, 128 /* rt_sigtimedwait */, 208 /* io_getevents */,
    333 /* io_pgetevents */,
    /* socket calls, which end so when a timeout is set on the socket: accept, recvfrom, recvmsg,
     * connect, sendto, sendmsg, accept4, recvmmsg, sendmmsg */
    43, 45, 47, 42, 44, 46, 288, 299, 307, -1};

const struct prb_arch prb_arch_x86_64 = {
    .name = "x86_64",
    .elf_machine = EM_X86_64,
    .registers = registers,
    .register_count = sizeof registers / sizeof *registers,
    .sp = 7,
    .pc = 16,
    .fp = 6,
    .return_address = 16,
    .code_mask = UINT64_MAX,
    .code_align = 1,
    .gregset_size = 27 * sizeof(uint64_t),
    .ends_in_call = ends_in_call,
    .signal_return = signal_return,
    .signal_return_len = sizeof signal_return,
    .fragile_syscalls = fragile_syscalls,
};
