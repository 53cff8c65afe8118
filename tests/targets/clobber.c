/*
 * An injector that damages on purpose, to prove that the canaries see it.  Stops one thread,
 * changes one thing, lets go.
 *
 *     clobber TID vector|x87|mxcsr|redzone|general|flags|eintr
 *
 * eintr: the system call that the thread waits in returns EINTR.
 */
#include <elf.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>

#ifndef __x86_64__
int main(void) { return 77; }
#else

#define XSAVE_X87 32 /* the stack of eight, 16 bytes each */
#define XSAVE_MXCSR 24
#define XSAVE_XMM 160
#define XSAVE_BITS 512 /* which components are not in their initial state */

static int change_extended(pid_t tid, size_t offset, size_t step, size_t count)
{
    static unsigned char state[16384];
    struct iovec io = {state, sizeof state};
    if (ptrace(PTRACE_GETREGSET, tid, NT_X86_XSTATE, &io))
        return 0;
    for (size_t i = 0; i < count; i++)
        state[offset + i * step] ^= 0x20;
    state[XSAVE_BITS] |= 3;
    return ptrace(PTRACE_SETREGSET, tid, NT_X86_XSTATE, &io) == 0;
}

static int change_redzone(pid_t tid, const struct user_regs_struct *regs)
{
    uint64_t words[16] = {0};
    struct iovec ours = {words, sizeof words},
                 theirs = {(void *)(regs->rsp - sizeof words), sizeof words};
    return process_vm_writev(tid, &ours, 1, &theirs, 1, 0) == sizeof words;
}

static int change(pid_t tid, const char *what)
{
    struct user_regs_struct regs;
    if (ptrace(PTRACE_GETREGS, tid, 0, &regs))
        return 0;
    if (!strcmp(what, "vector"))
        return change_extended(tid, XSAVE_XMM, 16, 16);
    if (!strcmp(what, "x87"))
        return change_extended(tid, XSAVE_X87, 16, 8);
    if (!strcmp(what, "mxcsr"))
        return change_extended(tid, XSAVE_MXCSR + 1, 1, 1);
    if (!strcmp(what, "redzone"))
        return change_redzone(tid, &regs);
    if (!strcmp(what, "general"))
        regs.r12 ^= 0x100000;
    else if (!strcmp(what, "flags"))
        regs.eflags &= ~1ul;
    else if (!strcmp(what, "eintr"))
        regs.rax = (unsigned long)-EINTR, regs.orig_rax = (unsigned long)-1;
    else
        return 0;
    return ptrace(PTRACE_SETREGS, tid, 0, &regs) == 0;
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    pid_t tid = atoi(argv[1]);
    int status;
    if (ptrace(PTRACE_SEIZE, tid, 0, 0) || ptrace(PTRACE_INTERRUPT, tid, 0, 0) ||
        waitpid(tid, &status, __WALL) != tid || !WIFSTOPPED(status) || !change(tid, argv[2]) ||
        ptrace(PTRACE_DETACH, tid, 0, 0)) {
        perror(argv[2]);
        return 1;
    }
    return 0;
}
#endif
