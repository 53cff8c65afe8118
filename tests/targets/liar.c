/*
 * A target that means harm to whoever injects: it waits for the memory that the injector maps in
 * it, and writes what it likes to the page of inject/enter/stub.h.
 *
 *     liar progress NUMBER [PATH]   the page says NUMBER, again and again, and has a descriptor
 *     of
 *                                   PATH (O_PATH, which needs no right to the file)
 *     liar descriptor PATH          at once it says that its memory file is ready: PATH, made by
 *     us;
 *                                   "-": standard input
 *     liar die                      without descriptors, so that the library comes as a file;
 *     that
 *                                   seen, it is gone
 *     liar idle                     without descriptors, and without lies
 *
 * Says "ready", and "lied" at its first lie.
 */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <unistd.h>

#include "inject/enter/stub.h"

#ifdef __x86_64__
#define APART PRB_STUB_APART_X86_64
#else
#define APART PRB_STUB_APART_AARCH64
#endif

static void *wait_to_be_borrowed(void *unused)
{
    poll(NULL, 0, -1);
    return unused;
}

static void say(const char *what)
{
    puts(what);
    fflush(stdout);
}

/* Memory of no file that may be executed: nobody but the injector makes such in us. */
static struct prb_stub_page *find_page(int maps)
{
    static char text[1 << 20];
    ssize_t len = 0, more;
    while ((more = pread(maps, text + len, sizeof text - 1 - (size_t)len, len)) > 0)
        len += more;
    text[len] = '\0';
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        unsigned long start, inode;
        char rights[8];
        if (sscanf(line, "%lx-%*x %7s %*s %*s %lu", &start, rights, &inode) == 3 && !inode &&
            rights[2] == 'x' && !strchr(line, '['))
            return (struct prb_stub_page *)(start + APART);
    }
    return NULL;
}

static void lie(int maps, uint32_t progress, int descriptor)
{
    volatile struct prb_stub_page *page;
    while (!(page = find_page(maps)))
        ;
    for (bool first = true;; first = false) {
        page->descriptor = descriptor;
        page->progress = progress;
        if (first)
            say("lied");
    }
}

static void use_up_descriptors(void)
{
    int next = dup(0);
    struct rlimit limit = {(rlim_t)next, (rlim_t)next};
    close(next);
    setrlimit(RLIMIT_NOFILE, &limit);
}

/* Events wait for us, so that no file is too short-lived to be seen. */
static void die_when_it_is_there(int events)
{
    char buffer[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
    for (ssize_t len; (len = read(events, buffer, sizeof buffer)) > 0;)
        for (ssize_t at = 0; at < len;) {
            const struct inotify_event *event = (const void *)(buffer + at);
            if (event->len && !strncmp(event->name, ".probing-", 9))
                kill(getpid(), SIGKILL);
            at += (ssize_t)(sizeof *event + event->len);
        }
}

int main(int argc, char **argv)
{
    pthread_t thread;
    int maps = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    const char *mode = argc > 1 ? argv[1] : "";
    if (maps < 0 || pthread_create(&thread, NULL, wait_to_be_borrowed, NULL))
        return 2;
    if (!strcmp(mode, "progress") && argc > 2) {
        int descriptor = argc > 3 ? open(argv[3], O_PATH | O_CLOEXEC) : -1;
        say("ready");
        lie(maps, (uint32_t)atol(argv[2]), descriptor);
    }
    if (!strcmp(mode, "descriptor") && argc > 2) {
        int descriptor = strcmp(argv[2], "-") ? open(argv[2], O_RDWR | O_CREAT, 0600) : 0;
        say("ready");
        lie(maps, PRB_STUB_WAITS, descriptor);
    }
    if (!strcmp(mode, "die")) {
        int events = inotify_init1(IN_CLOEXEC);
        if (inotify_add_watch(events, "/dev/shm", IN_CREATE) < 0)
            return 2;
        use_up_descriptors();
        say("ready");
        die_when_it_is_there(events);
    }
    if (!strcmp(mode, "idle")) {
        use_up_descriptors();
        say("ready");
        pause();
    }
    return 2;
}
