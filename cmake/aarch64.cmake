# Cross build for 64-bit ARM with Debian's compiler; its programs run under qemu-user with every extension
# (scripts/test). Needs g++-aarch64-linux-gnu, qemu-user and the libraries of architecture arm64.
# At run time all of glibc must be of libc6:arm64, which those libraries bring: with `-L /usr/aarch64-linux-gnu` the
# loader is the cross compiler's, of another build than the libc beside the libraries, and pthread_create goes round
# for ever in one of the loader's lists. Hence no -L; the C++ and gcc run times, which are only there, are linked in.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_CROSSCOMPILING_EMULATOR "qemu-aarch64;-cpu;max")
add_link_options(-static-libstdc++ -static-libgcc)
set(ENV{PKG_CONFIG_LIBDIR} /usr/lib/aarch64-linux-gnu/pkgconfig:/usr/share/pkgconfig)
