/*
 * Run a command and kill it with SIGKILL at its Nth step: the end (or the beginning) of a system
 * call by which one process touches another.  Prints one line of JSON: how it ended, the step, and
 * what the step before was.
 *
 *     killer N entry|exit COMMAND [ARGUMENT...]     N: from 1
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct {
    long number;
    const char *name;
} STEPS[] = {
    {SYS_ptrace, "ptrace"},     {SYS_process_vm_writev, "process_vm_writev"},
    {SYS_pwrite64, "pwrite64"}, {SYS_wait4, "wait4"},
    {SYS_kill, "kill"},         {SYS_tgkill, "tgkill"},
};

static const char *step_name(long number)
{
    for (size_t i = 0; i < sizeof STEPS / sizeof *STEPS; i++)
        if (STEPS[i].number == number)
            return STEPS[i].name;
    return NULL;
}

struct step {
    const char *name;
    unsigned long long request; /* ptrace's first argument */
};

static int
    register_sets; /* PTRACE_SETREGSET done: the first begins a remote call, the second ends it */

static void tell(const char *how, int value, int steps, struct step at, struct step before)
{
    printf("{\"%s\": %d, \"steps\": %d, \"at\": \"%s\", \"request\": %llu, \"before\": \"%s\", "
           "\"request_before\": %llu, \"register_sets\": %d}\n",
           how, value, steps, at.name, at.request, before.name, before.request, register_sets);
}

/* What a thread of the command does. */
#define THREADS_MAX 16
static struct thread {
    pid_t tid;
    const char *name; /* of the system call that it is in, if that is a step */
    unsigned long long request;
} threads[THREADS_MAX];

static struct thread *thread_of(pid_t tid)
{
    for (size_t i = 0; i < THREADS_MAX; i++)
        if (threads[i].tid == tid || !threads[i].tid) {
            threads[i].tid = tid;
            return &threads[i];
        }
    return NULL;
}

/* Whether this system call stop is a step. */
static int is_step(struct thread *thread, int at_entry)
{
    struct __ptrace_syscall_info info;
    if (!thread || ptrace(PTRACE_GET_SYSCALL_INFO, thread->tid, sizeof info, &info) <= 0)
        return 0;
    if (info.op == PTRACE_SYSCALL_INFO_ENTRY) {
        thread->name = step_name((long)info.entry.nr);
        thread->request = info.entry.nr == SYS_ptrace ? info.entry.args[0] : 0;
        return at_entry && thread->name;
    }
    register_sets += thread->request == PTRACE_SETREGSET && thread->name;
    return !at_entry && thread->name && info.op == PTRACE_SYSCALL_INFO_EXIT;
}

static int follow(pid_t child, int wanted, int at_entry)
{
    struct step at = {"", 0}, before = {"", 0};
    int status, steps = 0;
    for (;;) {
        int signal = 0;
        pid_t tid = waitpid(-1, &status, __WALL);
        if (tid < 0)
            return 1;
        if (WIFEXITED(status) || WIFSIGNALED(status)) {
            if (tid != child)
                continue;
            tell("exited", WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), steps,
                 at, before);
            return 0;
        }
        struct thread *thread = thread_of(tid);
        if (WSTOPSIG(status) == (SIGTRAP | 0x80)) {
            if (is_step(thread, at_entry)) {
                before = at;
                at = (struct step){thread->name, thread->request};
                if (++steps == wanted) {
                    kill(child, SIGKILL);
                    while (waitpid(-1, &status, __WALL) > 0)
                        ;
                    tell("killed", 1, steps, at, before);
                    return 0;
                }
            }
        } else if (status >> 16 == 0) {
            signal = WSTOPSIG(status);
        }
        ptrace(PTRACE_SYSCALL, tid, 0, signal);
    }
}

int main(int argc, char **argv)
{
    if (argc < 4)
        return 2;
    pid_t child = fork();
    if (child == 0) {
        raise(SIGSTOP);
        execvp(argv[3], argv + 3);
        _exit(127);
    }
    int status;
    if (child < 0 || waitpid(child, &status, WUNTRACED) != child ||
        ptrace(PTRACE_SEIZE, child, 0,
               PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_EXITKILL))
        return 1;
    kill(child, SIGCONT);
    return follow(child, atoi(argv[1]), !strcmp(argv[2], "entry"));
}
