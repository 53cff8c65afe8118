/* The probe's own server of HTTP, where its thread is quicker than the one that makes the socket. */
#include "unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "inject/probe/log.h"
#include "inject/probe/part.h"
#include "inject/probe/server/server.h"
#include "inject/probe/settings.h"
#include "inject/probe/socket_path.h"

#define PATIENCE 60 /* s */

extern const struct prb_probe_part prb_probe_part_serve;

static bool says(int folder, const char *words)
{
    char text[4096];
    PRB_AUTO_FD int fd = openat(folder, PRB_LOG_NAME, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
    text[n > 0 ? n : 0] = '\0';
    return strstr(text, words);
}

static void test_what_fails_at_once_is_told(void **state)
{
    struct prb_error err = {0};
    struct prb_socket_path place = {.name = "probe.sock"};
    char folder_path[] = "/tmp/probing-unit-XXXXXX";
    (void)state;
    assert_non_null(mkdtemp(folder_path));
    snprintf(place.path, sizeof place.path, "%s", folder_path);
    place.folder = open(folder_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    PRB_AUTO_FD int folder = dup(place.folder);
    prb_settings_reset();
    assert_ok(prb_settings_set("probing.listen", "127.0.0.1:0", &err), err);
    assert_ok(prb_settings_set("probing.serve_program", "/nowhere", &err), err);
    prb_probe_part_serve.configure();
    usleep(50000); /* in which it would have failed */
    assert_ok(prb_server_start(&place, &err), err);
    for (int i = 0; i < PATIENCE * 100 && !says(folder, "is no program: /nowhere"); i++)
        usleep(10000);
    assert_true(says(folder, "is no program: /nowhere"));
    prb_server_stop();
    assert_true(prb_server_wait(PATIENCE));
    unlinkat(folder, PRB_LOG_NAME, 0);
    rmdir(folder_path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_what_fails_at_once_is_told)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
