/*
 * A process that a seccomp filter guards: what it denies, an injector may need.
 *
 *     guarded CALL errno|kill     CALL: exec (mmap and mprotect that ask for PROT_EXEC), thread
 * (clone and clone3)
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "report.h"

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define EQUAL(value, yes, no) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, yes, no)
#define HAS(bits, yes, no) BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, bits, yes, no)
#define RETURN(what) BPF_STMT(BPF_RET | BPF_K, what)

static int deny_exec(uint32_t how)
{
    struct sock_filter filter[] = {
        LOAD(nr),      EQUAL(SYS_mmap, 1, 0), EQUAL(SYS_mprotect, 0, 2),
        LOAD(args[2]), HAS(PROT_EXEC, 1, 0),  RETURN(SECCOMP_RET_ALLOW),
        RETURN(how),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static int deny_threads(uint32_t how)
{
    struct sock_filter filter[] = {
        LOAD(nr),    EQUAL(SYS_clone, 2, 0), EQUAL(SYS_clone3, 1, 0), RETURN(SECCOMP_RET_ALLOW),
        RETURN(how),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static void *wait_for_ever(void *unused)
{
    for (sigset_t none = {0};;)
        sigsuspend(&none);
    return unused;
}

int main(int argc, char **argv)
{
    pthread_t thread;
    if (argc != 3)
        return 2;
    uint32_t how = strcmp(argv[2], "kill") ? SECCOMP_RET_ERRNO | EPERM : SECCOMP_RET_KILL_PROCESS;
    report_open();
    if (pthread_create(&thread, NULL, wait_for_ever, NULL) ||
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
        return 1;
    if (strcmp(argv[1], "exec") ? deny_threads(how) : deny_exec(how))
        return 77;
    report_park();
    return 0;
}
