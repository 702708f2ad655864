"""A random PTX kernel: nested branches and loops by thread, barriers, warps that exchange values.

Its results and the number of its instructions do not depend on the order in which threads run:
shared words that others read are between barriers, atomics commute and give nothing back, and the
lanes that exchange values in a branch are those whose votes said that they would be there.
"""
import random

WORDS, FLOATS, BLOCK = 8, 4, 96  # registers of a thread; threads of a block
BINARY = ["add.s32", "sub.u32", "mul.lo.s32", "mul.hi.u32", "and.b32", "or.b32", "xor.b32",
          "shl.b32", "shr.u32", "shr.s32", "min.s32", "max.u32", "div.u32", "rem.u32", "div.s32",
          "mul.wide.u16"]
UNARY = ["not.b32", "neg.s32", "popc.b32", "clz.b32", "brev.b32", "abs.s32"]
TERNARY = ["mad.lo.s32", "lop3.b32", "prmt.b32", "shf.l.wrap.b32", "bfe.u32", "bfe.s32",
           "sad.u32", "dp4a.u32.u32"]
FLOAT = ["add.rn.f32", "sub.rz.f32", "mul.rn.f32", "min.f32", "max.ftz.f32", "div.rn.f32",
         "mul.rp.f32"]
TESTS = ["eq.s32", "ne.s32", "lt.s32", "ge.u32", "gt.s32", "le.u32"]
REDUCE = ["add.u32", "min.s32", "max.u32", "and.b32", "or.b32", "xor.b32"]


class Kernel:
    """The text is `text`, for grids and blocks of one dimension, blocks of BLOCK threads."""

    def __init__(self, seed, size=40):
        self.random = random.Random(seed)
        self.lines, self.labels, self.predicates = [], 0, 0
        self.left = size
        while self.left > 0:
            self.statement(0, None)
        self.text = self.whole()

    def emit(self, line):
        self.lines.append(f"\t{line};")

    def label(self):
        self.labels += 1
        return f"$L{self.labels}"

    def predicate(self):
        self.predicates += 1
        return f"%p{self.predicates}"

    def word(self):
        return f"%w{self.random.randrange(WORDS)}"

    def source(self):
        """A register, most often, or a number."""
        if self.random.random() < 0.8:
            return self.word()
        return str(self.random.choice([0, 1, 3, 31, 255, -1, -7, 0x7fffffff, 1640531527]))

    def float(self):
        return f"%f{self.random.randrange(FLOATS)}"

    def test(self):
        p = self.predicate()
        self.emit(f"setp.{self.random.choice(TESTS)} {p}, {self.word()}, {self.source()}")
        return p

    def arithmetic(self):
        kind = self.random.randrange(6)
        if kind < 3:
            op = self.random.choice(BINARY)
            if op == "mul.wide.u16":
                self.emit(f"cvt.u16.u32 %h0, {self.word()}")
                self.emit(f"mul.wide.u16 {self.word()}, %h0, 40503")
            else:
                self.emit(f"{op} {self.word()}, {self.word()}, {self.source()}")
        elif kind == 3:
            op = self.random.choice(TERNARY)
            tail = f", {self.random.randrange(256)}" if op == "lop3.b32" else ""
            last = self.word() if op.startswith("bfe") else self.source()
            self.emit(f"{op} {self.word()}, {self.word()}, {self.word()}, {last}{tail}")
        elif kind == 4:
            self.emit(f"{self.random.choice(UNARY)} {self.word()}, {self.word()}")
        else:
            choice = self.random.randrange(4)
            if choice == 0:
                self.emit(f"cvt.rn.f32.s32 {self.float()}, {self.word()}")
            elif choice == 1:
                self.emit(f"cvt.rzi.s32.f32 {self.word()}, {self.float()}")
            elif choice == 2:
                self.emit(f"fma.rn.f32 {self.float()}, {self.float()}, {self.float()}, "
                          f"{self.float()}")
            else:
                self.emit(f"{self.random.choice(FLOAT)} {self.float()}, {self.float()}, "
                          f"{self.float()}")

    def guarded(self):
        """Instructions that some threads skip without a branch."""
        p = self.test()
        for _ in range(self.random.randrange(1, 4)):
            sign = self.random.choice(["", "!"])
            if self.random.random() < 0.3:
                self.emit(f"selp.b32 {self.word()}, {self.word()}, {self.source()}, {p}")
            else:
                self.emit(f"@{sign}{p} add.s32 {self.word()}, {self.word()}, {self.source()}")

    def exchange(self, mask):
        """Of the lanes of the mask, which are all here; None: of the whole warp."""
        mask = mask or "0xffffffff"
        kind = self.random.randrange(5)
        if kind == 0:
            mode, limit = self.random.choice([("bfly", 31), ("idx", 31), ("up", 0), ("down", 31)])
            p = self.predicate()
            # What a lane outside of the mask would give is not used.
            self.emit(f"shfl.sync.{mode}.b32 %t0|{p}, {self.word()}, "
                      f"{self.random.randrange(1, 32)}, {limit}, {mask}")
            if mask == "0xffffffff":
                self.emit(f"@{p} mov.b32 {self.word()}, %t0")
        elif kind == 1:
            self.emit(f"vote.sync.ballot.b32 {self.word()}, {self.test()}, {mask}")
        elif kind == 2:
            p = self.predicate()
            self.emit(f"vote.sync.{self.random.choice(['any', 'all', 'uni'])}.pred {p}, "
                      f"{self.test()}, {mask}")
            self.emit(f"selp.b32 {self.word()}, {self.word()}, {self.word()}, {p}")
        elif kind == 3:
            self.emit(f"redux.sync.{self.random.choice(REDUCE).replace('add.u32', 'add.s32')} "
                      f"{self.word()}, {self.word()}, {mask}")
        else:
            self.emit(f"and.b32 %t0, {self.word()}, 3")
            self.emit(f"match.any.sync.b32 {self.word()}, %t0, {mask}")

    def meet(self):
        """The threads of the block: others' values by way of shared memory, or a barrier's own."""
        if self.random.random() < 0.3:
            p = self.test()
            if self.random.random() < 0.5:
                self.emit("barrier.sync.aligned 0")
                self.emit(f"bar.red.popc.u32 {self.word()}, 1, {p}")
            else:
                q = self.predicate()
                self.emit(f"bar.red.{self.random.choice(['and', 'or'])}.pred {q}, 1, {p}")
                self.emit(f"selp.b32 {self.word()}, {self.word()}, {self.source()}, {q}")
            return
        self.emit(f"st.shared.b32 [%own], {self.word()}")
        self.emit("bar.sync 0")
        self.emit(f"add.u32 %t0, %tid0, {self.random.randrange(1, BLOCK)}")
        self.emit(f"rem.u32 %t0, %t0, {BLOCK}")
        self.emit("shl.b32 %t0, %t0, 2")
        self.emit("add.u32 %t0, %t0, %base")
        self.emit(f"ld.shared.b32 {self.word()}, [%t0]")
        self.emit("bar.sync 0")

    def add_to_sums(self):
        """Atomics whose order nobody sees."""
        self.emit(f"and.b32 %t0, {self.word()}, 28")
        if self.random.random() < 0.5:
            self.emit("cvt.u64.u32 %a1, %t0")
            self.emit("add.u64 %a1, %a1, %sums")
            self.emit(f"red.global.add.u32 [%a1], {self.word()}")
        else:
            self.emit(f"red.global.add.u32 [%sums+{4 * self.random.randrange(8)}], {self.word()}")

    def branch(self, depth, mask):
        """if and else; inside, the lanes of each side know each other by a vote."""
        p, other, end = self.test(), self.label(), self.label()
        inside = [None, None]
        if mask or depth == 0:
            inside = [f"%m{2 * depth}", f"%m{2 * depth + 1}"]
            self.emit(f"vote.sync.ballot.b32 {inside[0]}, {p}, {mask or '0xffffffff'}")
            self.emit(f"vote.sync.ballot.b32 {inside[1]}, !{p}, {mask or '0xffffffff'}")
        self.emit(f"@!{p} bra {other}")
        for _ in range(self.random.randrange(1, 4)):
            self.statement(depth + 1, inside[0])
        if self.random.random() < 0.6:
            self.emit(f"bra {end}")
            self.lines.append(f"{other}:")
            for _ in range(self.random.randrange(1, 4)):
                self.statement(depth + 1, inside[1])
            self.lines.append(f"{end}:")
        else:
            self.lines.append(f"{other}:")

    def loop(self, depth, mask):
        """Times that differ by thread, or that do not, so that all may meet inside."""
        begin, counter = self.label(), f"%n{depth}"
        is_uniform = self.random.random() < 0.4
        if is_uniform:
            self.emit(f"mov.u32 {counter}, {self.random.randrange(1, 4)}")
        else:
            self.emit(f"and.b32 {counter}, {self.word()}, 3")
        self.lines.append(f"{begin}:")
        for _ in range(self.random.randrange(1, 4)):
            # At depth 0 of uniform loops all threads are still together.
            if is_uniform and depth == 0:
                self.random.choice([self.meet, lambda: self.exchange(None), self.arithmetic])()
            else:
                self.statement(depth + 1, mask if is_uniform and depth > 0 else None)
        p = self.predicate()
        self.emit(f"sub.s32 {counter}, {counter}, 1")
        self.emit(f"setp.gt.s32 {p}, {counter}, 0")
        self.emit(f"@{p} bra {begin}")

    def statement(self, depth, mask):
        self.left -= 1
        choice = self.random.random()
        if choice < 0.4 or depth > 3:
            self.arithmetic()
        elif choice < 0.5:
            self.guarded()
        elif choice < 0.56:
            self.add_to_sums()
        elif choice < 0.7:
            self.branch(depth, mask)
        elif choice < 0.8:
            self.loop(depth, mask)
        elif depth == 0:
            self.random.choice([self.meet, lambda: self.exchange(None)])()
        elif mask is not None:
            self.exchange(mask)
        else:
            self.arithmetic()

    def whole(self):
        words = "\n".join(f"\tmad.lo.s32 %w{k}, %at, {2654435761 - 977 * k}, {k * k};"
                          for k in range(WORDS))
        floats = "\n".join(f"\tcvt.rn.f32.s32 %f{k}, %w{k};" for k in range(FLOATS))
        stores = "\n".join(f"\tst.global.b32 [%a0+{4 * k}], %w{k};" for k in range(WORDS)) + \
            "\n" + "\n".join(f"\tst.global.f32 [%a0+{4 * (WORDS + k)}], %f{k};"
                             for k in range(FLOATS))
        return f""".version 8.0
.target sm_80
.address_size 64
.visible .entry random(.param .u64 out, .param .u64 sums)
{{
\t.reg .pred %p<{self.predicates + 1}>;
\t.reg .b16 %h<1>;
\t.reg .b32 %w<{WORDS}>, %t<1>, %m<12>, %n<6>, %tid0, %cta, %at, %own, %base;
\t.reg .f32 %f<{FLOATS}>;
\t.reg .b64 %a<2>, %sums;
\t.shared .align 4 .b8 words[{4 * BLOCK}];
\tmov.u32 %tid0, %tid.x;
\tmov.u32 %cta, %ctaid.x;
\tmad.lo.s32 %at, %cta, {BLOCK}, %tid0;
\tmov.u32 %base, words;
\tshl.b32 %own, %tid0, 2;
\tadd.u32 %own, %own, %base;
\tld.param.u64 %a0, [out];
\tld.param.u64 %sums, [sums];
\tmul.wide.u32 %a1, %at, {4 * (WORDS + FLOATS)};
\tadd.u64 %a0, %a0, %a1;
{words}
{floats}
""" + "\n".join(self.lines) + f"\n{stores}\n\tret;\n}}\n"


OUT_BYTES = 4 * (WORDS + FLOATS)  # per thread
