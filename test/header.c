/* A translation unit must not be empty; the header under test is put in front of this. */
typedef int belay_header_test;
