// Embeds the file that draw_picture wrote. PICTURE_FILE is its path as a string.
        .section .rodata
        .balign 64
        .global picture_pixels
picture_pixels:
        .incbin PICTURE_FILE

        .section .note.GNU-stack, "", %progbits
