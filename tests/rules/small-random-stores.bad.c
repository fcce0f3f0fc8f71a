/* Records of 64 B are written at random places of 32 MiB: each makes the media write 256 B. */
#include "pmem.h"

int main(int count, char **words) {
    char *memory = map_file(words[count - 1], 32 * MIB);
    uint64_t random = 1;
    for (int record = 0; record < 20000; record++) {
        char *place = memory + next_random(&random) % (32 * MIB / XPLINE) * XPLINE;
        store(place, LINE, record);
        flush_line(place);
        fence();
    }
}
