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

static void tell(const char *how, int value, int steps, struct step at, struct step before)
{
    printf("{\"%s\": %d, \"steps\": %d, \"at\": \"%s\", \"request\": %llu, \"before\": \"%s\", "
           "\"request_before\": %llu}\n",
           how, value, steps, at.name, at.request, before.name, before.request);
}

static int follow(pid_t child, int wanted, int at_entry)
{
    struct step at = {"", 0}, before = {"", 0};
    struct __ptrace_syscall_info info;
    int status, steps = 0, inside = 0;
    for (int signal = 0;; signal = 0) {
        if (waitpid(child, &status, __WALL) != child)
            return 1;
        if (WIFEXITED(status) || WIFSIGNALED(status)) {
            tell("exited", WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), steps,
                 at, before);
            return 0;
        }
        if (WSTOPSIG(status) == (SIGTRAP | 0x80) &&
            ptrace(PTRACE_GET_SYSCALL_INFO, child, sizeof info, &info) > 0) {
            if (info.op == PTRACE_SYSCALL_INFO_ENTRY) {
                const char *name = step_name((long)info.entry.nr);
                inside = name != NULL;
                if (name)
                    before = at,
                    at = (struct step){name, info.entry.nr == SYS_ptrace ? info.entry.args[0] : 0};
            }
            if (inside &&
                info.op == (at_entry ? PTRACE_SYSCALL_INFO_ENTRY : PTRACE_SYSCALL_INFO_EXIT) &&
                ++steps == wanted) {
                kill(child, SIGKILL);
                waitpid(child, &status, __WALL);
                tell("killed", 1, steps, at, before);
                return 0;
            }
        } else if (WSTOPSIG(status) != SIGTRAP) {
            signal = WSTOPSIG(status);
        }
        ptrace(PTRACE_SYSCALL, child, 0, signal);
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
        ptrace(PTRACE_SEIZE, child, 0, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL))
        return 1;
    kill(child, SIGCONT);
    return follow(child, atoi(argv[1]), !strcmp(argv[2], "entry"));
}
