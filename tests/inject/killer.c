/*
 * Run a command and send it a signal at its Nth step: the end (or the beginning) of a system
 * call by which one process touches another, and of any while it holds a thread of another
 * (PTRACE_SEIZE to
 * PTRACE_DETACH).  Prints one line of JSON: how it ended, the step, and what the step before
 * was.
 * What the signal stops stands still until our input ends.
 *
 *     killer N entry|exit SIGNAL COMMAND [ARGUMENT...]     N: from 1; SIGNAL: its number
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
static int holds;  /* a thread of another process */

static void tell(const char *how, int value, int steps, struct step at, struct step before)
{
    printf("{\"%s\": %d, \"steps\": %d, \"at\": \"%s\", \"request\": %llu, \"before\": \"%s\", "
           "\"request_before\": %llu, \"register_sets\": %d, \"holds\": %d}\n",
           how, value, steps, at.name, at.request, before.name, before.request, register_sets,
           holds);
    fflush(stdout);
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
        thread->request = info.entry.nr == SYS_ptrace ? info.entry.args[0] : 0;
        holds |= thread->request == PTRACE_SEIZE;
        thread->name = step_name((long)info.entry.nr);
        if (!thread->name && holds)
            thread->name = "another";
        return at_entry && thread->name;
    }
    if (info.op != PTRACE_SYSCALL_INFO_EXIT || !thread->name)
        return 0;
    register_sets += thread->request == PTRACE_SETREGSET;
    holds &= thread->request != PTRACE_DETACH;
    return !at_entry;
}

static void end(pid_t child)
{
    int status;
    kill(child, SIGKILL);
    while (waitpid(-1, &status, __WALL) > 0)
        ;
}

static int follow(pid_t child, int wanted, int at_entry, int sent)
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
            tell(WIFEXITED(status) ? "exited" : "killed",
                 WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status), steps, at, before);
            return 0;
        }
        struct thread *thread = thread_of(tid);
        if (WSTOPSIG(status) == (SIGTRAP | 0x80)) {
            if (is_step(thread, at_entry)) {
                before = at;
                at = (struct step){thread->name, thread->request};
                if (++steps == wanted)
                    kill(child, sent);
                if (steps == wanted && sent == SIGKILL) {
                    end(child);
                    tell("killed", SIGKILL, steps, at, before);
                    return 0;
                }
            }
        } else if (status >> 16 == 0) {
            signal = WSTOPSIG(status);
        } else if (steps >= wanted && WSTOPSIG(status) == sent) {
            char byte;
            tell("stopped", sent, steps, at, before);
            while (read(STDIN_FILENO, &byte, 1) > 0)
                ;
            end(child);
            return 0;
        }
        ptrace(PTRACE_SYSCALL, tid, 0, signal);
    }
}

int main(int argc, char **argv)
{
    if (argc < 5)
        return 2;
    pid_t child = fork();
    if (child == 0) {
        setpgid(0, 0); /* the kernel stops no group that nobody would continue */
        raise(SIGSTOP);
        execvp(argv[4], argv + 4);
        _exit(127);
    }
    int status;
    if (child < 0 || waitpid(child, &status, WUNTRACED) != child ||
        ptrace(PTRACE_SEIZE, child, 0,
               PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_EXITKILL))
        return 1;
    kill(child, SIGCONT);
    return follow(child, atoi(argv[1]), !strcmp(argv[2], "entry"), atoi(argv[3]));
}
