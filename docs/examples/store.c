/* A store of records: each goes to a slot of its own, which its key chooses. */
#include <fcntl.h>
#include <immintrin.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#define SLOTS (1u << 18)
#define RECORDS 50000

struct record {
    uint64_t key, value[7];
};

struct store {
    uint64_t count, unused[7];
    struct record records[SLOTS];
};

static void persist(const void *from, size_t bytes) {
    for (const char *line = from; line < (const char *)from + bytes; line += 64)
        __asm__ volatile("clwb %0" : : "m"(*line));
    _mm_sfence();
}

static void put(struct store *store, uint64_t key) {
    struct record *record = &store->records[key * 0x9e3779b97f4a7c15u >> 46];
    record->key = key;
    for (int word = 0; word < 7; word++)
        record->value[word] = key + word;
    persist(record, sizeof *record);
    store->count++;
}

int main(int count, char **words) {
    int file = open(words[count - 1], O_RDWR | O_CREAT, 0600);
    if (file < 0 || ftruncate(file, sizeof(struct store)) != 0)
        return 1;
    struct store *store = mmap(NULL, sizeof *store, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    for (uint64_t key = 1; key <= RECORDS; key++)
        put(store, key);
    printf("%lu records\n", store->count);
    return 0;
}
