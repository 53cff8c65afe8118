/* net: addresses, listening, tokens, and who may connect. */
#include "unit.h"

#include <poll.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "net/access.h"
#include "net/peer.h"

static void addresses(void **state)
{
    (void)state;
    static const struct {
        const char *text, *printed; /* NULL: refused */
        bool loopback;
    } cases[] = {
        {"127.0.0.1:5678", "127.0.0.1:5678", true},
        {"127.9.9.9:1", "127.9.9.9:1", true},
        {":5678", "127.0.0.1:5678", true},
        {"localhost:0", "127.0.0.1:0", true},
        {"0.0.0.0:80", "0.0.0.0:80", false},
        {"10.1.2.3:65535", "10.1.2.3:65535", false},
        {"[::1]:5678", "[::1]:5678", true},
        {"::1:5678", "[::1]:5678", true},
        {"[::]:5678", "[::]:5678", false},
        {"[::ffff:127.0.0.1]:1", "[::ffff:127.0.0.1]:1", true},
        {"[::ffff:10.0.0.1]:1", "[::ffff:10.0.0.1]:1", false},
        {"/tmp/a.sock", "/tmp/a.sock", true},
        {"127.0.0.1", NULL, false},
        {"127.0.0.1:", NULL, false},
        {"127.0.0.1:x", NULL, false},
        {"127.0.0.1:80x", NULL, false},
        {"127.0.0.1:65536", NULL, false},
        {"127.0.0.1:-1", NULL, false},
        {"", NULL, false},
        {"[]", NULL, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct prb_address address;
        struct prb_error err = {0};
        char text[PRB_ADDRESS_TEXT];
        bool good = prb_address_parse(cases[i].text, &address, &err);
        if (good != !!cases[i].printed)
            fail_msg("%s: %s", cases[i].text, good ? "taken" : err.text);
        if (!good) {
            assert_int_equal(err.code, PRB_USAGE);
            continue;
        }
        prb_address_print(&address, text);
        assert_string_equal(text, cases[i].printed);
        assert_int_equal(prb_address_is_loopback(&address.any), cases[i].loopback);
    }
}

static void hosts_and_paths_have_ends(void **state)
{
    (void)state;
    char text[300];
    struct prb_address address;
    struct prb_error err;
    memset(text, 'a', sizeof text);
    snprintf(text + 280, 20, ":80");
    assert_false(prb_address_parse(text, &address, &err));
    assert_int_equal(err.code, PRB_USAGE);
    text[0] = '/';
    text[sizeof address.local.sun_path] = '\0';
    assert_false(prb_address_parse(text, &address, &err));
    assert_int_equal(err.code, PRB_USAGE);
    assert_string_not_equal(err.remedy, "");
    text[sizeof address.local.sun_path - 1] = '\0';
    assert_ok(prb_address_parse(text, &address, &err), err);
}

static void tokens(void **state)
{
    (void)state;
    char one[PRB_NET_TOKEN_SIZE], two[PRB_NET_TOKEN_SIZE];
    assert_true(prb_net_token_make(one, NULL) && prb_net_token_make(two, NULL));
    assert_int_equal(strlen(one), 2 * PRB_NET_TOKEN_BYTES);
    assert_string_not_equal(one, two);
    assert_true(prb_net_token_same(one, one));
    assert_false(prb_net_token_same(one, two));
    assert_false(prb_net_token_same("abc", ""));
    assert_false(prb_net_token_same("abc", "ab"));
    assert_false(prb_net_token_same("abc", "abcabc"));
    assert_false(prb_net_token_same("", "a"));
}

static void rules(void **state)
{
    (void)state;
    static const char token[] = "0123456789abcdef", none[] = "";
    static const struct {
        const char *address, *token;
        bool any_user;
        int rule; /* -1: refused */
        bool made;
    } cases[] = {
        {"127.0.0.1:0", none, false, PRB_ACCESS_BY_EITHER, true},
        {"127.0.0.1:0", none, true, PRB_ACCESS_BY_MACHINE, false},
        {"127.0.0.1:0", token, false, PRB_ACCESS_BY_TOKEN, false},
        {"127.0.0.1:0", token, true, PRB_ACCESS_BY_TOKEN, false},
        {"127.0.0.1:0", token + 1, false, -1, false},
        {"0.0.0.0:0", none, false, PRB_ACCESS_BY_TOKEN, true},
        {"0.0.0.0:0", none, true, -1, false},
        {"0.0.0.0:0", token, true, PRB_ACCESS_BY_TOKEN, false},
        {"/tmp/a.sock", none, false, PRB_ACCESS_BY_USER, false},
        {"/tmp/a.sock", token, false, PRB_ACCESS_BY_TOKEN, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct prb_address address;
        struct prb_access access;
        struct prb_error err = {0};
        const char *given = *cases[i].token ? cases[i].token : NULL;
        assert_ok(prb_address_parse(cases[i].address, &address, &err), err);
        bool good = prb_access_choose(&address, given, cases[i].any_user, &access, &err);
        assert_int_equal(good, cases[i].rule >= 0);
        if (!good) {
            assert_int_equal(err.code, PRB_USAGE);
            continue;
        }
        assert_int_equal(access.rule, cases[i].rule);
        assert_int_equal(!!*access.token, cases[i].made);
        prb_access_deinit(&access);
        assert_string_equal(access.token, "");
    }
}

/* A client of ours at an address; the server's end of the connection. */
static int connection_to(int listening, const struct prb_address *address, int *client_out)
{
    *client_out = socket(address->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(*client_out, &address->any, address->len), 0);
    /* The last packet of the handshake may come after connect(2) returned. */
    struct pollfd ready = {.fd = listening, .events = POLLIN};
    assert_int_equal(poll(&ready, 1, 30000), 1);
    int fd = accept4(listening, NULL, NULL, SOCK_CLOEXEC);
    assert_true(fd >= 0);
    return fd;
}

static void our_own_connection_is_granted(const char *text)
{
    struct prb_address address;
    struct prb_access access;
    struct prb_error err = {0};
    int client;
    assert_ok(prb_address_parse(text, &address, &err), err);
    assert_ok(prb_access_choose(&address, NULL, false, &access, &err), err);
    int listening = prb_address_listen(&address, 4, &err);
    assert_ok(listening >= 0, err);
    int fd = connection_to(listening, &address, &client);
    assert_ok(prb_peer_check(fd, geteuid(), &err), err);
    assert_int_equal(prb_access_of(&access, fd, geteuid(), &err), PRB_ACCESS_GRANTED);
    access.rule = PRB_ACCESS_BY_MACHINE;
    assert_int_equal(prb_access_of(&access, fd, geteuid(), &err), PRB_ACCESS_GRANTED);
    access.rule = PRB_ACCESS_BY_TOKEN;
    assert_int_equal(prb_access_of(&access, fd, geteuid(), &err), PRB_ACCESS_TOKEN);
    close(client);
    close(fd);
    close(listening);
}

static void listening_on_tcp(void **state)
{
    (void)state;
    struct prb_address address, again;
    struct prb_error err = {0};
    assert_ok(prb_address_parse("127.0.0.1:0", &address, &err), err);
    int fd = prb_address_listen(&address, 1, &err);
    assert_ok(fd >= 0, err);
    assert_int_not_equal(address.v4.sin_port, 0);
    again = address;
    assert_int_equal(prb_address_listen(&again, 1, &err), -1);
    assert_non_null(strstr(err.text, "127.0.0.1:"));
    close(fd);
    our_own_connection_is_granted("127.0.0.1:0");
}

static void listening_on_a_path(void **state)
{
    (void)state;
    char path[64];
    struct prb_address address;
    struct prb_error err = {0};
    struct stat st;
    snprintf(path, sizeof path, "/tmp/prb-unit-net-%d.sock", (int)getpid());
    mode_t before = umask(0);
    our_own_connection_is_granted(path);
    umask(before);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_ok(prb_address_parse(path, &address, &err), err);
    assert_int_equal(prb_address_listen(&address, 1, &err), -1); /* it is in use */
    assert_int_equal(unlink(path), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses),        cmocka_unit_test(hosts_and_paths_have_ends),
        cmocka_unit_test(tokens),           cmocka_unit_test(rules),
        cmocka_unit_test(listening_on_tcp), cmocka_unit_test(listening_on_a_path),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
