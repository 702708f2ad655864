#!/usr/bin/env python3
"""What OpenCV's CPU detector finds, as JSON.  usage: opencv_faces.py CASCADE.xml PICTURE.png

Needs Debian's python3-opencv. The parameters are those of face_detection.c. "windows" are what
passes the cascade, before grouping (OpenCV's order depends on its threads: sorted here); a face's
last number is how many of them it stands for.
"""
import json
import sys

import cv2

PARAMETERS = {"scaleFactor": 1.1, "flags": 0, "minSize": (24, 24)}
MIN_NEIGHBORS = 3


def main():
    detector = cv2.CascadeClassifier(sys.argv[1])
    picture = cv2.imread(sys.argv[2], cv2.IMREAD_GRAYSCALE)
    if detector.empty() or picture is None:
        sys.exit(f"opencv_faces.py: cannot read {' or '.join(sys.argv[1:])}")
    boxes, numbers = detector.detectMultiScale2(picture, minNeighbors=MIN_NEIGHBORS, **PARAMETERS)
    windows = detector.detectMultiScale(picture, minNeighbors=0, **PARAMETERS)
    print(json.dumps({
        "opencv": cv2.__version__,
        "faces": sorted([*map(int, box), int(n)] for box, n in zip(boxes, numbers)),
        "windows": sorted([*map(int, window)] for window in windows)}))


if __name__ == "__main__":
    main()
