/* A list of 2000 nodes in a pool of libpmemobj, one transaction each: POOL. */
#include <libpmemobj.h>
#include <stdio.h>

POBJ_LAYOUT_BEGIN(list);
POBJ_LAYOUT_ROOT(list, struct root);
POBJ_LAYOUT_TOID(list, struct node);
POBJ_LAYOUT_END(list);

struct node {
    long value;
    TOID(struct node) next;
};

struct root {
    TOID(struct node) head;
    long count;
};

static void push(PMEMobjpool *pool, TOID(struct root) root, long value) {
    TX_BEGIN(pool) {
        TOID(struct node) node = TX_NEW(struct node);
        D_RW(node)->value = value;
        D_RW(node)->next = D_RO(root)->head;
        TX_ADD(root);
        D_RW(root)->head = node;
        D_RW(root)->count++;
    }
    TX_END
}

int main(int count, char **words) {
    PMEMobjpool *pool = pmemobj_create(words[count - 1], "list", 64 << 20, 0600);
    if (pool == NULL) {
        perror(words[count - 1]);
        return 1;
    }
    TOID(struct root) root = POBJ_ROOT(pool, struct root);
    for (long value = 0; value < 2000; value++)
        push(pool, root, value);
    long sum = 0;
    for (TOID(struct node) node = D_RO(root)->head; !TOID_IS_NULL(node); node = D_RO(node)->next)
        sum += D_RO(node)->value;
    printf("%ld nodes, sum %ld\n", D_RO(root)->count, sum);
    pmemobj_close(pool);
    return 0;
}
