// alone.cpp: HEADER, given on the command line, compiles as C++, as the first thing that a file includes.
#include HEADER
