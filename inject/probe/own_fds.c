/* Descriptors that a child closes.  The lock is held for one system call at most; fork(2) waits for
 * it. */
#include "inject/probe/own_fds.h"

#include <pthread.h>
#include <unistd.h>

#include "inject/probe/settings.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int owned[PRB_OWN_MAX];
static unsigned count;
static void (*after_fork)(void);

int prb_own_fd_make(int (*make)(void *context), void *context)
{
    pthread_mutex_lock(&lock);
    int fd = count < PRB_OWN_MAX ? make(context) : -1;
    if (fd >= 0)
        owned[count++] = fd;
    pthread_mutex_unlock(&lock);
    return fd;
}

void prb_own_fd_close(int fd)
{
    if (fd < 0)
        return;
    pthread_mutex_lock(&lock);
    for (unsigned i = 0; i < count; i++)
        if (owned[i] == fd) {
            owned[i] = owned[--count];
            break;
        }
    close(fd);
    pthread_mutex_unlock(&lock);
}

static void prepare(void)
{
    prb_settings_lock();
    pthread_mutex_lock(&lock);
}

static void parent(void)
{
    pthread_mutex_unlock(&lock);
    prb_settings_unlock();
}

static void child(void)
{
    for (unsigned i = 0; i < count; i++)
        close(owned[i]);
    count = 0;
    after_fork();
    parent();
}

bool prb_own_fds_register(void (*after)(void))
{
    static bool registered;
    after_fork = after;
    if (!registered)
        registered = pthread_atfork(prepare, parent, child) == 0;
    return registered;
}
