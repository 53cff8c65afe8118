/* The debugger's parts that need no target: framing, paths, threads of frames and values. */
#include "unit.h"

#include "dap/backend/frames.h"
#include "dap/client/columns.h"
#include "dap/client/paths.h"
#include "dap/client/wire.h"
#include "dap/session/thread_map.h"

static void add(struct prb_dap_wire *wire, const char *text)
{
    assert_true(prb_dap_wire_add(wire, text, strlen(text)));
}

static void a_message_in_pieces(void **state)
{
    static const char text[] = "X: 1\r\ncontent-length: 2\r\n\r\n{}Content-Length:3\n\n[1]";
    struct prb_dap_wire wire = {0};
    const char *body;
    size_t len;
    (void)state;
    for (size_t i = 0; i < sizeof text - 1; i++) {
        enum prb_dap_taken taken;
        assert_true(prb_dap_wire_add(&wire, text + i, 1));
        taken = prb_dap_wire_take(&wire, &body, &len, NULL);
        bool first = i == strlen("X: 1\r\ncontent-length: 2\r\n\r\n{}") - 1;
        assert_int_equal(taken, first || i == sizeof text - 2 ? PRB_DAP_TAKEN : PRB_DAP_TAKEN_MORE);
        if (first)
            assert_memory_equal(body, "{}", len);
    }
    assert_int_equal(len, 3);
    assert_memory_equal(body, "[1]", 3);
    prb_dap_wire_deinit(&wire);
}

static void what_is_no_message(void **state)
{
    static const char *const wrong[] = {
        "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
        "Content-Length: -1\r\n\r\n",
        "Content-Length: 1\r\nContent-Length: 1\r\n\r\n",
        "X: 1\r\n\r\n",
        "Content-Length: 99999999\r\n\r\n",
        "\x16\x03\x01",
        "\r\n\r\n",
    };
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct prb_dap_wire wire = {0};
        struct prb_error err = {0};
        const char *body;
        size_t len;
        add(&wire, wrong[i]);
        assert_int_equal(prb_dap_wire_take(&wire, &body, &len, &err), PRB_DAP_TAKEN_MALFORMED);
        assert_int_equal(err.code, PRB_CORRUPT);
        prb_dap_wire_deinit(&wire);
    }
}

static void check_in(struct prb_dap_paths *paths, const char *client, const char *target)
{
    char *path = prb_dap_paths_in(paths, client);
    assert_string_equal(path, target);
    free(path);
}

static void check_out(struct prb_dap_paths *paths, const char *target, const char *client)
{
    char *path = prb_dap_paths_out(paths, target);
    assert_string_equal(path, client);
    free(path);
}

static void paths_are_mapped(void **state)
{
    struct prb_dap_paths paths = {0};
    json_t *mappings =
        json_pack("[{s:s, s:s}, {s:s, s:s}, {s:s, s:s}]", "localRoot", "/home/me/job/",
                  "remoteRoot", ".", "localRoot", "/home/me/job/lib", "remoteRoot", "/opt/lib",
                  "localRoot", "C:\\work\\src", "remoteRoot", "/src");
    (void)state;
    assert_true(prb_dap_paths_set(&paths, mappings, "/app", NULL));
    check_in(&paths, "/home/me/job/train.py", "/app/train.py");
    check_in(&paths, "/home/me/job/lib/a.py", "/opt/lib/a.py");
    check_in(&paths, "/home/me/jobs/train.py", "/home/me/jobs/train.py");
    check_in(&paths, "/home/me/other/../job//./lib/a.py", "/opt/lib/a.py");
    check_in(&paths, "c:\\Work\\src\\a\\b.py", "/src/a/b.py");
    check_in(&paths, "file:///home/me/job/a%20b.py", "/app/a b.py");
    check_out(&paths, "/app/train.py", "/home/me/job/train.py");
    check_out(&paths, "/application/train.py", "/application/train.py");
    check_out(&paths, "/src/a/b.py", "C:\\work\\src\\a\\b.py");
    paths.uris = true;
    check_out(&paths, "/app/a b.py", "file:///home/me/job/a%20b.py");
    int number = prb_dap_paths_number(&paths, "/x.py");
    assert_int_equal(number, prb_dap_paths_number(&paths, "/x.py"));
    assert_string_equal(prb_dap_paths_numbered(&paths, number), "/x.py");
    assert_null(prb_dap_paths_numbered(&paths, number + 1));
    prb_dap_paths_clear(&paths);
    json_decref(mappings);
}

/* Build folders and containers give roots such as "/x/build/../src". */
static void roots_are_tidied(void **state)
{
    static const char *const roots[][2] = {
        {"/x/build/../src", "/x/src/a.py"}, {"/x//src/./", "/x/src/a.py"},
        {"/../../x/src", "/x/src/a.py"},    {"/..", "/a.py"},
        {"/x/src/lib/..", "/x/src/a.py"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof roots / sizeof *roots; i++) {
        struct prb_dap_paths paths = {0};
        json_t *mappings =
            json_pack("[{s:s, s:s}]", "localRoot", "/home", "remoteRoot", roots[i][0]);
        assert_true(prb_dap_paths_set(&paths, mappings, NULL, NULL));
        check_in(&paths, "/home/a.py", roots[i][1]);
        check_out(&paths, roots[i][1], "/home/a.py");
        prb_dap_paths_clear(&paths);
        json_decref(mappings);
    }
}

static void columns_are_utf16(void **state)
{
    static const char text[] = "a\xc3\xa4\xf0\x9f\x98\x80x";
    (void)state;
    assert_int_equal(prb_dap_utf16_units(text, 1), 1);
    assert_int_equal(prb_dap_utf16_units(text, 3), 2);
    assert_int_equal(prb_dap_utf16_units(text, 7), 4);
    assert_int_equal(prb_dap_utf16_units(text, 8), 5);
    assert_int_equal(prb_dap_utf16_units("\xff\xfe", 2), 2);
}

/* Small bytes that become much memory. */
static void messages_are_bounded(void **state)
{
    enum { SIZE = 4 << 20 };
    struct prb_error err = {0};
    char *text = malloc(SIZE + 1);
    (void)state;
    for (size_t i = 0; i < SIZE; i++)
        text[i] = i % 2 ? ',' : '1';
    memcpy(text, "{\"a\": [1", 8);
    memcpy(text + SIZE - 3, "1]}", 3);
    assert_null(prb_dap_wire_parse(text, SIZE, &err));
    assert_int_equal(err.code, PRB_CORRUPT);
    free(text);
}

static void wrong_mappings(void **state)
{
    static const char *const wrong[] = {"[5]", "[{}]", "5",
                                        "[{\"localRoot\": 5, \"remoteRoot\": \"/\"}]"};
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct prb_dap_paths paths = {0};
        json_t *mappings = json_loads(wrong[i], JSON_DECODE_ANY, NULL);
        assert_false(prb_dap_paths_set(&paths, mappings, NULL, NULL));
        prb_dap_paths_clear(&paths);
        json_decref(mappings);
    }
}

static void places_are_found(void **state)
{
    enum { COUNT = 5000 };
    struct prb_dap_thread_map map = {0};
    (void)state;
    assert_int_equal(prb_dap_thread_map_find(&map, PRB_DAP_FRAME, 1), 0);
    for (int i = 1; i <= COUNT; i++) {
        prb_dap_thread_map_add(&map, PRB_DAP_FRAME, i, i);
        prb_dap_thread_map_add(&map, PRB_DAP_VALUE, i, COUNT + i);
    }
    for (int i = 1; i <= COUNT; i++) {
        assert_int_equal(prb_dap_thread_map_find(&map, PRB_DAP_FRAME, i), i);
        assert_int_equal(prb_dap_thread_map_find(&map, PRB_DAP_VALUE, i), COUNT + i);
    }
    assert_int_equal(prb_dap_thread_map_find(&map, PRB_DAP_VALUE, COUNT + 1), 0);
    prb_dap_thread_map_clear(&map);
    assert_int_equal(prb_dap_thread_map_find(&map, PRB_DAP_FRAME, 1), 0);
}

/* What a client draws differently: native frames, and the place where a stack could not be
 * walked on. */
static void frames_are_hinted(void **state)
{
    static const struct {
        struct prb_frame frame;
        const char *name, *hint;
    } wanted[] = {
        {{.kind = PRB_FRAME_PYTHON, .name = "f", .filename = "/job/a.py", .line = 3}, "f", NULL},
        {{.kind = PRB_FRAME_NATIVE, .name = "read", .module = "/lib/libc.so.6", .code = 0x10},
         "read",
         "subtle"},
        {{.kind = PRB_FRAME_BROKEN, .name = "a bad pointer"},
         "the walk ended here: a bad pointer",
         "label"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        json_t *made = prb_dap_frame_json(&wanted[i].frame, 7);
        const char *hint = json_string_value(json_object_get(made, "presentationHint"));
        assert_int_equal(json_integer_value(json_object_get(made, "id")), 7);
        assert_string_equal(json_string_value(json_object_get(made, "name")), wanted[i].name);
        assert_string_equal(hint ? hint : "", wanted[i].hint ? wanted[i].hint : "");
        json_decref(made);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_message_in_pieces), cmocka_unit_test(what_is_no_message),
        cmocka_unit_test(paths_are_mapped),    cmocka_unit_test(wrong_mappings),
        cmocka_unit_test(places_are_found),    cmocka_unit_test(roots_are_tidied),
        cmocka_unit_test(columns_are_utf16),   cmocka_unit_test(messages_are_bounded),
        cmocka_unit_test(frames_are_hinted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
