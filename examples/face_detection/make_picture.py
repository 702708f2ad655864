#!/usr/bin/env python3
"""Puts faces.png together from two public-domain portraits.  usage: make_picture.py ASTRONAUT
HOPPER

ASTRONAUT: skimage/data/astronaut.png of Debian's python3-skimage: Eileen Collins, NASA.
HOPPER: mpl-data/sample_data/grace_hopper.jpg of Debian's python-matplotlib-data: Grace Hopper, U.S.
Navy. Needs Debian's python3-opencv. The picture is in the repository; this says how it was made.
"""
import sys

import cv2
import numpy as np

WIDTH, HEIGHT = 480, 320


def paste(canvas, picture, x, y, width, mirrored=False):
    height = round(picture.shape[0] * width / picture.shape[1])
    scaled = cv2.resize(picture, (width, height), interpolation=cv2.INTER_AREA)
    if mirrored:
        scaled = scaled[:, ::-1]
    height = min(height, canvas.shape[0] - y)
    canvas[y:y + height, x:x + width] = scaled[:height]


def main():
    astronaut = cv2.imread(sys.argv[1], cv2.IMREAD_GRAYSCALE)
    hopper = cv2.imread(sys.argv[2], cv2.IMREAD_GRAYSCALE)
    rows, columns = np.mgrid[0:HEIGHT, 0:WIDTH]
    canvas = (96 + 40 * np.sin(columns / 37.0) + 30 * np.cos(rows / 29.0)).astype(np.uint8)
    bust = astronaut[0:400, 30:400]
    close = astronaut[10:270, 100:340]
    head = hopper[20:460, 80:440]
    paste(canvas, bust, 0, 0, 200)
    paste(canvas, head, 208, 0, 140)
    paste(canvas, bust, 360, 8, 110, mirrored=True)
    paste(canvas, head, 356, 140, 64, mirrored=True)
    paste(canvas, close, 424, 146, 52)
    paste(canvas, hopper, 8, 224, 76, mirrored=True)
    paste(canvas, close, 96, 224, 84, mirrored=True)
    paste(canvas, head, 190, 180, 104, mirrored=True)
    paste(canvas, close, 304, 226, 80)
    paste(canvas, hopper, 396, 226, 72)
    cv2.imwrite("faces.png", canvas, [cv2.IMWRITE_PNG_COMPRESSION, 9])


if __name__ == "__main__":
    main()
