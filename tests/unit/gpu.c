/* host/gpu_nvml: what takes more than one reading, on the stand-in for NVIDIA's library (tests/host/nvml.c). */
#include "unit.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "host/gpu.h"

static char folder[] = "/tmp/probing-gpu-XXXXXX", link_name[64], told[64];

/* One reading while the library does what the words say: of its first device. */
static struct prb_gpu look(const char *words)
{
    PRB_AUTO(prb_gpus) struct prb_gpus found = {0};
    struct prb_error err;
    setenv("PRB_FAKE_NVML", words, 1);
    assert_ok(prb_gpus_nvml(false, &found, &err), err);
    assert_true(found.count > 0);
    return found.items[0];
}

/* As long as two samples have to be apart. */
static struct prb_gpu look_later(const char *words)
{
    nanosleep(&(struct timespec){.tv_nsec = 110000000}, NULL);
    return look(words);
}

static int lines_told(const char *word)
{
    char line[32];
    int count = 0;
    FILE *file = fopen(told, "r");
    while (file && fgets(line, sizeof line, file))
        count += !word || strncmp(line, word, strlen(word)) == 0;
    if (file)
        fclose(file);
    return count;
}

static void each_alone(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        struct prb_gpu gpu = look_later("xid");
        assert_true(gpu.sm_active < 0 && gpu.xid < 0);
        assert_int_equal(gpu.nvlink_received, 3ll << 30);
        assert_int_equal(gpu.nvlink_sent, 20ll << 30);
    }
    assert_int_equal(lines_told(NULL), 3);
}

static void one_after_the_other(void **state)
{
    (void)state;
    prb_gpus_keep();
    struct prb_gpu gpu = look("xid");
    assert_true(gpu.sm_active < 0 && gpu.xid < 0);
    gpu = look("xid");
    assert_true(gpu.sm_active < 0); /* too soon for a second sample */
    assert_int_equal(gpu.xid, 79);
    for (int i = 0; i < 3; i++)
        assert_true(look_later("").sm_active == 37.5);
    gpu = look("");
    assert_true(gpu.sm_active == 37.5); /* still that */
    assert_int_equal(gpu.xid, 79);
    assert_int_equal(lines_told(NULL), 4);
}

static void in_mig(void **state)
{
    (void)state;
    assert_true(look_later("mig").sm_active < 0);
    assert_true(look_later("mig").sm_active < 0);
    assert_true(look_later("").sm_active < 0); /* the first sample again */
    assert_true(look_later("").sm_active == 37.5);
}

static void nonsense(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        struct prb_gpu gpu = look_later("nonsense");
        assert_true(gpu.sm_active < 0 && gpu.nvlink_received < 0 && gpu.nvlink_sent < 0);
        assert_int_equal(gpu.xid, 79);
    }
    struct prb_gpu gpu = look_later("silent");
    assert_true(gpu.sm_active < 0 && gpu.nvlink_received < 0 && gpu.nvlink_sent < 0);
    assert_true(look_later("lost").sm_active < 0);
    assert_true(look_later("lost").sm_active == 37.5);
}

/* The library begins anew; what was seen of a GPU stays with that GPU. */
static void begun_anew(void **state)
{
    (void)state;
    PRB_AUTO(prb_gpus) struct prb_gpus none = {0};
    setenv("PRB_FAKE_NVML", "uncounted", 1);
    assert_false(prb_gpus_nvml(false, &none, NULL));
    assert_int_equal(lines_told("left"), 0);
    struct prb_gpu gpu = look_later("");
    assert_true(gpu.sm_active < 0);
    assert_int_equal(gpu.xid, 79);
    assert_true(look_later("").sm_active == 37.5);
    assert_int_equal(lines_told(NULL), 5);
    gpu = look_later("swapped");
    assert_string_equal(gpu.uuid, "GPU-1");
    assert_true(gpu.sm_active < 0 && gpu.xid < 0);
}

/* The loader looks for the library where the environment said at the start. */
static int begin_with_library(char **argv)
{
    char library[4096];
    const char *build = getenv("BUILDDIR");
    if (!mkdtemp(folder))
        return 1;
    snprintf(library, sizeof library, "%s/tests/host/.libs/nvml.so", build ? build : ".");
    char *absolute = realpath(library, NULL);
    snprintf(link_name, sizeof link_name, "%s/libnvidia-ml.so.1", folder);
    if (!absolute || symlink(absolute, link_name) != 0)
        return 1;
    free(absolute);
    setenv("LD_LIBRARY_PATH", folder, 1);
    setenv("PRB_TEST_GPU", folder, 1);
    execv("/proc/self/exe", argv);
    return 1;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_alone), cmocka_unit_test(one_after_the_other),
        cmocka_unit_test(in_mig),     cmocka_unit_test(nonsense),
        cmocka_unit_test(begun_anew),
    };
    const char *made = getenv("PRB_TEST_GPU");
    (void)argc;
    if (!made)
        return begin_with_library(argv);
    snprintf(link_name, sizeof link_name, "%s/libnvidia-ml.so.1", made);
    snprintf(told, sizeof told, "%s/told", made);
    setenv("PRB_FAKE_NVML_TOLD", told, 1);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(link_name);
    unlink(told);
    rmdir(made);
    return failed;
}
