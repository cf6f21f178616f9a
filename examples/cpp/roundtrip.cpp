/* roundtrip.cpp: a C++ program on gpuglue.hpp: numbers go to a device and back on a stream of their own.
 *
 *     roundtrip [device]         such as cuda:1; without it the current device */
#include <gpuglue/gpuglue.hpp>

#include <iostream>
#include <numeric>
#include <vector>

static long long round_trip(gg::device device, std::vector<int> numbers)
{
    gg::stream stream(device);
    gg::event begin(device, GG_EVENT_TIMING), end(device, GG_EVENT_TIMING);
    const gg::memory memory = gg::allocate<int>(device, numbers.size(), GG_MEMORY_DEVICE, stream);
    begin.record(stream);
    gg::copy(memory.as<int>(), numbers, stream);
    gg::fill(memory.as<int>().first(1), 1000, stream); // the kernels of a library would run here
    gg::copy(numbers, memory.as<const int>(), stream);
    end.record(stream);
    end.wait();
    std::cerr << end.since(begin).count() << " ms\n";
    return std::accumulate(numbers.begin(), numbers.end(), 0ll);
}

int main(int argc, char **argv)
try {
    const gg::device device = argc > 1 ? gg::device(argv[1]) : gg::device::current();
    std::vector<int> numbers(1000);
    std::iota(numbers.begin(), numbers.end(), 0);
    const long long sum = round_trip(device, numbers);
    std::cout << "the sum is " << sum << " on " << device.backend() << ":" << device.ordinal()
              << "\n";
    return 0;
} catch (const gg::error &error) {
    std::cerr << error.status_name() << ": " << error.what() << "\n";
    return 1;
}
