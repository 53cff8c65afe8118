/* See about.h. */
#include "inject/probe/tables/about.h"

#include <fcntl.h>
#include <string.h>

#include "base/file.h"
#include "base/secret.h"
#include "proc/ranks.h"
#include "ring/folder.h"

#define TEXT_MAX ((size_t)1 << 20)

static bool read_own(const char *path, struct prb_buf *out)
{
    PRB_AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
    return fd >= 0 && prb_buf_read(out, fd, TEXT_MAX) && out->data;
}

/* Arguments joined by spaces, in one line, secrets hidden. */
static void add_command(struct prb_buf *out, struct prb_buf *arguments)
{
    size_t begin = out->len;
    while (arguments->len && arguments->data[arguments->len - 1] == '\0')
        arguments->len--;
    prb_secret_mask(PRB_SECRET_ARGUMENTS, arguments->data, arguments->len, out);
    for (size_t i = begin; i < out->len; i++)
        if ((unsigned char)out->data[i] < ' ')
            out->data[i] = ' ';
}

void prb_tables_about(int folder)
{
    PRB_AUTO(prb_buf) struct prb_buf text = {0}, arguments = {0}, environ = {0};
    struct prb_ranks ranks = {-1, -1, -1};
    if (read_own("/proc/self/environ", &environ))
        prb_ranks_of(&environ, &ranks);
    prb_buf_addf(&text, "%d %d ", ranks.rank, ranks.world_size);
    if (read_own("/proc/self/cmdline", &arguments))
        add_command(&text, &arguments);
    unlinkat(folder, PRB_RING_ABOUT, 0);
    PRB_AUTO_FD int fd =
        openat(folder, PRB_RING_ABOUT, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd >= 0 && prb_buf_ok(&text))
        prb_write_all(fd, text.data, text.len);
}
