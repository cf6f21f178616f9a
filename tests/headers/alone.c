/* alone.c: HEADER, defined on the command line, compiles as the only include of a file. */
#include HEADER

typedef int a_translation_unit_is_not_empty;
