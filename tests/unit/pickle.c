/* pickle: what Python and PyTorch write of plain values, and what nobody should take. */
#include "unit.h"

#include "base/cleanup.h"
#include "table/shared/pickle.h"

PRB_DEFINE_AUTO_PTR(json_t, json_t, json_decref)

#define BYTES(text) text, sizeof text - 1

static void values(void **state)
{
    (void)state;
    static const struct {
        const char *data;
        size_t len;
        const char *json; /* NULL: refused */
    } cases[] = {
        {BYTES("\x80\x02N."), "null"},
        {BYTES("\x80\x02\x88."), "true"},
        {BYTES("\x80\x02K\xff."), "255"},
        {BYTES("\x80\x02M\x00\x01."), "256"},
        {BYTES("\x80\x02J\xff\xff\xff\xff."), "-1"},
        {BYTES("\x80\x02\x8a\x00."), "0"},
        {BYTES("\x80\x02\x8a\x01\x80."), "-128"},
        {BYTES("\x80\x02\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f."), "9223372036854775807"},
        {BYTES("\x80\x02G\x3f\xf8\x00\x00\x00\x00\x00\x00."), "1.5"},
        {BYTES("\x80\x02G\x7f\xf8\x00\x00\x00\x00\x00\x00."), "null"},
        {BYTES("\x80\x02X\x02\x00\x00\x00hi."), "\"hi\""},
        {BYTES("\x80\x02]."), "[]"},
        {BYTES("\x80\x02](K\x01K\x02"
               "e."),
         "[1,2]"},
        {BYTES("\x80\x02]K\x01"
               "a."),
         "[1]"},
        {BYTES("\x80\x02K\x01K\x02\x86."), "[1,2]"},
        {BYTES("\x80\x02(K\x01K\x02K\x03K\x04t."), "[1,2,3,4]"},
        {BYTES("\x80\x02)."), "[]"},
        {BYTES("\x80\x02}(X\x01\x00\x00\x00"
               "aK\x01X\x01\x00\x00\x00"
               "bNu."),
         "{\"a\":1,\"b\":null}"},
        {BYTES("\x80\x02}X\x01\x00\x00\x00"
               "aK\x01s."),
         "{\"a\":1}"},
        /* A text that stands twice. */
        {BYTES("\x80\x02](X\x01\x00\x00\x00"
               "aq\x00h\x00"
               "e."),
         "[\"a\",\"a\"]"},
        {BYTES("\x80\x02](X\x01\x00\x00\x00"
               "ar\x00\x00\x00\x00j\x00\x00\x00\x00"
               "e."),
         "[\"a\",\"a\"]"},
        /* A list in itself, and one that stands twice. */
        {BYTES("\x80\x02]q\x00h\x00"
               "a."),
         NULL},
        /* A call of a function, a key that is no text, items without a container, none at all. */
        {BYTES("\x80\x02"
               "cos\nsystem\nX\x02\x00\x00\x00ls\x85R."),
         NULL},
        {BYTES("\x80\x02}K\x01K\x02s."), NULL},
        {BYTES("\x80\x02}(K\x01u."), NULL},
        {BYTES("\x80\x02K\x01K\x02"
               "a."),
         NULL},
        {BYTES("\x80\x02(K\x01"
               "e."),
         NULL},
        {BYTES("\x80\x02(."), NULL},
        {BYTES("\x80\x02](K\x01(e."), NULL},
        {BYTES("\x80\x02h\x05."), NULL},
        {BYTES("\x80\x02Nq\x05."), NULL},
        {BYTES("\x80\x02X\xff\xff\xff\xffhi."), NULL},
        {BYTES("\x80\x02\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00\x00."), NULL},
        {BYTES("\x80\x02\x87."), NULL},
        {BYTES("\x80\x02K."), NULL},
        {BYTES("\x80\x02."), NULL},
        {BYTES("\x80\x02"), NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct prb_error err = {0};
        PRB_AUTO(json_t) json_t *json = prb_pickle_parse(cases[i].data, cases[i].len, &err);
        PRB_AUTO_FREE char *text =
            json ? json_dumps(json, JSON_COMPACT | JSON_ENCODE_ANY | JSON_SORT_KEYS) : NULL;
        if (cases[i].json) {
            if (!json)
                fail_msg("case %zu: %s", i, err.text);
            assert_string_equal(text, cases[i].json);
        } else {
            assert_null(json);
            assert_int_equal(err.code, PRB_CORRUPT);
        }
    }
    assert_true(prb_is_pickle("\x80\x02N.", 4));
    assert_false(prb_is_pickle("{}  ", 4));
}

static void not_utf8(void **state)
{
    (void)state;
    struct prb_error err = {0};
    PRB_AUTO(json_t)
    json_t *json = prb_pickle_parse(BYTES("\x80\x02X\x02\x00\x00\x00"
                                          "a\xff."),
                                    &err);
    assert_ok(json, err);
    assert_int_equal(json_string_value(json)[0], 'a');
}

/* Lists in lists: freeing them calls itself for each. */
static void deep(void **state)
{
    (void)state;
    enum { LISTS = 100000 };
    struct prb_error err;
    PRB_AUTO_FREE char *data = malloc(2 + 2 * LISTS);
    assert_non_null(data);
    memcpy(data, "\x80\x02", 2);
    memset(data + 2, ']', LISTS);
    memset(data + 2 + LISTS, 'a', LISTS - 1);
    data[1 + 2 * LISTS] = '.';
    assert_null(prb_pickle_parse(data, 2 + 2 * LISTS, &err));
    assert_int_equal(err.code, PRB_CORRUPT);
}

/* Each cut and each byte changed: an error or a value, and nothing else. */
static void mutated(void **state)
{
    (void)state;
    static const char whole[] =
        "\x80\x02}q\x00(X\x07\x00\x00\x00"
        "entriesq\x01](}(X\x02\x00\x00\x00idq\x02K\x01X\x05\x00\x00\x00sizesq\x03](](K\x08M\x00\x01"
        "ee"
        "X\x02\x00\x00\x00pgX\x01\x00\x00\x00"
        "0h\x02\x86X\x01\x00\x00\x00t\x8a\x02\xff\x7fu}(h\x02NX\x01\x00\x00\x00rG?"
        "\xf0\x00\x00\x00\x00\x00\x00ueu.";
    const size_t len = sizeof whole - 1;
    json_t *json = prb_pickle_parse(whole, len, NULL);
    assert_non_null(json);
    json_decref(json);
    for (size_t cut = 0; cut < len; cut++) {
        PRB_AUTO_FREE char *copy = malloc(len + 1);
        memcpy(copy, whole, len);
        assert_null(prb_pickle_parse(copy, cut, NULL));
        for (int byte = 0; byte < 256; byte++) {
            copy[cut] = (char)byte;
            json_decref(prb_pickle_parse(copy, len, NULL));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(values), cmocka_unit_test(not_utf8),
                                       cmocka_unit_test(deep), cmocka_unit_test(mutated)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
