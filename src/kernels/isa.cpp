// Placeholder; replaced by the kernel table.
