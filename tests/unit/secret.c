/* base: which environment values are secret; base: JSON texts. */
#include "unit.h"

#include <stdio.h>

#include <jansson.h>

#include "base/json_text.h"
#include "base/secret.h"

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
        "GH_PAT",
        "SSHPASS",
        "LDAP_BINDPW",
        "MASTERKEY",
        "SIGNINGKEY",
        "STRIPE_SK",
        "SLACK_WEBHOOK_URL",
        "KUBE_CONFIG_DATA",
        "PROD_KUBE_CONFIG_DATA_1",
        "AZURE_CONN",
        "ROOTPASS",
        "dbpw",
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
        "BYPASS",
        "HOTKEY",
        "COMPAT",
        "TASK",
        "DISK",
        "KUBECONFIG",
        "CONNECT",
        "PATCH",
    };
    for (size_t i = 0; i < sizeof secret / sizeof *secret; i++)
        if (!prb_secret_name(secret[i]))
            fail_msg("%s is shown", secret[i]);
    for (size_t i = 0; i < sizeof open / sizeof *open; i++)
        if (prb_secret_name(open[i]))
            fail_msg("%s is hidden", open[i]);
}

static void names_of_variables(void **state)
{
    (void)state;
    static const char *const secret[] = {"password",    "db_password",    "api_key",
                                         "apiKey",      "OPENAI_API_KEY", "client_secret",
                                         "accessToken", "passwd"};
    static const char *const open[] = {"key",  "keys", "token",          "tokens",      "session",
                                       "auth", "conn", "password_field", "secret_file", "n"};
    for (size_t i = 0; i < sizeof secret / sizeof *secret; i++)
        if (!prb_secret_variable(secret[i]))
            fail_msg("%s is shown", secret[i]);
    for (size_t i = 0; i < sizeof open / sizeof *open; i++)
        if (prb_secret_variable(open[i]))
            fail_msg("%s is hidden", open[i]);
}

/* Of each line of the table something is found where its head stands. */
static void every_head_begins_a_look(void **state)
{
    (void)state;
    static const char *const tails[] = {"='a1b2c3d4e5f6'",
                                        "0123456789ABCDEFABCD0123456789ABCDEFABCDEF",
                                        "u:pw1@h",
                                        "am9lOmh1bnRlcjI=",
                                        "RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA\n",
                                        "hbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjMifQ.c2ln"};
    const char *head;
    for (size_t i = 0; (head = prb_secret_head(i)); i++) {
        bool found = false;
        assert_true(strlen(head) >= 3);
        for (size_t k = 0; k < sizeof tails / sizeof *tails; k++) {
            struct prb_span span;
            char text[128];
            int len = snprintf(text, sizeof text, "%s%s", head, tails[k]);
            found = found || prb_secret_at(text, (size_t)len, 0, &span);
        }
        if (!found)
            fail_msg("%s begins nothing", head);
    }
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
        {"joe:pw@host", "joe:***@host"},
        {"x joe:pw@host:80/a", "x joe:***@host:80/a"},
        {"u:pw@tcp(host:1)/db", "u:***@tcp(host:1)/db"},
        {"image:tag@sha256:0123456789abcdef", "image:tag@sha256:0123456789abcdef"},
        {"joe:***@host", "joe:***@host"},
        {"--proxy=joe:pw@host", "--proxy=joe:***@host"},
        {"git@github.com:a/b", "git@github.com:a/b"},
        {"12:30:45", "12:30:45"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        PRB_AUTO(prb_buf) struct prb_buf out = {0};
        bool masked =
            prb_secret_mask(PRB_SECRET_TEXT, cases[i].value, strlen(cases[i].value), &out);
        assert_string_equal(out.data ? out.data : "", cases[i].shown);
        assert_int_equal(masked, strcmp(cases[i].value, cases[i].shown) != 0);
    }
}

static void assert_masked(enum prb_secret_kind kind, const char *text, size_t len,
                          const char *shown, size_t shown_len)
{
    PRB_AUTO(prb_buf) struct prb_buf out = {0};
    bool masked = prb_secret_mask(kind, text, len, &out);
    if (out.len != shown_len || memcmp(out.data, shown, shown_len) != 0)
        fail_msg("%s is shown as %s", text, out.data);
    assert_int_equal(masked, len != shown_len || memcmp(text, shown, len) != 0);
}

static void looks(void **state)
{
    (void)state;
    static const struct {
        const char *value, *shown;
    } cases[] = {
        {"Authorization: Bearer abc.def-123", "Authorization: Bearer ***"},
        {"bearer 0123456789", "bearer ***"},
        {"a bearer of news", "a bearer of news"},
        {"Basic am9lOmh1bnRlcjI=", "Basic ***"},
        {"Basic training", "Basic training"},
        {"jdbc:x://h/d?user=u&password=hunter2&ssl=1", "jdbc:x://h/d?user=u&password=***&ssl=1"},
        {"Endpoint=x;AccountKey=ab/c+d==;Suffix=y", "Endpoint=x;AccountKey=***;Suffix=y"},
        {"?sv=1&sig=aB%2Fc123456&se=2", "?sv=1&sig=***&se=2"},
        {"sig=11", "sig=11"},
        {"host=h PWD=swordfish", "host=h PWD=***"},
        {"pwd=/home", "pwd=/home"},
        {"{'password': 'a b', 'n': 1}", "{'password': '***', 'n': 1}"},
        {"{\"api_key\": \"k\"}", "{\"api_key\": \"***\"}"},
        {"{\\\"client_secret\\\": \\\"x y\\\"}", "{\\\"client_secret\\\": \\\"***\\\"}"},
        {"db_password='x'", "db_password='***'"},
        {"password=None", "password=None"},
        {"password=%s", "password=%s"},
        {"password: str", "password: str"},
        {"secretary=5", "secretary=5"},
        {"ghp_0123456789abcdefABCD", "***"},
        {"x ghp_0123456789abcdefABCD.", "x ***."},
        {"github_pat_11ABCDEFG0123456789_abc", "***"},
        {"hf_0123456789abcdefABCD", "***"},
        {"sk-proj-0123456789abcdef", "***"},
        {"task-0123456789abcdefabcd", "task-0123456789abcdefabcd"},
        {"xoxb-123456789012-abc", "***"},
        {"AKIAIOSFODNN7EXAMPLE", "***"},
        {"glpat-0123456789abcdefABCD", "***"},
        {"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjMifQ.c2ln", "***"},
        {"https://hooks.slack.com/services/T01/B02/abcdefghi",
         "https://hooks.slack.com/services/***"},
        {"-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA\nabc\n-----END RSA PRIVATE KEY-----",
         "-----BEGIN RSA PRIVATE KEY-----***-----END RSA PRIVATE KEY-----"},
        {"-----BEGIN CERTIFICATE-----\nMIIEpAIBAAKCAQEA\n",
         "-----BEGIN CERTIFICATE-----\nMIIEpAIBAAKCAQEA\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_masked(PRB_SECRET_TEXT, cases[i].value, strlen(cases[i].value), cases[i].shown,
                      strlen(cases[i].shown));
}

/* A NUL ends each word; the last one's is the literal's own. */
#define WORDS(text) text, sizeof(text)

static void arguments(void **state)
{
    (void)state;
    static const struct {
        const char *words;
        size_t len;
        const char *shown;
        size_t shown_len;
    } cases[] = {
        {WORDS("python\0t.py\0--hf-token\0abc\0--epochs\0"
               "3"),
         WORDS("python\0t.py\0--hf-token\0***\0--epochs\0"
               "3")},
        {WORDS("t.py\0--api-key=x y"), WORDS("t.py\0--api-key=***")},
        {WORDS("t.py\0--password\0"
               "12345"),
         WORDS("t.py\0--password\0***")},
        {WORDS("t.py\0--max-tokens\0"
               "4096"),
         WORDS("t.py\0--max-tokens\0"
               "4096")},
        {WORDS("t.py\0--token-file\0/a/b"), WORDS("t.py\0--token-file\0/a/b")},
        {WORDS("t.py\0--auth\0--debug"), WORDS("t.py\0--auth\0--debug")},
        {WORDS("p\0--private\0train.py"), WORDS("p\0--private\0train.py")},
        {WORDS("t.py\0model.secret=x"), WORDS("t.py\0model.secret=***")},
        {WORDS("t.py\0use_auth_token=True"), WORDS("t.py\0use_auth_token=True")},
        {WORDS("t.py\0-H\0X: Bearer 0123456789"), WORDS("t.py\0-H\0X: Bearer ***")},
        {WORDS("p t.py --token abc --n 3"), WORDS("p t.py --token *** --n 3")},
        {WORDS("t.py\0pg://u:pw@h/d"), WORDS("t.py\0pg://u:***@h/d")},
        {WORDS("t.py\0--lr\0"
               "0.1\0--keyboard\0us"),
         WORDS("t.py\0--lr\0"
               "0.1\0--keyboard\0us")},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_masked(PRB_SECRET_ARGUMENTS, cases[i].words, cases[i].len, cases[i].shown,
                      cases[i].shown_len);
}

static void environments(void **state)
{
    (void)state;
    assert_masked(PRB_SECRET_ENVIRONMENT, WORDS("A=1\0GH_PAT=x\0no equals\0B_KEY=\0U=a://b:c@d"),
                  WORDS("A=1\0GH_PAT=***\0no equals\0B_KEY=\0U=a://b:***@d"));
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
        "",          "plain",        "\"quoted\" \\ /", "a\nb\tc\r\x01\x1f\x7f",
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
        cmocka_unit_test(names_of_variables),
        cmocka_unit_test(every_head_begins_a_look),
        cmocka_unit_test(passwords_of_urls),
        cmocka_unit_test(looks),
        cmocka_unit_test(arguments),
        cmocka_unit_test(environments),
        cmocka_unit_test(json_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
