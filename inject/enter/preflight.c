/*
 * Whether a process can be entered, checked before it is touched: each refusal gives one cause and
 * one remedy.  Sources: proc(5), ptrace(2), the header of its executable.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "arch/arch.h"
#include "base/file.h"
#include "inject/enter/steps.h"
#include "proc/source.h"
#include "proc/stat.h"

long long prb_inject_status(const char *status, const char *key, int base)
{
    size_t len = strlen(key);
    for (const char *line = status; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, key, len) == 0 && line[len] == ':')
            return strtoll(line + len + 1, NULL, base);
    }
    return -1;
}

/* ---- its executable ---- */

static bool interpreter_of(int fd, const Elf64_Ehdr *head, char *out, size_t size)
{
    enum { HEADERS_MAX = 64 };
    *out = '\0';
    for (unsigned i = 0; i < head->e_phnum && i < HEADERS_MAX; i++) {
        Elf64_Phdr segment;
        if (pread(fd, &segment, sizeof segment, (off_t)(head->e_phoff + i * sizeof segment)) !=
            (ssize_t)sizeof segment)
            return false;
        if (segment.p_type != PT_INTERP)
            continue;
        size_t len = segment.p_filesz < size ? segment.p_filesz : size - 1;
        ssize_t n = pread(fd, out, len, (off_t)segment.p_offset);
        out[n > 0 ? n : 0] = '\0';
        return n > 0;
    }
    return false;
}

static bool judge_executable(int fd, pid_t pid, struct prb_error *err)
{
    Elf64_Ehdr head;
    char interpreter[256];
    if (pread(fd, &head, sizeof head, 0) != (ssize_t)sizeof head ||
        memcmp(head.e_ident, ELFMAG, SELFMAG) != 0)
        return prb_fail(err, PRB_UNSUPPORTED, "the executable of process %d is not an ELF file",
                        (int)pid);
    if (head.e_ident[EI_CLASS] != ELFCLASS64) {
        prb_fail(err, PRB_UNSUPPORTED, "process %d is a 32-bit program", (int)pid);
        return prb_error_remedy(err, "Run the job with a 64-bit Python");
    }
    if (head.e_machine != prb_arch_host()->elf_machine) {
        prb_fail(err, PRB_UNSUPPORTED, "process %d runs a program of another architecture (ELF %u)",
                 (int)pid, head.e_machine);
        return prb_error_remedy(err, "Start the job with PROBING=1 on that machine");
    }
    if (!interpreter_of(fd, &head, interpreter, sizeof interpreter)) {
        prb_fail(err, PRB_UNSUPPORTED,
                 "process %d is statically linked: it has no loader that could load a library",
                 (int)pid);
        return prb_error_remedy(err, "Run the job with a Python that is linked dynamically");
    }
    if (strstr(interpreter, "ld-musl")) {
        prb_fail(err, PRB_UNSUPPORTED, "process %d uses the musl C library, not glibc", (int)pid);
        return prb_error_remedy(err,
                                "Run the job in an image with glibc (Debian instead of Alpine)");
    }
    return true;
}

static bool executable_allows(struct prb_proc *proc, struct prb_error *err)
{
    char path[40];
    pid_t pid = prb_proc_pid(proc);
    snprintf(path, sizeof path, "/proc/%d/exe", (int)pid);
    PRB_AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 && (errno == EACCES || errno == EPERM))
        return prb_permission_explain(err, pid, errno, "inject into");
    if (fd < 0 && prb_task_ending(pid, pid))
        return prb_fail(err, PRB_GONE, "process %d is ending", (int)pid);
    if (fd < 0)
        return prb_fail(err, PRB_UNSUPPORTED, "process %d has no executable (a kernel thread)",
                        (int)pid);
    return judge_executable(fd, pid, err);
}

/* ---- its status ---- */

static bool traced(pid_t pid, long long tracer, struct prb_error *err)
{
    char path[40], name[64];
    snprintf(path, sizeof path, "/proc/%lld/comm", tracer);
    prb_read_text(path, name, sizeof name);
    name[strcspn(name, "\n")] = '\0';
    prb_fail(err, PRB_BUSY, "process %d is traced by process %lld%s%s%s", (int)pid, tracer,
             *name ? " (" : "", name, *name ? ")" : "");
    return prb_error_remedy(err, "Detach that debugger or strace first; CPython 3.14 "
                                 "and later can be entered beside it");
}

static bool status_allows(struct prb_proc *proc, struct prb_error *err)
{
    PRB_AUTO(prb_buf) struct prb_buf text = {0};
    if (!prb_proc_text(proc, "status", &text, err))
        return false;
    return prb_seccomp_allows(proc, text.data, err);
}

bool prb_inject_untraced(struct prb_proc *proc, struct prb_error *err)
{
    PRB_AUTO(prb_buf) struct prb_buf text = {0};
    if (!prb_proc_text(proc, "status", &text, err))
        return false;
    long long tracer = prb_inject_status(text.data, "TracerPid", 10);
    return tracer <= 0 || traced(prb_proc_pid(proc), tracer, err);
}

bool prb_inject_allowed(struct prb_proc *proc, struct prb_error *err)
{
    pid_t pid = prb_proc_pid(proc);
    if (pid == getpid()) {
        prb_fail(err, PRB_USAGE, "process %d is this program itself", (int)pid);
        return prb_error_remedy(err, "Load libprobe.so with dlopen, or `import probing`");
    }
    struct prb_error refused = {0};
    /* It needs the same right as ptrace(2). */
    struct prb_mem *mem = prb_proc_mem(proc, &refused);
    if (!mem) {
        if (refused.code == PRB_PERMISSION)
            return prb_permission_explain(err, pid, refused.sys ? refused.sys : EPERM,
                                          "inject into");
        if (err)
            *err = refused;
        return false;
    }
    return executable_allows(proc, err) && status_allows(proc, err);
}

/* ---- one at a time ---- */

#define LOCK_STEP_NS 2000000

/* The lock is on /proc/PID/maps: it belongs to this process alone, ends with it, and only those who
 * may trace the process can open it. */
int prb_inject_lock(struct prb_proc *proc, double wait, struct prb_error *err)
{
    char path[40];
    pid_t pid = prb_proc_pid(proc);
    snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
    PRB_AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        prb_fail_sys(err, errno, "cannot open %s", path);
        return -1;
    }
    for (double waited = 0; flock(fd, LOCK_EX | LOCK_NB) != 0; waited += LOCK_STEP_NS * 1e-9) {
        if (errno != EWOULDBLOCK && errno != EINTR) {
            prb_fail_sys(err, errno, "cannot lock %s", path);
            return -1;
        }
        if (waited >= wait) {
            prb_fail(err, PRB_BUSY, "another tool is entering process %d", (int)pid);
            prb_error_remedy(err, "Wait until it is done, or end that tool");
            return -1;
        }
        nanosleep(&(struct timespec){.tv_nsec = LOCK_STEP_NS}, NULL);
    }
    int held = fd;
    fd = -1;
    return held;
}
