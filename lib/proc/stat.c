/* Parsing /proc/PID/stat, proc_pid_stat(5): the name may hold blanks and brackets, so fields count
 * from its last ')'. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "proc/source.h"

/* Field numbers of the man page, and where they go; all but the state are unsigned. */
static const struct {
    unsigned number;
    size_t offset;
} fields[] = {
    {9, offsetof(struct prb_stat, flags)},       {14, offsetof(struct prb_stat, utime)},
    {15, offsetof(struct prb_stat, stime)},      {20, offsetof(struct prb_stat, threads)},
    {22, offsetof(struct prb_stat, starttime)},  {26, offsetof(struct prb_stat, startcode)},
    {28, offsetof(struct prb_stat, startstack)}, {39, offsetof(struct prb_stat, processor)},
    {41, offsetof(struct prb_stat, policy)},
};

#define STATE_FIELD 3

bool prb_stat_parse(const char *text, struct prb_stat *out)
{
    struct prb_stat stat = {.pid = (pid_t)strtol(text, NULL, 10)};
    const char *open = strchr(text, '('), *close = strrchr(text, ')');
    if (!open || !close || close < open || close[1] != ' ' || !close[2])
        return false;
    size_t len = (size_t)(close - open - 1);
    len = len < sizeof stat.comm ? len : sizeof stat.comm - 1;
    memcpy(stat.comm, open + 1, len);
    const char *at = close + 2;
    stat.state = *at == '?' ? 0 : *at;
    unsigned number = STATE_FIELD;
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        while (number < fields[i].number) {
            at = strchr(at, ' ');
            if (!at)
                break;
            at++;
            number++;
        }
        if (!at)
            break;
        *(uint64_t *)((char *)&stat + fields[i].offset) = strtoull(at, NULL, 10);
    }
    *out = stat;
    return true;
}

#define PF_EXITING 0x4 /* linux/sched.h */

bool prb_task_ending(pid_t pid, pid_t tid)
{
    char path[64], text[1024];
    struct prb_stat stat;
    snprintf(path, sizeof path, "/proc/%d/task/%d/stat", (int)pid, (int)tid);
    long n = prb_read_text(path, text, sizeof text);
    if (n <= 0)
        return n < 0 && (errno == ENOENT || errno == ESRCH);
    return prb_stat_parse(text, &stat) &&
           (stat.state == 'Z' || stat.state == 'X' || stat.flags & PF_EXITING);
}
