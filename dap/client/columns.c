/* Columns as clients count them: see columns.h. */
#include "dap/client/columns.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/utf8.h"
#include "proc/below.h"

size_t prb_dap_utf16_units(const char *text, size_t len)
{
    size_t units = 0;
    for (size_t at = 0; at < len;) {
        size_t n = prb_utf8_length(text + at, len - at);
        units += n == 4 ? 2 : 1; /* outside the basic plane: a pair of surrogates */
        at += n ? n : 1;
    }
    return units;
}

/* The whole file, as the target sees it; false: it cannot be read. */
static bool read_source(const struct prb_dap_session *session, const char *path,
                        struct prb_buf *text)
{
    struct stat status;
    PRB_AUTO_FD int root = session->pid ? -1 : open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    PRB_AUTO_FD int fd =
        session->pid ? prb_open_as_target(session->pid, path) : prb_open_below(root, path);
    if (fd < 0 || fstat(fd, &status) != 0 || status.st_size > PRB_DAP_SOURCE_MAX)
        return false;
    return prb_buf_read(text, fd, PRB_DAP_SOURCE_MAX);
}

static bool is_ascii(const struct prb_buf *text)
{
    unsigned char seen = 0;
    for (size_t i = 0; i < text->len; i++)
        seen |= (unsigned char)text->data[i];
    return seen < 128;
}

/* A line and its length in bytes; false: the file has fewer lines. */
static bool find_line(const struct prb_buf *text, json_int_t line, const char **out,
                      size_t *len_out)
{
    const char *at = text->data, *end = text->data + text->len;
    for (; line > 1 && at; line--) {
        at = memchr(at, '\n', (size_t)(end - at));
        at = at ? at + 1 : NULL;
    }
    if (!at)
        return false;
    const char *stop = memchr(at, '\n', (size_t)(end - at));
    *out = at;
    *len_out = (size_t)((stop ? stop : end) - at);
    return true;
}

static bool is_known_ascii(struct prb_dap_session *session, const char *path)
{
    pthread_mutex_lock(&session->lock);
    bool known = json_object_get(session->ascii_sources, path) != NULL;
    pthread_mutex_unlock(&session->lock);
    return known;
}

static void remember_ascii(struct prb_dap_session *session, const char *path)
{
    pthread_mutex_lock(&session->lock);
    if (!session->ascii_sources)
        session->ascii_sources = json_object();
    if (json_object_size(session->ascii_sources) < PRB_DAP_ASCII_MAX)
        json_object_set_new(session->ascii_sources, path, json_true());
    pthread_mutex_unlock(&session->lock);
}

json_int_t prb_dap_column_of(struct prb_dap_session *session, const char *path, json_int_t line,
                             json_int_t column)
{
    PRB_AUTO(prb_buf) struct prb_buf text = {0};
    const char *start;
    size_t len;
    if (column <= 1 || !path || path[0] != '/' || is_known_ascii(session, path) ||
        !read_source(session, path, &text) || !text.len)
        return column;
    if (is_ascii(&text)) {
        remember_ascii(session, path);
        return column;
    }
    if (!find_line(&text, line, &start, &len) || (size_t)(column - 1) > len)
        return column;
    return (json_int_t)prb_dap_utf16_units(start, (size_t)(column - 1)) + 1;
}
