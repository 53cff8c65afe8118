/* The probe's settings: values with units, and which names and values are refused. */
#include "unit.h"

#include "inject/probe/setting_value.h"
#include "inject/probe/settings.h"

static const char *get(const char *key)
{
    static char value[PRB_SETTING_TEXT_MAX];
    assert_true(prb_settings_get(key, value, sizeof value) >= 0);
    return value;
}

static const struct {
    enum prb_setting_type type;
    const char *unit, *text;
    double number; /* -1: refused */
} values[] = {
    {PRB_SETTING_BYTES, "", "1GB", 1e9},
    {PRB_SETTING_BYTES, "", "1 gib", 1073741824},
    {PRB_SETTING_BYTES, "", "1.5K", 1536},
    {PRB_SETTING_BYTES, "", "4096", 4096},
    {PRB_SETTING_BYTES, "", "1e6", 1e6},
    {PRB_SETTING_BYTES, "", "0", 0},
    {PRB_SETTING_BYTES, "", "0.5", -1},
    {PRB_SETTING_BYTES, "", "-1", -1},
    {PRB_SETTING_BYTES, "", "1XB", -1},
    {PRB_SETTING_BYTES, "", "GB", -1},
    {PRB_SETTING_BYTES, "", "", -1},
    {PRB_SETTING_BYTES, "", "1e99", -1},
    {PRB_SETTING_BYTES, "", "99999999999999999999", -1},
    {PRB_SETTING_BYTES, "", "9999TiB", -1},
    {PRB_SETTING_BYTES, "", "1GB and more", -1},
    {PRB_SETTING_SPAN, "d", "7", 7 * 86400.0},
    {PRB_SETTING_SPAN, "d", "36h", 36 * 3600.0},
    {PRB_SETTING_SPAN, "s", "0.25", 0.25},
    {PRB_SETTING_SPAN, "s", "250ms", 0.25},
    {PRB_SETTING_SPAN, "s", "1 week", -1},
    {PRB_SETTING_REAL, "", "0.1", 0.1},
    {PRB_SETTING_REAL, "", ".5", 0.5},
    {PRB_SETTING_REAL, "", "1.", 1},
    {PRB_SETTING_REAL, "", ".", -1},
    {PRB_SETTING_REAL, "", "1.2.3", -1},
    {PRB_SETTING_REAL, "", "0,1", -1},
    {PRB_SETTING_REAL, "", "nan", -1},
    {PRB_SETTING_REAL, "", "inf", -1},
    {PRB_SETTING_REAL, "", "0x10", -1},
    {PRB_SETTING_INTEGER, "", "12", 12},
    {PRB_SETTING_INTEGER, "", "1.5", -1},
    {PRB_SETTING_SWITCH, "", "on", 1},
    {PRB_SETTING_SWITCH, "", "FALSE", 0},
    {PRB_SETTING_SWITCH, "", "1", 1},
    {PRB_SETTING_SWITCH, "", "2", -1},
    {PRB_SETTING_SWITCH, "", "", -1},
};

static void texts_to_numbers(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        double number = -1;
        bool ok = prb_value_parse(values[i].type, values[i].unit, values[i].text, &number);
        if (ok != (values[i].number >= 0) || (ok && number != values[i].number))
            fail_msg("\"%s\" gave %s %.17g", values[i].text, ok ? "yes" : "no", number);
    }
}

static void numbers_to_texts_and_back(void **state)
{
    static const double numbers[] = {0, 1, 1000, 1024, 1e9, 1073741824, 123456789, 1e12, 3e9, 1536};
    (void)state;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        char text[40];
        double again = -1;
        prb_value_format(PRB_SETTING_BYTES, "bytes", numbers[i], text, sizeof text);
        assert_true(prb_value_parse(PRB_SETTING_BYTES, "bytes", text, &again));
        assert_true(again == numbers[i]);
    }
}

static void every_default_is_a_value(void **state)
{
    struct prb_error err = {0};
    (void)state;
    prb_settings_reset();
    for (size_t i = 0; i < prb_settings_count(); i++) {
        PRB_AUTO(prb_buf) struct prb_buf line = {0};
        const char *key = prb_settings_key(i);
        char before[PRB_SETTING_TEXT_MAX];
        snprintf(before, sizeof before, "%s", get(key));
        assert_ok(prb_settings_set(key, before, &err), err);
        assert_string_equal(get(key), before);
        prb_settings_describe(i, &line);
        int tabs = 0;
        for (const char *at = line.data; *at; at++)
            tabs += *at == '\t';
        assert_int_equal(tabs, 4);
    }
}

static void wrong_names_and_values(void **state)
{
    struct prb_error err = {0};
    (void)state;
    prb_settings_reset();
    assert_false(prb_settings_set("probing.max_memroy", "1GB", &err));
    assert_int_equal(err.code, PRB_NOT_FOUND);
    assert_non_null(strstr(err.remedy, "probing.max_memory"));
    assert_false(prb_settings_set("sample_rate", "1", &err));
    assert_non_null(strstr(err.remedy, "probing.sample_rate"));
    assert_false(prb_settings_set("probing.sample_rate", "1.5", &err));
    assert_int_equal(err.code, PRB_USAGE);
    assert_string_equal(get("probing.sample_rate"), "1");
    assert_int_equal(prb_settings_get("nothing like it", (char[8]){0}, 8), -1);
    assert_true(prb_settings_number("nothing like it", 3) == 3);
}

static void lines_are_all_or_none(void **state)
{
    struct prb_error err = {0};
    (void)state;
    prb_settings_reset();
    assert_false(prb_settings_set_lines("probing.max_memory=1GB\nprobing.sample_rate=x", &err));
    assert_string_equal(get("probing.max_memory"), "256MiB");
    assert_false(prb_settings_set_lines("probing.max_memory", &err));
    assert_ok(
        prb_settings_set_lines("\n  probing.max_memory = 1GB \r\n\nprobing.crash_dir=a=b\n", &err),
        err);
    assert_string_equal(get("probing.max_memory"), "1GB");
    assert_string_equal(get("probing.crash_dir"), "a=b");
    assert_true(prb_settings_number("probing.max_memory", 0) == 1e9);
}

static void variables(void **state)
{
    struct prb_error err = {0};
    (void)state;
    prb_settings_reset();
    assert_ok(prb_settings_set_variable("PROBING_MAX_MEMORY=2GB", &err), err);
    assert_ok(prb_settings_set_variable("PROBING_EVAL_GIL_TIMEOUT=5s", &err), err);
    assert_ok(prb_settings_set_variable("PROBE_BG=1", &err), err);
    assert_ok(prb_settings_set_variable("PROBING_SOMETHING_ELSE=1", &err), err);
    assert_ok(prb_settings_set_variable("PROBING=regex:x", &err), err);
    assert_ok(prb_settings_set_variable("PATH=/bin", &err), err);
    assert_ok(prb_settings_set_variable("nonsense", &err), err);
    assert_false(prb_settings_set_variable("PROBING_SAMPLE_RATE=often", &err));
    assert_string_equal(get("probing.max_memory"), "2GB");
    assert_string_equal(get("probing.eval.gil_timeout"), "5");
    assert_string_equal(get("probing.background"), "on");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_to_numbers),         cmocka_unit_test(numbers_to_texts_and_back),
        cmocka_unit_test(every_default_is_a_value), cmocka_unit_test(wrong_names_and_values),
        cmocka_unit_test(lines_are_all_or_none),    cmocka_unit_test(variables),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
