/* crash: the folder of the dumps, which others may have been at before, and what is removed from
 * it. */
#include "unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "crash/crash.h"

enum { STRANGER = 3000000 }; /* users that are nobody's */

static char above[64], own[80], second[96], last[80];

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
    char longer[96];
    if (geteuid() != 0)
        skip();
    snprintf(above, sizeof above, "/tmp/probing-%u", (unsigned)uid);
    snprintf(own, sizeof own, "%s/crash", above);
    struct stat space;
    assert_int_equal(stat("/proc/self/ns/user", &space), 0);
    snprintf(second, sizeof second, "%s-%llu/crash", above, (unsigned long long)space.st_ino);
    snprintf(last, sizeof last, "/var/tmp/probing-%u/crash", (unsigned)uid);
    clean();
    assert_int_equal(ask_as(uid, "", own), 0);
    assert_int_equal(ask_as(uid, own, own), 0);
    assert_int_equal(chmod(own, 0755), 0);
    assert_int_equal(ask_as(uid, "", second), 0); /* others may read it */
    clean();
    assert_int_equal(mkdir(above, 0700), 0);
    assert_int_equal(ask_as(uid, "", second), 0); /* root's */
    assert_int_equal(ask_as(uid, own, second), 0);
    assert_int_equal(rmdir(second), 0);
    *strrchr(second, '/') = '\0';
    assert_int_equal(rmdir(second), 0);
    assert_int_equal(mkdir(second, 0777), 0);
    assert_int_equal(ask_as(uid, "", last), 0);
    assert_int_equal(rmdir(last), 0);
    *strrchr(last, '/') = '\0';
    assert_int_equal(rmdir(last), 0);
    assert_int_equal(symlink("/tmp", last), 0);
    assert_int_equal(ask_as(uid, "", ""), 1); /* all of them are taken */
    assert_int_equal(unlink(last), 0);
    assert_int_equal(rmdir(second), 0);
    clean();
    assert_int_equal(symlink("/tmp", above), 0);
    assert_int_equal(ask_as(uid, "", ""), 2); /* another one */
    snprintf(longer, sizeof longer, "%s", second);
    strcat(second, "/crash");
    assert_int_equal(rmdir(second), 0);
    assert_int_equal(rmdir(longer), 0);
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

static void make_older(const char *folder, const char *name, time_t seconds)
{
    const struct timespec at = {.tv_sec = time(NULL) - seconds}, then[2] = {at, at};
    char path[200];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    assert_int_equal(utimensat(AT_FDCWD, path, then, 0), 0);
}

static void the_oldest_goes_and_what_was_not_finished(void **state)
{
    static const struct {
        const char *name;
        bool stays;
    } files[] = {
        {"crash-20200101T000000Z-pid1.snap", false},
        {"crash-20200101T000000Z-pid1.txt", false},
        {"crash-20200102T000000Z-pid2.snap.Ab12Cd", false}, /* nobody writes it any more */
        {"crash-20200102T000000Z-pid4.snap.Ab12Cd", true},
        {"crash-20990101T000000Z-pid3.snap", true},
        {"crash-notes", true},
        {"mine.snap", true},
    };
    char folder[] = "/tmp/probing-unit-XXXXXX", path[200];
    (void)state;
    assert_non_null(mkdtemp(folder));
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        make_file(folder, files[i].name, 1000);
    make_older(folder, files[2].name, 3600);
    snprintf(path, sizeof path, "%s/%s", folder, files[4].name);
    prb_crash_sweep(path, 0);
    prb_crash_sweep(path, 100);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, files[i].name);
        assert_int_equal(unlink(path) == 0, files[i].stays);
    }
    rmdir(folder);
}

/* Three jobs, the last of them with many ranks: room for five of nine. */
static void the_first_of_each_job_stays(void **state)
{
    static const struct {
        const char *name;
        bool stays;
    } files[] = {
        {"crash-20260101T000000Z-rank3-pid1.snap", true},
        {"crash-20260101T000001Z-rank0-pid2.snap", false},
        {"crash-20260101T000030Z-rank1-pid3.snap", false},
        {"crash-20260101T003000Z-pid4.txt", true},
        {"crash-20260102T000000Z-rank7-pid5.snap", true},
        {"crash-20260102T000000Z-rank8-pid6.snap", false},
        {"crash-20260102T000001Z-rank0-pid7.snap", false},
        {"crash-20260102T000001Z-rank1-pid8.snap", true},
        {"crash-20260102T000059Z-rank2-pid9.snap", true},
    };
    char folder[] = "/tmp/probing-unit-XXXXXX", path[200];
    (void)state;
    assert_non_null(mkdtemp(folder));
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        make_file(folder, files[i].name, 1000);
    snprintf(path, sizeof path, "%s/%s", folder, files[8].name);
    int held = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(held >= 0 && flock(held, LOCK_SH) == 0);
    prb_crash_sweep(path, 5000); /* somebody writes one: twice as much may stay */
    snprintf(path, sizeof path, "%s/%s", folder, files[1].name);
    assert_int_equal(access(path, F_OK), 0);
    close(held);
    snprintf(path, sizeof path, "%s/%s", folder, files[8].name);
    prb_crash_sweep(path, 5000);
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
        cmocka_unit_test(the_first_of_each_job_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
