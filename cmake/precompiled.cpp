// Makes the precompiled headers; see Module.cmake.
