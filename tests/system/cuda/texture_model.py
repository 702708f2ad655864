"""What fetches from textures give, in exact fractions, from the formulas of the CUDA C++
Programming Guide (appendix "Texture Fetching") and of cudaTextureDesc.

Where the guide leaves something open, the model has what docs/ptx.md states, as an H100 does it.
"""
import dataclasses
import itertools
import math
import random
import struct
from fractions import Fraction

WRAP, CLAMP, MIRROR, BORDER = range(4)
SIGNED, UNSIGNED, FLOAT = range(3)
ARRAY, MIPMAPPED, LINEAR, PITCHED = range(4)
LAYERED, CUBEMAP, GATHER_FLAG = 1, 4, 8
D1, D2, D3, LAYERS1, LAYERS2, CUBE, CUBES, FETCH = range(8)
LEVEL, GRAD, GATHER = 16, 32, 64


def single(x):
    """Rounded to a float of 32 bits."""
    return struct.unpack("<f", struct.pack("<f", x))[0]


def bits_of(x):
    return struct.unpack("<I", struct.pack("<f", x))[0]


def half(x):
    """Rounded to a float of 16 bits."""
    return struct.unpack("<e", struct.pack("<e", x))[0]


def nearest_single(x):
    """The float that is nearest to a fraction, ties to even; as bits."""
    if x == 0:
        return 0
    sign, size = (0x80000000, -x) if x < 0 else (0, x)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    if Fraction(2) ** exponent > size:
        exponent -= 1
    step = Fraction(2) ** (max(exponent, -126) - 23)
    count = size / step
    whole = count.numerator // count.denominator
    rest = count - whole
    whole += rest > Fraction(1, 2) or (rest == Fraction(1, 2) and whole % 2)
    return sign | bits_of(float(whole * step))


@dataclasses.dataclass
class Texture:
    resource: int = ARRAY
    kind: int = FLOAT
    bits: int = 32
    channels: int = 1
    width: int = 1
    height: int = 0
    depth: int = 0
    flags: int = 0
    levels: int = 1
    normalized: int = 0
    filter: int = 0
    mip_filter: int = 0
    modes: tuple = (CLAMP, CLAMP, CLAMP)
    read_mode: int = 0
    srgb: int = 0
    border: tuple = (0.0, 0.0, 0.0, 0.0)
    bias: float = 0.0
    least: float = 0.0
    most: float = 0.0
    op: int = D1
    texels: list = None  # per level: values as they are stored, x fastest, then channels within

    def head(self, count):
        return struct.pack("<17i4f3f2i", self.resource, self.kind, self.bits, self.channels,
                           self.width, self.height, self.depth, self.flags, self.levels,
                           self.normalized, self.filter, self.mip_filter, *self.modes,
                           self.read_mode, self.srgb, *self.border, self.bias, self.least,
                           self.most, self.op, count)

    def sizes(self, level):
        layered = self.flags & (LAYERED | CUBEMAP)
        half = [max(1, n >> level) for n in (self.width, self.height, self.depth)]
        return half[0], half[1], max(1, self.depth) if layered else half[2]

    def fill(self, rng):
        """Random texels."""
        self.texels = []
        for level in range(self.levels):
            w, h, d = self.sizes(level)
            self.texels.append([self.random_value(rng) for _ in range(w * h * d * self.channels)])

    def random_value(self, rng):
        if self.kind == FLOAT:
            return rng.randrange(-512, 512) / 32
        low = 0 if self.kind == UNSIGNED else -(1 << (self.bits - 1))
        high = low + (1 << self.bits) - 1
        return rng.choice([low, high, rng.randint(low, high), rng.randint(low, high)])

    def bytes(self):
        code = {(FLOAT, 32): "f", (FLOAT, 16): "e"}.get((self.kind, self.bits))
        if code is None:
            code = {8: "b", 16: "h", 32: "i"}[self.bits]
            code = code.upper() if self.kind == UNSIGNED else code
        return b"".join(struct.pack(f"<{len(v)}{code}", *v) for v in self.texels)

    # --- one fetch

    def is_float(self):
        return self.kind == FLOAT or (self.read_mode == 1 and self.bits < 32)

    def value(self, level, at, channel):
        """A fraction for what becomes a float; an integer; None: beyond the border."""
        w, h, _ = self.sizes(level)
        x, y, z = at
        stored = self.texels[level][((z * h + y) * w + x) * self.channels + channel]
        if self.kind == FLOAT or not self.is_float():
            return Fraction(stored)
        if self.kind == SIGNED:
            return max(Fraction(-1), Fraction(stored, (1 << (self.bits - 1)) - 1))
        share = Fraction(stored, (1 << self.bits) - 1)
        if self.srgb and channel < 3:
            s = float(share)
            return Fraction(s / 12.92 if s <= 0.04045 else ((s + 0.055) / 1.055) ** 2.4)
        return share

    def index(self, i, size, dimension):
        mode = self.modes[dimension]
        if not self.normalized and mode in (WRAP, MIRROR):
            mode = CLAMP
        if 0 <= i < size:
            return i
        if mode == WRAP:
            return i % size
        if mode == MIRROR:
            i %= 2 * size
            return i if i < size else 2 * size - 1 - i
        if mode == BORDER:
            return None
        return min(max(i, 0), size - 1)

    def taps(self, coordinate, size, dimension, filters):
        """The two texels of one dimension, and how much of the second there is."""
        x = Fraction(coordinate)
        if self.normalized:
            x = Fraction(math.floor(x * (1 << 20)), 1 << 20) * size
        if not filters:
            return [self.index(math.floor(x), size, dimension)] * 2, Fraction(0)
        place = x - Fraction(1, 2)
        i = math.floor(place)
        weight = Fraction(math.floor((place - i) * 256 + Fraction(1, 2)), 256)
        return [self.index(i, size, dimension), self.index(i + 1, size, dimension)], weight

    def place(self, geometry, p):
        """Coordinates of the texels' dimensions, and the slice."""
        if geometry in (CUBE, CUBES):
            x, y, z = (Fraction(v) for v in p[:3])
            if abs(x) >= abs(y) and abs(x) >= abs(z):
                face, m, s, t = (0, x, -z, -y) if x >= 0 else (1, -x, z, -y)
            elif abs(y) >= abs(z):
                face, m, s, t = (2, y, x, z) if y >= 0 else (3, -y, x, -z)
            else:
                face, m, s, t = (4, z, x, -y) if z >= 0 else (5, -z, -x, -y)
            cubes = max(1, self.depth // 6)
            cube = min(p[3] & 0xffffffff, cubes - 1) if geometry == CUBES else 0
            # As the hardware's, in single precision.
            def on_face(a):
                return single((single(single(float(a)) / single(float(m))) + 1) / 2)
            return [on_face(s), on_face(t)], 6 * cube + face
        dimensions = {D1: 1, LAYERS1: 1, D2: 2, LAYERS2: 2, D3: 3}[geometry]
        # The number of a layer is unsigned (PTX ISA, tex).
        layer = min(p[3] & 0xffffffff, self.depth - 1) if geometry in (LAYERS1, LAYERS2) else 0
        return list(p[:dimensions]), layer

    def border_value(self, channel):
        """Of what becomes a float: in the texture's format."""
        b = self.border[channel]
        if self.kind == FLOAT:
            return Fraction(half(b) if self.bits == 16 else b)
        low, top = (0, (1 << self.bits) - 1) if self.kind == UNSIGNED else \
            (-1, (1 << (self.bits - 1)) - 1)
        return Fraction(math.trunc(min(max(Fraction(b), low), 1) * top), top)

    def border_word(self, channel):
        if self.is_float():
            return nearest_single(self.border_value(channel))
        word = bits_of(self.border[channel]) & ((1 << self.bits) - 1)
        is_negative = self.kind == SIGNED and word >> (self.bits - 1)
        return (word - (1 << self.bits) if is_negative else word) & 0xffffffff

    def average(self, level, coordinates, layer, channel, filters, share):
        """Times `share`. What a texel and those behind it weigh together is rounded to 1/256."""
        if channel >= self.channels:
            return Fraction(0)
        sizes = self.sizes(level)
        rows = [self.taps(c, sizes[d], d, filters) for d, c in enumerate(coordinates)]
        texels = list(itertools.product(range(2), repeat=len(rows)))

        def together(t):
            product = share * math.prod(w for s, (_, w) in zip(t, rows) if s)
            return Fraction(math.floor(product * 256 + Fraction(1, 2)), 256)
        total = Fraction(0)
        for t in texels:
            weight = sum((-1) ** (sum(u) - sum(t)) * together(u) for u in texels
                         if all(a <= b for a, b in zip(t, u)))
            at = [rows[d][0][s] for d, s in enumerate(t)]
            at += [0] * (2 - len(at))
            at += [layer] * (3 - len(at))
            v = self.border_value(channel) if None in at else self.value(level, at, channel)
            total += weight * v
        return total

    def rounded(self, average):
        """To the channel's format, integers to 16 bits."""
        if self.kind == FLOAT and self.bits == 16:
            return nearest_single(Fraction(half(float(average))))
        if self.kind == FLOAT or self.srgb:
            return nearest_single(average)
        top = 65535 if self.kind == UNSIGNED else 32767
        return nearest_single(Fraction(math.floor(average * top + Fraction(1, 2)), top))

    def word(self, level, at, channel):
        if channel >= self.channels:
            return 0
        if None in at:
            return self.border_word(channel)
        v = self.value(level, at, channel)
        return nearest_single(v) if self.is_float() else int(v) & 0xffffffff

    def fetch(self, p):
        """The four words that a fetch gives. `p`: x, y, z, layer, level, dx (3), dy (3), i."""
        if self.op == FETCH:
            i = p[11]
            if not 0 <= i < self.width:
                return [0] * 4
            return [self.word(0, (i, 0, 0), c) for c in range(4)]
        geometry = self.op & 7 if self.op < GATHER else D2
        coordinates, layer = self.place(geometry, p)
        if self.op >= GATHER:
            sizes = self.sizes(0)
            x, y = (self.taps(c, sizes[d], d, True)[0] for d, c in enumerate(coordinates))
            order = [(0, 1), (1, 1), (1, 0), (0, 0)]  # against the clock from the lower left
            return [self.word(0, (x[a], y[b], 0), self.op - GATHER) for a, b in order]
        levels = [(0, Fraction(1))]
        if self.op & (LEVEL | GRAD):
            levels = self.levels_for(self.lod(geometry, p))
        if not self.is_float() or (not self.filter and len(levels) == 1):
            level = levels[0][0]
            sizes = self.sizes(level)
            at = [self.taps(c, sizes[d], d, False)[0][0] for d, c in enumerate(coordinates)]
            at += [0] * (2 - len(at))
            at += [layer] * (3 - len(at))
            return [self.word(level, tuple(at), c) for c in range(4)]
        return [self.rounded(sum(self.average(n, coordinates, layer, c, self.filter, share)
                                 for n, share in levels)) for c in range(4)]

    def lod(self, geometry, p):
        if self.op & LEVEL:
            return p[4]
        count = {D1: 1, LAYERS1: 1, D2: 2, LAYERS2: 2, D3: 3}[geometry]
        sizes = self.sizes(0)
        lengths = [math.sqrt(sum((g[d] * (sizes[d] if self.normalized else 1)) ** 2
                                 for d in range(count))) for g in (p[5:8], p[8:11])]
        return single(math.log2(max(lengths)))

    def levels_for(self, lod):
        lod = min(max(single(lod + self.bias), self.least), self.most)
        lod = min(max(lod, 0.0), self.levels - 1)
        if self.mip_filter and self.is_float():
            fixed = math.floor(Fraction(lod) * 256)
            first, weight = fixed // 256, Fraction(fixed % 256, 256)
            return [(first, 1 - weight)] + ([(first + 1, weight)] if weight else [])
        return [(math.floor(Fraction(lod) + Fraction(1, 2)), Fraction(1))]


# --- random cases

FORMATS = [(FLOAT, 32), (FLOAT, 16), (UNSIGNED, 8), (SIGNED, 8), (UNSIGNED, 16), (SIGNED, 16),
           (UNSIGNED, 32), (SIGNED, 32)]
OPS = [D1, D2, D3, LAYERS1, LAYERS2, CUBE, CUBES, FETCH,
       *(LEVEL + g for g in (D1, D2, D3, LAYERS1, LAYERS2, CUBE, CUBES)),
       *(GRAD + g for g in (D1, D2, D3, LAYERS1, LAYERS2)), *(GATHER + c for c in range(4))]


def random_texture(rng, op):
    t = Texture(op=op)
    t.kind, t.bits = rng.choice(FORMATS)
    t.channels = rng.choice([1, 2, 4])
    if t.kind != FLOAT and t.bits < 32:
        t.read_mode = rng.randrange(2)
        t.srgb = int(t.bits == 8 and t.kind == UNSIGNED and t.read_mode and rng.random() < 0.3)
    geometry = op & 7 if op < GATHER else D2
    t.width = rng.randint(1, 13)
    if geometry in (D2, D3, LAYERS2):
        t.height = rng.randint(1, 9)
    if geometry == D3:
        t.depth = rng.randint(1, 6)
    if geometry in (LAYERS1, LAYERS2):
        t.flags, t.depth = LAYERED, rng.randint(1, 5)
    if geometry in (CUBE, CUBES):
        t.height = t.width
        t.flags, t.depth = CUBEMAP, 6
        if geometry == CUBES:
            t.flags, t.depth = CUBEMAP | LAYERED, 6 * rng.randint(1, 3)
    t.modes = tuple(rng.randrange(4) for _ in range(3))
    t.normalized = rng.randrange(2)
    if op == FETCH:
        t.resource, t.normalized = LINEAR, 0
    elif op == D2 and rng.random() < 0.4:
        t.resource = PITCHED
    elif op & (LEVEL | GRAD) and op < GATHER:
        t.resource, t.normalized = MIPMAPPED, 1
        layered = t.flags & (LAYERED | CUBEMAP)
        longest = max(t.width, t.height, 0 if layered else t.depth)
        t.levels = rng.randint(1, longest.bit_length())
        t.mip_filter = rng.randrange(2)
        t.bias = rng.choice([0.0, 0.0, 0.75, -0.5])
        t.least, t.most = rng.choice([(0.0, 20.0), (0.0, 1.5), (0.5, 20.0)])
    if geometry in (CUBE, CUBES):
        t.normalized = 1
    if op >= GATHER:
        t.flags = GATHER_FLAG
    if t.is_float() and op != FETCH:
        t.filter = rng.randrange(2)
    # Integers' borders are taken as they are: as bits.
    t.border = tuple(rng.choice([0.0, 0.5, -2.0, 3.25]) for _ in range(4))
    t.fill(rng)
    return t


def random_place(rng, t):
    sizes = t.sizes(0)
    def coordinate(d):
        size = sizes[d]
        far = rng.random() < 0.3
        low, high = (-3 * size, 4 * size) if far else (0, size)
        # Now and then right between texels, or at a corner.
        x = rng.choice([rng.uniform(low, high), rng.randint(low, high) + 0.5,
                        rng.randint(low, high)])
        return single(x / size if t.normalized else x)
    geometry = t.op & 7 if t.op < GATHER else D2
    if geometry in (CUBE, CUBES) and t.op < GATHER:
        xyz = [single(rng.uniform(-2, 2)) for _ in range(3)]
    else:
        xyz = [coordinate(d) for d in range(3)]
    level = single(rng.choice([rng.uniform(-1, t.levels + 1), rng.randint(0, t.levels)]))
    gradients = [single(rng.choice([0.001, 0.05, 0.3, 1.0]) * rng.uniform(-1, 1) or 0.5)
                 for _ in range(6)]
    return (*xyz, rng.randint(-1, t.depth + 1) if rng.random() < 0.2 else
            rng.randrange(max(1, t.depth)), level, *gradients,
            rng.randint(-3, t.width + 3))


def random_cases(seed, per_op, places):
    rng = random.Random(seed)
    cases = []
    for op in OPS:
        for _ in range(per_op):
            t = random_texture(rng, op)
            cases.append((t, [random_place(rng, t) for _ in range(places)]))
    return cases


def write_cases(path, cases):
    with open(path, "wb") as file:
        for t, places in cases:
            file.write(t.head(len(places)))
            file.write(t.bytes())
            for p in places:
                file.write(struct.pack("<3fi7fi", *p))
