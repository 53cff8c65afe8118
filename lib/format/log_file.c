/* A file of lines; full, it is renamed and begun anew: see log_file.h. */
#include "format/log_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "format/format.h"

#define SIZE_MAX_ (1 << 20)
#define LINE_SIZE 1000

struct prb_log_file {
    pthread_mutex_t lock;
    int folder, fd;
    size_t size;
    char name[NAME_MAX + 1], old[NAME_MAX + 1];
};

/* O_NONBLOCK: a pipe in its place is no reason to wait. */
static bool open_file(struct prb_log_file *log)
{
    struct stat info;
    log->fd = openat(log->folder, log->name,
                     O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    log->size = log->fd >= 0 && fstat(log->fd, &info) == 0 ? (size_t)info.st_size : 0;
    return log->fd >= 0;
}

struct prb_log_file *prb_log_file_open(const char *folder, const char *name, struct prb_error *err)
{
    PRB_AUTO(prb_log_file) struct prb_log_file *log = calloc(1, sizeof *log);
    if (!log)
        return PRB_NULL(prb_nomem(err));
    pthread_mutex_init(&log->lock, NULL);
    log->fd = -1;
    snprintf(log->name, sizeof log->name, "%s", name);
    snprintf(log->old, sizeof log->old, "%.250s.1", name);
    log->folder = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (log->folder < 0 || !open_file(log))
        return PRB_NULL(prb_fail_sys(err, errno, "opening the log %s/%s", folder, name));
    return PRB_STEAL(log);
}

void prb_log_file_close(struct prb_log_file *log)
{
    if (!log)
        return;
    if (log->fd >= 0)
        close(log->fd);
    if (log->folder >= 0)
        close(log->folder);
    pthread_mutex_destroy(&log->lock);
    free(log);
}

static void turn_over(struct prb_log_file *log)
{
    if (renameat(log->folder, log->name, log->folder, log->old) < 0)
        return;
    close(log->fd);
    open_file(log);
}

void prb_log_file_add(struct prb_log_file *log, const char *format, ...)
{
    char text[LINE_SIZE], stamp[40];
    va_list arguments;
    struct tm parts;
    time_t now = time(NULL);
    if (!log)
        return;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    PRB_AUTO_FREE char *safe = prb_text_safe(text, strlen(text), 0);
    PRB_AUTO(prb_buf) struct prb_buf line = {0};
    strftime(stamp, sizeof stamp, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &parts));
    prb_buf_addf(&line, "%s %s\n", stamp, safe ? safe : "");
    pthread_mutex_lock(&log->lock);
    if (log->size > SIZE_MAX_)
        turn_over(log);
    if (prb_buf_ok(&line) && log->fd >= 0 && prb_write_all(log->fd, line.data, line.len))
        log->size += line.len;
    pthread_mutex_unlock(&log->lock);
}
