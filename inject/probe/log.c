/*
 * Lines of the log.  Each is one write(2) to a file opened for appending, so lines of several
 * processes do not mix; the file is opened for each line, so that no descriptor is held and a
 * rotation by another process is seen.
 */
#include "inject/probe/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>

#include "base/utf8.h"
#include "inject/probe/libc.h"
#include "inject/probe/socket_path.h"

static const char file[] = PRB_LOG_NAME, previous[] = PRB_LOG_NAME ".1";

void prb_log_quote(struct prb_buf *out, const char *text, size_t len)
{
    size_t shown = len < PRB_LOG_TEXT_MAX ? len : PRB_LOG_TEXT_MAX;
    prb_buf_addc(out, '"');
    for (size_t i = 0; i < shown;) {
        unsigned char c = (unsigned char)text[i];
        size_t n = prb_utf8_length(text + i, shown - i);
        if (n == 2 && c == 0xc2 &&
            (text[i + 1] & 0xe0) == 0x80) /* U+0080 … U+009F steer terminals, too */
            n = 0;
        if (c == '\n')
            prb_buf_adds(out, "\\n");
        else if (c == '"' || c == '\\')
            prb_buf_addf(out, "\\%c", c);
        else if (c < 0x20 || c == 0x7f || n == 0)
            prb_buf_addf(out, "\\x%02x", c);
        else
            prb_buf_add(out, text + i, n);
        i += n && c >= 0x20 ? n : 1;
    }
    prb_buf_adds(out, shown < len ? "\"…" : "\"");
}

static int open_log(int folder)
{
    return openat(folder, file, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK,
                  0600);
}

/* Only who gets the lock renames; who comes second finds a short file. */
static int rotate(int folder, int fd)
{
    struct stat info;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0 && prb_lstatat(folder, file, &info) == 0 &&
        info.st_size >= PRB_LOG_MAX)
        renameat(folder, file, folder, previous);
    close(fd);
    return open_log(folder);
}

static void add_time(struct prb_buf *line)
{
    struct timespec now;
    struct tm parts;
    clock_gettime(CLOCK_REALTIME, &now);
    if (gmtime_r(&now.tv_sec, &parts))
        prb_buf_addf(line, "%04d-%02d-%02dT%02d:%02d:%02d.%03ldZ", parts.tm_year + 1900,
                     parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec,
                     now.tv_nsec / 1000000);
}

void prb_log(int folder, const char *format, ...)
{
    PRB_AUTO(prb_buf) struct prb_buf line = {0};
    char text[2 * 1024 + PRB_LOG_TEXT_MAX];
    va_list args;
    struct stat info;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    add_time(&line);
    prb_buf_addf(&line, " pid=%d %s\n", (int)getpid(), text);
    PRB_AUTO_FD int fd = open_log(folder);
    if (fd >= 0 && prb_fstat(fd, &info) == 0 && info.st_size >= PRB_LOG_MAX)
        fd = rotate(folder, fd);
    /* a pipe or device in its place would be somebody's trick */
    if (fd < 0 || !prb_buf_ok(&line) || prb_fstat(fd, &info) < 0 || !S_ISREG(info.st_mode))
        return;
    ssize_t written = write(fd, line.data, line.len);
    (void)written; /* a full file system costs the line, nothing else */
}
