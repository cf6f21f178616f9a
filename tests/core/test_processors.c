/* test_processors.c: how many processors the process may use, and cores and backends of which only one knows it. */
#include "inside.h"

#include "base/processors.h"

#include <dlfcn.h>

#define HANG_NS 120000000000u /* only ends a hang */
#define GROUP(name) "/sys/fs/cgroup" name

static void make_parents(const char *path)
{
    for (char *slash = strchr(path + strlen(directory) + 1, '/'); slash;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(path, 0755);
        *slash = '/';
    }
}

static void put(const char *name, const char *text)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s%s", directory, name);
    make_parents(path);
    write_file(path, text, strlen(text));
}

/* The quota with these control groups of the process. */
static long quota_with(const char *groups)
{
    put("/proc/self/cgroup", groups);
    ggi_processors_root = directory;
    return ggi_processor_quota();
}

static void unified(void)
{
    CHECK(quota_with("0::/a/b\n") == 0); /* no files */
    put(GROUP("/a/b/cpu.max"), "max 100000\n");
    CHECK(quota_with("0::/a/b\n") == 0);
    put(GROUP("/a/b/cpu.max"), "400000 100000\n");
    CHECK(quota_with("0::/a/b\n") == 4);
    put(GROUP("/a/b/cpu.max"), "50000 100000\n");
    CHECK(quota_with("0::/a/b\n") == 1);
    put(GROUP("/a/b/cpu.max"), "250000 100000\n");
    CHECK(quota_with("0::/a/b\n") == 3);
    CHECK(quota_with("0::/a\n") == 0); /* the child's is not its own */
    CHECK(quota_with("0::/a/b/c\n") == 3);
}
static void the_quota_of_a_group_of_version_2_is_rounded_up(void **state)
{
    (void)state;
    in_child(unified);
}

static void parents(void)
{
    put(GROUP("/a/b/cpu.max"), "400000 100000\n");
    put(GROUP("/a/cpu.max"), "200000 100000\n");
    CHECK(quota_with("0::/a/b\n") == 2);
    put(GROUP("/cpu.max"), "100000 100000\n");
    CHECK(quota_with("0::/a/b\n") == 1);
    put(GROUP("/cpu.max"), "max 100000\n");
    CHECK(quota_with("0::/a/b\n") == 2);
}
static void the_least_quota_of_a_group_and_its_parents_counts(void **state)
{
    (void)state;
    in_child(parents);
}

static void version_1(void)
{
    const char *groups = "9:cpuset:/a\n4:cpu,cpuacct:/a\n1:name=systemd:/a\n";
    put(GROUP("/cpu/a/cpu.cfs_quota_us"), "-1\n");
    put(GROUP("/cpu/a/cpu.cfs_period_us"), "100000\n");
    CHECK(quota_with(groups) == 0);
    put(GROUP("/cpu/a/cpu.cfs_quota_us"), "100000\n");
    put(GROUP("/cpu/a/cpu.cfs_period_us"), "50000\n");
    CHECK(quota_with(groups) == 2);
    CHECK(quota_with("4:cpuacct,cpu:/a") == 2);
    CHECK(quota_with("4:cpuacct:/a\n") == 0);
    CHECK(quota_with("4:cpuset,cpu:/a\n0::/\n") == 2);
    CHECK(quota_with("4:cpu:/of/the/machine\n") == 0);
    put(GROUP("/cpu/cpu.cfs_quota_us"),
        "300000\n"); /* a container's own; the period is the default */
    CHECK(quota_with("4:cpu:/of/the/machine\n") == 3);
}
static void the_quota_of_a_group_of_version_1_is_read_from_two_files(void **state)
{
    (void)state;
    in_child(version_1);
}

static void odd(void)
{
    char line[8192];
    put(GROUP("/cpu.max"), "200000 100000\n");
    CHECK(quota_with("") == 0);
    CHECK(quota_with("no groups\n0:incomplete\n") == 0);
    snprintf(line, sizeof line, "0::/%0*d\n", 5000, 0);
    CHECK(quota_with(line) == 2); /* the path is too long for a file, but the root is not */
    put(GROUP("/cpu.max"), "200000 0\n");
    CHECK(quota_with("0::/\n") == 0);
    put(GROUP("/cpu.max"), "9223372036854775807 1\n");
    CHECK(quota_with("0::/\n") == 9223372036854775807);
    CHECK(ggi_processor_count() >= 1);
    put("/proc/self/cgroup", "");
    ggi_processors_root = joined(directory, "none");
    CHECK(ggi_processor_quota() == 0);
}
static void odd_files_of_control_groups_are_no_error(void **state)
{
    (void)state;
    in_child(odd);
}

static void count(void)
{
    put(GROUP("/cpu.max"), "100000 100000\n");
    CHECK(quota_with("0::/\n") == 1);
    CHECK(ggi_processor_count() == 1);
    CHECK(ggi_host_api()->processor_count() == 1);
}
static void the_number_of_processors_is_no_more_than_the_quota(void **state)
{
    (void)state;
    in_child(count);
}

static void bind_to_one(void)
{
    cpu_set_t allowed, one;
    const uint64_t began = ggi_now_ns();
    CHECK(ggi_processors_get(&allowed));
    size_t cpu = 0;
    while (!CPU_ISSET(cpu, &allowed))
        cpu++;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    CHECK(ggi_processor_count() > 1);
    CHECK(!sched_setaffinity(getpid(), sizeof one, &one));
    while (ggi_processor_count() != 1)
        CHECK(ggi_now_ns() - began < HANG_NS);
    CHECK(!sched_setaffinity(getpid(), sizeof allowed, &allowed));
    while (ggi_processor_count() == 1)
        CHECK(ggi_now_ns() - began < HANG_NS);
}
static void a_change_of_the_affinity_is_followed(void **state)
{
    (void)state;
    if (ggi_processor_count() < 2)
        skip_because("the process may use one processor");
    in_child(bind_to_one);
}

/* ---- cores and backends of other versions ---- */

static int32_t count_wrong(void)
{
    return 12345;
}

/* What a core of the first version passes; it has nothing after that. */
static const struct gg_host_api *first_api(void)
{
    static struct gg_host_api api;
    api = *ggi_host_api();
    api.struct_size = offsetof(struct gg_host_api, processor_count);
    api.processor_count = count_wrong;
    return &api;
}

static void count_threads(const struct gg_host_api *api, int64_t *out)
{
    unsetenv("GPUGLUE_HOST_THREADS");
    CHECK(ggi_host_backend(api)->ops->device_attribute(0, GG_ATTR_MULTIPROCESSORS, out) == GG_OK);
}

static void older_core(void)
{
    int64_t threads;
    count_threads(first_api(), &threads);
    CHECK(threads >= 1);
    CHECK(threads != count_wrong());
}
static void host_works_with_a_core_that_does_not_count_processors(void **state)
{
    (void)state;
    in_child(older_core);
}

static void newer_core(void)
{
    static struct gg_host_api api;
    int64_t threads;
    api = *first_api();
    api.struct_size = sizeof api;
    count_threads(&api, &threads);
    CHECK(threads == count_wrong());
}
static void host_has_as_many_threads_as_the_core_counts_processors(void **state)
{
    (void)state;
    in_child(newer_core);
}

static void queried(void)
{
    static const char *const names[] = {"cuda", "hip", "ze"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const struct gg_backend_desc *desc = NULL;
        gg_backend_query_fn *query;
        char file[64];
        snprintf(file, sizeof file, "../../../gpuglue_%s.so", names[i]);
        void *plugin = dlopen(fixture(file), RTLD_NOW | RTLD_LOCAL);
        if (!plugin) /* it is not built */
            continue;
        *(void **)&query = dlsym(plugin, "gg_backend_query");
        CHECK(query((uint32_t)GG_ABI_MAJOR << 16, first_api(), &desc) == 0);
        CHECK_SAME(desc->name, names[i]);
    }
}
static void plugins_work_with_a_core_of_the_first_version(void **state)
{
    (void)state;
    in_child(queried);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_quota_of_a_group_of_version_2_is_rounded_up),
    cmocka_unit_test(the_least_quota_of_a_group_and_its_parents_counts),
    cmocka_unit_test(the_quota_of_a_group_of_version_1_is_read_from_two_files),
    cmocka_unit_test(odd_files_of_control_groups_are_no_error),
    cmocka_unit_test(the_number_of_processors_is_no_more_than_the_quota),
    cmocka_unit_test(a_change_of_the_affinity_is_followed),
    cmocka_unit_test(host_works_with_a_core_that_does_not_count_processors),
    cmocka_unit_test(host_has_as_many_threads_as_the_core_counts_processors),
    cmocka_unit_test(plugins_work_with_a_core_of_the_first_version),
};
SUITE(processors, tests);
