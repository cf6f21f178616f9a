/* launch_plan.c: from a kernel's parameters to the plan of its launches. */
#include "kernel/launch_plan.h"

#include <limits.h>

/* The limits of launch_args.c: where the sign is not declared, the ranges of both are accepted. */
static struct py_plan plan_integer(const struct gg_parameter *parameter)
{
    const unsigned bits = parameter->size * 8;
    const bool wide = bits == 64;
    const long long top = wide ? LLONG_MAX : (1ll << bits) - 1, half = wide ? LLONG_MAX : top / 2;
    const bool positive =
        parameter->kind == GG_PARAMETER_UNSIGNED || parameter->kind == GG_PARAMETER_POINTER;
    const long long least = positive ? 0 : -half - 1;
    const long long most = parameter->kind == GG_PARAMETER_SIGNED ? half : top;
    return (struct py_plan){
        .number = PY_PLAN_INTEGER,
        .least = least,
        .more = (unsigned long long)most - (unsigned long long)least,
    };
}

static struct py_plan plan_number(const struct gg_parameter *parameter)
{
    const uint32_t kind = parameter->kind, size = parameter->size;
    if (kind == GG_PARAMETER_FLOAT && (size == sizeof(float) || size == sizeof(double)))
        return (struct py_plan){.number = size == sizeof(float) ? PY_PLAN_FLOAT32 : PY_PLAN_FLOAT64};
    if ((kind == GG_PARAMETER_SIGNED || kind == GG_PARAMETER_UNSIGNED ||
         kind == GG_PARAMETER_INTEGER || kind == GG_PARAMETER_POINTER) &&
        size >= 1 && size <= 8)
        return plan_integer(parameter);
    return (struct py_plan){.number = PY_PLAN_GENERAL};
}

struct py_plan *py_plan_make(const struct gg_parameter *parameters, int32_t count,
                             const size_t **sizes)
{
    struct py_plan *plan = PyMem_Calloc((size_t)count, sizeof *plan + sizeof **sizes);
    if (!plan) {
        PyErr_NoMemory();
        return NULL;
    }
    size_t *size = (size_t *)(void *)(plan + count);
    *sizes = size;
    for (int32_t i = 0; i < count; i++) {
        const uint32_t kind = parameters[i].kind;
        size[i] = parameters[i].size;
        plan[i] = plan_number(&parameters[i]);
        plan[i].address =
            size[i] == sizeof(void *) && kind != GG_PARAMETER_FLOAT && kind != GG_PARAMETER_LOCAL;
    }
    return plan;
}
