/* lib/store: a file that one process has open several times, and another one closes meanwhile. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "probing.h"
#include "store/file.h"
#include "store/keep.h"
#include "unit.h"

static char folder[] = "/tmp/probing-store-XXXXXX";
static char path[64], log_path[80];

static int set_up(void **state)
{
    (void)state;
    if (!mkdtemp(folder))
        return -1;
    snprintf(path, sizeof path, "%s/job.db", folder);
    snprintf(log_path, sizeof log_path, "%s-wal", path);
    return 0;
}

static int tear_down(void **state)
{
    static const char *const ends[] = {"", "-wal", "-shm"};
    char one[96];
    (void)state;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        snprintf(one, sizeof one, "%s%s", path, ends[i]);
        unlink(one);
    }
    return rmdir(folder);
}

static void write_job(struct prb_store_file *file, const char *name)
{
    struct prb_error err = {0};
    assert_true(prb_store_begin(file, &err));
    assert_true(prb_store_set_job(file, name, &err));
    assert_true(prb_store_commit(file, &err));
}

/* Another process: closes the file as soon as it is told, then says whether the job has this name.
 */
static _Noreturn void be_another(int told, int answer, const char *name)
{
    char byte = 0;
    if (read(told, &byte, 1) != 1)
        _exit(1);
    prb_store_close(prb_store_open(path, true, NULL));
    if (write(answer, &byte, 1) != 1 || read(told, &byte, 1) != 1)
        _exit(2);
    struct prb_store_file *file = prb_store_open(path, false, NULL);
    bool same = file && strcmp(prb_store_job(file), name) == 0;
    prb_store_close(file);
    _exit(same ? 0 : 3);
}

static void test_opened_again(void **state)
{
    struct prb_error err = {0};
    int to[2], from[2], status = -1;
    char byte = 'x';
    (void)state;
    assert_int_equal(pipe(to), 0);
    assert_int_equal(pipe(from), 0);
    pid_t other = fork(); /* before SQLite is here: a copy of it must not be used */
    if (other == 0) {
        close(to[1]); /* so that it ends when we do */
        be_another(to[0], from[1], "written later");
    }
    struct prb_store_file *file = prb_store_open(path, true, &err);
    assert_non_null(file);
    write_job(file, "first");
    prb_store_close(prb_store_open(path, true, &err));
    prb_store_close(prb_store_open(path, false, &err));
    assert_true(prb_store_is(path));
    assert_int_equal(write(to[1], &byte, 1), 1);
    assert_int_equal(read(from[0], &byte, 1), 1);
    assert_int_equal(access(log_path, F_OK), 0); /* its log is there as long as we have it open */
    write_job(file, "written later");
    assert_int_equal(write(to[1], &byte, 1), 1);
    assert_int_equal(waitpid(other, &status, 0), other);
    assert_int_equal(status, 0);
    prb_store_close(file);
    assert_int_not_equal(access(log_path, F_OK), 0);
    assert_true(prb_store_is(path));
    for (int i = 0; i < 2; i++) {
        close(to[i]);
        close(from[i]);
    }
}

static void test_what_is_made(void **state)
{
    struct prb_error err = {0};
    struct stat st;
    char other[96];
    (void)state;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_false(prb_store_is(folder));
    snprintf(other, sizeof other, "%s/link.db", folder);
    assert_int_equal(symlink(path, other), 0);
    assert_null(prb_store_open(other, true, &err));
    struct prb_store_file *file = prb_store_open(other, false, &err);
    assert_non_null(file);
    assert_string_equal(prb_store_job(file), "written later");
    prb_store_close(file);
    assert_int_equal(unlink(other), 0);
}

/* More than a process may open: a file of an old job that has nothing in it is removed. */
static void test_more_files_than_descriptors(void **state)
{
    enum { FILES = 40 };
    const struct timespec old[2] = {{.tv_sec = time(NULL) - 3 * 86400},
                                    {.tv_sec = time(NULL) - 3 * 86400}};
    const struct prb_store_limits limits = {0};
    struct prb_error err = {0};
    struct rlimit before;
    char one[96];
    (void)state;
    for (int i = 0; i < FILES; i++) {
        snprintf(one, sizeof one, "%s/old-%d.db", folder, i);
        PRB_AUTO(prb_store_file) struct prb_store_file *file = prb_store_open(one, true, &err);
        assert_non_null(file);
        assert_true(prb_store_begin(file, &err) && prb_store_set_job(file, "old", &err) &&
                    prb_store_commit(file, &err));
    }
    for (int i = 0; i < FILES; i++) {
        snprintf(one, sizeof one, "%s/old-%d.db", folder, i);
        assert_int_equal(utimensat(AT_FDCWD, one, old, 0), 0);
    }
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    const struct rlimit few = {.rlim_cur = FILES, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    bool kept = prb_store_keep(folder, &limits, &err);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_true(kept);
    for (int i = 0; i < FILES; i++) {
        snprintf(one, sizeof one, "%s/old-%d.db", folder, i);
        assert_int_not_equal(access(one, F_OK), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_opened_again),
                                       cmocka_unit_test(test_what_is_made),
                                       cmocka_unit_test(test_more_files_than_descriptors)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
