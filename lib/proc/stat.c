/* Parsing /proc/PID/stat.  libc only, as the probe has it, too. */
#include "proc/stat.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"

/* A number after blanks; NULL: there is none.  As strtoll(3), which takes several times as long. */
static const char *number(const char *at, int64_t *out)
{
    while (*at == ' ')
        at++;
    bool negative = *at == '-';
    at += negative;
    const char *begin = at;
    int64_t value = 0;
    for (; *at >= '0' && *at <= '9'; at++)
        value = value >= INT64_MAX / 10 ? INT64_MAX : value * 10 + (*at - '0');
    *out = negative ? -value : value;
    return at == begin ? NULL : at;
}

bool prb_stat_parse(const char *text, struct prb_stat *out)
{
    /* The name may hold blanks and brackets: fields count from the last bracket. */
    const char *open = strchr(text, '('), *close = strrchr(text, ')');
    if (!open || !close || close < open || close[1] != ' ' || !close[2])
        return false;
    *out = (struct prb_stat){.pid = (pid_t)strtol(text, NULL, 10), .state = close[2], .count = 3};
    size_t len = (size_t)(close - open - 1);
    memcpy(out->comm, open + 1, len < sizeof out->comm ? len : sizeof out->comm - 1);
    const char *at = close + 3;
    while (out->count < PRB_STAT_FIELDS && (at = number(at, &out->field[out->count + 1])))
        out->count++;
    return true;
}

bool prb_stat_of(const char *folder, struct prb_stat *out)
{
    char path[80], text[1024];
    snprintf(path, sizeof path, "%s/stat", folder);
    return prb_read_text(path, text, sizeof text) > 0 && prb_stat_parse(text, out);
}

#define PF_EXITING 0x4 /* linux/sched.h */

bool prb_task_ending(pid_t pid, pid_t tid)
{
    char path[64];
    struct prb_stat stat;
    snprintf(path, sizeof path, "/proc/%d/task/%d", (int)pid, (int)tid);
    errno = 0;
    if (!prb_stat_of(path, &stat))
        return errno == ENOENT || errno == ESRCH;
    return stat.state == 'Z' || stat.state == 'X' || stat.field[PRB_STAT_FLAGS] & PF_EXITING;
}

double prb_stat_started(const struct prb_stat *stat)
{
    struct timespec now, up;
    clock_gettime(CLOCK_REALTIME, &now);
    clock_gettime(CLOCK_BOOTTIME, &up);
    double boot = (double)(now.tv_sec - up.tv_sec) + 1e-9 * (double)(now.tv_nsec - up.tv_nsec);
    return boot + (double)stat->field[PRB_STAT_STARTTIME] / (double)sysconf(_SC_CLK_TCK);
}
