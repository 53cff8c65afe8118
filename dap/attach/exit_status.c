/* How the target ended: see exit_status.h. */
#include "dap/attach/exit_status.h"

#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>

#include "dap/attach/program.h"
#include "proc/stat.h"

bool prb_dap_has_ended(const struct prb_dap_session *session, int wait_ms)
{
    struct pollfd fd = {.fd = session->pidfd, .events = POLLIN};
    return session->pidfd < 0 ? kill(session->pid, 0) != 0 : poll(&fd, 1, wait_ms) == 1;
}

/* PIDFD_GET_INFO (linux/pidfd.h) of Linux 6.15, which also knows processes that their parent has
 * waited for. */
struct pidfd_info_64 {
    uint64_t mask, cgroup;
    uint32_t ids[11];
    int32_t exit_code;
};
#define PIDFD_GET_INFO_64 _IOWR(0xFF, 11, struct pidfd_info_64)
#define INFO_EXIT (1u << 3)
_Static_assert(sizeof(struct pidfd_info_64) == 64, "the first version of struct pidfd_info");

static bool find_waited_for(int pidfd, int *status_out)
{
    struct pidfd_info_64 info = {.mask = INFO_EXIT};
    if (pidfd < 0 || ioctl(pidfd, PIDFD_GET_INFO_64, &info) != 0 || !(info.mask & INFO_EXIT))
        return false;
    *status_out = info.exit_code;
    return true;
}

/* The status that wait(2) will give the parent, while the parent has not asked. */
static bool find_zombie(pid_t pid, int *status_out)
{
    char folder[32];
    struct prb_stat stat;
    snprintf(folder, sizeof folder, "/proc/%d", (int)pid);
    if (!prb_stat_of(folder, &stat) || stat.state != 'Z' || stat.count < PRB_STAT_EXIT_CODE)
        return false;
    *status_out = (int)stat.field[PRB_STAT_EXIT_CODE];
    return true;
}

void prb_dap_exit_send(struct prb_dap_session *session)
{
    int status;
    bool ours = session->program && prb_dap_program_status(session->program, &status);
    if (!ours && !find_zombie(session->pid, &status) && !find_waited_for(session->pidfd, &status))
        return;
    int code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    if (WIFSIGNALED(status))
        prb_dap_say(session, false, "probing: signal %d (%s) ended the process", WTERMSIG(status),
                    strsignal(WTERMSIG(status)));
    prb_dap_send(session, "exited", json_pack("{s:i}", "exitCode", code));
}
