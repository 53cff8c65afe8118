/* Keys of the bus as text, signatures, and bus files, which may hold anything. */
#include "fleet/bus/bus_file.h"

#include <string.h>
#include <sys/stat.h>

#include "unit.h"

/* RFC 8032, 7.1, test 1; the texts by another implementation of nkeys. */
static const unsigned char secret[PRB_NKEY_BYTES] = {
    0x9d, 0x61, 0xb1, 0x9d, 0xef, 0xfd, 0x5a, 0x60, 0xba, 0x84, 0x4a, 0xf4, 0x92, 0xec, 0x2c, 0xc4,
    0x44, 0x49, 0xc5, 0x69, 0x7b, 0x32, 0x69, 0x19, 0x70, 0x3b, 0xac, 0x03, 0x1c, 0xae, 0x7f, 0x60};
static const unsigned char public[PRB_NKEY_BYTES] = {
    0xd7, 0x5a, 0x98, 0x01, 0x82, 0xb1, 0x0a, 0xb7, 0xd5, 0x4b, 0xfe, 0xd3, 0xc9, 0x64, 0x07, 0x3a,
    0x0e, 0xe1, 0x72, 0xf3, 0xda, 0xa6, 0x23, 0x25, 0xaf, 0x02, 0x1a, 0x68, 0xf7, 0x07, 0x51, 0x1a};
static const unsigned char signature[PRB_NKEY_SIGNATURE] = {
    0xe5, 0x56, 0x43, 0x00, 0xc3, 0x60, 0xac, 0x72, 0x90, 0x86, 0xe2, 0xcc, 0x80, 0x6e, 0x82, 0x8a,
    0x84, 0x87, 0x7f, 0x1e, 0xb8, 0xe5, 0xd9, 0x74, 0xd8, 0x73, 0xe0, 0x65, 0x22, 0x49, 0x01, 0x55,
    0x5f, 0xb8, 0x82, 0x15, 0x90, 0xa3, 0x3b, 0xac, 0xc6, 0x1e, 0x39, 0x70, 0x1c, 0xf9, 0xb4, 0x6b,
    0xd2, 0x5b, 0xf5, 0xf0, 0x59, 0x5b, 0xbe, 0x24, 0x65, 0x51, 0x41, 0x43, 0x8e, 0x7a, 0x10, 0x0b};

static void test_known_key(void **state)
{
    struct prb_nkey key = {0}, again;
    char seed[PRB_NKEY_SEED_SIZE], text[PRB_NKEY_TEXT_SIZE];
    unsigned char made[PRB_NKEY_SIGNATURE], back[PRB_NKEY_BYTES];
    (void)state;
    memcpy(key.secret, secret, sizeof secret);
    prb_nkey_seed(&key, seed);
    assert_true(strncmp(seed, "SUA", 3) == 0 && strlen(seed) == 58);
    assert_true(prb_nkey_parse(seed, &again, NULL));
    assert_memory_equal(again.public, public, sizeof public);
    prb_nkey_text(again.public, text);
    assert_true(text[0] == 'U' && strlen(text) == 56);
    assert_true(prb_nkey_parse_public(text, back, NULL));
    assert_memory_equal(back, public, sizeof public);
    assert_true(prb_nkey_sign(&again, "", 0, made, NULL));
    assert_memory_equal(made, signature, sizeof signature);
    assert_true(prb_nkey_verify(public, "", 0, signature, NULL));
    assert_false(prb_nkey_verify(public, "x", 1, signature, NULL));
    made[10] ^= 1;
    assert_false(prb_nkey_verify(public, "", 0, made, NULL));
}

/* Any changed, missing or added character is noticed. */
static void test_wrong_texts(void **state)
{
    struct prb_nkey key, out;
    char seed[PRB_NKEY_SEED_SIZE + 2], text[PRB_NKEY_TEXT_SIZE];
    unsigned char back[PRB_NKEY_BYTES];
    (void)state;
    assert_true(prb_nkey_make(&key, NULL));
    prb_nkey_seed(&key, seed);
    prb_nkey_text(key.public, text);
    for (size_t i = 0; seed[i]; i++) {
        char kept = seed[i];
        seed[i] = kept == 'A' ? 'B' : 'A';
        assert_false(prb_nkey_parse(seed, &out, NULL));
        seed[i] = '\0';
        assert_false(prb_nkey_parse(seed, &out, NULL));
        seed[i] = (char)0xff;
        assert_false(prb_nkey_parse(seed, &out, NULL));
        seed[i] = kept;
    }
    assert_false(prb_nkey_parse(text, &out, NULL));
    assert_false(prb_nkey_parse_public(seed, back, NULL));
    strcat(seed, "A");
    assert_false(prb_nkey_parse(seed, &out, NULL));
}

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    assert_int_equal(chmod(path, 0600), 0);
}

/* Cut at each byte, and with each byte changed: refused or read, never more. */
static void test_hostile_files(void **state)
{
    struct prb_nkey key;
    struct prb_bus_file file;
    char seed[PRB_NKEY_SEED_SIZE], text[1024], one[1024], path[] = "/tmp/bus-XXXXXX";
    int fd = mkstemp(path);
    (void)state;
    assert_true(fd >= 0);
    close(fd);
    assert_true(prb_nkey_make(&key, NULL));
    prb_nkey_seed(&key, seed);
    snprintf(
        text, sizeof text,
        "{\"v\": 1, \"class\": \"look\", \"servers\": [\"tls://node0:4222\", \"nats://[::1]:1\"], "
        "\"more\": [1], \"ca\": \"-----BEGIN CERTIFICATE-----\", \"nkey\": \"%s\"}",
        seed);
    write_file(path, text);
    assert_true(prb_bus_file_read(path, &file, NULL));
    assert_int_equal(file.server_count, 2);
    assert_true(prb_bus_server_is_tls(file.servers[0]));
    assert_false(prb_bus_server_is_loopback(file.servers[0]));
    assert_true(prb_bus_server_is_loopback(file.servers[1]));
    assert_true(file.has_key && file.has_class && file.class == PRB_BUS_look);
    prb_bus_file_deinit(&file);
    for (size_t i = 0; text[i]; i++) {
        snprintf(one, sizeof one, "%.*s", (int)i, text);
        write_file(path, one);
        assert_false(prb_bus_file_read(path, &file, NULL));
        for (const char *to = "\"{0\x80"; *to; to++) {
            strcpy(one, text);
            one[i] = *to;
            write_file(path, one);
            if (prb_bus_file_read(path, &file, NULL))
                prb_bus_file_deinit(&file);
        }
    }
    unlink(path);
}

/* Both sides have it, a third does not; what is signed by it, and nothing else, is of it. */
static void test_secret(void **state)
{
    static const unsigned char none[PRB_SECRET];
    struct prb_exchange one, two, three;
    struct prb_error err = {0};
    unsigned char a[PRB_SECRET], b[PRB_SECRET], code[PRB_SECRET];
    (void)state;
    assert_true(prb_exchange_make(&one, NULL) && prb_exchange_make(&two, NULL) &&
                prb_exchange_make(&three, NULL));
    assert_true(prb_exchange_secret(&one, two.public, one.public, a, NULL));
    assert_true(prb_exchange_secret(&two, one.public, one.public, b, NULL));
    assert_memory_equal(a, b, PRB_SECRET);
    assert_true(prb_secret_sign(a, "text", 4, code, NULL));
    assert_true(prb_secret_verify(b, "text", 4, code, NULL));
    assert_false(prb_secret_verify(b, "texT", 4, code, &err));
    assert_int_equal(err.code, PRB_PERMISSION);
    assert_true(prb_exchange_secret(&three, one.public, one.public, b, NULL));
    assert_false(prb_secret_verify(b, "text", 4, code, NULL));
    assert_true(prb_exchange_secret(&two, one.public, two.public, b, NULL)); /* who began is part */
    assert_memory_not_equal(a, b, PRB_SECRET);
    assert_false(prb_exchange_secret(&one, none, one.public, a, &err)); /* known beforehand */
    assert_int_equal(err.code, PRB_PERMISSION);
}

static void test_loopback(void **state)
{
    (void)state;
    assert_true(prb_bus_server_is_loopback("nats://127.0.0.1:4222"));
    assert_false(prb_bus_server_is_loopback("nats://127.example.com:4222"));
    assert_false(prb_bus_server_is_loopback("nats://localhost.example.com:4222"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_key), cmocka_unit_test(test_wrong_texts),
        cmocka_unit_test(test_hostile_files), cmocka_unit_test(test_secret),
        cmocka_unit_test(test_loopback)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
