// ze_headers.cc: every function, number, code and struct that backends/ze declares for itself, against Level
// Zero's headers. There is nothing to run: it compiles or it does not.
#include <level_zero/ze_api.h>
#include <level_zero/loader/ze_loader.h>

#include "prototypes.h"

#include <cstddef>
#include <cstdint>

namespace ours { // constants there have the vendor's names
#include "../../backends/ze/ze_types.h"
}
using namespace ours;

// What these headers are too old to have; meson found out.
ABSENT_FUNCTIONS
ABSENT_NUMBERS

#define FN(slot, parameters, symbol, need) \
    static_assert(same_shape<int(*) parameters, decltype(&symbol)>::value, #symbol);
#define GIVES(slot, parameters, symbol, need) \
    static_assert(same_shape<void *(*) parameters, decltype(&symbol)>::value, #symbol);
#include "../../backends/ze/ze.def"
#undef GIVES
#undef FN

#define EQUAL(name) \
    static_assert(static_cast<long long>(::name) == static_cast<long long>(ours::name), #name);
#define NUMBER(name, value) EQUAL(name)
#define NEWER(name, value) EQUAL(name)
#include "../../backends/ze/ze_numbers.def"
#undef NEWER
#undef NUMBER
#define ERROR(name, code, status, text) EQUAL(name)
#include "../../backends/ze/ze_errors.def"
#undef ERROR

#define STRUCT(mine, theirs) static_assert(sizeof(ours::mine) == sizeof(::theirs), #mine);
#define FIELD(mine, member, theirs, name)                                                          \
    static_assert(offsetof(ours::mine, member) == offsetof(::theirs, name) &&                      \
                      sizeof(static_cast<ours::mine *>(nullptr)->member) ==                        \
                          sizeof(static_cast<::theirs *>(nullptr)->name),                          \
                  #mine "." #member);
#include "ze_structs.def"

static_assert(ZE_API(1, 3) == ZE_MAKE_VERSION(1, 3), "versions");

int main()
{
    return 0;
}
