/*
 * What differs between architectures when a thread is borrowed: one constant struct each.
 *
 * Registers here are words of the kernel's register set (PTRACE_GETREGSET, NT_PRSTATUS): struct
 * user_regs_struct of <sys/user.h>, struct user_pt_regs of <asm/ptrace.h>.
 *
 * To add an architecture: inject/enter/arch_NAME.c with its constant struct, declared here and in
 * the list of arch.c; inject/enter/stub/NAME.S, assembled by mk-stubs.sh; a case in
 * tests/unit/inject.c.
 */
#ifndef PRB_INJECT_ARCH_H
#define PRB_INJECT_ARCH_H

#include "inject/enter/stub.h"
#include "proc/proc.h"

#define PRB_INJECT_WORDS 34        /* of the largest register set */
#define PRB_XSTATE_MAX (16u << 10) /* AMX: 11 KiB */
#define PRB_FRAME_MAX (PRB_XSTATE_MAX + 1024)
#define PRB_SYSCALL_BEFORE 7 /* bytes: a number put into its register, and the instruction */

/* When a thread that waits in a system call may be borrowed. */
enum prb_wait {
    PRB_WAIT_FUTEX,   /* unless it waits for a lock of the C library */
    PRB_WAIT_PLAIN,   /* the kernel restarts it, whatever happens */
    PRB_WAIT_READ,    /* unless of a socket that has a time limit */
    PRB_WAIT_PPOLL,   /* unless with a signal mask of its own, argument 3 */
    PRB_WAIT_PSELECT, /* the same, pointed to by argument 5 */
    PRB_WAIT_SECOND,  /* as READ, on a socket: borrowed only after the others */
};

struct prb_waiting_call {
    int number;
    enum prb_wait wait;
};

struct prb_inject_arch {
    const char *name;
    uint16_t elf_machine;
    unsigned words;          /* of the register set */
    unsigned pc, sp, result; /* positions in it */
    unsigned number;         /* where a system call's number is put */
    /* where the kernel saves the number of the current system call (-1: none); -1: nowhere */
    int original;
    unsigned args[6];
    const uint8_t *syscall_code; /* the instruction */
    size_t syscall_len;
    const uint8_t *syscall_return_code; /* with a return by the stack; NULL: none */
    size_t syscall_return_len;
    int mmap;
    /* 0: code can run where it was just written, and the stub's thread makes it read-only; else
     * the tracer makes it executable after writing it, so that the CPU's caches are flushed. */
    int mprotect;
    const struct prb_waiting_call *waits;
    size_t wait_count;
    const int *fragile; /* calls that a stop ends in EINTR and that can be repeated; signal(7) */
    size_t fragile_count;
    unsigned extended_note; /* NT_X86_XSTATE, NT_PRFPREG */
    size_t extended_min;    /* bytes of it at least */
    unsigned more_note;     /* what follows it, where the processor has it; 0: nothing */
    /* Whether a running thread, which is stopped, has no state beyond these.  NULL: none ever
     * has. */
    bool (*all_is_saved)(pid_t tid);
    size_t apart;          /* PRB_STUB_APART_... */
    unsigned pc_goes_back; /* bytes by which a stop moves a waiting thread's program counter */
    const uint8_t *stub;
    size_t stub_len;
    /* The registers to run the stub at code, on a stack that ends at stack. */
    void (*enter)(const uint64_t *saved, prb_addr code, prb_addr stack, uint64_t *out);
    /*
     * Fill page, and frame at frame_addr, so that the thread returns to the registers in saved,
     * with the extended state of len bytes, which is at extended_addr in the target (and may be
     * changed here to what the CPU or the kernel expects).  Returns the used bytes of frame, 0: it
     * needs none.
     */
    size_t (*go_back)(const uint64_t *saved, uint8_t *extended, size_t len, prb_addr extended_addr,
                      struct prb_stub_page *page, prb_addr page_addr, uint8_t *frame,
                      prb_addr frame_addr);
    /*
     * Fill frame for rt_sigreturn(2), so that the thread returns to the registers in saved, with
     * this signal mask and the extended state at extended_addr (changed as above), and repeats its
     * system call if it was in one.  code: the bytes before its program counter.  Returns the
     * bytes of frame.  NULL: when the tracer dies during a remote call, the thread is lost.
     */
    size_t (*lifeline)(const uint64_t *saved, const uint8_t code[PRB_SYSCALL_BEFORE],
                       uint8_t *extended, size_t len, prb_addr extended_addr, uint64_t mask,
                       uint8_t *frame);
    unsigned red_zone; /* bytes below the stack pointer that are in use */
};

extern const struct prb_inject_arch prb_inject_x86_64, prb_inject_aarch64;

/* By e_machine; NULL: not ported. */
const struct prb_inject_arch *prb_inject_arch_find(uint16_t elf_machine);

/* Whether the thread is in a system call, or has just returned from one. */
static inline bool prb_in_syscall(const struct prb_inject_arch *arch, const uint64_t *registers)
{
    return arch->original >= 0 && (int64_t)registers[arch->original] >= 0;
}

/* FUTEX_WAIT with the value that glibc's locks use (lowlevellock.h: 2), or FUTEX_LOCK_PI: such a
 * thread may be anywhere in the C library. */
bool prb_waits_for_lock(const uint64_t args[6]);

#endif
