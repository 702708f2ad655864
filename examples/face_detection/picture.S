// Embeds the picture's grey values. PICTURE_FILE is their file's path as a string.
        .section .rodata
        .balign 64
        .global picture_pixels
picture_pixels:
        .incbin PICTURE_FILE

        .section .note.GNU-stack, "", %progbits
