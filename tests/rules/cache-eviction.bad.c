/* A table larger than the caches is filled, and its lines are left to the caches. */
#include "pmem.h"

int main(int count, char **words) {
    char *memory = map_file(words[count - 1], 48 * MIB);
    for (size_t at = 0; at < 48 * MIB; at += LINE)
        store(memory + at, LINE, at);
}
