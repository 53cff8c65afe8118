/* Children at their birth: see birth.h. */
#include "inject/probe/debug/birth.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"

#define CONFIGURE_S 10.0 /* for a session that is attached to be configured */
#define LATE "t"         /* what a child sends when it goes on without a session */

static struct {
    pthread_mutex_t lock; /* of fd and attached; the rest is used with the GIL */
    pid_t parent;         /* the process whose session takes children; 0: none does */
    char name[64];        /* of the abstract socket */
    double wait_s;
    int fd; /* on which this process waits; -1: it does not */
    bool attached;
} birth = {.lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1};

void prb_debug_birth_forked(void) { pthread_mutex_init(&birth.lock, NULL); }

static struct prb_py *nothing(const struct prb_py_api *py)
{
    py->Py_IncRef(py->none);
    return py->none;
}

struct prb_py *prb_debug_take_children(struct prb_py *self, struct prb_py *args)
{
    static bool registered; /* in the children, too */
    (void)self;
    const struct prb_py_api *py = prb_py_api(NULL);
    const char *name;
    double wait_s;
    if (!py || !py->PyArg_ParseTuple(args, "sd", &name, &wait_s))
        return NULL;
    bool on = *name && strlen(name) < sizeof birth.name, first = on && !registered;
    if (on)
        strcpy(birth.name, name);
    birth.wait_s = wait_s;
    birth.parent = on ? getpid() : 0;
    registered |= on;
    return py->PyLong_FromLong(first);
}

/* As setenv(3) and unsetenv(3), but what other threads may read just now stays as it is: the old array
 * of variables is never freed, nor changed. */
static bool set_variable(const char *name, const char *value)
{
    size_t len = strlen(name), count = 0, kept = 0;
    while (environ && environ[count])
        count++;
    char **made = calloc(count + 2, sizeof *made), *text = NULL;
    if (!made || (value && asprintf(&text, "%s=%s", name, value) < 0)) {
        free(made);
        return false;
    }
    for (size_t i = 0; i < count; i++)
        if (strncmp(environ[i], name, len) != 0 || environ[i][len] != '=')
            made[kept++] = environ[i];
    made[kept] = text;
    __atomic_store_n(&environ, made, __ATOMIC_RELEASE);
    return true;
}

struct prb_py *prb_debug_set_variable(struct prb_py *self, struct prb_py *args)
{
    (void)self;
    const struct prb_py_api *py = prb_py_api(NULL);
    const char *name, *value;
    if (!py || !py->PyArg_ParseTuple(args, "sz", &name, &value))
        return NULL;
    return py->PyLong_FromLong(set_variable(name, value));
}

/* Whether the caller is a function of that name; it forks to start another program. */
static bool is_called_by(const struct prb_py_api *py, const char *const *names)
{
    struct prb_py *frame = py->PyEval_GetFrame(); /* borrowed */
    PRB_AUTO(prb_py)
    struct prb_py *code = frame ? py->PyObject_GetAttrString(frame, "f_code") : NULL;
    PRB_AUTO(prb_py)
    struct prb_py *name = code ? py->PyObject_GetAttrString(code, "co_name") : NULL;
    PRB_AUTO(prb_py) struct prb_py *bytes = name ? py->PyUnicode_AsUTF8String(name) : NULL;
    char *text = NULL;
    if (bytes && py->PyBytes_AsStringAndSize(bytes, &text, NULL) != 0)
        text = NULL;
    py->PyErr_Clear();
    for (; text && *names; names++)
        if (strcmp(text, *names) == 0)
            return true;
    return false;
}

/* The server is of this user, or root's: after its end anybody may take its name. */
static bool is_trusted(int fd)
{
    struct ucred who;
    socklen_t size = sizeof who;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) == 0 &&
           (who.uid == 0 || who.uid == geteuid());
}

static int connect_to(const char *name)
{
    struct sockaddr_un place = {.sun_family = AF_UNIX};
    size_t len = strlen(name);
    PRB_AUTO_FD int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    memcpy(place.sun_path + 1, name, len);
    if (fd < 0 ||
        connect(fd, (struct sockaddr *)&place,
                (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + len)) != 0 ||
        !is_trusted(fd))
        return -1;
    return PRB_STEAL_FD(fd);
}

static bool is_attached(void)
{
    pthread_mutex_lock(&birth.lock);
    bool attached = birth.attached;
    pthread_mutex_unlock(&birth.lock);
    return attached;
}

/* Of the signals that the program lets come: those that it has a handler for. */
static void find_handled(const sigset_t *blocked, sigset_t *out)
{
    sigemptyset(out);
    for (int number = 1; number < NSIG; number++) {
        struct sigaction action;
        if (sigismember(blocked, number) == 0 && sigaction(number, NULL, &action) == 0 &&
            action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN)
            sigaddset(out, number);
    }
}

/* Until the connection says anything, as its end is the sign to go on, or a signal is there. */
static void wait_on(int fd, int signals)
{
    struct pollfd waits[] = {{.fd = fd, .events = POLLIN | POLLRDHUP},
                             {.fd = signals, .events = POLLIN}};
    double until = prb_clock_s() + birth.wait_s;
    bool extended = false;
    for (;;) {
        double left = until - prb_clock_s();
        if (poll(waits, 2, left > 0 ? (int)(left * 1000) + 1 : 0) != 0)
            return; /* a signal, too */
        if (extended || !is_attached())
            break;
        extended = true;
        until += CONFIGURE_S;
    }
    ssize_t sent = send(fd, LATE, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
    (void)sent; /* failed: the server is gone */
}

static void wait_at(const struct prb_py_api *py, int fd, int signals)
{
    pthread_mutex_lock(&birth.lock);
    birth.fd = fd;
    birth.attached = false;
    pthread_mutex_unlock(&birth.lock);
    void *saved = py->PyEval_SaveThread();
    wait_on(fd, signals);
    py->PyEval_RestoreThread(saved);
    pthread_mutex_lock(&birth.lock);
    birth.fd = -1;
    close(fd);
    pthread_mutex_unlock(&birth.lock);
}

/* Called in each child by os.register_at_fork().  No Python code of ours runs on this thread, so
 * handlers of signals raise their exceptions where the program called os.fork(). */
struct prb_py *prb_debug_born(struct prb_py *self, struct prb_py *args)
{
    static const char *const starters[] = {"_execute_child", "_spawnvef", NULL};
    (void)self, (void)args;
    const struct prb_py_api *py = prb_py_api(NULL);
    if (!py)
        return NULL;
    if (!birth.parent || birth.parent == getpid())
        return nothing(py);
    birth.parent = 0; /* the session of this process, if there is one, takes the next ones */
    if (is_called_by(py, starters))
        return nothing(py);
    sigset_t all, before, handled, waiting;
    int saved_errno = errno;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    find_handled(&before, &handled);
    sigorset(&waiting, &before, &handled);
    /* A signal that a handler takes ends the wait and is delivered after it: none is missed.  Not
     * ppoll(2), since a thread in poll(2) can be borrowed to load the probe. */
    int signals = signalfd(-1, &handled, SFD_CLOEXEC);
    int fd = signals >= 0 ? connect_to(birth.name) : -1;
    pthread_sigmask(SIG_SETMASK, &waiting, NULL);
    if (fd >= 0)
        wait_at(py, fd, signals);
    if (signals >= 0)
        close(signals);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = saved_errno;
    return nothing(py);
}

struct prb_py *prb_debug_child_waits(struct prb_py *self, struct prb_py *args)
{
    (void)self, (void)args;
    const struct prb_py_api *py = prb_py_api(NULL);
    pthread_mutex_lock(&birth.lock);
    birth.attached = true;
    bool waits = birth.fd >= 0;
    pthread_mutex_unlock(&birth.lock);
    return py ? py->PyLong_FromLong(waits) : NULL;
}

struct prb_py *prb_debug_child_goes(struct prb_py *self, struct prb_py *args)
{
    (void)self, (void)args;
    const struct prb_py_api *py = prb_py_api(NULL);
    pthread_mutex_lock(&birth.lock);
    if (birth.fd >= 0)
        shutdown(birth.fd, SHUT_RDWR);
    pthread_mutex_unlock(&birth.lock);
    return py ? nothing(py) : NULL;
}
