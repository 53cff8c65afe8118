/* mem: secrets overwritten in bytes and in what is recorded. */
#include "unit.h"

#include <stdio.h>
#include <time.h>

#include "mem/hide.h"

#define PAGE PRB_RECORD_PAGE

/* Text as characters of so many bytes. */
static size_t widen(const char *text, unsigned width, uint8_t *out)
{
    size_t len = strlen(text);
    for (size_t i = 0; i < len * width; i++)
        out[i] = i % width ? 0 : (uint8_t)text[i / width];
    return len * width;
}

static void assert_hidden(const char *const *secrets, const char *text, const char *expected)
{
    for (unsigned width = 1; width <= 4; width *= 2) {
        PRB_AUTO(prb_hidden) struct prb_hidden hidden = {0};
        uint8_t bytes[2048], wanted[2048];
        for (; *secrets; secrets++)
            prb_hidden_add(&hidden, *secrets, strlen(*secrets));
        size_t len = widen(text, width, bytes);
        assert_int_equal(widen(expected, width, wanted), len);
        assert_int_equal(prb_hidden_apply(&hidden, bytes, len), strcmp(text, expected) != 0);
        if (memcmp(bytes, wanted, len) != 0) {
            for (size_t i = 0; i < len / width; i++)
                bytes[i] = bytes[i * width];
            fail_msg("%s, width %u: %.*s", text, width, (int)(len / width), (const char *)bytes);
        }
        for (; secrets[-1]; secrets--)
            if (secrets[-1][0] == '\0')
                break;
    }
}

/* The first of a list is "", which assert_hidden goes back to. */
#define SECRETS(...) ((const char *const[]){"", __VA_ARGS__, NULL} + 1)

static void in_all_widths(void **state)
{
    (void)state;
    assert_hidden(SECRETS("swordfish1"), "a swordfish1, xswordfish1y",
                  "a **********, x**********y");
    assert_hidden(SECRETS("swordfish1", "swordfish2"), "swordfish2swordfish1",
                  "********************");
    assert_hidden(SECRETS("k3pt-b4ck", "k3pt-b4ck-longer"), "k3pt-b4ck-longer k3pt-b4ck",
                  "**************** *********");
    assert_hidden(SECRETS("postgres://joe:p%40ss-w0rd@host/db"), "joe p@ss-w0rd p%40ss-w0rd host",
                  "joe ********* *********** host");
    assert_hidden(SECRETS("p/ss w0rd!"), "p%2Fss%20w0rd%21 p/ss w0rd!",
                  "**************** **********");
    assert_hidden(SECRETS("https://0123456789abcdef0123@sentry.io/1"), "key 0123456789abcdef0123",
                  "key ********************");
    assert_hidden(
        SECRETS("-----BEGIN PRIVATE KEY-----\nMIIEpAIBAAKCAQEA7\nBAAKCAQEA70pAIBAAK\n-----END"),
        "MIIEpAIBAAKCAQEA7 BAAKCAQEA70pAIBAAK", "***************** ******************");
}

static void by_look(void **state)
{
    (void)state;
    assert_hidden(SECRETS("unrelated1"), "token ghp_0123456789abcdefABCD end",
                  "token ************************ end");
    assert_hidden(SECRETS("unrelated1"), "x://joe:hunter2@host password=hunter2 Bearer 0123456789",
                  "x://joe:*******@host password=******* Bearer **********");
    assert_hidden(SECRETS("unrelated1"), "task-0123456789abcdefabcd", "task-0123456789abcdefabcd");
}

/* A name, a path, a number that happens to be a secret's value does not blank what is told. */
static void what_stays(void **state)
{
    (void)state;
    assert_hidden(
        SECRETS("main", "true", "/usr/lib", "29500", "localhost", "password", "abc", "train"),
        "main true /usr/lib 29500 localhost password abc train",
        "main true /usr/lib 29500 localhost password abc train");
    assert_hidden(SECRETS("hunter2"), "hunter2 my_own_hunter2 hunter23",
                  "******* my_own_hunter2 hunter23");
    assert_hidden(SECRETS("swordfish"), "swordfish swordfishes", "********* swordfishes");
    assert_hidden(SECRETS("a1b2"), "a1b2 xyza1b2", "**** xyz****");
}

/* Processor time for so many bytes that are a part again and again. */
static double time_for(uint8_t *bytes, size_t count, const char *part, size_t len)
{
    PRB_AUTO(prb_hidden) struct prb_hidden hidden = {0};
    for (size_t at = 0; at < count; at++)
        bytes[at] = (uint8_t)part[at % len];
    clock_t began = clock();
    prb_hidden_apply(&hidden, bytes, count);
    return (double)(clock() - began) / CLOCKS_PER_SEC;
}

/* Bytes that are nearly a look at every place take no time that grows with their square: eight
 * times as many, far from 64 times as long, whatever the machine and the build. */
static void what_is_nearly_a_look(void **state)
{
    (void)state;
    static const char *const parts[] = {"-eyJ",         "sk-",    "password=%", "://a:b/",
                                        "p\0a\0s\0s\0", "token=", "-----BEGIN "};
    static const size_t lens[] = {4, 3, 10, 7, 8, 6, 11};
    static uint8_t bytes[1 << 20];
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        double few = time_for(bytes, sizeof bytes / 8, parts[i], lens[i]);
        double many = time_for(bytes, sizeof bytes, parts[i], lens[i]);
        if (many > 24 * few + 0.2)
            fail_msg("%s: %.2f s of processor time, %.2f for an eighth", parts[i], many, few);
    }
}

/* ---- what is recorded ---- */

static uint8_t space[4 * PAGE];

static size_t read_space(void *context, prb_addr addr, void *buf, size_t len)
{
    (void)context;
    if (addr < PAGE || addr >= PAGE + sizeof space)
        return 0;
    size_t left = PAGE + sizeof space - addr, n = len < left ? len : left;
    memcpy(buf, space + (addr - PAGE), n);
    return n;
}

static bool collect(void *context, prb_addr addr, const void *data, size_t len)
{
    memcpy((uint8_t *)context + (addr - PAGE), data, len);
    return true;
}

static void across_pages(void **state)
{
    (void)state;
    static const char secret[] = "k3pt-b4ck-f0rever";
    size_t n = strlen(secret);
    for (size_t in_first = 1; in_first < n; in_first++) {
        PRB_AUTO(prb_mem) struct prb_mem *inner = prb_mem_callback_new(read_space, NULL, NULL);
        PRB_AUTO(prb_mem) struct prb_mem *record = prb_mem_record_new(inner, NULL);
        PRB_AUTO(prb_hidden) struct prb_hidden hidden = {0};
        uint8_t kept[sizeof space] = {0}, byte;
        memset(space, 'x', sizeof space);
        memcpy(space + PAGE - in_first, secret, n);           /* both pages are recorded */
        memcpy(space + 2 * PAGE - in_first, secret, n);       /* the first one is */
        memcpy(space + 3 * PAGE - (n - in_first), secret, n); /* the second one is */
        for (size_t page = 0; page < 4; page++)
            assert_true(page == 2 || prb_mem_read(record, (1 + page) * PAGE, &byte, 1, NULL));
        prb_hidden_add(&hidden, secret, n);
        assert_true(prb_hidden_record(&hidden, record));
        assert_true(prb_mem_record_each(record, collect, kept));
        for (size_t i = 0; i < n; i++)
            assert_int_equal(kept[PAGE - in_first + i], '*');
        if (in_first >= 8) {
            assert_int_equal(kept[2 * PAGE - in_first], '*');
            assert_int_equal(kept[2 * PAGE - 1], '*');
            assert_int_equal(kept[3 * PAGE], '*');
            assert_int_equal(kept[3 * PAGE + in_first - 1], '*');
        }
        assert_int_equal(kept[3 * PAGE + in_first], 'x');
        assert_int_equal(kept[0], 'x');
        assert_int_equal(kept[PAGE - in_first + n], 'x');
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_all_widths), cmocka_unit_test(by_look),
        cmocka_unit_test(what_stays),    cmocka_unit_test(what_is_nearly_a_look),
        cmocka_unit_test(across_pages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
