/* A record is made persistent before the mark that it is there. */
#include "pmem.h"

int main(int count, char **words) {
    char *memory = map_file(words[count - 1], 4 * MIB), *marks = memory + 2 * MIB;
    for (size_t at = 0; at < 1 * MIB; at += LINE) {
        store(memory + at, LINE, at);
        flush_line(memory + at);
        fence();
        store(marks + at, LINE, 1);
        flush_line(marks + at);
        fence();
    }
}
