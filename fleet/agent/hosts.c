/* Agents of many hosts, started by ssh: cluster.h. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/file.h"
#include "fleet/bus/bus_file.h"
#include "fleet/cluster.h"

#define FILE_MAX ((size_t)4 << 20)
#define HOSTS_MAX 65536
#define AT_A_TIME 32
#define TAKES 90.0 /* s, of one host */
#define SAID_MAX 4000
#define LOOK_MS 20

extern char **environ;

/* One host at work. */
struct one {
    const char *host;
    pid_t pid; /* 0: free */
    int out;   /* a file in memory: what it said */
    double until;
};

struct all {
    const struct prb_cluster_hosts_options *options;
    char *file; /* host names, each ended by a NUL */
    char **hosts;
    size_t count, cap, next, failed;
    struct prb_buf bus;     /* the bus file's text */
    struct prb_buf command; /* for the shell there */
    struct one running[AT_A_TIME];
};

/* ---- what is run ---- */

/* A line each; what follows a '#' is none of it. */
static bool take_hosts(struct all *all, struct prb_error *err)
{
    PRB_AUTO(prb_buf) struct prb_buf text = {0};
    PRB_AUTO_FD int fd = open(all->options->file, O_RDONLY | O_CLOEXEC);
    char *save = NULL;
    if (fd < 0 || !prb_buf_read(&text, fd, FILE_MAX))
        return prb_fail_sys(err, errno, "%.200s", all->options->file);
    all->file = prb_buf_steal(&text);
    for (char *line = strtok_r(all->file, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        line += strspn(line, " \t\r");
        line[strcspn(line, "# \t\r")] = '\0';
        if (!*line)
            continue;
        if (*line == '-' || line[strspn(line, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                              "0123456789_.-:@[]%")])
            return prb_fail(err, PRB_USAGE, "\"%.80s\" is not a host's name", line);
        if (all->count == HOSTS_MAX || !PRB_GROW(all->hosts, all->count, all->cap))
            return prb_nomem(err);
        all->hosts[all->count++] = line;
    }
    return all->count || prb_fail(err, PRB_USAGE, "%.200s names no host", all->options->file);
}

static void add_quoted(struct prb_buf *out, const char *word)
{
    prb_buf_addc(out, '\'');
    for (; *word; word++)
        if (*word == '\'')
            prb_buf_adds(out, "'\\''");
        else
            prb_buf_addc(out, *word);
    prb_buf_addc(out, '\'');
}

/* The agent there reads its bus file again when a connection is lost, so the file stays there; where
 * the home is shared, it is replaced by its like. */
static bool make_command(struct all *all, struct prb_error *err)
{
    PRB_AUTO(prb_bus_file) struct prb_bus_file file = {0};
    bool found;
    if (!prb_bus_file_find(all->options->bus, PRB_BUS_agent, &file, &found, err))
        return false;
    if (!found || !file.path) {
        prb_fail(err, PRB_NOT_FOUND, "there is no bus file to give to the hosts");
        return prb_error_remedy(err, "`probing cluster up` on one host makes one; or --bus FILE");
    }
    PRB_AUTO_FD int fd = open(file.path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || !prb_buf_read(&all->bus, fd, FILE_MAX))
        return prb_fail_sys(err, errno, "%.200s", file.path);
    prb_buf_adds(&all->command,
                 "umask 077; d=${XDG_CONFIG_HOME:-$HOME/.config}/probing/bus; "
                 "mkdir -p \"$d\" && cat >\"$d/agent.$$\" && mv -f \"$d/agent.$$\" \"$d/agent\" && "
                 "exec probing cluster attach --bus \"$d/agent\"");
    for (size_t i = 0; i < all->options->word_count; i++) {
        prb_buf_addc(&all->command, ' ');
        add_quoted(&all->command, all->options->words[i]);
    }
    return prb_buf_ok(&all->command) || prb_nomem(err);
}

/* ---- running it ---- */

static bool begin(struct all *all, struct one *one, const char *host, struct prb_error *err)
{
    const char *words[] = {"ssh", "-o", "BatchMode=yes",   "-o", "ConnectTimeout=15",
                           "--",  host, all->command.data, NULL};
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    sigset_t none;
    PRB_AUTO_FD int in = memfd_create("bus", MFD_CLOEXEC);
    PRB_AUTO_FD int out = memfd_create("said", MFD_CLOEXEC);
    if (in < 0 || out < 0 || !prb_write_all(in, all->bus.data, all->bus.len) ||
        lseek(in, 0, SEEK_SET) != 0)
        return prb_fail_sys(err, errno, "a file in memory");
    sigemptyset(&none);
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, in, 0);
    posix_spawn_file_actions_adddup2(&files, out, 1);
    posix_spawn_file_actions_adddup2(&files, out, 2);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    int sys = posix_spawnp(&one->pid, "ssh", &files, &attributes, (char *const *)words, environ);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
    if (sys) {
        one->pid = 0;
        prb_fail_sys(err, sys, "running ssh");
        return prb_error_remedy(err, "install ssh, or run `probing cluster attach` on each host");
    }
    one->host = host;
    one->out = PRB_STEAL_FD(out);
    one->until = prb_clock_s() + TAKES;
    return true;
}

static void finish(struct all *all, struct one *one, int status)
{
    char said[SAID_MAX + 1];
    ssize_t len = pread(one->out, said, SAID_MAX, 0);
    bool good = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    said[len > 0 ? len : 0] = '\0';
    all->failed += !good;
    all->options->told(all->options->context, one->host, good,
                       len > 0 ? said
                       : good  ? ""
                               : "it took too long, or ended without a word");
    close(one->out);
    *one = (struct one){0};
}

static void look_after(struct all *all, struct one *one)
{
    int status;
    if (one->pid && waitpid(one->pid, &status, WNOHANG) == one->pid)
        finish(all, one, status);
    else if (one->pid && prb_clock_s() > one->until)
        kill(one->pid, SIGKILL);
}

static bool run(struct all *all, struct prb_error *err)
{
    bool good = true, open = true;
    for (; open; poll(NULL, 0, LOOK_MS)) {
        open = false;
        for (size_t i = 0; i < AT_A_TIME; i++) {
            struct one *one = &all->running[i];
            look_after(all, one);
            if (!one->pid && good && all->next < all->count)
                good = begin(all, one, all->hosts[all->next++], err);
            open = open || one->pid;
        }
    }
    return good;
}

bool prb_cluster_attach_hosts(const struct prb_cluster_hosts_options *options,
                              struct prb_error *err)
{
    struct all all = {.options = options};
    bool good = take_hosts(&all, err) && make_command(&all, err) && run(&all, err);
    if (good && all.failed)
        good = prb_fail(err, PRB_PARTIAL, "%zu of %zu hosts have no agent", all.failed, all.count);
    if (all.bus.data)
        explicit_bzero(all.bus.data, all.bus.len);
    prb_buf_deinit(&all.bus);
    prb_buf_deinit(&all.command);
    free(all.hosts);
    free(all.file);
    return good;
}
