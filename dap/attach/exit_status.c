/* How the target ended: see exit_status.h. */
#include "dap/attach/exit_status.h"

#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>

#include "base/file.h"
#include "dap/attach/program.h"

bool prb_dap_has_ended(const struct prb_dap_session *session, int wait_ms)
{
    struct pollfd fd = {.fd = session->pidfd, .events = POLLIN};
    return session->pidfd < 0 ? kill(session->pid, 0) != 0 : poll(&fd, 1, wait_ms) == 1;
}

/* PIDFD_GET_INFO (linux/pidfd.h), as of 6.15, which tells of processes that the parent has waited
 * for. */
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

/* What wait(2) would tell the parent, as long as the parent has not asked; proc(5), field 52 of
 * stat. */
static bool find_zombie(pid_t pid, int *status_out)
{
    char path[32], text[1024];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    prb_read_text(path, text, sizeof text);
    const char *end = strrchr(text, ')'), *last = strrchr(text, ' ');
    if (!end || end[1] != ' ' || end[2] != 'Z' || !last)
        return false;
    *status_out = atoi(last + 1);
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
