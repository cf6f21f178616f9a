/* test_gpuglue_hpp.cpp: gpuglue.hpp on one device:  test_gpuglue_hpp BACKEND IMAGES
 * Exits with 77 if the backend is unavailable, unless GPUGLUE_REQUIRE names it. */
#include <gpuglue/gpuglue.hpp>

#include <array>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <type_traits>
#include <vector>

namespace
{

int failures;
std::string images;

#define EXPECT(condition) \
    ((condition)          \
         ? (void)0        \
         : (void)(failures++, std::cerr << __FILE__ ":" << __LINE__ << ": " #condition "\n"))

/* The status and message of the exception of type Expected that @p call throws. */
template <class Expected, class Call> Expected thrown_by(Call call)
{
    try {
        call();
    } catch (const Expected &error) {
        return error;
    }
    std::cerr << "no exception of the expected type\n";
    failures++;
    return Expected(GG_OK, "nothing was thrown");
}

static_assert(!std::is_copy_constructible<gg::stream>::value, "owners are moved only");
static_assert(!std::is_copy_constructible<gg::event>::value, "owners are moved only");
static_assert(!std::is_copy_assignable<gg::memory>::value, "owners are moved only");
static_assert(std::is_nothrow_move_constructible<gg::kernel>::value, "moves never fail");
static_assert(std::is_nothrow_move_assignable<gg::device_module>::value, "moves never fail");
static_assert(sizeof(gg::stream) == sizeof(void *), "an owner is one pointer");
static_assert(std::is_convertible<gg::device_span<int>, gg::device_span<const int>>::value,
              "to const");
static_assert(!std::is_convertible<gg::device_span<const int>, gg::device_span<int>>::value,
              "from const");

std::uint64_t blocks_of(gg::device device)
{
    gg_memory_stats stats = {};
    stats.struct_size = sizeof stats;
    gg::check(gg_device_memory_stats(device.get(), &stats));
    return stats.blocks;
}

void a_device_is_found_by_name_and_by_ordinal(gg::device device)
{
    const std::string name = std::string(device.backend()) + ":0";
    EXPECT(gg::device(name.c_str()) == device);
    EXPECT(gg::device(device.backend(), 0) == device);
    EXPECT(gg::device::count(device.backend()) >= 1);
    EXPECT(device.info().name[0] && device.attribute(GG_ATTR_WARP_SIZE) > 0);
    EXPECT(device.memory().total > 0 && device.can_access(device));
}

void an_error_has_the_fields_of_the_record(gg::device device)
{
    const auto missing =
        thrown_by<gg::unavailable_error>([&] { gg::device(device.backend(), 4096); });
    EXPECT(missing.status() == GG_ERR_NO_SUCH_DEVICE && std::strstr(missing.what(), "4096"));
    EXPECT(!std::strcmp(missing.status_name(), "ERR_NO_SUCH_DEVICE") && missing.vendor_code() == 0);
    const auto large =
        thrown_by<gg::out_of_memory_error>([&] { gg::memory memory(device, std::size_t(1) << 62); });
    EXPECT(!std::strcmp(large.backend(), device.backend()) && large.device() == 0);
    const auto flag =
        thrown_by<gg::invalid_argument_error>([&] { gg::stream stream(device, 1u << 30); });
    EXPECT(flag.record().struct_size && flag.what()[0]);
}

void an_error_of_an_earlier_call_is_not_reported(gg::device device)
{
    thrown_by<gg::error>([&] { gg::device(device.backend(), 4096); });
    const auto later = thrown_by<gg::unsupported_error>([] { gg::check(GG_ERR_UNSUPPORTED); });
    EXPECT(!std::strcmp(later.what(), gg_status_message(GG_ERR_UNSUPPORTED)) && later.device() == -1);
}

void an_owner_that_was_moved_from_is_empty(gg::device device)
{
    gg::stream stream(device), other(device);
    gg_stream *const raw = stream.get();
    gg::stream taken = std::move(stream);
    EXPECT(!stream && taken.get() == raw);
    other = std::move(taken);
    EXPECT(!taken && other.get() == raw && other.device() == device);
    gg::stream &same = other;
    other = std::move(same);
    EXPECT(other.get() == raw);
}

void the_last_owner_releases_the_memory(gg::device device)
{
    const std::uint64_t before = blocks_of(device);
    {
        gg::memory memory = gg::allocate<double>(device, 100), second = memory.share();
        EXPECT(memory.get() == second.get() && blocks_of(device) == before + 1);
        memory.reset();
        EXPECT(blocks_of(device) == before + 1 && second.size() == 100 * sizeof(double));
        gg_memory *raw = second.detach();
        EXPECT(!second && blocks_of(device) == before + 1);
        second.reset(raw);
    }
    EXPECT(blocks_of(device) == before);
}

void host_containers_are_copied_to_the_device_and_back(gg::device device)
{
    const std::vector<int> numbers = {1, 2, 3, 4};
    const gg::memory memory = gg::allocate<int>(device, 4), other = gg::allocate<int>(device, 4);
    gg::copy(memory.as<int>(), numbers);
    gg::copy(other.as<int>(), memory.as<const int>());
    std::array<int, 2> middle = {};
    gg::copy(middle, other.as<const int>().subspan(1, 2));
    EXPECT(middle[0] == 2 && middle[1] == 3);
    int plain[4] = {};
    gg::copy(plain, memory.as<int>());
    EXPECT(plain[0] == 1 && plain[3] == 4);
}

void a_copy_of_two_sizes_is_refused(gg::device device)
{
    const gg::memory memory = gg::allocate<int>(device, 4);
    std::vector<int> three(3);
    const auto error =
        thrown_by<gg::invalid_argument_error>([&] { gg::copy(memory.as<int>(), three); });
    EXPECT(std::strstr(error.what(), "sizes"));
    thrown_by<gg::invalid_argument_error>([&] { gg::copy(three, memory.as<int>()); });
}

void a_subspan_is_inside_its_span(gg::device device)
{
    const gg::memory memory = gg::allocate<float>(device, 10);
    const gg::device_span<float> all = memory.as<float>();
    EXPECT(all.size() == 10 && all.size_bytes() == 40 && all.data() == memory.pointer());
    EXPECT(all.subspan(4, 3).data() == all.data() + 4 && all.last(2).data() == all.data() + 8);
    EXPECT(all.first(0).empty() && all.subspan(10, 0).empty());
    thrown_by<gg::invalid_argument_error>([&] { all.subspan(8, 3); });
    thrown_by<gg::invalid_argument_error>([&] { all.subspan(1, SIZE_MAX); });
    thrown_by<gg::invalid_argument_error>([&] { all.last(11); });
    EXPECT(gg::device_span<int>().data() == nullptr);
}

void an_element_count_that_overflows_is_refused(gg::device device)
{
    thrown_by<gg::out_of_memory_error>([&] { gg::allocate<double>(device, SIZE_MAX / 4); });
}

void a_fill_writes_the_elements_of_a_span_only(gg::device device)
{
    const gg::memory memory = gg::allocate<short>(device, 6);
    gg::fill(memory.as<short>(), short(1));
    gg::fill(memory.as<short>().subspan(2, 2), 7);
    std::vector<short> back(6);
    gg::copy(back, memory.as<short>());
    EXPECT((back == std::vector<short>{1, 1, 7, 7, 1, 1}));
}

void wrapped_memory_calls_its_release_once(gg::device device)
{
    static int released;
    const gg::memory block = gg::allocate<int>(device, 8);
    {
        gg::memory wrapped = gg::memory::wrap(
            device, GG_MEMORY_DEVICE, block.pointer(), block.size(),
            [](void *count) { ++*static_cast<int *>(count); }, &released);
        EXPECT(wrapped.kind() == GG_MEMORY_DEVICE && wrapped.query());
    }
    gg::check(gg_device_trim(device.get()));
    EXPECT(released == 1);
}

void events_order_two_streams_and_measure(gg::device device)
{
    gg::stream first(device), second(device);
    gg::event begin(device, GG_EVENT_TIMING), end(device, GG_EVENT_TIMING);
    const gg::memory memory = gg::allocate<int>(device, 1000, GG_MEMORY_DEVICE, first);
    begin.record(first);
    gg::fill(memory.as<int>(), 5, first);
    end.record(first);
    second.wait_for(end);
    second.wait_for(first);
    second.wait_for(memory);
    std::vector<int> back(1000);
    gg::copy(back, memory.as<int>(), second);
    EXPECT(back[999] == 5 && end.wait() && end.query() && first.wait(std::chrono::hours(1)));
    if (device.supports(GG_OP_event_elapsed))
        EXPECT(end.since(begin).count() >= 0);
}

void a_scope_makes_a_device_and_a_stream_current(gg::device device)
{
    gg::stream stream(device);
    const gg::stream_ref before = device.current_stream();
    {
        gg::scope scope(stream);
        EXPECT(gg::device::current() == device && device.current_stream().get() == stream.get());
    }
    EXPECT(device.current_stream().get() == before.get());
    EXPECT(device.default_stream().get() != stream.get());
}

void statistics_are_read_or_unsupported(gg::device device)
{
    if (!device.supports(GG_OP_device_stats)) {
        EXPECT(thrown_by<gg::unsupported_error>([&] { device.stats(); }).what()[0]);
        return;
    }
    gg_process_stats processes[4] = {};
    const auto stats = device.stats(processes, 4);
    EXPECT(stats.source[0] && stats.memory_used <= stats.memory_total && stats.process_count >= -1);
}

std::string image_for(gg::device device)
{
    const std::string arch = device.info().arch;
    const char *name = arch.rfind("sm_", 0) == 0               ? "kernels.ptx"
                       : arch.rfind("gfx", 0) == 0             ? "kernels.gfx942.co"
                       : arch == "x86_64" || arch == "aarch64" ? "kernels_host.so"
                                                               : "kernels.spv";
    std::ifstream file(images + "/" + name, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
}

void a_kernel_is_launched_with_spans_and_values(gg::device device)
{
    if (!device.supports(GG_OP_module_load))
        return;
    const gg::device_module loaded(device, image_for(device));
    const gg::kernel scale = loaded.get_kernel("scale");
    const gg::memory memory = gg::allocate<float>(device, 100);
    gg::fill(memory.as<float>(), 3.0f);
    scale.launch({{4}, {32}}, nullptr, memory.as<float>(), 100u, 2.0f);
    std::vector<float> back(100);
    gg::copy(back, memory.as<float>());
    EXPECT(back == std::vector<float>(100, 6.0f));
    EXPECT(!std::strcmp(scale.name(), "scale") && scale.device() == device);
    thrown_by<gg::invalid_argument_error>([&] { loaded.get_kernel("missing"); });
    const auto wrong = thrown_by<gg::error>([&] {
        scale.launch({{4}, {32}}, nullptr, memory, 100u);
    });
    EXPECT(scale.parameter_count() < 0 || wrong.status() == GG_ERR_INVALID_ARGUMENT);
    loaded.get_kernel("nothing").launch({}, device.default_stream());
}

#define TEST(name)  \
    {               \
#name, name \
    }
const struct {
    const char *name;
    void (*run)(gg::device);
} tests[] = {
    TEST(a_device_is_found_by_name_and_by_ordinal),
    TEST(an_error_has_the_fields_of_the_record),
    TEST(an_error_of_an_earlier_call_is_not_reported),
    TEST(an_owner_that_was_moved_from_is_empty),
    TEST(the_last_owner_releases_the_memory),
    TEST(host_containers_are_copied_to_the_device_and_back),
    TEST(a_copy_of_two_sizes_is_refused),
    TEST(a_subspan_is_inside_its_span),
    TEST(an_element_count_that_overflows_is_refused),
    TEST(a_fill_writes_the_elements_of_a_span_only),
    TEST(wrapped_memory_calls_its_release_once),
    TEST(events_order_two_streams_and_measure),
    TEST(a_scope_makes_a_device_and_a_stream_current),
    TEST(statistics_are_read_or_unsupported),
    TEST(a_kernel_is_launched_with_spans_and_values),
};

int unavailable(const char *backend, const gg::error &error)
{
    const char *required = std::getenv("GPUGLUE_REQUIRE");
    std::cerr << "skipped: " << error.what() << "\n";
    return required && !std::strcmp(required, backend) ? 1 : 77;
}

} // namespace

int main(int argc, char **argv)
{
    if (argc != 3)
        return std::cerr << "usage: test_gpuglue_hpp BACKEND IMAGES\n", 2;
    images = argv[2];
    gg::device device;
    try {
        device = gg::device(argv[1], 0);
    } catch (const gg::error &error) {
        return unavailable(argv[1], error);
    }
    for (const auto &test : tests) {
        const int before = failures;
        try {
            gg::scope scope(device);
            test.run(device);
        } catch (const std::exception &error) {
            std::cerr << "thrown: " << error.what() << "\n";
            failures++;
        }
        std::cout << (failures == before ? "ok      " : "FAILED  ") << test.name << "\n";
    }
    gg_shutdown(UINT64_MAX);
    return failures ? 1 : 0;
}
