/* The agent's log (agent.h). */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/file.h"
#include "fleet/agent/agent.h"

#define LOG_MAX (1 << 20)

struct prb_agent_log {
    pthread_mutex_t lock;
    char path[PATH_MAX];
    int fd;
    size_t size;
};

static bool make_folders(char *path)
{
    for (char *slash = path + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        bool good = mkdir(path, 0700) == 0 || errno == EEXIST;
        *slash = '/';
        if (!good)
            return false;
    }
    return true;
}

static bool open_file(struct prb_agent_log *log)
{
    struct stat info;
    log->fd =
        open(log->path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    log->size = log->fd >= 0 && fstat(log->fd, &info) == 0 ? (size_t)info.st_size : 0;
    return log->fd >= 0;
}

struct prb_agent_log *prb_agent_log_open(const char *host, struct prb_error *err)
{
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    bool whole = state && *state == '/';
    char token[PRB_BUS_TOKEN];
    struct prb_agent_log *log = calloc(1, sizeof *log);
    if (!log)
        return PRB_NULL(prb_nomem(err));
    pthread_mutex_init(&log->lock, NULL);
    log->fd = -1;
    prb_bus_token(host, token);
    int len = whole || (home && *home == '/')
                  ? snprintf(log->path, sizeof log->path, "%s%s/probing/agent-%.80s.log",
                             whole ? state : home, whole ? "" : "/.local/state", token)
                  : -1;
    if (len > 0 && len < (int)sizeof log->path - 2 && make_folders(log->path) && open_file(log))
        return log;
    if (len < 0)
        prb_fail(err, PRB_NOT_FOUND, "HOME is not set, where the agent's log belongs");
    else
        prb_fail_sys(err, errno, "the agent's log %.200s", log->path);
    prb_agent_log_close(log);
    return NULL;
}

void prb_agent_log_close(struct prb_agent_log *log)
{
    if (!log)
        return;
    if (log->fd >= 0)
        close(log->fd);
    pthread_mutex_destroy(&log->lock);
    free(log);
}

static void turn_over(struct prb_agent_log *log)
{
    char old[PATH_MAX + 2];
    snprintf(old, sizeof old, "%s.1", log->path);
    if (rename(log->path, old) != 0)
        return;
    close(log->fd);
    open_file(log);
}

void prb_agent_log(struct prb_agent_log *log, const char *format, ...)
{
    char line[1000];
    struct tm parts;
    time_t now = time(NULL);
    va_list arguments;
    if (!log)
        return;
    size_t head = strftime(line, sizeof line, "%Y-%m-%dT%H:%M:%SZ ", gmtime_r(&now, &parts));
    va_start(arguments, format);
    vsnprintf(line + head, sizeof line - head - 1, format, arguments);
    va_end(arguments);
    size_t len = strlen(line);
    for (size_t i = head; i < len; i++)
        if ((unsigned char)line[i] < ' ' || line[i] == 0x7f)
            line[i] = '?';
    line[len++] = '\n';
    pthread_mutex_lock(&log->lock);
    if (log->size > LOG_MAX)
        turn_over(log);
    if (log->fd >= 0 && prb_write_all(log->fd, line, len))
        log->size += len;
    pthread_mutex_unlock(&log->lock);
}
