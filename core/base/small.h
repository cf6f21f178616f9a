/* small.h: included last by files whose functions run once or seldom: gcc makes their code smaller instead of faster. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("Os")
#endif
