// Does known things to tracked memory in four threads, and writes down which: exact FILE LOG ROUNDS.
//
// Every access to the file's mapping is an instruction of an asm statement below; the compiler makes none. The log has a
// record for each op that the tracer is to report, in each thread's order.
#define _GNU_SOURCE
#include <asm/prctl.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { LOAD, STORE, NTSTORE, CLWB, CLFLUSHOPT, CLFLUSH, SFENCE, MFENCE, LFENCE, LOCKED };
enum { THREADS = 4, PAGE = 4096, REGION = 16 * PAGE, STRING = 1 };

struct record {
    uint64_t address;
    uint32_t thread, size;
    uint32_t kind, string;
    uint32_t instructions; // since the op before; 0 where that is not known
    uint32_t unused;
};

struct thread {
    unsigned char *base, *low; // low: below 4 GiB
    uint64_t state;
    uint32_t id;
    size_t count, room;
    struct record *log;
};

static struct record *add(struct thread *t, int kind, const void *address, uint32_t size) {
    if (t->count == t->room) {
        t->room = t->room * 2 + 1024;
        t->log = realloc(t->log, t->room * sizeof *t->log);
    }
    t->log[t->count] = (struct record){(uint64_t)address, t->id, size, kind, 0, 0, 0};
    return &t->log[t->count++];
}

// Elements of a string instruction, joined within a line to the newest op of the same kind, if it ends where they begin.
static void add_element(struct thread *t, size_t first, int kind, const unsigned char *address, uint32_t size) {
    for (size_t i = t->count; i-- > first;) {
        struct record *r = &t->log[i];
        if (r->kind != (uint32_t)kind) continue;
        if (r->address + r->size == (uint64_t)address && r->address / 64 == (uint64_t)address / 64) {
            r->size += size;
            return;
        }
        break;
    }
    add(t, kind, address, size)->string = STRING;
}

static uint64_t draw(struct thread *t, uint64_t below) {
    t->state = t->state * 6364136223846793005u + 1442695040888963407u;
    return (t->state >> 33) % below;
}

// A page of the program's own data, over which the file is mapped: for operands relative to the program counter.
__attribute__((aligned(PAGE), used, visibility("hidden"))) unsigned char here[PAGE] = {1};

#define A(...) __asm__ volatile(__VA_ARGS__)
#define STORES(text, size, at) do { A(text : : "r"(at), "a"(7), "x"(1.0) : "memory"); add(t, STORE, at, size); } while (0)
#define LOADS(text, size, at) do { A(text : : "r"(at) : "rax", "xmm1", "memory", "cc"); add(t, LOAD, at, size); } while (0)
#define FLUSHES(kind, text, at, ...) do { A(text : : __VA_ARGS__ : "memory"); add(t, kind, at, 1); } while (0)

static void stores(struct thread *t, unsigned char *p) {
    STORES("movb %%al,(%0)", 1, p);
    A("movw %%ax,1(%0)" : : "r"(p) : "memory"); add(t, STORE, p + 1, 2);
    STORES("movl %%eax,(%0)", 4, p);
    STORES("movq %%rax,(%0)", 8, p);
    STORES("movl $5,(%0)", 4, p);
    STORES("movss %2,(%0)", 4, p);
    STORES("movsd %2,(%0)", 8, p);
    STORES("movhps %2,(%0)", 8, p);
    STORES("movups %2,(%0)", 16, p);
    STORES("vmovups %%xmm0,(%0)", 16, p);
    STORES("vmovups %%ymm0,(%0)", 32, p);
    STORES("vmovdqu %%ymm0,(%0)", 32, p);
    STORES("vextractf128 $1,%%ymm0,(%0)", 16, p);
    A("fld1; fstpt (%0)" : : "r"(p) : "memory"); add(t, STORE, p, 10);
    A("movq %%rsp,%%r11; leaq 16(%0),%%rsp; pushq %%rax; movq %%r11,%%rsp" : : "r"(p) : "r11", "memory");
    add(t, STORE, p + 8, 8);
    A("addl $1,(%0)" : : "r"(p) : "memory", "cc"); add(t, LOAD, p, 4); add(t, STORE, p, 4);
    A("incq (%0)" : : "r"(p) : "memory", "cc"); add(t, LOAD, p, 8); add(t, STORE, p, 8);
    A("movsb" : : "S"(t->base + REGION - 1), "D"(p) : "memory");
    add(t, LOAD, t->base + REGION - 1, 1); add(t, STORE, p, 1);
    A("stosq" : : "D"(p), "a"(3l) : "memory"); add(t, STORE, p, 8);
}

static void loads(struct thread *t, unsigned char *p) {
    LOADS("movb (%0),%%al", 1, p);
    LOADS("movzwl (%0),%%eax", 2, p);
    LOADS("movl (%0),%%eax", 4, p);
    LOADS("addq (%0),%%rax", 8, p);
    LOADS("cmpl $1,(%0)", 4, p);
    LOADS("movups (%0),%%xmm1", 16, p);
    LOADS("vmovups (%0),%%ymm1", 32, p);
    LOADS("vbroadcastss (%0),%%ymm1", 4, p);
    A("fldt (%0); fstp %%st(0)" : : "r"(p) : "memory"); add(t, LOAD, p, 10);
    A("pushq (%0); popq %%rax" : : "r"(p) : "rax", "memory"); add(t, LOAD, p, 8);
    // Prefetches move no data that the program sees.
    A("prefetcht0 (%0); prefetchw (%0); prefetchnta (%0)" : : "r"(p) : "memory");
}

static void ntstores(struct thread *t, unsigned char *p) {
    p = (unsigned char *)((uint64_t)p & ~31ul);
#define NT(text, size) do { A(text : : "r"(p), "a"(7l), "x"(1.0) : "memory"); add(t, NTSTORE, p, size); } while (0)
    NT("movntil %%eax,(%0)", 4);
    NT("movntiq %%rax,(%0)", 8);
    NT("movntps %2,(%0)", 16);
    NT("movntpd %2,(%0)", 16);
    NT("movntdq %2,(%0)", 16);
    NT("vmovntps %%xmm0,(%0)", 16);
    NT("vmovntps %%ymm0,(%0)", 32);
    NT("vmovntpd %%ymm0,(%0)", 32);
    NT("vmovntdq %%ymm0,(%0)", 32);
    A("movd %k1,%%mm0; movntq %%mm0,(%0); emms" : : "r"(p), "a"(7l) : "memory"); add(t, NTSTORE, p, 8);
    A("pcmpeqd %%mm0,%%mm0; maskmovq %%mm0,%%mm0; emms" : : "D"(p) : "memory"); add(t, NTSTORE, p, 8);
    A("pcmpeqd %%xmm1,%%xmm1; maskmovdqu %%xmm1,%%xmm1" : : "D"(p) : "xmm1", "memory"); add(t, NTSTORE, p, 16);
    // The mask leaves out the two bytes in the middle.
    static const unsigned char gap[16] = {128, 128, 128, 128, 128, 128, 128, 0, 0, 128, 128, 128, 128, 128, 128, 128};
    A("movups %1,%%xmm1; maskmovdqu %%xmm1,%%xmm1" : : "D"(p), "m"(gap) : "xmm1", "memory");
    add(t, NTSTORE, p, 7); add(t, NTSTORE, p + 9, 7);
    A("movntdqa (%0),%%xmm1" : : "r"(p) : "xmm1", "memory"); add(t, LOAD, p, 16);
    // The same instruction twice, at places that follow one another: two ops.
    A("movq %0,%%r11; movl $2,%%ecx; 1: vmovntps %%ymm0,(%%r11); addq $32,%%r11; decl %%ecx; jnz 1b"
      : : "r"(p) : "r11", "rcx", "memory", "cc");
    add(t, NTSTORE, p, 32); add(t, NTSTORE, p + 32, 32);
}

static void flushes(struct thread *t, unsigned char *p) {
    uint64_t fs, index = draw(t, 64);
    syscall(SYS_arch_prctl, ARCH_GET_FS, &fs);
#define EACH(form, at, ...) \
    FLUSHES(CLWB, "clwb " form, at, __VA_ARGS__); \
    FLUSHES(CLFLUSHOPT, "clflushopt " form, at, __VA_ARGS__); \
    FLUSHES(CLFLUSH, "clflush " form, at, __VA_ARGS__)
    EACH("(%0)", p, "r"(p));
    EACH("-8(%0)", p + 8 - 8, "r"(p + 8));
    EACH("0x1234(%0)", p, "r"(p - 0x1234));
    EACH("(%0,%1)", p + index, "r"(p), "r"(index));
    EACH("(%0,%1,2)", p + 2 * index, "r"(p), "r"(index));
    EACH("-64(%0,%1,4)", p + 4 * index - 64, "r"(p), "r"(index));
    EACH("0x100(%0,%1,8)", p + 8 * index + 0x100, "r"(p), "r"(index));
    EACH("(%0,%1,8)", p, "r"((unsigned char *)((uint64_t)p + 8 * index)), "r"(-index));
    EACH("64(,%1,8)", (unsigned char *)((uint64_t)(p + 64) & ~7ul), "r"(p), "r"((uint64_t)p >> 3));
    EACH("here+0x40(%%rip)", here + 0x40, "r"(p));
    EACH("%%fs:(%0)", p, "r"((uint64_t)p - fs));
    EACH("%%fs:8(%0,%1,4)", p + 8, "r"((uint64_t)p - fs - 4 * index), "r"(index));
    syscall(SYS_arch_prctl, ARCH_SET_GS, p);
    EACH("%%gs:0x30", p + 0x30, "r"(p));
    EACH("%%gs:(%0)", p + index, "r"(index));
    EACH("(%k0)", t->low, "r"(t->low));
    EACH("0x80(%k0,%k1,2)", t->low + 0x80 + 2 * index, "r"(t->low), "r"(index));
    // A sum above 4 GiB is cut.
    EACH("(%k0,%k1)", t->low, "r"((uint64_t)t->low + 0x123456), "r"(0xffedcbaaul));
    // Registers with an encoding of their own.
    A("movq %0,%%r12; clwb (%%r12)" : : "r"(p) : "r12", "memory"); add(t, CLWB, p, 1);
    A("movq %0,%%r13; clwb (%%r13)" : : "r"(p) : "r13", "memory"); add(t, CLWB, p, 1);
    A("movq %%rbp,%%r11; movq %0,%%rbp; clwb 16(%%rbp); movq %%r11,%%rbp" : : "r"(p) : "r11", "memory");
    add(t, CLWB, p + 16, 1);
    A("movq %%rsp,%%r11; movq %0,%%rsp; clwb 8(%%rsp); movq %%r11,%%rsp" : : "r"(p) : "r11", "memory");
    add(t, CLWB, p + 8, 1);
}

static void addressed(struct thread *t, unsigned char *p) {
    uint64_t fs;
    syscall(SYS_arch_prctl, ARCH_GET_FS, &fs);
    A("movl $1,here+0x10(%%rip)" : : : "memory"); add(t, STORE, here + 0x10, 4);
    A("movq %%fs:(%0),%%rax" : : "r"((uint64_t)p - fs) : "rax", "memory"); add(t, LOAD, p, 8);
    syscall(SYS_arch_prctl, ARCH_SET_GS, p);
    A("movw $1,%%gs:6" : : : "memory"); add(t, STORE, p + 6, 2);
    A("movl $1,4(%k0)" : : "r"(t->low) : "memory"); add(t, STORE, t->low + 4, 4);
    A("movntiq %%rax,here+0x80(%%rip)" : : : "memory"); add(t, NTSTORE, here + 0x80, 8);
    A("movntiq %%rax,(%k0)" : : "r"(t->low) : "memory"); add(t, NTSTORE, t->low, 8);
}

static void fences(struct thread *t) {
    A("sfence" : : : "memory"); add(t, SFENCE, 0, 0);
    A("mfence" : : : "memory"); add(t, MFENCE, 0, 0);
    A("lfence" : : : "memory"); add(t, LFENCE, 0, 0);
}

static void locked(struct thread *t, unsigned char *p) {
    uint64_t untracked = 0;
    A("lock addl $1,(%0)" : : "r"(p) : "memory", "cc"); add(t, LOCKED, p, 4);
    A("lock orb $1,(%0)" : : "r"(p) : "memory", "cc"); add(t, LOCKED, p, 1);
    A("lock xaddq %%rax,(%0)" : : "r"(p), "a"(1l) : "memory", "cc"); add(t, LOCKED, p, 8);
    A("xchgw %%ax,(%0)" : : "r"(p) : "rax", "memory"); add(t, LOCKED, p, 2);
    A("lock btsl $3,(%0)" : : "r"(p) : "memory", "cc"); add(t, LOCKED, p, 4);
    // With success and without.
    A("movl $9,(%0); movl $9,%%eax; lock cmpxchgl %%ecx,(%0)" : : "r"(p) : "rax", "memory", "cc");
    add(t, STORE, p, 4); add(t, LOCKED, p, 4);
    A("movl $9,(%0); movl $8,%%eax; lock cmpxchgl %%ecx,(%0)" : : "r"(p) : "rax", "memory", "cc");
    add(t, STORE, p, 4); add(t, LOCKED, p, 4);
    unsigned char *even = (unsigned char *)((uint64_t)p & ~15ul);
    A("lock cmpxchg16b (%0)" : : "r"(even), "a"(0l), "d"(0l), "b"(0l), "c"(0l) : "memory", "cc");
    add(t, LOCKED, even, 16);
    // Elsewhere it is an order of what was stored before, or nothing.
    A("mfence; lock addl $1,(%1); movb $1,(%0); lock addl $1,(%1); lock addl $1,(%1)"
      : : "r"(p), "r"(&untracked) : "memory", "cc");
    add(t, MFENCE, 0, 0);
    add(t, STORE, p, 1);
    add(t, LOCKED, &untracked, 4);
}

static void strings(struct thread *t, unsigned char *p) {
    unsigned char *from = t->base + REGION / 2 + draw(t, 200);
    static const int widths[] = {1, 2, 4, 8};
    for (int w = 0; w < 4; w++) {
        int size = widths[w];
        uint64_t count = draw(t, 300);
        size_t first = t->count;
        unsigned char *s = from, *d = p;
        uint64_t c = count;
        if (w == 0) A("rep movsb" : "+S"(s), "+D"(d), "+c"(c) : : "memory");
        if (w == 1) A("rep movsw" : "+S"(s), "+D"(d), "+c"(c) : : "memory");
        if (w == 2) A("rep movsl" : "+S"(s), "+D"(d), "+c"(c) : : "memory");
        if (w == 3) A("rep movsq" : "+S"(s), "+D"(d), "+c"(c) : : "memory");
        for (uint64_t i = 0; i < count; i++) {
            add_element(t, first, LOAD, from + i * size, size);
            add_element(t, first, STORE, p + i * size, size);
        }
        first = t->count, d = p, c = count;
        if (w == 0) A("rep stosb" : "+D"(d), "+c"(c) : "a"(0l) : "memory");
        if (w == 1) A("rep stosw" : "+D"(d), "+c"(c) : "a"(0l) : "memory");
        if (w == 2) A("rep stosl" : "+D"(d), "+c"(c) : "a"(0l) : "memory");
        if (w == 3) A("rep stosq" : "+D"(d), "+c"(c) : "a"(0l) : "memory");
        for (uint64_t i = 0; i < count; i++) add_element(t, first, STORE, p + i * size, size);
    }
    // Downwards, element by element; and a search that ends early.
    unsigned char *d = p + 40;
    uint64_t c = 5;
    size_t first = t->count;
    A("std; rep stosq; cld" : "+D"(d), "+c"(c) : "a"(0l) : "memory", "cc");
    for (int i = 0; i < 5; i++) add_element(t, first, STORE, p + 40 - 8 * i, 8);
    STORES("movb %%al,(%0)", 1, p + 20);
    d = p, c = 100, first = t->count;
    A("rep stosb" : "+D"(d), "+c"(c) : "a"(0l) : "memory");
    for (int i = 0; i < 100; i++) add_element(t, first, STORE, p + i, 1);
    A("movb $1,20(%0)" : : "r"(p) : "memory"); add(t, STORE, p + 20, 1);
    d = p, c = 100, first = t->count;
    A("repne scasb" : "+D"(d), "+c"(c) : "a"(1l) : "memory", "cc");
    for (int i = 0; i <= 20; i++) add_element(t, first, LOAD, p + i, 1);
}

static void counted(struct thread *t, unsigned char *p) {
    A("movb $1,(%0)\n .rept 1000\n nop\n .endr\n movb $1,1(%0)\n movl $500,%%ecx\n 1: decl %%ecx\n jnz 1b\n clwb (%0)\n"
      "addl $1,(%0)\n sfence"
      : : "r"(p) : "rcx", "memory", "cc");
    add(t, STORE, p, 1);
    add(t, STORE, p + 1, 1)->instructions = 1001;
    add(t, CLWB, p, 1)->instructions = 1 + 2 * 500 + 1;
    add(t, LOAD, p, 4)->instructions = 1;
    add(t, STORE, p, 4);
    add(t, SFENCE, 0, 0)->instructions = 1;
}

static uint64_t rounds;

static void *work(void *argument) {
    struct thread *t = argument;
    t->id = syscall(SYS_gettid);
    for (uint64_t i = 0; i < rounds; i++) {
        // Across lines and pages, and everywhere in the region's first half.
        unsigned char *p = t->base + 0x1400 + draw(t, REGION / 2 - 0x2c00);
        switch (draw(t, 9)) {
        case 0: stores(t, p); break;
        case 1: loads(t, p); break;
        case 2: ntstores(t, p); break;
        case 3: flushes(t, p); break;
        case 4: addressed(t, p); break;
        case 5: fences(t); break;
        case 6: locked(t, (unsigned char *)((uint64_t)p & ~7ul)); break;
        case 7: strings(t, p); break;
        case 8: counted(t, p); break;
        }
    }
    return NULL;
}

static void check(int ok, const char *what) {
    if (!ok) {
        perror(what);
        exit(1);
    }
}

// What comes and goes of mappings, in the first thread.
static void mappings(struct thread *t, int file) {
    const int both = PROT_READ | PROT_WRITE;
    unsigned char *p = mmap(NULL, 4 * PAGE, both, MAP_SHARED, file, 0);
    check(p != MAP_FAILED, "mmap");
    STORES("movb %%al,(%0)", 1, p + PAGE);
    check(munmap(p + PAGE, PAGE) == 0, "munmap");
    STORES("movb %%al,(%0)", 1, p);
    STORES("movb %%al,(%0)", 1, p + 2 * PAGE);
    // Memory of no file in the hole, and across its edges.
    check(mmap(p + PAGE, PAGE, both, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == p + PAGE, "mmap");
    A("movb $1,(%0); movq $1,0xff8(%0)" : : "r"(p + PAGE) : "memory");
    STORES("movq %%rax,(%0)", 8, p + PAGE - 4);
    STORES("movq %%rax,(%0)", 8, p + 2 * PAGE - 4);
    A("clwb (%0)" : : "r"(p + PAGE) : "memory");
    // A mapping that moves, and grows.
    unsigned char *q = mremap(p + 2 * PAGE, 2 * PAGE, 8 * PAGE, MREMAP_MAYMOVE);
    check(q != MAP_FAILED, "mremap");
    STORES("movl %%eax,(%0)", 4, q + 2 * PAGE - 2);
    A("clwb (%0)" : : "r"(q + 64) : "memory"); add(t, CLWB, q + 64, 1);
    check(munmap(q, 8 * PAGE) == 0 && munmap(p, 2 * PAGE) == 0, "munmap");
    // A private copy is a mapping of the file too.
    p = mmap(NULL, PAGE, both, MAP_PRIVATE, file, PAGE);
    check(p != MAP_FAILED, "mmap");
    LOADS("movl (%0),%%eax", 4, p);
    check(munmap(p, PAGE) == 0, "munmap");
}

int main(int count, char **arguments) {
    if (count != 4) return 2;
    rounds = strtoull(arguments[3], NULL, 10);
    int file = open(arguments[1], O_RDWR);
    check(file >= 0, "open");
    const int both = PROT_READ | PROT_WRITE;
    unsigned char *all = mmap(NULL, THREADS * REGION, both, MAP_SHARED, file, 0);
    unsigned char *low = mmap((void *)0x10000000, THREADS * PAGE, both, MAP_SHARED | MAP_FIXED_NOREPLACE, file, THREADS * REGION);
    unsigned char *ours = mmap(here, PAGE, both, MAP_SHARED | MAP_FIXED, file, THREADS * (REGION + PAGE));
    check(all != MAP_FAILED && low != MAP_FAILED && ours == here, "mmap");

    struct thread threads[THREADS + 1] = {0};
    struct thread *first = &threads[THREADS];
    first->id = getpid();
    mappings(first, file);
    pthread_t handles[THREADS];
    for (int i = 0; i < THREADS; i++) {
        threads[i].base = all + i * REGION;
        threads[i].low = low + i * PAGE;
        threads[i].state = i + 1;
        check(pthread_create(&handles[i], NULL, work, &threads[i]) == 0, "pthread_create");
    }
    for (int i = 0; i < THREADS; i++) pthread_join(handles[i], NULL);
    mappings(first, file);
    // The pages go back to what they were, so that the program's end touches no tracked memory.
    check(mmap(here, PAGE, both, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == here, "mmap");

    FILE *log = fopen(arguments[2], "w");
    check(log != NULL, "log");
    for (int i = 0; i <= THREADS; i++) fwrite(threads[i].log, sizeof *threads[i].log, threads[i].count, log);
    check(fclose(log) == 0, "log");
    return 0;
}
