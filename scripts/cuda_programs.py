"""The programs of public suites that scripts/cuda-suites runs, and what it changes in them."""

# What CUDA 13 no longer has, for programs that are older.
SHIM = """
#pragma once
#ifdef __CUDACC__
#include <cuda_runtime.h>
static inline cudaError_t cudaThreadSynchronize() { return cudaDeviceSynchronize(); }
static inline cudaError_t cudaThreadExit() { return cudaDeviceReset(); }
#endif
"""
FIXED_SEED = (r"time\s*\(\s*(0|NULL)\s*\)", "7")


class Program:
    """`sources` from `folder`. `good`: what its output must have; `replace`: {files: [(regex,
    text)]}; `free`: memory may differ, by the order of sums of floats; `device`: {image of kernels:
    source}, which the program reads; `toolkit`: headers that it looks for beside it; `needs`: what
    it does not find here, so that it has no kernels or does not do all; `status`: what it ends
    with."""

    def __init__(self, suite, name, folder, sources, good, args=(), flags=(), replace=None,
                 free=False, files=None, status=0, device=None, needs="", toolkit=()):
        self.suite, self.name, self.folder, self.sources = suite, name, folder, sources
        self.good, self.args, self.flags = good, list(args), list(flags)
        self.replace, self.free, self.files, self.status = replace or {}, free, files, status
        self.device, self.needs, self.toolkit = device or {}, needs, toolkit


def sample(number_and_name, good, args=(), replace=None, flags=(), sources=None, **more):
    folder = f"Samples/{number_and_name}"
    name = number_and_name.split("/")[1]
    return Program("cuda-samples", name, folder, sources or ["*.cu", "*.cpp"], good, args,
                   ["-ICommon", *flags], replace, **more)


def polybench(name, source, sizes, changes=(), **more):
    size = r"#\s*define\s+(N[IJKLM]?|NX|NY|TMAX|M|_PB_\w+|tmax|LENGTH)\s+\d+"
    replace = {"*.cu*": [*changes, (size,
                          lambda m: f"#define {m[1]} {sizes.get(m[1], sizes.get('', 64))}")]}
    return Program("PolyBench-GPU", name, f"CUDA/{name}", [source],
                   r"(Threshold of .* Percent|Number of misses): 0\b",
                   flags=["-Icommon"], replace=replace, **more)


INTRO, UTILITIES, TECHNIQUES = "0_Introduction", "1_Utilities", "2_Concepts_and_Techniques"
FEATURES, LIBRARIES = "3_CUDA_Features", "4_CUDA_Libraries"
DOMAIN, SPEED = "5_Domain_Specific", "6_Performance"
# What they are linked with has a table of texts of errors in device memory, by their addresses.
DEVICE_LAUNCHES = ["-rdc=true", "-lcudadevrt"]
SAMPLES = [
    sample(f"{INTRO}/vectorAdd", "Test PASSED"),
    sample(f"{INTRO}/matrixMul", "Result = PASS", ["-wA=64", "-hA=64", "-wB=64", "-hB=64"],
           {"*.cu": [(r"nIter = 300", "nIter = 3")]}),
    sample(f"{INTRO}/simpleTemplates", ""),
    sample(f"{INTRO}/simpleOccupancy", "Test PASSED"),
    sample(f"{INTRO}/fp16ScalarProduct", "PASSED", replace={"*.cu": [FIXED_SEED]}),
    sample(f"{INTRO}/simplePrintf", ""),
    sample(f"{INTRO}/simpleAssert", "assertion text|Device assert failed as expected"),
    sample(f"{INTRO}/simpleAtomicIntrinsics", "completed, returned OK"),
    sample(f"{INTRO}/simpleTexture", "completed, returned OK", files=["data"]),
    sample(f"{INTRO}/simpleSurfaceWrite", "completed, returned OK", files=["data"]),
    sample(f"{INTRO}/simpleLayeredTexture", ""),
    sample(f"{INTRO}/simpleCubemapTexture", ""),
    sample(f"{INTRO}/simplePitchLinearTexture", "",
           replace={"*.cu": [(r"NUM_REPS\s+100", "NUM_REPS 1")]}),
    sample(f"{INTRO}/simpleVoteIntrinsics", ""),
    sample(f"{INTRO}/simpleCooperativeGroups", ""),
    sample(f"{INTRO}/simpleAWBarrier", "PASSED", free=True),
    sample(f"{INTRO}/simpleStreams", "", replace={"*.cu": [(r"nreps = \d+", "nreps = 2"),
                                                           (r"16 \* 1024 \* 1024",
                                                            "64 * 1024")]}),
    sample(f"{INTRO}/simpleCallback", "Success"),
    sample(f"{INTRO}/simpleZeroCopy", ""),
    sample(f"{INTRO}/asyncAPI", ""),
    sample(f"{INTRO}/clock", ""),
    sample(f"{INTRO}/mergeSort", "", replace={"*.cpp": [(r"N\s*=\s*4 \* 1048576",
                                                         "N = 64 * 1024")]}),
    sample(f"{TECHNIQUES}/inlinePTX", "Test Successful"),
    sample(f"{TECHNIQUES}/shfl_scan", ""),
    sample(f"{TECHNIQUES}/reduction", "Test passed", ["--n=65536"], free=True,
           replace={"*.cpp": [(r"testIterations = 100", "testIterations = 2")]}),
    sample(f"{TECHNIQUES}/reductionMultiBlockCG", "", free=True,
           replace={"*.cu": [(r"1 << 25", "1 << 16"), (r"testIterations = 100",
                                                            "testIterations = 1")]}),
    sample(f"{TECHNIQUES}/threadFenceReduction", "", ["--n=65536"], free=True,
           replace={"*.cu": [(r"testIterations = 100", "testIterations = 2")]}),
    sample(f"{TECHNIQUES}/scan", "", replace={"*.cpp": [(r"13 \* 1048576 / 2", "1 * 1048576 / 4"),
                                                        (r"iCycles = 100", "iCycles = 1")]}),
    sample(f"{TECHNIQUES}/scalarProd", ""),
    sample(f"{TECHNIQUES}/histogram", "", replace={"*.cpp": [(r"64 \* 1048576", "1048576"),
                                                             (r"numRuns\s+= 16", "numRuns = 1")]}),
    sample(f"{TECHNIQUES}/sortingNetworks", "",
           replace={"*.cpp": [(r"N\s+= 1048576", "N = 16384")]}),
    sample(f"{TECHNIQUES}/convolutionTexture", "Test passed", replace={
        "*.cpp": [(r"3072|\(3072\)", "256"), (r"iterations\s*=\s*10", "iterations = 1")]}),
    sample(f"{TECHNIQUES}/convolutionSeparable", "Test passed", replace={
        "*.cpp": [(r"3072", "256"), (r"iterations\s*=\s*16", "iterations = 1")]}),
    sample(f"{TECHNIQUES}/eigenvalues", "", ["--matrix-size=128", "--iters-timing=1"]),
    sample(f"{TECHNIQUES}/segmentationTreeThrust", ""),
    sample(f"{TECHNIQUES}/radixSortThrust", "Test passed", ["-n=32768", "-iterations=1"],
           replace={"*.cu": [(r"rng\(clock\(\)\)", "rng(7)")]}),
    sample(f"{TECHNIQUES}/streamOrderedAllocation", ""),
    sample(f"{TECHNIQUES}/dct8x8", "", files=["data"]),
    sample(f"{FEATURES}/globalToShmemAsyncCopy", "Result = PASS",
           ["-wA=64", "-hA=64", "-wB=64", "-hB=64"], {"*.cu": [(r"nIter = 100", "nIter = 1")]}),
    # What malloc of kernels gives depends on who asks first, and lies in memory.
    sample(f"{FEATURES}/newdelete", "", flags=["-rdc=true"], free=True),
    sample(f"{FEATURES}/binaryPartitionCG", ""),
    # Threads take places in an array, who comes first the first one.
    sample(f"{FEATURES}/warpAggregatedAtomicsCG", "PASSED", free=True,
           replace={"*.cu": [(r"(NUM_ELEMS\s+)10000000", r"\g<1>100000")]}),
    sample(f"{FEATURES}/cdpSimplePrint", "", flags=DEVICE_LAUNCHES, free=True),
    sample(f"{FEATURES}/cdpSimpleQuicksort", "OK", flags=DEVICE_LAUNCHES, free=True),
    sample(f"{FEATURES}/cdpAdvancedQuicksort", "PASSED", ["--size=20000"], flags=DEVICE_LAUNCHES,
           free=True),
    sample(f"{FEATURES}/cdpQuadtree", "OK", flags=DEVICE_LAUNCHES, free=True),
    sample(f"{FEATURES}/cdpBezierTessellation", "", flags=DEVICE_LAUNCHES, free=True),
    sample(f"{FEATURES}/cudaTensorCoreGemm", "", flags=["-DCPU_DEBUG=1"],
           replace={"*.cu": [(r"(define [MNK]_TILES) 256", r"\1 8")]}),
    *(sample(f"{FEATURES}/{kind}TensorCoreGemm", r"(?s)\A(?!.*mismatch).*Verifying correctness",
             flags=["-DCPU_DEBUG=1"],
             replace={"*.cu": [(r"(define [MNK]_TILES) \d+", r"\1 16")]})
      for kind in ("dmma", "tf32", "bf16", "imma")),
    sample(f"{FEATURES}/simpleCudaGraphs", "", free=True,
           replace={"*.cu": [(r"1 << 24", "1 << 16")]}),
    sample(f"{FEATURES}/jacobiCudaGraphs", "PASSED", free=True,
           replace={"jacobi.h": [(r"N_ROWS 512", "N_ROWS 64")]}),
    sample(f"{DOMAIN}/BlackScholes", "Test passed", replace={
        "*.cu": [(r"OPT_N\s+= 4000000", "OPT_N = 40000"),
                 (r"NUM_ITERATIONS = 512", "NUM_ITERATIONS = 2")]}),
    sample(f"{DOMAIN}/binomialOptions", "Test passed",
           replace={"*.h": [(r"MAX_OPTIONS\s+1024", "MAX_OPTIONS 16")]}),
    sample(f"{DOMAIN}/fastWalshTransform", "", replace={
        "*.cu": [(r"log2Data\s+= 23", "log2Data = 15")]}),
    sample(f"{DOMAIN}/quasirandomGenerator", "L1 norm: .*E-0[789]", replace={
        "*.cpp": [(r"N = 1048576", "N = 16384"), (r"numIterations = 20", "numIterations = 1")]}),
    sample(f"{DOMAIN}/SobolQRNG", "", ["--n=1000", "--dimensions=20"]),
    sample(f"{DOMAIN}/dxtc", "", files=["data"]),
    sample(f"{DOMAIN}/stereoDisparity", "CPU Checksum = ", files=["data"], sources=["*.cu"]),
    sample(f"{DOMAIN}/FDTD3d", "", ["--dimx=32", "--dimy=32", "--dimz=32", "--timesteps=2"],
           sources=["src/*.cu", "src/*.cpp"], flags=["-Iinc"]),
    sample(f"{SPEED}/transpose", "", ["-dimX=256", "-dimY=256"],
           {"*.cu": [(r"NUM_REPS 100", "NUM_REPS 1")]}),
    sample(f"{SPEED}/alignedTypes", "Test passed|", replace={
        "*.cu": [(r"50000000", "500000"), (r"NUM_ITERATIONS = 32", "NUM_ITERATIONS = 1")]}),
    sample(f"{SPEED}/LargeKernelParameter", "Test passed", flags=[]),
]

NVRTC = ["-lnvrtc", "-lcuda"]
ONE_GPU = "a second GPU"
SAMPLES += [
    sample(f"{INTRO}/UnifiedMemoryStreams", "", flags=["-lcublas", "-lpthread"], needs="cuBLAS"),
    sample(f"{INTRO}/clock_nvrtc", "", flags=NVRTC, sources=["*.cpp"]),
    sample(f"{INTRO}/cudaOpenMP", "", flags=["-Xcompiler", "-fopenmp", "-lgomp"]),
    sample(f"{INTRO}/matrixMulDrv", "Result = PASS", sources=["*.cpp"], flags=["-lcuda"],
           device={"matrixMul_kernel64.fatbin": "matrixMul_kernel.cu"}),
    sample(f"{INTRO}/matrixMulDynlinkJIT", "Test run success", sources=["*.c", "*.cpp"],
           flags=["-ldl", "-Xcompiler", "-no-pie"]),
    sample(f"{INTRO}/matrixMul_nvrtc", "Result = PASS", flags=NVRTC, sources=["*.cpp"],
           toolkit=["cooperative_groups.h", "cooperative_groups", "cuda", "nv"],
           replace={"*.cpp": [(r"nIter = 300", "nIter = 2")]}),
    sample(f"{INTRO}/simpleAssert_nvrtc", "assertion text|failed as expected", flags=NVRTC,
           sources=["*.cpp"]),
    sample(f"{INTRO}/simpleAtomicIntrinsics_nvrtc", "completed, returned OK", flags=NVRTC,
           sources=["*.cpp"]),
    # Its threads change the same words at once, until a count that all of a block read is reached.
    sample(f"{INTRO}/simpleAttributes", "", free=True,
           replace={"*.cu": [(r"l2CacheSize \* 4", "l2CacheSize / 64"),
                             (r"l2CacheSize / 4", "l2CacheSize / 1024"),
                             (r"deviceProp\.maxGridSize\[1\]", "4"), ("0xAFFFF", "0xFFF")]}),
    sample(f"{INTRO}/simpleDrvRuntime", "Result = PASS", sources=["*.cpp"], flags=["-lcuda"],
           device={"vectorAdd_kernel64.fatbin": "vectorAdd_kernel.cu"}),
    sample(f"{INTRO}/simpleHyperQ", "", ["--nstreams=8"],
           replace={"*.cu": [(r"kernel_time = 10", "kernel_time = 0.1f")]}),
    sample(f"{INTRO}/simpleIPC", "", ["--all"], sources=["*.cu", "COMMON/helper_multiprocess.cpp"],
           flags=["-lcuda"], needs="IPC"),
    sample(f"{INTRO}/simpleMultiCopy", "", replace={"*.cu": [(r"1 << 22", "1 << 14"),
                                                             (r"nreps\s+= 10", "nreps = 8")]}),
    sample(f"{INTRO}/simpleMultiGPU", "", replace={"*.cu": [(r"1048576 \* 32", "65536 * 32")]}),
    sample(f"{INTRO}/simpleP2P", "", status=2, needs=ONE_GPU),
    sample(f"{INTRO}/simpleTextureDrv", "completed, returned OK|Test PASSED|", sources=["*.cpp"],
           flags=["-lcuda"], device={"simpleTexture_kernel64.fatbin": "simpleTexture_kernel.cu"},
           files=["data"]),
    # The CPU and the kernel change the same words at once.
    sample(f"{INTRO}/systemWideAtomics", "completed, returned OK", free=True,
           replace={"*.cu": [(r"LOOP_NUM 50", "LOOP_NUM 5")]}),
    sample(f"{INTRO}/template", ""),
    sample(f"{INTRO}/vectorAddDrv", "Result = PASS", sources=["*.cpp"], flags=["-lcuda"],
           device={"vectorAdd_kernel64.fatbin": "vectorAdd_kernel.cu"}),
    sample(f"{INTRO}/vectorAddMMAP", "Result = PASS", sources=["*.cpp"], flags=["-lcuda"],
           device={"vectorAdd_kernel64.fatbin": "vectorAdd_kernel.cu"}),
    sample(f"{INTRO}/vectorAdd_nvrtc", "Test PASSED", flags=NVRTC, sources=["*.cpp"]),
    sample(f"{UTILITIES}/deviceQuery", "Result = PASS", needs="no kernels"),
    sample(f"{UTILITIES}/deviceQueryDrv", "Result = PASS", flags=["-lcuda"], needs="no kernels"),
    sample(f"{UTILITIES}/topologyQuery", "", needs="no kernels"),
    sample(f"{TECHNIQUES}/MC_EstimatePiInlineP", "", flags=["-Iinc"],
           sources=["src/*.cpp", "src/*.cu"]),
    sample(f"{TECHNIQUES}/MC_EstimatePiInlineQ", "", flags=["-Iinc", "-lcurand"],
           sources=["src/*.cpp", "src/*.cu"], needs="cuRAND's host library"),
    sample(f"{TECHNIQUES}/MC_EstimatePiP", "", flags=["-Iinc", "-lcurand"],
           sources=["src/*.cpp", "src/*.cu"], needs="cuRAND's host library"),
    sample(f"{TECHNIQUES}/MC_EstimatePiQ", "", flags=["-Iinc", "-lcurand"],
           sources=["src/*.cpp", "src/*.cu"], needs="cuRAND's host library"),
    sample(f"{TECHNIQUES}/MC_SingleAsianOptionP", "", flags=["-Iinc"],
           sources=["src/*.cpp", "src/*.cu"]),
    sample(f"{TECHNIQUES}/inlinePTX_nvrtc", "Test Successful", flags=NVRTC, sources=["*.cpp"]),
    sample(f"{TECHNIQUES}/interval", "", replace={"*.h": [(r"NUM_RUNS \(100\)", "NUM_RUNS (1)"),
                                                          (r"GRID_SIZE\s+= 1024",
                                                           "GRID_SIZE = 16")]}),
    sample(f"{TECHNIQUES}/streamOrderedAllocationIPC", "", flags=["-lcuda"],
           sources=["*.cu", "COMMON/helper_multiprocess.cpp"], needs="IPC"),
    sample(f"{TECHNIQUES}/streamOrderedAllocationP2P", "", status=2, needs=ONE_GPU),
    sample(f"{TECHNIQUES}/threadMigration", "", sources=["*.cpp"], flags=["-lcuda", "-lpthread"],
           device={"threadMigration_kernel64.fatbin": "threadMigration_kernel.cu"}),
    sample(f"{FEATURES}/StreamPriorities", "",
           replace={"*.cu": [(r"256 \* 1024 \* 1024", "2 * 1024 * 1024"),
                             (r"128 \* 1024 \* 1024", "1024 * 1024")]}),
    sample(f"{FEATURES}/cudaCompressibleMemory", "", flags=["-lcuda"], needs="compressible memory"),
    sample(f"{FEATURES}/graphConditionalNodes", ""),
    sample(f"{FEATURES}/graphMemoryFootprint", "Sample complete",
           replace={"*.cu": [(r"64 \* 1024 \* 1024", "256 * 1024"),
                             (r"kernelTime\s+= 5", "kernelTime = 0.1f")]}),
    sample(f"{FEATURES}/graphMemoryNodes", "Validation PASSED",
           replace={"*.cu": [FIXED_SEED, (r"NUM_ELEMENTS\s+8000000", "NUM_ELEMENTS 80000")]}),
    sample(f"{FEATURES}/memMapIPCDrv", "", sources=["*.cpp", "COMMON/helper_multiprocess.cpp"],
           flags=["-lcuda"], device={"memMapIpc_kernel64.ptx": "memMapIpc_kernel.cu"}, needs="IPC"),
    sample(f"{FEATURES}/ptxjit", "", sources=["*.cpp"], flags=["-lcuda"],
           device={"ptxjit_kernel64.ptx": "ptxjit_kernel.cu"}),
    sample(f"{LIBRARIES}/lineOfSight", "Test passed"),
    sample(f"{DOMAIN}/BlackScholes_nvrtc", "Test passed", flags=NVRTC, sources=["*.cpp"], replace={
        "*.cpp": [(r"OPT_N\s+= 4000000", "OPT_N = 40000"),
                  (r"NUM_ITERATIONS = 512", "NUM_ITERATIONS = 2")]}),
    sample(f"{DOMAIN}/HSOpticalFlow", "", files=["data"], replace={
        "main.cpp": [(r"nSolverIters = 500", "nSolverIters = 5"),
                     (r"nWarpIters\s+= 3", "nWarpIters = 1")]}),
    sample(f"{DOMAIN}/MonteCarloMultiGPU", "Test passed", sources=["*.cu", "*.cpp"],
           flags=["-lpthread", "-lcurand"], needs="cuRAND's host library",
           replace={"*.cpp": [(r"PATH_N = 262144", "PATH_N = 4096"), (r"8 \* 1024", "64")]}),
    sample(f"{DOMAIN}/NV12toBGRandResize", "", ["-batch=1"],
           replace={"*.cpp": [(r"TEST_LOOP 20", "TEST_LOOP 1")]}, files=["data"]),
    sample(f"{DOMAIN}/binomialOptions_nvrtc", "Test passed", flags=NVRTC, sources=["*.cpp"],
           replace={"*.h": [(r"MAX_OPTIONS 1024", "MAX_OPTIONS 16")]}),
    sample(f"{DOMAIN}/dwtHaar1D", "Test success", needs="data that the checkout lacks"),
    sample(f"{DOMAIN}/p2pBandwidthLatencyTest", "",
           replace={"*.cu": [(r"numElems = 40000000", "numElems = 40000"),
                             (r"repeat\s+= \d+", "repeat = 1")]}, free=True),
    sample(f"{DOMAIN}/quasirandomGenerator_nvrtc", "", flags=NVRTC, sources=["*.cpp"],
           replace={"*.cpp": [(r"N\s+= 1048576", "N = 16384"),
                              (r"numIterations = 20", "numIterations = 1")]}),
    # A kernel spins until the host says so.
    sample(f"{SPEED}/UnifiedMemoryPerf", "", free=True,
           replace={"*.cu": [(r"numKernelRuns\s+= 20", "numKernelRuns = 1"),
                             (r"maxSampleSizeInMb = 64", "maxSampleSizeInMb = 1")]}),
    # Its kernels spin until the host says so, and others for a time of day.
    sample(f"{SPEED}/cudaGraphsPerfScaling", "", free=True),
]

POLYBENCH = [
    polybench("2DCONV", "2DConvolution.cu", {"": 256}),
    polybench("2MM", "2mm.cu", {"": 64}),
    polybench("3DCONV", "3DConvolution.cu", {"": 32}),
    polybench("3MM", "3mm.cu", {"": 64}),
    polybench("ATAX", "atax.cu", {"": 256}),
    polybench("BICG", "bicg.cu", {"": 256}),
    polybench("CORR", "correlation.cu", {"": 256}),
    polybench("COVAR", "covariance.cu", {"": 256}),
    polybench("FDTD-2D", "fdtd2d.cu", {"": 128, "tmax": 5, "TMAX": 5}),
    polybench("GEMM", "gemm.cu", {"": 64}),
    polybench("GEMVER", "gemver.cu", {"": 256}),
    polybench("GESUMMV", "gesummv.cu", {"": 256}),
    polybench("GRAMSCHM", "gramschmidt.cu", {"": 64}),
    # Its kernels use x only: as published eight threads add to the same element.
    polybench("MVT", "mvt.cu", {"": 256}, [(r"(DIM_THREAD_BLOCK_Y) \d+", r"\1 1")]),
    polybench("SYR2K", "syr2k.cu", {"": 64}),
    polybench("SYRK", "syrk.cu", {"": 64}),
    polybench("ADI", "adi.cu", {"": 64, "TMAX": 2}),
    polybench("JACOBI1D", "jacobi1D.cu", {"": 256, "TSTEPS": 5}),
    polybench("JACOBI2D", "jacobi2D.cu", {"": 64}),
    polybench("LU", "lu.cu", {"": 64}),
]


# The program copies its structures as they are; what changes is that the host's addresses in them,
# which no kernel reads, are zeros on the device.
POINTS_WITHOUT_ADDRESSES = (
    r"CUDA_SAFE_CALL\( cudaMemcpy\(p,\s+points->p,.*\n",
    """{
        Point* copy = (Point*)calloc(num, sizeof(Point));
        for (int i = 0; i < num; i++) {
            copy[i].weight = points->p[i].weight;
            copy[i].assign = points->p[i].assign;
            copy[i].cost = points->p[i].cost;
        }
        CUDA_SAFE_CALL(cudaMemcpy(p, copy, num * sizeof(Point), cudaMemcpyHostToDevice));
        free(copy);
    }
""")


def rodinia(name, sources, good, args, **more):
    return Program("Rodinia", name, f"cuda/{name}", sources, good, args,
                   flags=more.pop("flags", []), **more)


RODINIA = [
    rodinia("lud", ["cuda/lud.cu", "cuda/lud_kernel.cu", "common/common.c"], "",
            ["-s", "64", "-v"], flags=["-I./common"]),
    # It prints fields that CUDA 13 lacks.
    rodinia("gaussian", ["gaussian.cu"], "", ["-s", "64"],
            replace={"*.cu": [(r"deviceProp\.\s*(clockRate|deviceOverlap)", "0")]}),
    rodinia("pathfinder", ["pathfinder.cu"], "", ["1000", "100", "20"]),
    rodinia("nw", ["needle.cu"], "", ["128", "10"]),
    rodinia("srad/srad_v2", ["srad.cu"], "", ["128", "128", "0", "31", "0", "31", "0.5", "2"],
            flags=["-DGPU"], needs="memory before its image, of which it reads a row"),
    rodinia("lavaMD", ["main.c", "kernel/kernel_gpu_cuda_wrapper.cu", "util/num/num.c",
                       "util/timer/timer.c", "util/device/device.cu"], "", ["-boxes1d", "2"],
            replace={"main.c": [FIXED_SEED]}),
    rodinia("backprop", ["backprop.c", "backprop_cuda.cu", "facetrain.c", "imagenet.c"], "",
            ["4096"]),
    rodinia("bfs", ["bfs.cu"], "", ["graph.txt"]),
    rodinia("cfd", ["euler3d.cu"], "Saved solution", ["domain.txt"],
            flags=["-ISAMPLES/Common", "-Dblock_length=192"],
            replace={"*.cu": [(r"define iterations 2000", "define iterations 3")]}),
    rodinia("dwt2d", ["main.cu", "components.cu", "dwt.cu", "dwt_cuda/*.cu"], "",
            ["192.bmp", "-d", "192x192", "-f", "-5", "-l", "3"], flags=["-I."],
            replace={"main.cu": [(r"\.\./\.\./data/dwt2d/", "")]}),
    rodinia("hotspot3D", ["3D.cu"], "", ["64", "2", "4", "power.txt", "temp.txt", "out.txt"]),
    # Two blocks write the first words of the same array: --check=races names them.
    rodinia("myocyte", ["main.cu"], "", ["3", "1", "0"], free=True,
            replace={"*.cu": [(r"\.\./\.\./data/myocyte/", "")]}),
    rodinia("nn", ["nn_cuda.cu"], "Distance=",
            ["files.txt", "-r", "5", "-lat", "30", "-lng", "90"]),
    rodinia("srad/srad_v1", ["main.cu"], "", ["2", "0.5", "64", "64"],
            replace={"main.cu": [(r"\.\./\.\./\.\./data/srad/image.pgm", "image.pgm")]}),
    rodinia("b+tree", ["main.c", "kernel/*wrapper*.cu", "util/*/*.c", "util/*/*.cu"], "",
            ["file", "keys.txt", "command", "commands.txt"]),
    rodinia("hotspot", ["hotspot.cu"], "", ["64", "2", "4", "temp.txt", "power.txt", "out.txt"]),
    rodinia("streamcluster", ["streamcluster_cuda_cpu.cpp", "streamcluster_cuda.cu"], "",
            ["10", "20", "16", "512", "512", "100", "none", "out.txt", "1"],
            replace={"streamcluster_cuda.cu": [POINTS_WITHOUT_ADDRESSES]}),
    rodinia("particlefilter", ["ex_particle_CUDA_naive_seq.cu"], "",
            ["-x", "32", "-y", "32", "-z", "3", "-np", "256"], replace={"*.cu": [FIXED_SEED]}),
]


def generated_inputs(folder):
    """Files that Rodinia's programs read: a graph in a ring with chords, temperatures, powers."""
    nodes = 512
    lines = [str(nodes)] + [f"{3 * n} 3" for n in range(nodes)] + ["", "0", "", str(3 * nodes)]
    for n in range(nodes):
        lines += [f"{(n + step) % nodes} 1" for step in (1, 7, 100)]
    (folder / "graph.txt").write_text("\n".join(lines) + "\n")
    cells = range(64 * 64)
    (folder / "temp.txt").write_text("".join(f"{320 + i % 17}\n" for i in cells))
    (folder / "power.txt").write_text("".join(f"{(i * 37 % 100) / 1e5}\n" for i in cells))
    # A ring of elements, each with the next four as neighbours (numbers from 1 on).
    elements = 400
    (folder / "domain.txt").write_text(f"{elements}\n" + "".join(
        f"{1 + e % 3} " + " ".join(f"{1 + (e + step) % elements} {x} {y} {z}" for step, x, y, z in
                                   ((1, .5, .1, .2), (2, -.5, .2, .1), (-1, .1, .5, -.2),
                                    (-2, -.1, -.8, -.1))) + "\n" for e in range(elements)))
    (folder / "y.txt").write_text("".join(f"{(i * 29 % 97) / 97 + .01}\n" for i in range(91)))
    (folder / "params.txt").write_text("".join(f"{(i * 5 % 7) / 7 + .1}\n" for i in range(18)))
    (folder / "files.txt").write_text("storms.txt\n")
    (folder / "storms.txt").write_text("".join(
        f"{1950 + i % 55:4} {1 + i % 12:2} {1 + i % 28:2} {i % 4 * 6:2} {1 + i % 28:2} "
        f"{'STORM':9} {7 + i * 37 % 630 / 10:5.1f} {i * 53 % 3580 / 10:5.1f} {10 + i % 155:4} "
        f"{i % 900:4}\n" for i in range(2000)))
    # Of srad_v1: what it wrote once, and writes over.
    if (folder / "image_out.pgm").exists() and not (folder / "image.pgm").exists():
        (folder / "image.pgm").write_bytes((folder / "image_out.pgm").read_bytes())
    (folder / "192.bmp").write_bytes(bytes(i * i % 251 for i in range(192 * 192 * 3)))
    (folder / "keys.txt").write_text("1000\n" + "".join(f"{i * 7 % 1000}\n" for i in range(1000)))
    (folder / "commands.txt").write_text("j 60 3\nk 100\n")
