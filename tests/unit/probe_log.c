/* The probe's log, and where its socket is. */
#include "unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "inject/probe/log.h"
#include "inject/probe/socket_path.h"

static char folder_path[64];
static int folder = -1;

static int make_folder(void **state)
{
    (void)state;
    snprintf(folder_path, sizeof folder_path, "/tmp/probing-unit-XXXXXX");
    if (!mkdtemp(folder_path))
        return -1;
    folder = open(folder_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return folder < 0 ? -1 : 0;
}

static int remove_folder(void **state)
{
    (void)state;
    unlinkat(folder, PRB_LOG_NAME, 0);
    unlinkat(folder, PRB_LOG_NAME ".1", 0);
    close(folder);
    return rmdir(folder_path);
}

static size_t size_of(const char *name)
{
    struct stat info;
    return fstatat(folder, name, &info, AT_SYMLINK_NOFOLLOW) == 0 ? (size_t)info.st_size : 0;
}

static void lines(void **state)
{
    char text[256] = "";
    (void)state;
    prb_log(folder, "%s", "first");
    prb_log(folder, "%s", "second");
    PRB_AUTO_FD int fd = openat(folder, PRB_LOG_NAME, O_RDONLY | O_CLOEXEC);
    assert_true(read(fd, text, sizeof text - 1) > 0);
    char *second = strchr(text, '\n');
    assert_non_null(second);
    assert_non_null(strstr(text, " pid="));
    assert_non_null(strstr(second, " second\n"));
    struct stat info;
    assert_int_equal(fstatat(folder, PRB_LOG_NAME, &info, 0), 0);
    assert_int_equal(info.st_mode & 0777, 0600);
}

static void two_files_at_most(void **state)
{
    char text[1000];
    (void)state;
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    for (int i = 0; i < 3 * PRB_LOG_MAX / 1000; i++)
        prb_log(folder, "%s", text);
    assert_true(size_of(PRB_LOG_NAME) <= PRB_LOG_MAX + 2000);
    assert_true(size_of(PRB_LOG_NAME ".1") >= PRB_LOG_MAX);
    assert_true(size_of(PRB_LOG_NAME ".1") <= PRB_LOG_MAX + 2000);
}

static void quoted(void **state)
{
    static const struct {
        const char *text;
        size_t len;
        const char *shown;
    } cases[] = {
        {"1 + 1", 5, "\"1 + 1\""},
        {"a\nb\t\"c\\", 7, "\"a\\nb\\x09\\\"c\\\\\""},
        {"\x1b[2J\x7f", 5, "\"\\x1b[2J\\x7f\""},
        {"nul\0here", 8, "\"nul\\x00here\""},
        {"\xc3\xa4\xff\xc2\x9b", 5, "\"\xc3\xa4\\xff\\xc2\\x9b\""},
        {"", 0, "\"\""},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        PRB_AUTO(prb_buf) struct prb_buf out = {0};
        prb_log_quote(&out, cases[i].text, cases[i].len);
        assert_string_equal(out.data, cases[i].shown);
    }
    char many[PRB_LOG_TEXT_MAX + 100];
    memset(many, 'y', sizeof many);
    PRB_AUTO(prb_buf) struct prb_buf out = {0};
    prb_log_quote(&out, many, sizeof many);
    assert_int_equal(strcspn(out.data + 1, "\""), PRB_LOG_TEXT_MAX);
}

static void names(void **state)
{
    char name[64];
    struct prb_socket_name of;
    uint64_t start = 0;
    static const char *const wrong[] = {"",
                                        "-1.sock",
                                        "1--3.sock",
                                        "1-2-3",
                                        "0-2-3.sock",
                                        "1-2-3.sock.old",
                                        "a-2-3.sock",
                                        "1 -2-3.sock",
                                        "-5-2-3.sock",
                                        "99999999999-2-3.sock",
                                        "1-2.sock",
                                        "probing.log"};
    (void)state;
    prb_socket_path_name(&(struct prb_socket_name){123, 456789, 4026531836}, name);
    assert_string_equal(name, "123-456789-4026531836.sock");
    assert_true(prb_socket_path_parse(name, &of));
    assert_true(of.pid == 123 && of.start_time == 456789 && of.pid_namespace == 4026531836);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        if (prb_socket_path_parse(wrong[i], &of))
            fail_msg("\"%s\" was taken for a name", wrong[i]);
    assert_true(prb_socket_path_start_time(
        "7 (a) ) S b) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 1900 20", &start));
    assert_int_equal(start, 1900);
    assert_false(prb_socket_path_start_time("7 (a) S 1 2 3", &start));
    assert_false(prb_socket_path_start_time("", &start));
}

static void folders(void **state)
{
    static const char environment[] = "A=1\0XDG_RUNTIME_DIRX=/no\0XDG_RUNTIME_DIR=/run/user/7\0B=2";
    static const char relative[] = "XDG_RUNTIME_DIR=run\0";
    char path[64];
    (void)state;
    struct prb_socket_owner of = {environment, sizeof environment, 7, 42};
    assert_true(prb_socket_path_folder(0, &of, path, sizeof path));
    assert_string_equal(path, "/run/user/7/probing");
    assert_false(prb_socket_path_folder(0, &of, path, 10));
    assert_true(prb_socket_path_folder(1, &of, path, sizeof path));
    assert_string_equal(path, "/tmp/probing-7");
    assert_true(prb_socket_path_folder(2, &of, path, sizeof path));
    assert_string_equal(path, "/tmp/probing-7-42");
    assert_false(prb_socket_path_folder(PRB_SOCKET_FOLDERS, &of, path, sizeof path));
    of.len = 0;
    assert_false(prb_socket_path_folder(0, &of, path, sizeof path));
    of = (struct prb_socket_owner){relative, sizeof relative, 7, 42};
    assert_false(prb_socket_path_folder(0, &of, path, sizeof path));
    /* cut off in the midst of a value */
    assert_string_equal(
        prb_socket_path_variable(environment, sizeof environment - 10, "XDG_RUNTIME_DIR"), "");
    assert_string_equal(prb_socket_path_variable(environment, sizeof environment, "B"), "2");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(lines, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(two_files_at_most, make_folder, remove_folder),
        cmocka_unit_test(quoted),
        cmocka_unit_test(names),
        cmocka_unit_test(folders),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
