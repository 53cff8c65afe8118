/* below, ids: paths in a root that somebody else may change at any time, and the rights of the
 * target's user; with openat2(2) and, behind a filter that hides it, without. */
#include "unit.h"

#include "old_kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/syscalls.h"
#include "proc/below.h"
#include "proc/ids.h"

#define STRANGER 12345

static char base[] = "/tmp/prb-below.XXXXXX";

static int at_base(void)
{
    int fd = open(base, O_PATH | O_DIRECTORY);
    assert_true(fd >= 0);
    return fd;
}

static void put(const char *name, mode_t mode)
{
    int root = at_base(), fd = openat(root, name, O_WRONLY | O_CREAT | O_EXCL, mode);
    assert_true(fd >= 0 && write(fd, name, strlen(name)) == (ssize_t)strlen(name));
    assert_int_equal(fchmod(fd, mode), 0);
    close(fd);
    close(root);
}

static int make(void **state)
{
    (void)state;
    if (!mkdtemp(base) || chmod(base, 0755) != 0)
        return -1;
    int root = at_base();
    mkdirat(root, "root", 0755), mkdirat(root, "root/etc", 0755);
    put("outside", 0644), put("root/file", 0644), put("root/etc/passwd", 0644),
        put("root/hidden", 0600);
    int made = symlinkat("file", root, "root/link") + symlinkat("/etc", root, "root/folder") +
               symlinkat("../outside", root, "root/up") +
               symlinkat("/proc/self/fd", root, "root/fds") + mkfifoat(root, "root/pipe", 0644);
    close(root);
    return made;
}

static int unmake(void **state)
{
    (void)state;
    static const char *const names[] = {"root/link",   "root/folder", "root/up",
                                        "root/fds",    "root/pipe",   "root/etc/passwd",
                                        "root/hidden", "root/file",   "outside"};
    int root = at_base();
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        unlinkat(root, names[i], 0);
    unlinkat(root, "root/etc", AT_REMOVEDIR), unlinkat(root, "root", AT_REMOVEDIR);
    close(root);
    return rmdir(base);
}

static int root_folder(void)
{
    char path[64];
    snprintf(path, sizeof path, "%s/root", base);
    int fd = open(path, O_PATH | O_DIRECTORY);
    assert_true(fd >= 0);
    return fd;
}

static void says(int root, const char *path, const char *wanted)
{
    char text[32] = "";
    int fd = prb_open_below(root, path);
    if (!wanted) {
        assert_int_equal(fd, -1);
        return;
    }
    assert_true(fd >= 0 && read(fd, text, sizeof text - 1) > 0);
    assert_string_equal(text, wanted);
    assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    close(fd);
}

static void no_way_out(void **state)
{
    (void)state;
    int root = root_folder();
    says(root, "/file", "root/file");
    says(root, "//etc/.//passwd", "root/etc/passwd");
    says(root, "/link", "root/file");
    says(root, "/folder/passwd", "root/etc/passwd"); /* the root's own /etc */
    says(root, "/up", NULL);                         /* .. of the root is the root */
    says(root, "/../outside", NULL);
    says(root, "/fds/0", NULL);
    says(root, "/pipe", NULL); /* and nobody is waited for */
    says(root, "/etc", NULL);
    says(root, "", NULL);
    struct stat info;
    assert_true(prb_stat_below(root, "/link", &info) && S_ISREG(info.st_mode));
    assert_true(prb_stat_below(root, "/pipe", &info) && S_ISFIFO(info.st_mode));
    int folder = prb_folder_below(root, "/folder");
    assert_true(folder >= 0 && faccessat(folder, "passwd", R_OK, 0) == 0);
    close(folder);
    folder = prb_folder_below(root, "/");
    assert_true(folder >= 0);
    close(folder);
    assert_int_equal(prb_folder_below(root, "/file"), -1);
    assert_int_equal(errno, ENOTDIR);
    close(root);
}

/* In a child, as the filter stays: its exit status is the number of the check that failed. */
static int old_kernel(int root)
{
    if (!hide_calls_after(LINUX_5_4))
        return 100;
    struct stat info;
    static const char *const good[] = {"/file", "/etc/passwd", "etc//passwd"};
    static const char *const bad[] = {
        "/link", "/folder/passwd", "/up", "/../outside", "/etc/../file", "/fds/0",
        "/pipe", "/etc",           "",    "/file/passwd"};
    for (int i = 0; i < (int)(sizeof good / sizeof *good); i++)
        if (prb_open_below(root, good[i]) < 0)
            return 1 + i;
    for (int i = 0; i < (int)(sizeof bad / sizeof *bad); i++)
        if (prb_open_below(root, bad[i]) >= 0)
            return 11 + i;
    if (prb_folder_below(root, "/etc") < 0 || prb_folder_below(root, "/folder") >= 0)
        return 31;
    return prb_stat_below(root, "/pipe", &info) && !prb_stat_below(root, "/link", &info) ? 0 : 32;
}

static void without_openat2(void **state)
{
    (void)state;
    int root = root_folder(), status;
    pid_t child = fork();
    if (child == 0)
        _exit(old_kernel(root));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    close(root);
}

static void own_ids(void **state)
{
    (void)state;
    struct prb_ids ids, again;
    struct prb_rights before;
    assert_true(prb_ids_of(getpid(), &ids) && prb_ids_of(getpid(), &again));
    assert_int_equal(ids.users[0], getuid());
    assert_int_equal(ids.users[1], geteuid());
    assert_int_equal(ids.groups[0], getgid());
    assert_int_equal(ids.more_count, getgroups(0, NULL));
    assert_true(ids.user_namespace != 0);
    assert_true(prb_ids_same(&ids, &again));
    assert_true(prb_rights_take(&ids, &before));
    assert_false(before.changed);
}

/* A process of another user, which lives until it is killed. */
static pid_t stranger(void)
{
    int ready[2];
    char byte;
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        syscall(SYS_setgroups, 0L, NULL);
        bool done = setresgid(STRANGER, STRANGER, STRANGER) == 0 &&
                    setresuid(STRANGER, STRANGER, STRANGER) == 0;
        if (!done || write(ready[1], "r", 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]), close(ready[1]);
    return child;
}

static void rights_of_another(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip();
    pid_t child = stranger();
    struct prb_ids own, ids, again;
    char path[64];
    assert_true(prb_ids_of(getpid(), &own) && prb_ids_of(child, &ids));
    assert_int_equal(ids.users[2], STRANGER);

    snprintf(path, sizeof path, "%s/root/hidden", base);
    assert_int_equal(access(path, R_OK), 0);
    assert_int_equal(prb_open_as_target(child, path), -1);
    assert_int_equal(errno, EACCES);
    assert_int_equal(prb_open_as_target(child, "/etc/shadow"), -1);
    snprintf(path, sizeof path, "%s/root/file", base);
    int fd = prb_open_as_target(child, path);
    assert_true(fd >= 0);
    close(fd);

    /* All is as it was. */
    assert_true(prb_ids_of(getpid(), &again) && prb_ids_same(&own, &again));
    snprintf(path, sizeof path, "%s/root/hidden", base);
    fd = open(path, O_RDONLY);
    assert_true(fd >= 0);
    close(fd);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_way_out),
        cmocka_unit_test(without_openat2),
        cmocka_unit_test(own_ids),
        cmocka_unit_test(rights_of_another),
    };
    return cmocka_run_group_tests(tests, make, unmake);
}
