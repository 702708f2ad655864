/* A program of CUDA's driver interface, for the tests of attach. Its argument says how it finds the
   functions: linked (with libcuda.so.1), dlsym, or getproc (cuGetProcAddress_v2). Then: how many
   kernels, the length of an array of copies; "crash" kills it at the end, "fork" makes a child that
   does the same, "threads" runs four at once. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef int Result;
typedef uint64_t Pointer;
extern Result cuInit(unsigned);
extern Result cuCtxCreate_v2(void **, unsigned, int);
extern Result cuModuleLoadData(void **, const void *);
extern Result cuModuleGetFunction(void **, void *, const char *);
extern Result cuMemAlloc_v2(Pointer *, size_t);
extern Result cuMemcpyHtoD_v2(Pointer, const void *, size_t);
extern Result cuMemcpyDtoHAsync_v2(void *, Pointer, size_t, void *);
extern Result cuStreamCreate(void **, unsigned);
extern Result cuStreamSynchronize(void *);
extern Result cuCtxSynchronize(void);
extern Result cuLaunchKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                             unsigned, void *, void **, void **);
extern Result cuGetProcAddress_v2(const char *, void **, int, uint64_t, int *);

static struct {
  Result (*init)(unsigned);
  Result (*context)(void **, unsigned, int);
  Result (*load)(void **, const void *);
  Result (*function)(void **, void *, const char *);
  Result (*allocate)(Pointer *, size_t);
  Result (*to_device)(Pointer, const void *, size_t);
  Result (*to_host)(void *, Pointer, size_t, void *);
  Result (*stream)(void **, unsigned);
  Result (*wait_stream)(void *);
  Result (*wait)(void);
  Result (*launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                   void *, void **, void **);
} cu;

static void check(Result r, const char *what) {
  if (r == 0) return;
  fprintf(stderr, "%s: error %d\n", what, r);
  exit(1);
}

static int find_functions(const char *how) {
  if (strcmp(how, "linked") == 0) {
#ifdef LINKED
    cu.init = cuInit;
    cu.context = cuCtxCreate_v2;
    cu.load = cuModuleLoadData;
    cu.function = cuModuleGetFunction;
    cu.allocate = cuMemAlloc_v2;
    cu.to_device = cuMemcpyHtoD_v2;
    cu.to_host = cuMemcpyDtoHAsync_v2;
    cu.stream = cuStreamCreate;
    cu.wait_stream = cuStreamSynchronize;
    cu.wait = cuCtxSynchronize;
    cu.launch = cuLaunchKernel;
    return 1;
#else
    return 0;
#endif
  }
  void *driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (!driver) {
    fprintf(stderr, "%s\n", dlerror());
    return 0;
  }
  struct {
    void **to;
    const char *exported, *base;
  } list[] = {
      {(void **)&cu.init, "cuInit", "cuInit"},
      {(void **)&cu.context, "cuCtxCreate_v2", "cuCtxCreate"},
      {(void **)&cu.load, "cuModuleLoadData", "cuModuleLoadData"},
      {(void **)&cu.function, "cuModuleGetFunction", "cuModuleGetFunction"},
      {(void **)&cu.allocate, "cuMemAlloc_v2", "cuMemAlloc"},
      {(void **)&cu.to_device, "cuMemcpyHtoD_v2", "cuMemcpyHtoD"},
      {(void **)&cu.to_host, "cuMemcpyDtoHAsync_v2", "cuMemcpyDtoHAsync"},
      {(void **)&cu.stream, "cuStreamCreate", "cuStreamCreate"},
      {(void **)&cu.wait_stream, "cuStreamSynchronize", "cuStreamSynchronize"},
      {(void **)&cu.wait, "cuCtxSynchronize", "cuCtxSynchronize"},
      {(void **)&cu.launch, "cuLaunchKernel", "cuLaunchKernel"},
  };
  Result (*get)(const char *, void **, int, uint64_t, int *);
  *(void **)&get = dlsym(driver, "cuGetProcAddress_v2");
  for (size_t i = 0; i < sizeof list / sizeof *list; ++i) {
    int status = 0;
    if (strcmp(how, "getproc") == 0)
      check(get(list[i].base, list[i].to, 13000, 0, &status), "cuGetProcAddress");
    else
      *list[i].to = dlsym(driver, list[i].exported);
    if (!*list[i].to) return 0;
  }
  return 1;
}

static int kernels;
static size_t words;

static void *work(void *unused) {
  (void)unused;
  void *context, *module, *heavy, *light, *stream;
  check(cu.context(&context, 0, 0), "context");
  check(cu.load(&module, "any image"), "load");
  check(cu.function(&heavy, module, "_Z5heavyPii"), "function");
  check(cu.function(&light, module, "_Z5lightPii"), "function");
  check(cu.stream(&stream, 0), "stream");
  int *in = malloc(4 * words), *out = calloc(words, 4);
  for (size_t i = 0; i < words; ++i) in[i] = (int)(i * 7);
  Pointer memory;
  check(cu.allocate(&memory, 4 * words), "allocate");
  check(cu.to_device(memory, in, 4 * words), "copy");
  int n = 3;
  void *arguments[] = {&memory, &n};
  for (int i = 0; i < kernels; ++i) {
    check(cu.launch(heavy, 12, 2, 1, 64, 2, 1, 0, stream, arguments, NULL), "launch");
    check(cu.launch(light, 1, 1, 1, 32, 1, 1, 16, stream, arguments, NULL), "launch");
  }
  check(cu.to_host(out, memory, 4 * words, stream), "copy");
  check(cu.wait_stream(stream), "wait");
  check(cu.wait(), "wait");
  if (memcmp(in, out, 4 * words) != 0) {
    fprintf(stderr, "wrong data\n");
    exit(1);
  }
  return NULL;
}

int main(int argc, char **argv) {
  if (argc < 4 || !find_functions(argv[1])) {
    fprintf(stderr, "cannot find CUDA's functions\n");
    return 3;
  }
  kernels = atoi(argv[2]);
  words = (size_t)atol(argv[3]);
  const char *extra = argc > 4 ? argv[4] : "";
  if (strcmp(extra, "fork") == 0) {
    const pid_t child = fork();
    if (child > 0) waitpid(child, NULL, 0);
  }
  check(cu.init(0), "init");
  if (strcmp(extra, "threads") == 0) {
    pthread_t threads[4];
    for (int i = 0; i < 4; ++i) pthread_create(&threads[i], NULL, work, NULL);
    for (int i = 0; i < 4; ++i) pthread_join(threads[i], NULL);
  } else {
    work(NULL);
  }
  printf("done\n");
  fflush(stdout);
  if (strcmp(extra, "crash") == 0) kill(getpid(), SIGKILL);
  return strcmp(extra, "status") == 0 ? 7 : 0;
}
