/* What ends a command, as a descriptor (ends.h). */
#include "cli/ends.h"

#include <sys/signalfd.h>

int prb_take_ends(void)
{
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGHUP);
    if (sigprocmask(SIG_BLOCK, &ends, NULL) != 0)
        return -1;
    return signalfd(-1, &ends, SFD_CLOEXEC | SFD_NONBLOCK);
}
