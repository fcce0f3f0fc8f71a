/* 48 MiB are stored, and flushed when all of them are. */
#include "pmem.h"

int main(int count, char **words) {
    char *memory = map_file(words[count - 1], 48 * MIB);
    store(memory, 48 * MIB, 1);
    flush_range(memory, 48 * MIB);
    fence();
}
