/* alone.c: HEADER, given on the command line, compiles as the first and only thing that a file includes. */
#include HEADER

typedef int a_translation_unit_is_not_empty;
