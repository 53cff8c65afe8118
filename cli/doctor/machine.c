/* The kernel's part: what is allowed here, found out by trying it. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <sys/wait.h>

#include "cli/doctor/doctor.h"

#define KERNEL_MAJOR 5 /* the oldest that was read for: 5.4 */
#define KERNEL_MINOR 4

void prb_doctor_kernel(struct prb_doctor *doctor)
{
    struct utsname name;
    int major = 0, minor = 0;
    if (uname(&name) < 0 || sscanf(name.release, "%d.%d", &major, &minor) != 2)
        prb_doctor_tell(doctor, "kernel", PRB_UNTOLD, "", "its release cannot be read");
    else if (major < KERNEL_MAJOR || (major == KERNEL_MAJOR && minor < KERNEL_MINOR))
        prb_doctor_tell(doctor, "kernel", PRB_LIMITED, "5.4 and later are supported",
                        "Linux %s on %s is older than anything that was tried", name.release,
                        name.machine);
    else
        prb_doctor_tell(doctor, "kernel", PRB_WORKS, "", "Linux %s on %s", name.release,
                        name.machine);
}

/* ---- looking ---- */

struct tried {
    bool read, stopped;
    int sys; /* of the stop */
    struct prb_error err;
};

/* In a process that is neither parent nor child of pid. */
static void try_from_outside(pid_t pid, struct tried *out)
{
    out->read = prb_process_permits(pid, &out->err);
    out->stopped = out->read && ptrace(PTRACE_SEIZE, pid, NULL, NULL) == 0;
    out->sys = errno;
    if (out->stopped)
        ptrace(PTRACE_DETACH, pid, NULL, NULL);
}

/* In a child: end when the parent does, however it ends. */
static void end_with(pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
}

static void end_child(pid_t pid)
{
    if (pid > 0) {
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
    }
}

/* One child looks into another: as strangers do, since a parent may do more (Yama). */
static bool try_on_children(struct tried *out)
{
    int told[2];
    if (pipe2(told, O_CLOEXEC) < 0)
        return false;
    pid_t self = getpid(), looked_at = fork();
    if (looked_at == 0) {
        end_with(self);
        for (;;)
            pause();
    }
    pid_t looks = looked_at > 0 ? fork() : -1;
    if (looks == 0) {
        end_with(self);
        try_from_outside(looked_at, out);
        _exit(write(told[1], out, sizeof *out) != sizeof *out); /* less than PIPE_BUF */
    }
    close(told[1]);
    bool ok = looks > 0 && read(told[0], out, sizeof *out) == sizeof *out;
    close(told[0]);
    end_child(looks);
    end_child(looked_at);
    return ok;
}

void prb_doctor_looking(struct prb_doctor *doctor)
{
    struct tried tried = {0};
    if (!try_on_children(&tried)) {
        prb_doctor_tell(doctor, "looking", PRB_UNTOLD, "", "no child processes to try it with: %s",
                        strerror(errno));
        return;
    }
    if (!tried.read)
        prb_doctor_tell_error(doctor, "looking", PRB_FAILS, &tried.err);
    else
        prb_doctor_tell(doctor, "looking", PRB_WORKS, "",
                        "one process of yours may read another's memory");
    if (tried.stopped)
        prb_doctor_tell(doctor, "injecting", PRB_WORKS, "", "and stop its threads (ptrace)");
    else if (tried.read)
        prb_doctor_tell(doctor, "injecting", PRB_FAILS,
                        "A seccomp filter or a security module forbids ptrace: looking works, but "
                        "native frames of running threads, inject, eval and debug need it",
                        "threads cannot be stopped: %s", strerror(tried.sys));
}

/* ---- /proc, shared memory ---- */

/* The options of a mount point in /proc/self/mounts: "" when it is none. */
static void mount_options(const char *point, char *out, size_t size)
{
    char line[4096], where[1024], with[1024];
    PRB_AUTO(file) FILE *mounts = fopen("/proc/self/mounts", "re");
    *out = '\0';
    while (mounts && fgets(line, sizeof line, mounts))
        if (sscanf(line, "%*s %1023s %*s %1023s", where, with) == 2 && strcmp(where, point) == 0)
            snprintf(out, size, "%s", with);
}

void prb_doctor_proc(struct prb_doctor *doctor)
{
    char with[1024];
    mount_options("/proc", with, sizeof with);
    const char *hides = strstr(with, "hidepid=");
    if (access("/proc/self/maps", R_OK) < 0)
        prb_doctor_tell(doctor, "proc", PRB_FAILS, "Mount it: mount -t proc proc /proc",
                        "/proc is not there: no process can be found");
    else if (hides && strncmp(hides, "hidepid=0", 9) != 0 && strncmp(hides, "hidepid=off", 11) != 0)
        prb_doctor_tell(doctor, "proc", geteuid() == 0 ? PRB_WORKS : PRB_LIMITED,
                        geteuid() == 0 ? "" : "Run probing as the user whose processes they are",
                        "/proc is mounted with %.9s: only your own processes are seen", hides);
    else
        prb_doctor_tell(doctor, "proc", PRB_WORKS, "", "/proc shows every process");
}

void prb_doctor_shared_memory(struct prb_doctor *doctor)
{
    static const char folder[] = "/dev/shm";
    struct statvfs info;
    if (statvfs(folder, &info) < 0 || access(folder, W_OK | X_OK) < 0) {
        prb_doctor_tell(
            doctor, "shared-memory", PRB_LIMITED,
            "Tables that a job records go to /tmp; PROBING_DATA_DIR names another place",
            "%s cannot be written: %s", folder, strerror(errno));
        return;
    }
    double room = (double)info.f_bavail * (double)info.f_frsize / (1 << 20);
    if (room < 64)
        prb_doctor_tell(doctor, "shared-memory", PRB_LIMITED,
                        "Containers have 64 MB by default: docker run --shm-size=1g; the "
                        "setting probing.max_memory bounds what is used",
                        "%s has %.0f MB left", folder, room);
    else
        prb_doctor_tell(doctor, "shared-memory", PRB_WORKS, "", "%s has %.0f MB left", folder,
                        room);
}
