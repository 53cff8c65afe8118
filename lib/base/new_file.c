/* Files that take a path's place once they are whole: see new_file.h. */
#include "base/new_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define TRIES 16
#define SUFFIX ".XXXXXX"

/* Another name beside the path: in a folder that others may write to, nobody foresees it. */
static void choose_name(struct prb_new_file *file)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789";
    uint8_t random[sizeof SUFFIX - 2] = {0};
    char *at = file->beside + strlen(file->path) + 1;
    if (getrandom(random, sizeof random, 0) < 0)
        random[0] = (uint8_t)getpid();
    for (size_t i = 0; i < sizeof random; i++)
        at[i] = letters[random[i] % (sizeof letters - 1)];
}

static int open_nameless(const char *path, mode_t mode)
{
    PRB_AUTO_FREE char *folder = strdup(path);
    if (!folder)
        return -1;
    char *slash = strrchr(folder, '/');
    if (slash)
        slash[slash == folder] = '\0';
    return open(slash ? folder : ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, mode);
}

bool prb_new_file_begin(struct prb_new_file *file, const char *path, mode_t mode)
{
    struct stat info;
    *file = (struct prb_new_file){.fd = -1, .path = path};
    if (stat(path, &info) == 0 && !S_ISREG(info.st_mode)) {
        errno = S_ISDIR(info.st_mode) ? EISDIR : EEXIST;
        return false;
    }
    if (!(file->beside = malloc(strlen(path) + sizeof SUFFIX)))
        return false;
    sprintf(file->beside, "%s" SUFFIX, path);
    file->fd = open_nameless(path, mode);
    /* EISDIR: a kernel that does not know of them. */
    for (int i = 0; i < TRIES && file->fd < 0 &&
                    (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL || errno == EEXIST);
         i++) {
        choose_name(file);
        file->fd = open(file->beside, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
        file->named = file->fd >= 0;
    }
    return file->fd >= 0;
}

/* Give it a name: its own where nothing is there yet, else one beside. */
static bool give_name(struct prb_new_file *file, bool *done_out)
{
    char open_file[32];
    snprintf(open_file, sizeof open_file, "/proc/self/fd/%d", file->fd);
    *done_out = linkat(AT_FDCWD, open_file, AT_FDCWD, file->path, AT_SYMLINK_FOLLOW) == 0;
    for (int i = 0; i < TRIES && !*done_out && !file->named && errno == EEXIST; i++) {
        choose_name(file);
        file->named = linkat(AT_FDCWD, open_file, AT_FDCWD, file->beside, AT_SYMLINK_FOLLOW) == 0;
    }
    return *done_out || file->named;
}

bool prb_new_file_end(struct prb_new_file *file)
{
    bool done = false;
    if (!file->named && !give_name(file, &done))
        return false;
    int fd = PRB_STEAL_FD(file->fd);
    /* Some file systems report a full disk only here. */
    if (close(fd) != 0 || (!done && rename(file->beside, file->path) != 0)) {
        int wrong = errno;
        if (done)
            unlink(file->path);
        errno = wrong;
        return false;
    }
    file->named = false;
    return true;
}

void prb_new_file_deinit(struct prb_new_file *file)
{
    int kept = errno;
    if (file->named)
        unlink(file->beside);
    if (file->fd >= 0)
        close(file->fd);
    free(file->beside);
    *file = (struct prb_new_file){.fd = -1};
    errno = kept;
}

FILE *prb_special_open(const char *path, struct prb_error *err)
{
    PRB_AUTO_FD int fd = open(path, O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat info;
    if (fd < 0 && errno == ENXIO && stat(path, &info) == 0 && S_ISFIFO(info.st_mode))
        return PRB_NULL(prb_fail(err, PRB_IO, "nobody reads the pipe %s", path));
    if (fd < 0 || fcntl(fd, F_SETFL, O_WRONLY) != 0)
        return PRB_NULL(prb_fail_sys(err, errno, "%s", path));
    FILE *file = fdopen(fd, "w");
    if (!file)
        return PRB_NULL(prb_nomem(err));
    (void)PRB_STEAL_FD(fd);
    return file;
}
