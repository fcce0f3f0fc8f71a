/* The same records are appended to a log: four share an XPLine. */
#include "pmem.h"

int main(int count, char **words) {
    char *memory = map_file(words[count - 1], 32 * MIB);
    for (int record = 0; record < 20000; record++) {
        char *place = memory + record * (size_t)LINE;
        store(place, LINE, record);
        flush_line(place);
        fence();
    }
}
