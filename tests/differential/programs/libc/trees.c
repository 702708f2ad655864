// A red-black tree from <search.h>, an AVL tree by hand, both walked in order.
#define _GNU_SOURCE
#include <search.h>
#include <stdio.h>
#include <stdlib.h>

struct Node {
  struct Node *left, *right;
  int key, height;
};

static int height(const struct Node* n) { return n ? n->height : 0; }
static void update(struct Node* n) {
  n->height = 1 + (height(n->left) > height(n->right) ? height(n->left) : height(n->right));
}

static struct Node* rotate_right(struct Node* n) {
  struct Node* l = n->left;
  n->left = l->right;
  l->right = n;
  update(n);
  update(l);
  return l;
}
static struct Node* rotate_left(struct Node* n) {
  struct Node* r = n->right;
  n->right = r->left;
  r->left = n;
  update(n);
  update(r);
  return r;
}

static struct Node* insert(struct Node* n, int key) {
  if (!n) {
    n = calloc(1, sizeof *n);
    n->key = key;
    n->height = 1;
    return n;
  }
  if (key < n->key)
    n->left = insert(n->left, key);
  else if (key > n->key)
    n->right = insert(n->right, key);
  else
    return n;
  update(n);
  int balance = height(n->left) - height(n->right);
  if (balance > 1) {
    if (key > n->left->key) n->left = rotate_left(n->left);
    return rotate_right(n);
  }
  if (balance < -1) {
    if (key < n->right->key) n->right = rotate_right(n->right);
    return rotate_left(n);
  }
  return n;
}

static int count;
static unsigned order;
static void walk(const struct Node* n) {
  if (!n) return;
  walk(n->left);
  order = order * 31 + (unsigned)n->key;
  count++;
  walk(n->right);
}

static int compare(const void* a, const void* b) { return *(const int*)a - *(const int*)b; }
static unsigned order_found;
static void visit(const void* node, VISIT which, int depth) {
  if (which == postorder || which == leaf)
    order_found = order_found * 31 + (unsigned)**(int* const*)node + 0 * (unsigned)depth;
}

int main(void) {
  static int keys[500];
  struct Node* avl = NULL;
  void* tree = NULL;
  unsigned state = 77;
  for (int i = 0; i < 500; i++) {
    state = state * 1664525 + 1013904223;
    keys[i] = (int)(state >> 20);
    avl = insert(avl, keys[i]);
    tsearch(&keys[i], &tree, compare);
  }
  walk(avl);
  twalk(tree, visit);
  printf("%d keys, height %d, order %x %x\n", count, avl->height, order, order_found);
  int found = 0;
  for (int key = 0; key < 4096; key++) found += tfind(&key, &tree, compare) != NULL;
  printf("found %d\n", found);
  return order != order_found;
}
