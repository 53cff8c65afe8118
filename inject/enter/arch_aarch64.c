/*
 * AArch64.  Positions: struct user_pt_regs of <asm/ptrace.h>.  Numbers: include/uapi/asm-generic/
 * unistd.h.  The frame of rt_sigreturn: arch/arm64/kernel/signal.c, struct rt_sigframe, with
 * uapi/asm/ucontext.h and sigcontext.h.
 *
 * Before a thread that waits in a system call stops, the kernel moves its program counter back and
 * restores x0: restoring the registers repeats the call (do_signal()).
 */
#include <elf.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>

#include "inject/enter/arch.h"

enum { X0 = 0, X8 = 8, LINK = 30, SP = 31, PC = 32, PSTATE = 33, WORDS };

static const uint8_t syscall_code[] = {0x01, 0x00, 0x00, 0xd4}; /* svc #0 */

static const uint8_t stub[] = {
#include "inject/enter/stub/aarch64.h"
};

static const struct prb_waiting_call waits[] = {
    {98 /* futex */, PRB_WAIT_FUTEX},
    {101 /* nanosleep */, PRB_WAIT_PLAIN},
    {115 /* clock_nanosleep */, PRB_WAIT_PLAIN},
    {63 /* read */, PRB_WAIT_PLAIN},
    {260 /* wait4 */, PRB_WAIT_PLAIN},
    {95 /* waitid */, PRB_WAIT_PLAIN},
    {128 /* restart_syscall */, PRB_WAIT_PLAIN},
    {73 /* ppoll */, PRB_WAIT_PPOLL},
    {72 /* pselect6 */, PRB_WAIT_PSELECT},
    {202 /* accept */, PRB_WAIT_SECOND},
    {242 /* accept4 */, PRB_WAIT_SECOND},
    {207 /* recvfrom */, PRB_WAIT_SECOND},
    {212 /* recvmsg */, PRB_WAIT_SECOND},
};

static void enter(const uint64_t *saved, prb_addr code, prb_addr stack, uint64_t *out)
{
    memcpy(out, saved, WORDS * sizeof *out);
    out[PC] = code;
    out[SP] = stack;
    out[PSTATE] = 0; /* user mode; no flags, no branch type */
}

/* struct user_fpsimd_state: NT_PRFPREG */
struct vectors {
    uint8_t registers[32][16];
    uint32_t fpsr, fpcr, reserved[2];
};

/* Header of NT_ARM_SVE and its like: struct user_sve_header, asm/ptrace.h.  Where its registers are in use, they follow
 * in the order of the frame's record (SVE_PT_SVE_*, SVE_SIG_*): Z, P and FFR, 546 bytes for each 128 bits of length. */
struct wide {
    uint32_t size, max_size;
    uint16_t length, max_length, flags, reserved;
};
#define WIDE_IN_USE 1 /* SVE_PT_REGS_SVE */
#define WIDE_BYTES 546
#define STREAMING_NOTE 0x40b
#define ARRAY_NOTE 0x40c

/* Bytes of a frame for records; longer registers would need one of another kind. */
#define RECORDS 4096
#define WIDE_MAX ((RECORDS - 528 - 32) / WIDE_BYTES * 16)

#define FPSIMD_MAGIC 0x46508001u
#define SVE_MAGIC 0x53564501u
struct frame {
    uint8_t siginfo[128];
    uint64_t flags, link, stack;
    int32_t stack_flags, pad;
    uint64_t stack_size, mask;
    uint8_t unused[120], pad_to_16[8];
    uint64_t fault_address, registers[31], sp, pc, pstate, pad_again;
    struct {
        uint32_t magic, size, fpsr, fpcr;
        uint8_t registers[32][16];
    } fpsimd;
    struct {
        uint32_t magic, size; /* 0: no further record */
        uint16_t length, flags, reserved[2];
        uint8_t registers[RECORDS - 528 - 16];
    } sve;
};
_Static_assert(offsetof(struct frame, mask) == 168, "uc_sigmask");
_Static_assert(offsetof(struct frame, fault_address) == 304, "uc_mcontext");
_Static_assert(offsetof(struct frame, fpsimd) == 592, "__reserved");
_Static_assert(offsetof(struct frame, sve) == 592 + 528, "the record after fpsimd_context");
#define NO_STACK 0x7fff /* no valid flags: the alternate stack stays as it is */

static size_t go_back(const uint64_t *saved, uint8_t *extended, size_t len, prb_addr extended_addr,
                      struct prb_stub_page *page, prb_addr page_addr, uint8_t *out,
                      prb_addr frame_addr)
{
    (void)extended_addr, (void)page_addr;
    struct vectors vectors = {0};
    memcpy(&vectors, extended, len < sizeof vectors ? len : sizeof vectors);
    struct frame frame = {
        .stack_flags = NO_STACK,
        .sp = saved[SP],
        .pc = saved[PC],
        .pstate = saved[PSTATE],
        .fpsimd = {.magic = FPSIMD_MAGIC,
                   .size = sizeof frame.fpsimd,
                   .fpsr = vectors.fpsr,
                   .fpcr = vectors.fpcr},
    };
    memcpy(frame.registers, saved, sizeof frame.registers);
    memcpy(frame.fpsimd.registers, vectors.registers, sizeof vectors.registers);
    struct wide wide = {0};
    if (len >= sizeof vectors + sizeof wide)
        memcpy(&wide, extended + sizeof vectors, sizeof wide);
    size_t wide_len = (size_t)wide.length / 16 * WIDE_BYTES;
    if (wide.flags & WIDE_IN_USE && wide.length <= WIDE_MAX &&
        wide_len <= len - sizeof vectors - sizeof wide) {
        frame.sve.magic = SVE_MAGIC;
        frame.sve.size = (uint32_t)(16 + wide_len + 15) & ~15u;
        frame.sve.length = wide.length;
        memcpy(frame.sve.registers, extended + sizeof vectors + sizeof wide, wide_len);
    }
    memcpy(out, &frame, sizeof frame);
    page->frame = frame_addr;
    page->mask_place = frame_addr + offsetof(struct frame, mask);
    return sizeof frame;
}

static struct wide wide_of(pid_t tid, uintptr_t note)
{
    struct wide wide = {0};
    struct iovec iov = {&wide, sizeof wide};
    ptrace(PTRACE_GETREGSET, tid, (void *)note, &iov);
    return wide;
}

/* A system call leaves SVE's registers undefined, so that a thread that waits has none. */
static bool all_is_saved(pid_t tid)
{
    return wide_of(tid, NT_ARM_SVE).length <= WIDE_MAX &&
           !(wide_of(tid, STREAMING_NOTE).flags & WIDE_IN_USE) &&
           wide_of(tid, ARRAY_NOTE).size <= sizeof(struct wide);
}

const struct prb_inject_arch prb_inject_aarch64 = {
    .name = "aarch64",
    .elf_machine = EM_AARCH64,
    .words = WORDS,
    .pc = PC,
    .sp = SP,
    .result = X0,
    .number = X8,
    .original = -1,
    .args = {0, 1, 2, 3, 4, 5},
    .syscall_code = syscall_code,
    .syscall_len = sizeof syscall_code,
    .mmap = 222,
    .mprotect = 226,
    .waits = waits,
    .wait_count = sizeof waits / sizeof *waits,
    .extended_note = NT_PRFPREG,
    .extended_min = sizeof(struct vectors),
    .more_note = NT_ARM_SVE,
    .all_is_saved = all_is_saved,
    .pc_goes_back = sizeof syscall_code,
    .apart = PRB_STUB_APART_AARCH64,
    .stub = stub,
    .stub_len = sizeof stub,
    .enter = enter,
    .go_back = go_back,
};
