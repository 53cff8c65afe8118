/* crash: the folder of the dumps, which others may have been at before, and what is removed from
 * it. */
#include "unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "crash/crash.h"

enum { STRANGER = 3000000 }; /* users that are nobody's */

static char above[64], own[80];

/* As a user without anything: 0 it is taken, 1 refused, 2 the wrong one. */
static int ask(const char *wanted, const char *expected)
{
    struct prb_error err = {0};
    char got[PRB_CRASH_PATH_MAX];
    if (!prb_crash_dump_folder(wanted, got, &err))
        return err.text[0] ? 1 : 3;
    return strcmp(got, expected) ? 2 : 0;
}

static int ask_as(uid_t uid, const char *wanted, const char *expected)
{
    int status;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(setuid(uid) == 0 ? ask(wanted, expected) : 9);
    assert_int_equal(waitpid(child, &status, 0), child);
    return WEXITSTATUS(status);
}

static void clean(void)
{
    unlink(above);
    rmdir(own);
    rmdir(above);
}

static void nobody_elses_folder_is_taken(void **state)
{
    (void)state;
    uid_t uid = STRANGER + (uid_t)getpid();
    char longer[80];
    if (geteuid() != 0)
        skip();
    snprintf(above, sizeof above, "/tmp/probing-%u", (unsigned)uid);
    snprintf(own, sizeof own, "%s/crash", above);
    clean();
    assert_int_equal(ask_as(uid, "", own), 0);
    assert_int_equal(ask_as(uid, own, own), 0);
    assert_int_equal(chmod(own, 0755), 0);
    assert_int_equal(ask_as(uid, "", own), 1); /* others may read it */
    clean();
    assert_int_equal(mkdir(above, 0700), 0);
    assert_int_equal(ask_as(uid, "", own), 1); /* root's */
    clean();
    assert_int_equal(symlink("/tmp", above), 0);
    assert_int_equal(ask_as(uid, "", own), 1);
    clean();
    assert_int_equal(ask_as(uid, "/dev/null", "/dev/null"), 1);
    assert_int_equal(ask_as(uid, "/proc/none", "/proc/none"), 1);
    /* A name that only begins like it is another folder. */
    snprintf(longer, sizeof longer, "%s0", above);
    assert_int_equal(ask_as(uid, longer, longer), 0);
    rmdir(longer);
}

static void make_file(const char *folder, const char *name, size_t bytes)
{
    char path[200];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    assert_true(fd >= 0 && ftruncate(fd, (off_t)bytes) == 0);
    close(fd);
}

static void the_oldest_goes_and_what_was_not_finished(void **state)
{
    static const struct {
        const char *name;
        bool stays;
    } files[] = {
        {"crash-20200101T000000Z-pid1.snap", false},
        {"crash-20200101T000000Z-pid1.txt", false},
        {"crash-20200102T000000Z-pid2.snap.Ab12Cd", false},
        {"crash-20990101T000000Z-pid3.snap", true},
        {"crash-notes", true},
        {"mine.snap", true},
    };
    char folder[] = "/tmp/probing-unit-XXXXXX", path[200];
    (void)state;
    assert_non_null(mkdtemp(folder));
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        make_file(folder, files[i].name, 1000);
    snprintf(path, sizeof path, "%s/%s", folder, files[3].name);
    prb_crash_sweep(path, 0);
    prb_crash_sweep(path, 100);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, files[i].name);
        assert_int_equal(unlink(path) == 0, files[i].stays);
    }
    rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_elses_folder_is_taken),
        cmocka_unit_test(the_oldest_goes_and_what_was_not_finished),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
