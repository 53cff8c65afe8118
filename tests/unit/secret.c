/* table: which environment values are secret; base: JSON texts. */
#include "unit.h"

#include <jansson.h>

#include "base/json_text.h"
#include "table/secret.h"

static void names_by_their_words(void **state)
{
    (void)state;
    static const char *const secret[] = {
        "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN",
        "GITHUB_TOKEN",
        "HF_TOKEN",
        "WANDB_API_KEY",
        "OPENAI_API_KEY",
        "DB_PASSWORD",
        "PGPASSWORD",
        "GHTOKEN",
        "MYSQL_PWD",
        "dbPassword",
        "apiKey",
        "APIKey",
        "SENTRY_DSN",
        "CONNECTION_STRING",
        "GOOGLE_APPLICATION_CREDENTIALS",
        "HTTP_AUTHORIZATION",
        "BASIC_AUTH",
        "SESSION_COOKIE",
        "PRIVATE_KEY",
        "TOKEN2",
        "token",
        "my.secret.name",
        "x-api-key",
        "KEY",
        "SMTP_PASS",
    };
    static const char *const open[] = {
        "MONKEY",
        "KEYBOARD",
        "KEYNOTE",
        "TURKEY",
        "AUTHOR",
        "TOKENIZERS_PARALLELISM",
        "PATH",
        "HOME",
        "PWD",
        "OLDPWD",
        "SSH_AUTH_SOCK",
        "SSL_CERT_FILE",
        "PASSENGER",
        "COMPASS",
        "SECRETARY",
        "OBSESSION",
        "CUDA_VISIBLE_DEVICES",
        "RANK",
        "NCCL_DEBUG",
        "",
        "_",
        "PIN_MEMORY",
    };
    for (size_t i = 0; i < sizeof secret / sizeof *secret; i++)
        if (!prb_secret_name(secret[i]))
            fail_msg("%s is shown", secret[i]);
    for (size_t i = 0; i < sizeof open / sizeof *open; i++)
        if (prb_secret_name(open[i]))
            fail_msg("%s is hidden", open[i]);
}

static void passwords_of_urls(void **state)
{
    (void)state;
    static const struct {
        const char *value, *shown;
    } cases[] = {
        {"plain", "plain"},
        {"", ""},
        {"://", "://"},
        {"postgres://me:pw@host:5432/db", "postgres://me:***@host:5432/db"},
        {"http://host:80/a?b=c:d@e", "http://host:80/a?b=c:d@e"},
        {"http://me@host/", "http://me@host/"},
        {"https://ghp_0123456789abcdef@github.com/x", "https://***@github.com/x"},
        {"redis://:pw@host", "redis://:***@host"},
        {"amqp://u:p@ss@host", "amqp://u:***@host"},
        {"postgres://u:p/w@host/db", "postgres://u:***@host/db"},
        {"a://u:p@h b://u:q@h", "a://u:***@h b://u:***@h"},
        {"x='ftp://u:p@h',y", "x='ftp://u:***@h',y"},
        {"http://proxy:3128", "http://proxy:3128"},
        {"a://u:p", "a://u:p"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        PRB_AUTO(prb_buf) struct prb_buf out = {0};
        bool masked = prb_secret_mask_urls(cases[i].value, &out);
        assert_string_equal(out.data ? out.data : "", cases[i].shown);
        assert_int_equal(masked, strcmp(cases[i].value, cases[i].shown) != 0);
    }
}

/* What a parser reads back of bytes. */
static void assert_json(const char *bytes, size_t len, const char *expected)
{
    PRB_AUTO(prb_buf) struct prb_buf out = {0};
    prb_json_add_text(&out, bytes, len);
    json_error_t error;
    json_t *value = json_loadb(out.data, out.len, JSON_DECODE_ANY | JSON_ALLOW_NUL, &error);
    if (!value)
        fail_msg("%s: %s", out.data, error.text);
    assert_int_equal(json_string_length(value), strlen(expected));
    assert_string_equal(json_string_value(value), expected);
    json_decref(value);
}

static void json_texts(void **state)
{
    (void)state;
    static const char *const good[] = {
        "",         "plain",        "\"quoted\" \\ /", "a\nb\tc\r\x01\x1f\x7f",
        "é 日本 😀", "\xef\xbf\xbd", "\\u0041"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_json(good[i], strlen(good[i]), good[i]);
    /* Bytes that are no UTF-8: overlong, surrogates, beyond U+10FFFF, cut, stray. */
    static const char *const bad[] = {"\xc0\x80",         "\xe0\x80\x80", "\xed\xa0\x80",
                                      "\xf4\x90\x80\x80", "\xf8",         "\x80",
                                      "\xff\xfe",         "\xe2\x82"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char expected[32] = "";
        for (size_t k = 0; k < strlen(bad[i]); k++)
            strcat(expected, "\xef\xbf\xbd");
        assert_json(bad[i], strlen(bad[i]), expected);
    }
    assert_json("\xe2\x82\xac", 2, "\xef\xbf\xbd\xef\xbf\xbd"); /* never behind its length */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_by_their_words),
        cmocka_unit_test(passwords_of_urls),
        cmocka_unit_test(json_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
