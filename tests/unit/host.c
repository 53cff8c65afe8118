/* host: control groups, interfaces and amdgpu, from texts and folders. */
#include "unit.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "host/cgroup.h"
#include "host/gpu.h"
#include "host/network.h"

static const char second_alone[] =
    "25 1 0:22 / /sys rw - sysfs sysfs rw\n"
    "31 25 0:28 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";
static const char both[] =
    "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
    "35 31 0:32 /docker/abc /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
    "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";

static void groups(void **state)
{
    (void)state;
    struct prb_cgroup_place place;
    static const struct {
        const char *cgroup, *mounts, *controller, *folder;
        int version;
    } cases[] = {
        {"0::/user.slice/job\n", second_alone, "memory", "/sys/fs/cgroup/user.slice/job", 2},
        {"0::/", second_alone, "cpu", "/sys/fs/cgroup", 2},
        {"4:memory:/docker/abc/job\n3:cpu,cpuacct:/a\n0::/b\n", both, "memory",
         "/sys/fs/cgroup/memory/job", 1},
        {"4:memory:/docker/abc\n0::/b\n", both, "memory", "/sys/fs/cgroup/memory", 1},
        {"4:memory:/docker/abc\n3:cpu,cpuacct:/a\n0::/b\n", both, "cpu",
         "/sys/fs/cgroup/cpu,cpuacct/a", 1},
        /* cpuset is not cpu, a path outside of the mount is not in it: version 2 is asked. */
        {"4:memory:/docker/abcd\n3:cpuset:/a\n0::/b\n", both, "memory", "/sys/fs/cgroup/unified/b",
         2},
        {"3:cpuset:/a\n0::/b\n", both, "cpu", "/sys/fs/cgroup/unified/b", 2},
        /* Outside of the namespace, none, and nonsense. */
        {"0::/../../other\n", second_alone, "memory", NULL, 0},
        {"4:memory:/docker/abc\n", second_alone, "memory", NULL, 0},
        {"", second_alone, "memory", NULL, 0},
        {"0:\n::::\n0::\n", second_alone, "memory", NULL, 0},
        {"0::/a\n", "- - -\nx - cgroup2\n", "memory", NULL, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bool found = prb_cgroup_find(cases[i].cgroup, cases[i].mounts, cases[i].controller, &place);
        assert_int_equal(found, cases[i].folder != NULL);
        assert_int_equal(place.version, cases[i].version);
        if (found)
            assert_string_equal(place.folder, cases[i].folder);
    }
}

static void interfaces(void **state)
{
    (void)state;
    static const char text[] =
        "Inter-|   Receive                                                |  Transmit\n"
        " face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs\n"
        "    lo: 100 2 0 0 0 0 0 0 100 2 0 0 0 0 0 0\n"
        "  eth0:18446744073709551615 7 3 4 0 0 0 0 200 5 1 1 0 0 0 0\n"
        "broken: 1 2 3\n"
        "ib0: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16";
    PRB_AUTO(prb_interfaces) struct prb_interfaces found = {0};
    struct prb_error err;
    assert_ok(prb_interfaces_parse(text, &found, &err), err);
    assert_int_equal(found.count, 3);
    assert_string_equal(found.items[0].name, "lo");
    assert_int_equal(found.items[0].tx_packets, 2);
    assert_string_equal(found.items[1].name, "eth0");
    assert_int_equal(found.items[1].rx_errors, 7);
    assert_int_equal(found.items[1].tx_errors, 2);
    assert_int_equal(found.items[2].rx_errors, 3 + 4);
    assert_int_equal(found.items[2].tx_bytes, 9);
    assert_int_equal(found.items[2].tx_errors, 11 + 12);
}

/* ---- folders ---- */

static char root[] = "/tmp/prb-host-XXXXXX";

static void put(const char *path, const char *text)
{
    char whole[512];
    snprintf(whole, sizeof whole, "%s/%s", root, path);
    for (char *slash = whole + strlen(root) + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        mkdir(whole, 0700);
        *slash = '/';
    }
    FILE *out = fopen(whole, "w");
    assert_non_null(out);
    fputs(text, out);
    fclose(out);
}

static int make_root(void **state)
{
    (void)state;
    return mkdtemp(root) ? 0 : -1;
}

static int drop(const char *path, const struct stat *info, int kind, struct FTW *where)
{
    (void)info, (void)kind, (void)where;
    return remove(path);
}

static int drop_root(void **state)
{
    (void)state;
    return nftw(root, drop, 8, FTW_DEPTH | FTW_PHYS);
}

static void rdma(void **state)
{
    (void)state;
    char folder[64];
    PRB_AUTO(prb_interfaces) struct prb_interfaces found = {0};
    struct prb_error err;
    put("ib/mlx5_0/ports/1/counters/port_rcv_data", "1000\n");
    put("ib/mlx5_0/ports/1/counters/port_xmit_data", "9223372036854775807\n");
    put("ib/mlx5_0/ports/1/counters/port_rcv_errors", "nonsense\n");
    snprintf(folder, sizeof folder, "%s/ib", root);
    assert_ok(prb_interfaces_rdma(folder, &found, &err), err);
    assert_int_equal(found.count, 1);
    assert_string_equal(found.items[0].name, "mlx5_0/1");
    assert_true(found.items[0].rdma);
    assert_int_equal(found.items[0].rx_bytes, 4000);
    assert_int_equal(found.items[0].tx_bytes, -1);
    assert_int_equal(found.items[0].rx_errors, -1);
    assert_ok(prb_interfaces_rdma("/nowhere", &found, &err), err);
}

/* A machine of many containers has more interfaces than anything has ports. */
static void rdma_beside_many(void **state)
{
    (void)state;
    char folder[64];
    PRB_AUTO(prb_buf) struct prb_buf text = {0};
    PRB_AUTO(prb_interfaces) struct prb_interfaces found = {0};
    struct prb_error err;
    for (int i = 0; i < 1000; i++)
        prb_buf_addf(&text, "  veth%d: 1 1 0 0 0 0 0 0 1 1 0 0 0 0 0 0\n", i);
    put("many/mlx5_0/ports/1/counters/port_rcv_data", "7\n");
    snprintf(folder, sizeof folder, "%s/many", root);
    assert_ok(prb_interfaces_parse(text.data, &found, &err), err);
    assert_ok(prb_interfaces_rdma(folder, &found, &err), err);
    assert_int_equal(found.count, 1001);
    assert_int_equal(found.items[1000].rx_bytes, 28);
}

static void amd(void **state)
{
    (void)state;
    char folder[64];
    PRB_AUTO(prb_gpus) struct prb_gpus found = {0};
    struct prb_error err;
    put("drm/card0/device/vendor", "0x10de\n");
    put("drm/card2/device/vendor", "0x1002\n");
    put("drm/card2/device/gpu_busy_percent", "93\n");
    put("drm/card2/device/mem_info_vram_used", "1073741824\n");
    put("drm/card2/device/mem_info_vram_total", "206158430208\n");
    put("drm/card2/device/unique_id", "be7ec1\n");
    put("drm/card2/device/hwmon/hwmon7/power1_average", "500000000\n");
    put("drm/card2/device/hwmon/hwmon7/temp1_input", "64000\n");
    put("drm/card2/device/hwmon/hwmon7/freq1_input", "2100000000\n");
    put("drm/card10/device/vendor", "0x1002\n");
    put("drm/card2-DP-1/device/vendor", "0x1002\n");
    snprintf(folder, sizeof folder, "%s/drm", root);
    assert_ok(prb_gpus_amd(folder, &found, &err), err);
    assert_int_equal(found.count, 2);
    const struct prb_gpu *gpu = found.items;
    assert_string_equal(gpu->backend, "amdgpu");
    assert_string_equal(gpu->uuid, "be7ec1");
    assert_int_equal(gpu->busy, 93);
    assert_int_equal(gpu->memory_used, 1 << 30);
    assert_int_equal(gpu->power, 500);
    assert_int_equal(gpu->temperature, 64);
    assert_int_equal(gpu->sm_clock, 2100);
    assert_int_equal(gpu->memory_clock, -1);
    assert_int_equal(gpu[1].index, 1);
    assert_true(gpu[1].busy < 0 && gpu[1].power < 0 && gpu[1].memory_used < 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(groups),           cmocka_unit_test(interfaces), cmocka_unit_test(rdma),
        cmocka_unit_test(rdma_beside_many), cmocka_unit_test(amd),
    };
    return cmocka_run_group_tests(tests, make_root, drop_root);
}
