#!/usr/bin/env python3
"""What face_detection.c is built with.  usage: make_tables.py CASCADE.xml PICTURE.png HEADER RAW

CASCADE.xml is one of OpenCV's cascades of Haar features (Debian: opencv-data), of decision stumps
and upright rectangles. HEADER becomes a C header of tables, RAW the picture's grey values, rows
from the top. PICTURE.png is 8-bit grey. Both outputs are written whole or not at all.
"""
import os
import struct
import sys
import xml.etree.ElementTree as ElementTree
import zlib


class Problem(Exception):
    """Bad input; the text says what and where."""


def read_png(path):
    """8-bit grey PNG without interlacing: (width, height, bytes)."""
    with open(path, "rb") as file:
        data = file.read()
    if data[:8] != b"\x89PNG\r\n\x1a\n":
        raise Problem(f"{path}: not a PNG file")
    at, packed, header = 8, b"", None
    while at + 8 <= len(data):
        length, kind = struct.unpack(">I4s", data[at:at + 8])
        body = data[at + 8:at + 8 + length]
        if kind == b"IHDR":
            header = struct.unpack(">IIBBBBB", body)
        elif kind == b"IDAT":
            packed += body
        at += 12 + length
    if header is None or header[2:4] != (8, 0) or header[6] != 0:
        raise Problem(f"{path}: expected 8-bit grey without interlacing")
    width, height = header[:2]
    try:
        rows = zlib.decompress(packed)
    except zlib.error as error:
        raise Problem(f"{path}: {error}") from None
    if len(rows) != height * (width + 1):
        raise Problem(f"{path}: {len(rows)} bytes of pixels, expected {height * (width + 1)}")
    return width, height, unfilter(path, rows, width, height)


def unfilter(path, rows, width, height):
    """PNG specification, section 9: each row starts with the number of its filter."""
    out = bytearray()
    above = bytearray(width)
    for y in range(height):
        kind = rows[y * (width + 1)]
        row = bytearray(rows[y * (width + 1) + 1:(y + 1) * (width + 1)])
        if kind > 4:
            raise Problem(f"{path}: row {y}: unknown filter {kind}")
        for x in range(width):
            left = row[x - 1] if x else 0
            corner = above[x - 1] if x else 0
            if kind == 1:
                row[x] = (row[x] + left) & 255
            elif kind == 2:
                row[x] = (row[x] + above[x]) & 255
            elif kind == 3:
                row[x] = (row[x] + (left + above[x]) // 2) & 255
            elif kind == 4:
                guess = left + above[x] - corner
                nearest = min((abs(guess - left), 0, left), (abs(guess - above[x]), 1, above[x]),
                              (abs(guess - corner), 2, corner))
                row[x] = (row[x] + nearest[2]) & 255
        out += row
        above = row
    return bytes(out)


def read_features(path, cascade):
    """List of features: each two or three of (x, y, width, height, weight)."""
    features = []
    for number, feature in enumerate(cascade.find("features")):
        if feature.findtext("tilted", "0").strip() != "0":
            raise Problem(f"{path}: feature {number} is tilted: not supported")
        rectangles = []
        for text in feature.find("rects"):
            x, y, width, height, weight = text.text.split()
            rectangles.append((int(x), int(y), int(width), int(height), float(weight)))
        if len(rectangles) not in (2, 3):
            raise Problem(f"{path}: feature {number} has {len(rectangles)} rectangles")
        features.append(rectangles)
    return features


def read_cascade(path):
    """(width, height, list of (threshold, list of (feature, threshold, left, right)))"""
    try:
        cascade = ElementTree.parse(path).getroot().find("cascade")
    except (OSError, ElementTree.ParseError) as error:
        raise Problem(f"{path}: {error}") from None
    if cascade is None or cascade.findtext("featureType") != "HAAR":
        raise Problem(f"{path}: not a cascade of Haar features in the format of OpenCV 2.4 and "
                      f"later")
    features = read_features(path, cascade)
    stages = []
    for number, stage in enumerate(cascade.find("stages")):
        stumps = []
        for classifier in stage.find("weakClassifiers"):
            nodes = classifier.findtext("internalNodes").split()
            leaves = classifier.findtext("leafValues").split()
            if len(nodes) != 4 or len(leaves) != 2:
                raise Problem(f"{path}: stage {number} has trees with several nodes: not supported")
            stumps.append((features[int(nodes[2])], float(nodes[3]), float(leaves[0]),
                           float(leaves[1])))
        stages.append((float(stage.findtext("stageThreshold")), stumps))
    return int(cascade.findtext("width")), int(cascade.findtext("height")), stages


def single(value):
    """A value rounded to single precision."""
    return struct.unpack("<f", struct.pack("<f", value))[0]


def c_float(value):
    """A value rounded to single precision, exactly, as C."""
    return single(value).hex() + "f"


def c_stump(stump):
    rectangles, threshold, left, right = stump
    rectangles = rectangles + [(0, 0, 0, 0, 0.0)] * (3 - len(rectangles))
    corners = ", ".join(f"RECTANGLE({x}, {y}, {w}, {h})" for x, y, w, h, _ in rectangles)
    weights = ", ".join(c_float(weight) for *_, weight in rectangles)
    return (f"  {{{{{corners}}}, {{{weights}}}, {c_float(threshold)}, {c_float(left)}, "
            f"{c_float(right)}}},")


def c_header(cascade_path, picture, cascade):
    width, height, stages = cascade
    first = [0]
    for _, stumps in stages:
        first.append(first[-1] + len(stumps))
    # OpenCV lowers each stage's threshold by 1e-5 when it reads a cascade.
    lowered = [single(threshold) - single(1e-5) for threshold, _ in stages]
    return "\n".join([
        f"// Made from {os.path.basename(cascade_path)} by make_tables.py. The cascade's own "
        f"licence holds:",
        "// Intel License Agreement for Open Source Computer Vision Library (three clauses), in "
        "that file.",
        f"enum {{ kPictureWidth = {picture[0]}, kPictureHeight = {picture[1]} }};",
        f"enum {{ kWindowWidth = {width}, kWindowHeight = {height}, kStages = {len(stages)} }};",
        f"static const uint16_t kFirstStump[kStages + 1] = {{{', '.join(map(str, first))}}};",
        f"static const float kStageThreshold[kStages] = {{{', '.join(map(c_float, lowered))}}};",
        "static const stump_t kStumps[] = {",
        *(c_stump(stump) for _, stumps in stages for stump in stumps),
        "};", ""])


def write_whole(path, data):
    unfinished = path + ".part"
    with open(unfinished, "wb") as file:
        file.write(data)
    os.replace(unfinished, path)


def main():
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    cascade_path, picture_path, header_path, raw_path = sys.argv[1:]
    try:
        picture = read_png(picture_path)
        header = c_header(cascade_path, picture, read_cascade(cascade_path))
        write_whole(raw_path, picture[2])
        write_whole(header_path, header.encode())
    except (Problem, OSError, ValueError, AttributeError, TypeError, struct.error) as problem:
        sys.exit(f"make_tables.py: {problem}")


if __name__ == "__main__":
    main()
