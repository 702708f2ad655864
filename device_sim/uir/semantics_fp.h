// Floating-point micro-ops. Signatures: name<D>(sources..., V& fp, u), where fp holds
// FPCR << 32 | FPSR.
