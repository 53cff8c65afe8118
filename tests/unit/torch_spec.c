/* The spec of torch tracing: every form, what is refused and how it is named, hostile texts. */
#include <stdio.h>

#include "unit.h"

#include "inject/probe/settings.h"
#include "inject/probe/torch/spec.h"
#include "inject/probe/torch/wanted.h"
#include "training/watched.h"

static struct prb_torch_spec good(const char *text)
{
    struct prb_torch_spec spec;
    struct prb_error err = {0};
    if (!prb_torch_spec_parse(text, &spec, &err))
        fail_msg("\"%s\" was refused: %s", text, err.text);
    return spec;
}

static void bad(const char *text, const char *named, const char *remedy)
{
    struct prb_torch_spec spec;
    struct prb_error err = {0};
    if (prb_torch_spec_parse(text, &spec, &err))
        fail_msg("\"%s\" was taken", text);
    assert_int_equal(err.code, PRB_USAGE);
    if (!strstr(err.text, named) || !strstr(err.remedy, remedy))
        fail_msg("\"%s\" gave: %s (%s)", text, err.text, err.remedy);
}

static void the_first_item(void **state)
{
    (void)state;
    assert_false(good("").enabled);
    assert_false(good(" , ").enabled);
    static const char *const on[] = {"on",  "1",   "ON",       " true ",
                                     "yes", "0.5", "rate=0.5", "sync=off"};
    static const char *const off[] = {"off", "0", "false", "no", "off,rate=0.5", "on,enabled=off"};
    for (size_t i = 0; i < sizeof on / sizeof *on; i++)
        if (!good(on[i]).enabled)
            fail_msg("\"%s\" is off", on[i]);
    for (size_t i = 0; i < sizeof off / sizeof *off; i++)
        if (good(off[i]).enabled)
            fail_msg("\"%s\" is on", off[i]);
    assert_true(good("on").rate == -1 && good("on").layer_rate == 1);
    assert_true(good("0.05").rate == 0.05);
    struct prb_torch_spec spec = good("0.05:0.25");
    assert_true(spec.rate == 0.05 && spec.layer_rate == 0.25 && !spec.random);
    spec = good("ordered:0.1");
    assert_true(spec.rate == 0.1 && spec.layer_rate == 1 && !spec.random);
    spec = good("random:0.1:.5,rate=1");
    assert_true(spec.rate == 1 && spec.layer_rate == 0.5 && spec.random);
}

static void every_key(void **state)
{
    (void)state;
    struct prb_torch_spec spec =
        good("enabled=on, mode=ordered ,rate=0.5,layer_rate=0.25,tracepy=off,sync=0,backward=yes,"
             "trace_spans=true,shadow=4:1,adaptive=off,depth=3,gpu=off,exprs=a@f");
    assert_true(spec.enabled && !spec.random && spec.rate == 0.5 && spec.layer_rate == 0.25);
    assert_true(spec.backward && spec.trace_spans);
    assert_int_equal(spec.shadow_normal, 4);
    assert_int_equal(spec.shadow_steps, 1);
    assert_int_equal(spec.adaptive, PRB_TORCH_OFF);
    assert_int_equal(spec.depth, 3);
    assert_string_equal(spec.exprs, "a@f");
    spec = good("ON,Rate=1e-2,shadow=4:1,shadow=off,gpu=auto");
    assert_true(spec.rate == 0.01 && !spec.shadow_steps);
}

static void watched_variables(void **state)
{
    (void)state;
    static const char *const same[] = {
        "on,exprs=loss@train,acc1@train", "on,vars=loss@train,acc1@train",
        "exprs=loss@train,watch=acc1@train", "loss@train , acc1@train",
        "exprs=loss@train,rate=0.5,acc1@train"};
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        assert_string_equal(good(same[i]).exprs, "loss@train,acc1@train");
        assert_true(good(same[i]).enabled);
    }
    assert_string_equal(good("on,exprs=loss@,out['acc']@").exprs, "loss@,out['acc']@");
    assert_string_equal(good("exprs=out[\"a,b=c]\"]@m:train,self.x[-1]@A.b").exprs,
                        "out[\"a,b=c]\"]@m:train,self.x[-1]@A.b");
}

static void both_settings(void **state)
{
    (void)state;
    struct prb_torch_spec spec;
    struct prb_error err = {0};
    assert_true(prb_torch_spec_both("", "loss@train,acc1@train", &spec, &err));
    assert_true(spec.enabled);
    assert_string_equal(spec.exprs, "loss@train,acc1@train");
    assert_true(prb_torch_spec_both("on,exprs=a@f", "b@g", &spec, &err));
    assert_string_equal(spec.exprs, "a@f,b@g");
    assert_true(prb_torch_spec_both("off", "b@g", &spec, &err) && !spec.enabled);
    assert_true(prb_torch_spec_both("", "", &spec, &err) && !spec.enabled);
    assert_false(prb_torch_exprs_check("loss", &err));
    assert_false(prb_torch_exprs_check("rate=1", &err));
}

static void refused_by_name(void **state)
{
    (void)state;
    bad("on,ratee=1", "\"ratee\"", "rate");
    bad("on,colour=1", "\"colour\"", "trace_spans");
    bad("on,0.5", "\"0.5\"", "its keys");
    bad("fast", "\"fast\"", "RATE");
    bad("often:0.1", "\"often:0.1\"", "RATE");
    bad("0.1:2", "\"0.1:2\"", "RATE");
    bad("0.1:0.1:0.1", "0.1:0.1:0.1", "RATE");
    bad("random:", "random:", "RATE");
    static const char *const keys[] = {
        "enabled", "mode", "rate",  "layer_rate", "tracepy",  "sync",  "backward", "trace_spans",
        "exprs",   "vars", "watch", "shadow",     "adaptive", "depth", "gpu"};
    static const char *const values[] = {"", "x", "-1", "2:", "1e40", "nan", "0x1", "999999999999"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        for (size_t k = 0; k < sizeof values / sizeof *values; k++) {
            char text[64];
            snprintf(text, sizeof text, "on,%s=%s", keys[i], values[k]);
            bad(text, keys[i], "");
        }
    bad("on,tracepy=on", "tracepy=on in the spec of torch tracing is not done", "tracepy");
    bad("on,sync=1", "sync=on", "sync");
    bad("rate=1.01", "rate", "");
    bad("shadow=0:1", "shadow", "");
    bad("shadow=1001:1", "shadow", "");
    bad("depth=101", "depth", "");
    bad("depth=1.5", "depth", "");
    bad("exprs=loss", "exprs", "VARIABLE@FUNCTION");
    bad("exprs=@f", "exprs", "VARIABLE@FUNCTION");
    bad("exprs=a+b@f", "exprs", "VARIABLE@FUNCTION");
    bad("exprs=a[@f", "exprs", "");
    bad("=on", "\"\"", "its keys");
}

/* What the environment has: one text that cannot be parsed, and all of it is off. */
static void as_the_settings_say(void **state)
{
    (void)state;
    struct prb_torch_spec spec;
    struct prb_error err = {0};
    prb_settings_reset();
    prb_torch_wanted(&spec);
    assert_false(spec.enabled);
    assert_ok(prb_settings_set_variable("PROBE_TORCH_EXPRS=loss@train,acc1@train", &err), err);
    prb_torch_wanted(&spec);
    assert_true(spec.enabled);
    assert_string_equal(spec.exprs, "loss@train,acc1@train");
    assert_false(prb_settings_set_variable("PROBING_TORCH_PROFILING=on,ratee=1", &err));
    assert_non_null(strstr(err.text, "\"ratee\""));
    prb_torch_wanted(&spec);
    assert_false(spec.enabled);
    /* Refused live: what was holds. */
    assert_ok(prb_settings_set("probing.torch.profiling", "0.5", &err), err);
    assert_false(prb_settings_set("probing.torch.profiling", "on,depth=x", &err));
    assert_non_null(strstr(err.text, "depth"));
    prb_torch_wanted(&spec);
    assert_true(spec.enabled && spec.rate == 0.5);
    assert_string_equal(spec.exprs, "loss@train,acc1@train");
    prb_settings_reset();
}

static void no_more_than_fits(void **state)
{
    (void)state;
    struct prb_torch_spec spec;
    struct prb_error err = {0};
    char text[4096] = "exprs=";
    for (int i = 0; i < PRB_WATCHED_MAX; i++)
        strcat(text, "a@f,");
    assert_true(prb_torch_spec_parse(text, &spec, &err));
    strcat(text, "a@f");
    bad(text, "exprs", "");
    memset(text, 'a', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    bad(text, "aaa", "");
    memcpy(text, "exprs=", 6);
    text[3000] = '@';
    bad(text, "exprs", "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_item),      cmocka_unit_test(every_key),
        cmocka_unit_test(watched_variables),   cmocka_unit_test(both_settings),
        cmocka_unit_test(as_the_settings_say), cmocka_unit_test(refused_by_name),
        cmocka_unit_test(no_more_than_fits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
