/*
 * x86-64.  Positions: struct user_regs_struct of <sys/user.h>.  Numbers: arch/x86/entry/syscalls/
 * syscall_64.tbl.  Extended state: Intel SDM volume 1, chapter 13 (the image of PTRACE_GETREGSET is
 * in the standard form, with XCR0 at byte 464); the frame of rt_sigreturn: arch/x86/include/asm/
 * sigframe.h, struct rt_sigframe without its first word, and uapi/asm/sigcontext.h.
 */
#include <elf.h>
#include <string.h>

#include "inject/enter/arch.h"

/* Words of user_regs_struct. */
enum {
    R15,
    R14,
    R13,
    R12,
    RBP,
    RBX,
    R11,
    R10,
    R9,
    R8,
    RAX,
    RCX,
    RDX,
    RSI,
    RDI,
    ORIG_RAX,
    RIP,
    CS,
    EFLAGS,
    RSP,
    SS,
    FS_BASE,
    GS_BASE,
    DS,
    ES,
    FS,
    GS,
    WORDS,
};

static const uint8_t syscall_code[] = {0x0f, 0x05};
static const uint8_t syscall_return_code[] = {0x0f, 0x05, 0xc3}; /* and ret */

static const uint8_t stub[] = {
#include "inject/enter/stub/x86_64.h"
};

static const struct prb_waiting_call waits[] = {
    {202 /* futex */, PRB_WAIT_FUTEX},
    {7 /* poll */, PRB_WAIT_PLAIN},
    {23 /* select */, PRB_WAIT_PLAIN},
    {35 /* nanosleep */, PRB_WAIT_PLAIN},
    {230 /* clock_nanosleep */, PRB_WAIT_PLAIN},
    {0 /* read */, PRB_WAIT_READ},
    {61 /* wait4 */, PRB_WAIT_PLAIN},
    {247 /* waitid */, PRB_WAIT_PLAIN},
    {219 /* restart_syscall */, PRB_WAIT_PLAIN},
    {271 /* ppoll */, PRB_WAIT_PPOLL},
    {270 /* pselect6 */, PRB_WAIT_PSELECT},
    {43 /* accept */, PRB_WAIT_SECOND},
    {288 /* accept4 */, PRB_WAIT_SECOND},
    {45 /* recvfrom */, PRB_WAIT_SECOND},
    {47 /* recvmsg */, PRB_WAIT_SECOND},
};

static const int fragile[] = {
    232 /* epoll_wait */,
    281 /* epoll_pwait */,
    441 /* epoll_pwait2 */,
    65 /* semop */,
    220 /* semtimedop */,
    128 /* rt_sigtimedwait */,
    208 /* io_getevents */,
    333 /* io_pgetevents */,
    /* of a socket that has a time limit */
    0 /* read */,
    45 /* recvfrom */,
    47 /* recvmsg */,
    299 /* recvmmsg */,
    43 /* accept */,
    288 /* accept4 */,
};

/* uapi/linux/errno.h of the kernel: results of an interrupted call, before the kernel decides
 * whether to restart it. */
enum { ERESTARTSYS = 512, ERESTARTNOINTR = 513, ERESTARTNOHAND = 514, ERESTART_RESTARTBLOCK = 516 };
#define RESTART_SYSCALL 219

static void enter(const uint64_t *saved, prb_addr code, prb_addr stack, uint64_t *out)
{
    memcpy(out, saved, WORDS * sizeof *out);
    out[RIP] = code;
    out[RSP] = stack;
    out[EFLAGS] = 0x202; /* interrupts on, no direction, no trap */
    out[ORIG_RAX] = (uint64_t)-1;
}

/* In the order in which the stub restores them. */
static const uint8_t order[16] = {R15, R14, R13, R12, RBP, RBX, R10,    R9,
                                  R8,  RDX, RSI, RDI, RAX, RIP, EFLAGS, RSP};
enum { AT_RAX = 12, AT_RIP = 13 };

#define XCR0_AT 464 /* in the kernel's image; bytes that the CPU leaves to software */
#define SOFTWARE_AT 464
#define SOFTWARE_LEN 48
#define FP_XSTATE_MAGIC1 0x46505853u
#define FP_XSTATE_MAGIC2 0x46505845u

/* struct ucontext as the kernel reads it: asm-generic/ucontext.h with x86's struct sigcontext_64.
 */
struct frame {
    uint64_t flags, link;
    uint64_t stack;
    int32_t stack_flags, pad;
    uint64_t stack_size;
    uint64_t r8, r9, r10, r11, r12, r13, r14, r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip,
        eflags;
    uint16_t cs, gs, fs, ss;
    uint64_t err, trapno, oldmask, cr2, fpstate, reserved[8];
    uint64_t mask;
};
#define UC_FLAGS 7      /* UC_FP_XSTATE | UC_SIGCONTEXT_SS | UC_STRICT_RESTORE_SS */
#define NO_STACK 0x7fff /* no valid flags: the alternate stack stays as it is */

static struct frame make_frame(const uint64_t *saved, uint8_t *extended, size_t len,
                               prb_addr extended_addr)
{
    uint64_t components;
    memcpy(&components, extended + XCR0_AT, sizeof components);
    struct {
        uint32_t magic, extended_size;
        uint64_t components;
        uint32_t size, padding[7];
    } software = {FP_XSTATE_MAGIC1, (uint32_t)len + 4, components, (uint32_t)len, {0}};
    _Static_assert(sizeof software == SOFTWARE_LEN, "struct _fpx_sw_bytes");
    uint32_t end = FP_XSTATE_MAGIC2;
    memcpy(extended + SOFTWARE_AT, &software, sizeof software);
    memcpy(extended + len, &end, sizeof end);
    struct frame frame = {
        .flags = UC_FLAGS,
        .stack_flags = NO_STACK,
        .fpstate = extended_addr,
        .r8 = saved[R8],
        .r9 = saved[R9],
        .r10 = saved[R10],
        .r11 = saved[R11],
        .r12 = saved[R12],
        .r13 = saved[R13],
        .r14 = saved[R14],
        .r15 = saved[R15],
        .rdi = saved[RDI],
        .rsi = saved[RSI],
        .rbp = saved[RBP],
        .rbx = saved[RBX],
        .rdx = saved[RDX],
        .rax = saved[RAX],
        .rcx = saved[RCX],
        .rsp = saved[RSP],
        .rip = saved[RIP],
        .eflags = saved[EFLAGS],
        .cs = (uint16_t)saved[CS],
        .ss = (uint16_t)saved[SS],
    };
    return frame;
}

static size_t by_frame(const uint64_t *saved, uint8_t *extended, size_t len, prb_addr extended_addr,
                       struct prb_stub_page *page, uint8_t *out, prb_addr frame_addr)
{
    struct frame frame = make_frame(saved, extended, len, extended_addr);
    memcpy(out, &frame, sizeof frame);
    page->frame = frame_addr;
    page->mask_place = frame_addr + offsetof(struct frame, mask);
    return sizeof frame;
}

/* Whether the kernel would restart the call in which the thread was stopped. */
static bool restarts(const uint64_t *saved)
{
    int64_t result = (int64_t)saved[RAX];
    return (int64_t)saved[ORIG_RAX] >= 0 &&
           (result == -ERESTARTSYS || result == -ERESTARTNOINTR || result == -ERESTARTNOHAND ||
            result == -ERESTART_RESTARTBLOCK);
}

/* "mov $number, %eax; syscall", as compilers write it. */
static int64_t number_in_code(const uint8_t *code)
{
    int32_t number;
    memcpy(&number, code + 1, sizeof number);
    return code[0] == 0xb8 && memcmp(code + 5, syscall_code, sizeof syscall_code) == 0 ? number
                                                                                       : -1;
}

static size_t lifeline(const uint64_t *saved, const uint8_t *code, uint8_t *extended, size_t len,
                       prb_addr extended_addr, uint64_t mask, uint8_t *out)
{
    struct frame frame = make_frame(saved, extended, len, extended_addr);
    frame.mask = mask;
    if (restarts(saved)) {
        /* rt_sigreturn(2) drops the state by which restart_syscall(2) continues: repeat the call
         * itself, by its own number. */
        int64_t number = (int64_t)saved[ORIG_RAX];
        if (number == RESTART_SYSCALL && number_in_code(code) >= 0)
            number = number_in_code(code);
        frame.rip -= sizeof syscall_code;
        frame.rax = (uint64_t)number;
    }
    memcpy(out, &frame, sizeof frame);
    return sizeof frame;
}

static size_t go_back(const uint64_t *saved, uint8_t *extended, size_t len, prb_addr extended_addr,
                      struct prb_stub_page *page, prb_addr page_addr, uint8_t *frame,
                      prb_addr frame_addr)
{
    if ((int64_t)saved[ORIG_RAX] < 0)
        return by_frame(saved, extended, len, extended_addr, page, frame, frame_addr);
    for (unsigned i = 0; i < sizeof order; i++)
        page->registers[i] = saved[order[i]];
    /* What the kernel does for a call that no signal handler interrupted. */
    if (restarts(saved)) {
        page->registers[AT_RIP] -= sizeof syscall_code;
        page->registers[AT_RAX] =
            (int64_t)saved[RAX] == -ERESTART_RESTARTBLOCK ? RESTART_SYSCALL : saved[ORIG_RAX];
    }
    memcpy(&page->xmask, extended + XCR0_AT, sizeof page->xmask);
    memset(extended + SOFTWARE_AT, 0, SOFTWARE_LEN);
    page->xstate = extended_addr;
    page->frame = 0;
    page->mask_place = page_addr + offsetof(struct prb_stub_page, mask);
    return 0;
}

const struct prb_inject_arch prb_inject_x86_64 = {
    .name = "x86_64",
    .elf_machine = EM_X86_64,
    .words = WORDS,
    .pc = RIP,
    .sp = RSP,
    .result = RAX,
    .number = RAX,
    .original = ORIG_RAX,
    .args = {RDI, RSI, RDX, R10, R8, R9},
    .syscall_code = syscall_code,
    .syscall_len = sizeof syscall_code,
    .syscall_return_code = syscall_return_code,
    .syscall_return_len = sizeof syscall_return_code,
    .mmap = 9,
    .waits = waits,
    .wait_count = sizeof waits / sizeof *waits,
    .fragile = fragile,
    .fragile_count = sizeof fragile / sizeof *fragile,
    .extended_note = NT_X86_XSTATE,
    .extended_min = 512 + 64, /* FXSAVE's part and the header */
    .apart = PRB_STUB_APART_X86_64,
    .stub = stub,
    .stub_len = sizeof stub,
    .enter = enter,
    .go_back = go_back,
    .lifeline = lifeline,
    .red_zone = 128,
};
