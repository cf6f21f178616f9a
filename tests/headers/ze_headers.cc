// ze_headers.cc: compares every function, constant, error code and struct that backends/ze declares
// with Level Zero's headers. Compiling it is the test.
#include <level_zero/ze_api.h>
#include <level_zero/loader/ze_loader.h>

#include "prototypes.h"

#include <cstddef>
#include <cstdint>

// The backend's constants have the vendor's names.
namespace declared
{
#include "../../backends/ze/ze_types.h"
}
using namespace declared;

// Declarations that these headers are too old to have; meson finds them.
ABSENT_FUNCTIONS
ABSENT_NUMBERS

#define FN(slot, parameters, symbol, need) \
    static_assert(same_shape<int(*) parameters, decltype(&symbol)>::value, #symbol);
#define GIVES(slot, parameters, symbol, need) \
    static_assert(same_shape<void *(*)parameters, decltype(&symbol)>::value, #symbol);
#include "../../backends/ze/ze.def"
#undef GIVES
#undef FN

#define EQUAL(name) \
    static_assert(static_cast<long long>(::name) == static_cast<long long>(declared::name), #name);
#define NUMBER(name, value) EQUAL(name)
#define NEWER(name, value) EQUAL(name)
#include "../../backends/ze/ze_numbers.def"
#undef NEWER
#undef NUMBER
#define ERROR(name, code, status, text) EQUAL(name)
#include "../../backends/ze/ze_errors.def"
#undef ERROR

#define STRUCT(own, vendor) static_assert(sizeof(declared::own) == sizeof(::vendor), #own);
#define FIELD(own, member, vendor, vendor_member)                                         \
    static_assert(offsetof(declared::own, member) == offsetof(::vendor, vendor_member) && \
                      sizeof(static_cast<declared::own *>(nullptr)->member) ==            \
                          sizeof(static_cast<::vendor *>(nullptr)->vendor_member),        \
                  #own "." #member);
#include "ze_structs.def"

static_assert(ZE_API(1, 3) == ZE_MAKE_VERSION(1, 3), "versions");

int main()
{
    return 0;
}
