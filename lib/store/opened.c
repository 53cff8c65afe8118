/*
 * Which files of the store this process has open.
 *
 * SQLite's locks are POSIX locks: a process loses all that it has on a file when it closes any
 * descriptor of it, also one of its own beside SQLite's.  Whoever then closes the file as the last
 * one, as it seems, takes the log away in which we write.  So a file that is open here is opened by
 * SQLite only, which keeps descriptors until the last lock is gone.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>

#include "store/file_parts.h"

#define SQLITE_MAGIC "SQLite format 3"
#define APPLICATION_OFFSET 68 /* of the application_id in a database file */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct prb_store_file *opened;

static bool is_open(const struct stat *st)
{
    for (const struct prb_store_file *file = opened; file; file = file->next)
        if (file->device == st->st_dev && file->inode == st->st_ino)
            return true;
    return false;
}

/* With the lock held.  An empty file, of this user alone. */
static bool make(const char *path, struct prb_error *err)
{
    PRB_AUTO_FD int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    return fd >= 0 || errno == EEXIST || prb_fail_sys(err, errno, "%s", path);
}

bool prb_store_enter(struct prb_store_file *file, struct prb_error *err)
{
    struct stat st;
    pthread_mutex_lock(&lock);
    bool good = !file->write || make(file->path, err);
    if (good && (file->write ? lstat : stat)(file->path, &st) != 0)
        good = prb_fail_sys(err, errno, "%s", file->path);
    if (good && S_ISLNK(st.st_mode))
        good = prb_fail_sys(err, ELOOP, "%s", file->path);
    if (good) {
        file->device = st.st_dev;
        file->inode = st.st_ino;
        file->next = opened;
        opened = file;
    }
    pthread_mutex_unlock(&lock);
    return good;
}

void prb_store_leave(struct prb_store_file *file)
{
    pthread_mutex_lock(&lock);
    for (struct prb_store_file **at = &opened; *at; at = &(*at)->next)
        if (*at == file) {
            *at = file->next;
            break;
        }
    pthread_mutex_unlock(&lock);
}

bool prb_store_alone(const struct prb_store_file *file)
{
    size_t count = 0;
    pthread_mutex_lock(&lock);
    for (const struct prb_store_file *one = opened; one; one = one->next)
        count += one->device == file->device && one->inode == file->inode;
    pthread_mutex_unlock(&lock);
    return count == 1;
}

static bool has_magic(const char *path)
{
    unsigned char head[100];
    PRB_AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    static const unsigned char application[] = {0x50, 0x52, 0x42, 0x53};
    return fd >= 0 && read(fd, head, sizeof head) == sizeof head &&
           memcmp(head, SQLITE_MAGIC, sizeof SQLITE_MAGIC) == 0 &&
           memcmp(head + APPLICATION_OFFSET, application, sizeof application) == 0;
}

bool prb_store_is(const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0 || !S_ISREG(st.st_mode))
        return false;
    pthread_mutex_lock(&lock);
    bool is = is_open(&st) || has_magic(path);
    pthread_mutex_unlock(&lock);
    return is;
}
